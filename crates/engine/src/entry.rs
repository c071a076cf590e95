//! What the engine writes into the log: one operation an entry, and how its bytes are laid out.
//!
//! A put keeps the Arrow message as it came off the wire; everything else is small and is JSON.
//!
//! ```text
//! put     0        8                12            16         24            24+round8(h)
//!         dataset  schema version   header len h  body len   header, zeros body
//!         u64      u32              u32           u64
//! rows    0        8
//!         dataset  roaring treemap (portable format) of row numbers
//!         u64
//! others  JSON, see [`Small`]
//! ```
//! All numbers little-endian. The log's frame has the checksum and the kind.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bytes::{Buf, Bytes};
use longbow_storage::Batch;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::id::Id;
use crate::schema::DatasetSchema;

const KIND_SMALL: u8 = 1;
const KIND_PUT: u8 = 2;
const KIND_DELETE_ROWS: u8 = 3;
const PUT_HEAD: usize = 24;

/// One change of the node's state, as ordered by the log.
#[derive(Debug)]
pub enum Op {
    /// Rows of one batch, each replacing the row of the same id.
    Put {
        /// Number of the dataset.
        dataset: u64,
        /// Version of the dataset's schema that the batch has.
        schema_version: u32,
        /// The rows.
        batch: Arc<Batch>,
    },
    /// Rows found by a filter die, unless they died before.
    DeleteRows {
        /// Number of the dataset.
        dataset: u64,
        /// Row numbers.
        rows: RoaringTreemap,
    },
    /// Any of the small operations.
    Small(Small),
}

/// The operations that are stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Small {
    /// A dataset comes to be; `schema` is an Arrow IPC schema message, base64.
    CreateDataset {
        /// Its number, never used again.
        dataset: u64,
        /// Its name.
        name: String,
        /// Its first schema.
        schema: SchemaText,
    },
    /// A dataset and all its rows go.
    DropDataset {
        /// Its number.
        dataset: u64,
    },
    /// The schema grows.
    Schema {
        /// Number of the dataset.
        dataset: u64,
        /// The version that this schema has.
        version: u32,
        /// The whole new schema.
        schema: SchemaText,
    },
    /// Rows go by id; all of them or, if one is unknown, none.
    DeleteIds {
        /// Number of the dataset.
        dataset: u64,
        /// The ids.
        ids: Vec<Id>,
    },
    /// A namespace comes to be.
    CreateNamespace {
        /// Its name.
        name: String,
    },
    /// A namespace goes.
    DeleteNamespace {
        /// Its name.
        name: String,
    },
}

/// An Arrow schema as an IPC message in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaText(pub String);

impl SchemaText {
    /// Encodes a schema.
    pub fn new(schema: &Schema) -> Self {
        SchemaText(longbow_storage::schema_to_text(schema))
    }

    /// The schema as an Arrow IPC message.
    ///
    /// # Errors
    /// As [`SchemaText::decode`].
    pub fn message(&self) -> Result<Bytes> {
        Ok(longbow_storage::schema_to_message(self.decode()?.as_ref()))
    }

    /// Decodes the schema.
    ///
    /// # Errors
    /// If the text is not what [`SchemaText::new`] made.
    pub fn decode(&self) -> Result<SchemaRef> {
        Ok(longbow_storage::schema_from_text(&self.0)?)
    }
}

impl Op {
    /// The entry's kind and payload parts; the body of a batch is shared, not copied.
    ///
    /// # Errors
    /// If the header of a message is longer than 4 GiB.
    pub fn encode(&self) -> Result<(u8, Vec<Bytes>)> {
        match self {
            Op::Put {
                dataset,
                schema_version,
                batch,
            } => {
                let header = batch.header();
                let header_len =
                    u32::try_from(header.len()).map_err(|_| bad(0, "header too long"))?;
                let padding = header.len().next_multiple_of(8) - header.len();
                let mut head = Vec::with_capacity(PUT_HEAD);
                head.extend_from_slice(&dataset.to_le_bytes());
                head.extend_from_slice(&schema_version.to_le_bytes());
                head.extend_from_slice(&header_len.to_le_bytes());
                head.extend_from_slice(&(batch.body().len() as u64).to_le_bytes());
                let zeros = Bytes::from_static(&[0; 8]).slice(..padding);
                Ok((
                    KIND_PUT,
                    vec![head.into(), header.clone(), zeros, batch.body().clone()],
                ))
            }
            Op::DeleteRows { dataset, rows } => {
                let mut bytes = dataset.to_le_bytes().to_vec();
                rows.serialize_into(&mut bytes)
                    .map_err(|_| bad(0, "rows not serialised"))?;
                Ok((KIND_DELETE_ROWS, vec![bytes.into()]))
            }
            Op::Small(small) => {
                let json =
                    serde_json::to_vec(small).map_err(|_| bad(0, "operation not serialised"))?;
                Ok((KIND_SMALL, vec![json.into()]))
            }
        }
    }

    /// Reads an entry that was taken apart. `schema_of` gives a dataset's schema as of this entry, or `None` for one that
    /// is gone; a put into such a dataset is `None`.
    ///
    /// # Errors
    /// If the bytes are not those of a batch; never panics.
    pub(crate) fn from_parts(
        index: u64,
        parts: Parts,
        schema_of: impl FnOnce(u64) -> Option<Arc<DatasetSchema>>,
    ) -> Result<Option<Op>> {
        Ok(match parts {
            Parts::Put {
                dataset,
                schema_version,
                header,
                body,
            } => {
                let Some(schema) = schema_of(dataset) else {
                    return Ok(None);
                };
                if schema.version != schema_version {
                    return Err(bad(index, "put of another schema version"));
                }
                let batch = Batch::from_message(&schema.arrow, header, body)?;
                Some(Op::Put {
                    dataset,
                    schema_version,
                    batch: Arc::new(batch),
                })
            }
            Parts::DeleteRows { dataset, rows } => Some(Op::DeleteRows { dataset, rows }),
            Parts::Small(small) => Some(Op::Small(small)),
        })
    }
}

/// An entry taken apart, its rows not yet read.
#[derive(Debug)]
pub(crate) enum Parts {
    /// [`Op::Put`].
    Put {
        dataset: u64,
        schema_version: u32,
        header: Bytes,
        body: Bytes,
    },
    /// [`Op::DeleteRows`].
    DeleteRows { dataset: u64, rows: RoaringTreemap },
    /// [`Op::Small`].
    Small(Small),
}

impl Parts {
    /// Takes the payload of an entry apart.
    ///
    /// # Errors
    /// If the bytes are not an entry; never panics.
    pub fn read(index: u64, kind: u8, mut payload: Bytes) -> Result<Self> {
        match kind {
            KIND_PUT => {
                if payload.len() < PUT_HEAD {
                    return Err(bad(index, "put shorter than its head"));
                }
                let dataset = payload.get_u64_le();
                let schema_version = payload.get_u32_le();
                let header_len = payload.get_u32_le() as usize;
                let body_len = payload.get_u64_le();
                let body_at = header_len.next_multiple_of(8);
                if (body_at as u64).checked_add(body_len) != Some(payload.len() as u64) {
                    return Err(bad(index, "put with wrong lengths"));
                }
                let (header, body) = (payload.slice(..header_len), payload.slice(body_at..));
                Ok(Parts::Put {
                    dataset,
                    schema_version,
                    header,
                    body,
                })
            }
            KIND_DELETE_ROWS => {
                if payload.len() < 8 {
                    return Err(bad(index, "row list without dataset"));
                }
                let dataset = payload.get_u64_le();
                let rows = RoaringTreemap::deserialize_from(&payload[..])
                    .map_err(|_| bad(index, "row list"))?;
                Ok(Parts::DeleteRows { dataset, rows })
            }
            KIND_SMALL => serde_json::from_slice(&payload)
                .map(Parts::Small)
                .map_err(|_| bad(index, "unknown operation")),
            _ => Err(bad(index, "unknown kind")),
        }
    }
}

fn bad(index: u64, what: &'static str) -> Error {
    Error::BadEntry { index, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch, types::Float32Type};
    use proptest::prelude::*;

    fn batch() -> Batch {
        let vectors = [
            Some(vec![Some(0.5), Some(1.0)]),
            Some(vec![Some(2.0), Some(-3.0)]),
        ];
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
        let columns = [
            ("id", Arc::new(Int64Array::from(vec![1, 2])) as _),
            ("vector", Arc::new(vectors) as _),
        ];
        Batch::from_record_batch(
            &RecordBatch::try_from_iter(columns).expect("columns of one length"),
        )
        .expect("types that are stored")
    }

    fn ops() -> Vec<Op> {
        let ids = vec![Id::Int(-1), Id::Large(u64::MAX), Id::Text("a".into())];
        vec![
            Op::Put {
                dataset: 7,
                schema_version: 1,
                batch: Arc::new(batch()),
            },
            Op::DeleteRows {
                dataset: 7,
                rows: [1, 2, 1 << 40].into_iter().collect(),
            },
            Op::Small(Small::DeleteIds { dataset: 7, ids }),
            Op::Small(Small::DropDataset { dataset: 7 }),
            Op::Small(Small::CreateNamespace { name: "n".into() }),
        ]
    }

    fn decode(
        index: u64,
        kind: u8,
        payload: Bytes,
        schema_of: impl FnOnce(u64) -> Option<Arc<DatasetSchema>>,
    ) -> Result<Option<Op>> {
        Op::from_parts(index, Parts::read(index, kind, payload)?, schema_of)
    }

    fn payload(op: &Op) -> (u8, Vec<u8>) {
        let (kind, parts) = op.encode().expect("small enough");
        (kind, parts.concat())
    }

    #[test]
    fn the_bytes_of_version_1_stay_as_they_are() {
        let golden = include_bytes!("../tests/fixtures/entries_v1.bin");
        let mut written = Vec::new();
        for op in ops() {
            let (kind, payload) = payload(&op);
            written.push(kind);
            written.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            written.extend_from_slice(&payload);
        }
        assert!(
            written == golden,
            "the format changed: give it a new kind and keep reading the old one"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let schema = DatasetSchema::new(&batch().schema(), 1).expect("a good schema");
        for op in ops() {
            let (kind, bytes) = payload(&op);
            let read = decode(1, kind, bytes.into(), |_| Some(Arc::clone(&schema)));
            let read = read.expect("an entry").expect("the dataset is there");
            assert_eq!(payload(&read), payload(&op));
        }
    }

    #[test]
    fn a_put_into_a_dataset_that_is_gone_is_nothing() {
        let (kind, payload) = payload(&ops()[0]);
        assert!(
            decode(1, kind, payload.into(), |_| None)
                .expect("an entry")
                .is_none()
        );
    }

    proptest! {
        #[test]
        fn damaged_entries_are_refused_or_read_but_never_panic(
            which in 0..5_usize,
            at in any::<prop::sample::Index>(),
            value in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let schema = DatasetSchema::new(&batch().schema(), 1).expect("a good schema");
            let (kind, mut payload) = payload(&ops()[which]);
            let at = at.index(payload.len());
            payload[at] = value;
            let _ = decode(1, kind, payload.clone().into(), |_| Some(Arc::clone(&schema)));
            payload.truncate(cut.index(payload.len()));
            let _ = decode(1, kind, payload.into(), |_| Some(Arc::clone(&schema)));
        }

        #[test]
        fn random_entries_are_refused_or_read_but_never_panic(
            kind in 0..6_u8,
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let schema = DatasetSchema::new(&batch().schema(), 1).expect("a good schema");
            let _ = decode(1, kind, payload.into(), |_| Some(Arc::clone(&schema)));
        }
    }
}
