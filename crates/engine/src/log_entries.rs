//! The log of a folder that no node runs on, entry by entry.

use std::ops::ControlFlow;

use longbow_log::{Record, Survey};
use longbow_storage::Manifest;
use serde::Serialize;

use crate::changes::{Change, ChangeKind, Names};
use crate::checkpoint::{MANIFEST, covered};
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
    fn known(&self) -> (Names, u64) {
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

fn describe(record: Record, names: &mut Names) -> Result<LogEntry> {
    let change = Change::read(record, names)?;
    Ok(LogEntry {
        index: change.sequence,
        timestamp_us: change.timestamp_us,
        shard: change.shard,
        kind: change.kind,
        subject: change.subject,
        bytes: change.bytes,
    })
}
