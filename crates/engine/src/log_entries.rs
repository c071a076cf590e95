//! The log of a folder that no node runs on, entry by entry.

use std::collections::HashMap;
use std::ops::ControlFlow;

use longbow_log::{Control, Record, Survey};
use longbow_storage::Manifest;
use serde::Serialize;

use crate::changes::ChangeKind;
use crate::checkpoint::{MANIFEST, covered};
use crate::entry::{Parts, Small};
use crate::error::Result;
use crate::folder::Folder;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Its index.
    pub index: u64,
    /// When it was written, in microseconds since 1970.
    pub timestamp_us: u64,
    /// The shard that it is for.
    pub shard: u32,
    /// What it does.
    pub kind: ChangeKind,
    /// The dataset or namespace that it is about, by name, or `#` and its number where the name is not known; of an
    /// entry of the log's own, what it is.
    pub subject: String,
    /// Bytes of its payload.
    pub bytes: u64,
}

impl Folder {
    /// Hands the entries from an index on to `each`, in order, until it says so or the log ends or breaks. The answer
    /// says whether it breaks; it covers only what was read on the way.
    ///
    /// # Errors
    /// If an entry cannot be understood, or the log is of a newer version.
    pub fn log_entries(
        &self,
        from: u64,
        each: &mut dyn FnMut(LogEntry) -> ControlFlow<()>,
    ) -> Result<Survey> {
        let (mut names, after) = self.known();
        let mut failed = None;
        let mut record = |record| match describe(record, &mut names) {
            Ok(entry) => each(entry),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        let survey = longbow_log::records(
            self.disk.as_ref(),
            &self.log_dir(),
            after,
            from,
            &mut record,
        )?;
        failed.map_or(Ok(survey), Err)
    }

    /// The names of the checkpoint's datasets, and the index up to which it holds everything; nothing where the manifest
    /// cannot be read, which is not what was asked for.
    fn known(&self) -> (HashMap<u64, String>, u64) {
        let manifest = Manifest::read(self.disk.as_ref(), &self.path.join(MANIFEST));
        let manifest = manifest.ok().flatten().unwrap_or_default();
        let after = covered(&manifest);
        let named = manifest.datasets.into_iter();
        (
            named.map(|found| (found.number, found.name)).collect(),
            after,
        )
    }
}

fn describe(record: Record, names: &mut HashMap<u64, String>) -> Result<LogEntry> {
    let bytes = record.payload.len() as u64;
    let name_of = |number: u64| match names.get(&number) {
        Some(name) => name.clone(),
        None => format!("#{number}"),
    };
    let (index, timestamp_us, shard) = (record.index, record.timestamp_us, record.shard);
    let entry = |kind, subject| LogEntry {
        index,
        timestamp_us,
        shard,
        kind,
        subject,
        bytes,
    };
    match record.control() {
        Some(Control::Vote) => return Ok(entry(ChangeKind::Control, "vote".to_owned())),
        Some(Control::Truncate { after }) => {
            let subject = format!("truncation after {after}");
            return Ok(entry(ChangeKind::Control, subject));
        }
        None => {}
    }
    let (kind, subject) = match Parts::read(index, record.kind, record.payload)? {
        Parts::Put { dataset, .. } => (ChangeKind::Put, name_of(dataset)),
        Parts::DeleteRows { dataset, .. } => (ChangeKind::Delete, name_of(dataset)),
        Parts::Small(Small::DeleteIds { dataset, .. }) => (ChangeKind::Delete, name_of(dataset)),
        Parts::Small(Small::DropDataset { dataset }) => (ChangeKind::DropDataset, name_of(dataset)),
        Parts::Small(Small::Schema { dataset, .. }) => (ChangeKind::Schema, name_of(dataset)),
        Parts::Small(Small::CreateDataset { dataset, name, .. }) => {
            names.insert(dataset, name.clone());
            (ChangeKind::CreateDataset, name)
        }
        Parts::Small(Small::CreateNamespace { name } | Small::DeleteNamespace { name }) => {
            (ChangeKind::Namespace, name)
        }
    };
    Ok(entry(kind, subject))
}
