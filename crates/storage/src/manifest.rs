//! [`Manifest`]: which files a node's checkpoint is made of.
//!
//! One file a node, replaced as a whole, so a checkpoint is there or it is not. It is JSON in the frame of
//! `envelope` with the magic `LBMANI\0\0`; `version` of the frame is the version of the JSON.

use std::collections::HashSet;
use std::path::Path;

use arrow_schema::SchemaRef;
use longbow_disk::Disk;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::segment::SegmentMeta;

/// Version of the manifest that is written.
///
/// Version 2 knows text indexes, and version 3 files of blocks; an older manifest is one without.
pub const MANIFEST_VERSION: u32 = 3;
const ENVELOPE: Envelope = Envelope {
    magic: *b"LBMANI\0\0",
    version: MANIFEST_VERSION,
    limit: 1 << 30,
};

/// A checkpoint: its files hold everything up to the log indices named in it; the log after them is replayed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Its number, counted up by one with each.
    pub checkpoint: u64,
    /// Log index up to which the list of datasets and namespaces holds.
    pub catalog_index: u64,
    /// Number that the next dataset gets; numbers are never used again.
    pub next_dataset: u64,
    /// Namespaces that were created, also empty ones.
    pub namespaces: Vec<String>,
    /// The datasets.
    pub datasets: Vec<DatasetManifest>,
}

/// One dataset of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetManifest {
    /// Its number, the name of its folder.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Its schema; in the file as base64 of the IPC message.
    #[serde(with = "schema_text")]
    pub schema: SchemaRef,
    /// How often the schema changed, from 1.
    pub schema_version: u32,
    /// What else was set when it was created; read by the engine.
    pub options: Map<String, Value>,
    /// Log index up to which its files hold.
    pub applied: u64,
    /// Number that the next row gets.
    pub next_row: u64,
    /// Its row segments, in order of rows.
    pub segments: Vec<SegmentMeta>,
    /// Its dead rows that are still in segments.
    pub tombstones: Option<FileRef>,
    /// Its saved indexes.
    pub indexes: Vec<IndexRef>,
    /// Its saved text index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRef>,
}

/// A file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRef {
    /// Name in the dataset's folder.
    pub file: String,
    /// Length.
    pub bytes: u64,
    /// CRC-32C of the whole file.
    pub crc32c: u32,
}

/// A saved index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexRef {
    /// The column it is on.
    pub column: String,
    /// Name of its file in the dataset's folder.
    pub file: String,
    /// Length.
    pub bytes: u64,
    /// CRC-32C of the whole file.
    pub crc32c: u32,
    /// Rows before this one are in the index, or dead.
    pub rows_end: u64,
    /// Name of the file of its blocks in the dataset's folder, if it keeps some. Blocks have checksums of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
}

/// A saved text index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRef {
    /// Its columns and their tokenizers.
    pub columns: Vec<(String, String)>,
    /// Its files, in order of rows.
    pub pieces: Vec<FileRef>,
    /// Rows before this one are in the index, or dead, or without text.
    pub rows_end: u64,
}

impl Manifest {
    /// The bytes of the file.
    ///
    /// # Errors
    /// If a number or a name is there twice, or segments are out of order.
    pub fn encode(&self) -> Result<Vec<u8>> {
        self.check()?;
        Ok(ENVELOPE.seal(&serde_json::to_vec(self).map_err(Error::ManifestJson)?))
    }

    /// Reads the bytes of a file; `path` is for errors.
    ///
    /// # Errors
    /// If the file is damaged or of a newer version. Never panics.
    pub fn decode(path: &Path, file: &[u8]) -> Result<Self> {
        let (_, json) = ENVELOPE.open(path, file)?;
        let manifest: Manifest = serde_json::from_slice(json).map_err(Error::ManifestJson)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// As [`Manifest::decode`], or if the disk refuses.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Self>> {
        if !disk.exists(path)? {
            return Ok(None);
        }
        Self::decode(path, &ENVELOPE.read(disk, path)?).map(Some)
    }

    /// Replaces the file. When this returns it survives power loss; whatever happens, the file is the old or the
    /// new one. The files that it names must be durable before.
    ///
    /// # Errors
    /// As [`Manifest::encode`], or if the disk refuses.
    pub fn write(&self, disk: &dyn Disk, path: &Path) -> Result<()> {
        Ok(disk.write_atomic(path, &self.encode()?)?)
    }

    fn check(&self) -> Result<()> {
        let mut names = HashSet::new();
        let mut numbers = HashSet::new();
        for dataset in &self.datasets {
            let bad = |what| Error::Manifest {
                dataset: dataset.name.clone(),
                what,
            };
            if !names.insert(&dataset.name) {
                return Err(bad("its name is there twice"));
            }
            if !numbers.insert(dataset.number) || dataset.number >= self.next_dataset {
                return Err(bad("its number is not its own"));
            }
            let mut end = 0;
            for segment in &dataset.segments {
                if segment.first_row < end || segment.last_row < segment.first_row {
                    return Err(bad("its segments are out of order"));
                }
                end = segment.last_row.saturating_add(1);
            }
            if end > dataset.next_row {
                return Err(bad("it has rows past the next row number"));
            }
        }
        Ok(())
    }
}

mod schema_text {
    //! A schema as text within JSON.

    use arrow_schema::SchemaRef;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::schema::{schema_from_text, schema_to_text};

    pub fn serialize<S: Serializer>(schema: &SchemaRef, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&schema_to_text(schema))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SchemaRef, D::Error> {
        let text = String::deserialize(from)?;
        schema_from_text(&text).map_err(D::Error::custom)
    }
}
