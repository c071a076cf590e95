//! One change of the feed: an entry of the log as its readers see it.

use std::collections::HashMap;

use bytes::Bytes;
use longbow_log::{Control, Record};
use serde::{Deserialize, Serialize};

use crate::entry::{Parts, Small};
use crate::error::Result;

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Rows were put; the change carries their message.
    Put,
    /// Rows went.
    Delete,
    /// A dataset came to be; the change carries its schema message.
    CreateDataset,
    /// A dataset went.
    DropDataset,
    /// A dataset's schema grew; the change carries the new one.
    Schema,
    /// Namespaces changed.
    Namespace,
    /// Nothing: an entry of the log's own. Never in the change feed.
    Control,
}

/// One entry of the log.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its index: ascending along the log, which has entries of its own between those of changes.
    pub sequence: u64,
    /// When it was written, in microseconds since 1970.
    pub timestamp_us: u64,
    /// The shard that it is for.
    pub shard: u32,
    /// Number of its dataset; 0 for namespaces.
    pub number: u64,
    /// Name of its dataset, unless that was dropped and created before the feed began.
    pub dataset: Option<String>,
    /// The dataset or namespace that it is about, by name, or `#` and its number where the name is not known.
    pub subject: String,
    /// What it did.
    pub kind: ChangeKind,
    /// Bytes of the entry's payload.
    pub bytes: u64,
    /// The Arrow IPC message of what it carries; empty if that is nothing.
    pub header: Bytes,
    /// The message's body.
    pub body: Bytes,
}

/// The names of datasets by their numbers, as far as they are known.
pub(crate) type Names = HashMap<u64, String>;

impl Change {
    /// Reads an entry; learns the name of a dataset that it creates.
    pub(crate) fn read(record: Record, names: &mut Names) -> Result<Change> {
        if let Some(control) = record.control() {
            return Ok(Change::of_the_log(&record, control));
        }
        let bytes = record.payload.len() as u64;
        let parts = Parts::read(record.index, record.kind, record.payload)?;
        let mut namespace = None;
        let (number, kind, header, body) = match parts {
            Parts::Put {
                dataset,
                header,
                body,
                ..
            } => (dataset, ChangeKind::Put, header, body),
            Parts::DeleteRows { dataset, .. } => without_message(dataset, ChangeKind::Delete),
            Parts::Small(small) => match small {
                Small::CreateDataset {
                    dataset,
                    name,
                    schema,
                } => {
                    names.insert(dataset, name);
                    let message = schema.message()?;
                    (dataset, ChangeKind::CreateDataset, message, Bytes::new())
                }
                Small::Schema {
                    dataset, schema, ..
                } => (dataset, ChangeKind::Schema, schema.message()?, Bytes::new()),
                Small::DropDataset { dataset } => without_message(dataset, ChangeKind::DropDataset),
                Small::DeleteIds { dataset, .. } => without_message(dataset, ChangeKind::Delete),
                Small::CreateNamespace { name } | Small::DeleteNamespace { name } => {
                    namespace = Some(name);
                    without_message(0, ChangeKind::Namespace)
                }
            },
        };
        let dataset = names.get(&number).cloned();
        let known = namespace.or_else(|| dataset.clone());
        Ok(Change {
            sequence: record.index,
            timestamp_us: record.timestamp_us,
            shard: record.shard,
            number,
            subject: known.unwrap_or_else(|| format!("#{number}")),
            dataset,
            kind,
            bytes,
            header,
            body,
        })
    }

    /// An entry that is about the log and changes nothing.
    fn of_the_log(record: &Record, control: Control) -> Change {
        Change {
            sequence: record.index,
            timestamp_us: record.timestamp_us,
            shard: record.shard,
            number: 0,
            subject: match control {
                Control::Vote => "vote".to_owned(),
                Control::Truncate { after } => format!("truncation after {after}"),
            },
            dataset: None,
            kind: ChangeKind::Control,
            bytes: record.payload.len() as u64,
            header: Bytes::new(),
            body: Bytes::new(),
        }
    }
}

fn without_message(number: u64, kind: ChangeKind) -> (u64, ChangeKind, Bytes, Bytes) {
    (number, kind, Bytes::new(), Bytes::new())
}
