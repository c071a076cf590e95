//! The state machine: log entries become visible, in order, on one thread at a time.

use std::sync::Arc;

use bytes::Bytes;
use longbow_storage::Batch;
use tokio::sync::oneshot;

use crate::catalog::Catalog;
use crate::dataset::Dataset;
use crate::entry::{Op, Small};
use crate::error::{Error, Result};
use crate::graph_options::GraphOptions;
use crate::room::Taken;
use crate::schema::DatasetSchema;
use crate::text_index::TextIndex;

/// What the log says of a write: its place, and what survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// Index in the log.
    pub offset: u64,
    /// Rows written or removed.
    pub rows: u64,
    /// Whether the entry was synced to the disk when this was said. If not, it survives the end of the process,
    /// not yet a loss of power.
    pub durable: bool,
}

/// An entry that the log took, and that is to be applied.
#[derive(Debug)]
pub(crate) struct Committed {
    pub index: u64,
    pub durable: bool,
    /// The entry as it lies in the log's file.
    pub payload: Option<Bytes>,
    pub op: Op,
    /// Room that it takes until it is applied.
    pub taken: Option<Taken>,
    pub reply: oneshot::Sender<Result<Applied>>,
}

impl Committed {
    /// Applies the entry; the answer is for whoever waits for it.
    pub(crate) fn apply(self, catalog: &Catalog, params: &GraphOptions) -> Answer {
        let op = match self.payload {
            Some(payload) => settled(self.op, &payload),
            None => self.op,
        };
        let applied = apply(catalog, params, self.index, op);
        let answer = applied.map(|rows| Applied {
            offset: self.index,
            rows,
            durable: self.durable,
        });
        let reply = self.reply;
        Answer { answer, reply }
    }
}

/// What became of an entry.
#[must_use = "somebody waits for it"]
pub(crate) struct Answer {
    answer: Result<Applied>,
    reply: oneshot::Sender<Result<Applied>>,
}

impl Answer {
    pub(crate) fn send(self) {
        // A caller that went away does not need the answer; the write stands.
        let _ = self.reply.send(self.answer);
    }
}

/// Batches from this size on are read from the log's file once they are in it.
const SETTLED_BYTES: usize = 64 << 10;

/// The operation with its rows where the log has them. The log's pages hold the rows anyway; a second copy in memory
/// would cost as much again, and giving the first one back lets the next batch come into memory that is warm.
fn settled(op: Op, payload: &Bytes) -> Op {
    let Op::Put {
        dataset,
        schema_version,
        batch,
    } = op
    else {
        return op;
    };
    let body_len = batch.body().len();
    if body_len < SETTLED_BYTES || body_len > payload.len() {
        return Op::Put {
            dataset,
            schema_version,
            batch,
        };
    }
    let body = payload.slice(payload.len() - body_len..);
    let at = body.as_ptr();
    let batch = match Batch::from_message(&batch.schema(), batch.header().clone(), body) {
        // Laid out anew because of some type's alignment, it would be one more copy.
        Ok(moved) if std::ptr::eq(moved.body().as_ptr(), at) => Arc::new(moved),
        _ => batch,
    };
    Op::Put {
        dataset,
        schema_version,
        batch,
    }
}

/// Applies one entry; also what recovery calls for each entry after the checkpoint. Deterministic: the same
/// entries give the same state and the same refusals.
///
/// # Errors
/// Where the operation is refused by the state it meets, which it leaves unchanged.
pub(crate) fn apply(catalog: &Catalog, params: &GraphOptions, index: u64, op: Op) -> Result<u64> {
    match op {
        Op::Put { dataset, batch, .. } => existing(catalog, dataset)?.apply_put(index, batch),
        Op::DeleteRows { dataset, rows } => {
            existing(catalog, dataset)?.apply_delete_rows(index, &rows)
        }
        Op::Small(small) => apply_small(catalog, params, index, small),
    }
}

fn apply_small(catalog: &Catalog, params: &GraphOptions, index: u64, op: Small) -> Result<u64> {
    match op {
        Small::CreateDataset {
            dataset,
            name,
            schema,
        } => {
            let schema = DatasetSchema::new(&schema.decode()?, 1)?;
            let text = TextIndex::new(Arc::clone(&catalog.text_columns), None);
            let created = Dataset::new(dataset, &name, schema, index, params)?;
            catalog.insert(index, Arc::new(created.with_text(text)));
            Ok(0)
        }
        Small::DropDataset { dataset } => {
            let gone = catalog.remove(index, dataset);
            Ok(gone.map_or(0, |dataset| dataset.view().live))
        }
        Small::Schema {
            dataset,
            version,
            schema,
        } => {
            let schema = DatasetSchema::new(&schema.decode()?, version)?;
            existing(catalog, dataset)?.apply_schema(index, schema)?;
            Ok(0)
        }
        Small::DeleteIds { dataset, ids } => {
            existing(catalog, dataset)?.apply_delete_ids(index, &ids)
        }
        Small::CreateNamespace { name } => {
            catalog.create_namespace(index, &name);
            Ok(0)
        }
        Small::DeleteNamespace { name } => {
            if catalog.delete_namespace(index, &name) {
                Ok(0)
            } else {
                Err(Error::NamespaceNotFound(name))
            }
        }
    }
}

fn existing(catalog: &Catalog, number: u64) -> Result<Arc<Dataset>> {
    catalog
        .by_number(number)
        .ok_or_else(|| Error::DatasetNotFound(format!("number {number}")))
}
