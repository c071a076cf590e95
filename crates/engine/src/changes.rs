//! The change feed: the log as its readers see it.

use bytes::Bytes;
use serde::Serialize;

use crate::engine::Engine;
use crate::entry::{Parts, Small};
use crate::error::Result;

/// Bytes of log that one call reads.
const READ_BYTES: u64 = 16 << 20;

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// Name of its dataset, if that still exists.
    pub dataset: Option<String>,
    /// What it did.
    pub kind: ChangeKind,
    /// The Arrow IPC message of what it carries; empty if that is nothing.
    pub header: Bytes,
    /// The message's body.
    pub body: Bytes,
}

impl Engine {
    /// Changes from a sequence number on, some at a time; none if the log ends before it.
    ///
    /// # Errors
    /// If the log was cut after a checkpoint and begins later, or cannot be read.
    pub fn changes(&self, from: u64) -> Result<Vec<Change>> {
        let mut from = from.max(1);
        loop {
            let records = self.shared().log.read(from, READ_BYTES)?;
            let Some(last) = records.last() else {
                return Ok(Vec::new());
            };
            from = last.index + 1;
            // No changes that do not mean the end: the log's own entries are none.
            let changed = records.into_iter().filter(|r| r.control().is_none());
            let changes: Vec<Change> = changed.map(|r| self.change(r)).collect::<Result<_>>()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }

    fn change(&self, record: longbow_log::Record) -> Result<Change> {
        let (sequence, timestamp_us) = (record.index, record.timestamp_us);
        let (number, kind, header, body) = match Parts::read(sequence, record.kind, record.payload)?
        {
            Parts::Put {
                dataset,
                header,
                body,
                ..
            } => (dataset, ChangeKind::Put, header, body),
            Parts::DeleteRows { dataset, .. } => {
                (dataset, ChangeKind::Delete, Bytes::new(), Bytes::new())
            }
            Parts::Small(small) => small_change(small)?,
        };
        let dataset = self
            .catalog()
            .by_number(number)
            .map(|dataset| dataset.name.clone());
        Ok(Change {
            sequence,
            timestamp_us,
            dataset,
            kind,
            header,
            body,
        })
    }
}

fn small_change(small: Small) -> Result<(u64, ChangeKind, Bytes, Bytes)> {
    Ok(match small {
        Small::CreateDataset {
            dataset, schema, ..
        } => (
            dataset,
            ChangeKind::CreateDataset,
            schema.message()?,
            Bytes::new(),
        ),
        Small::Schema {
            dataset, schema, ..
        } => (dataset, ChangeKind::Schema, schema.message()?, Bytes::new()),
        Small::DropDataset { dataset } => {
            (dataset, ChangeKind::DropDataset, Bytes::new(), Bytes::new())
        }
        Small::DeleteIds { dataset, .. } => {
            (dataset, ChangeKind::Delete, Bytes::new(), Bytes::new())
        }
        Small::CreateNamespace { .. } | Small::DeleteNamespace { .. } => {
            (0, ChangeKind::Namespace, Bytes::new(), Bytes::new())
        }
    })
}
