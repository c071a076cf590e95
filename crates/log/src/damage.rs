//! A broken place in the log: is it a torn tail or damage?

use crate::reader::Reader;
use crate::segment::{Segment, path_of};
use crate::{Error, Flaw, Options, Result};
use longbow_disk::Disk;
use std::path::PathBuf;

/// The first place where the log does not go on as it should.
#[derive(Debug, Clone)]
pub(crate) struct Break {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    /// The index that should be there.
    pub(crate) expected: u64,
    pub(crate) flaw: Flaw,
    /// Which of the segments, in the order of their first indexes, it is in.
    pub(crate) position: usize,
}

impl Break {
    /// Looks through everything from the break on for a frame that says that the index was durable. If there is one, the
    /// bytes had been safe and are damaged now. If there is none, a crash interrupted the writing here.
    pub(crate) fn refuse_damage(
        &self,
        disk: &dyn Disk,
        options: &Options,
        firsts: &[u64],
    ) -> Result<()> {
        for (behind, first) in firsts[self.position..].iter().enumerate() {
            let mut reader = Reader::open(disk, &options.dir, *first)?;
            if behind == 0 {
                reader.offset = self.offset;
            }
            if reader.highest_claim()? >= self.expected {
                return Err(Error::Damaged {
                    file: self.file.clone(),
                    offset: self.offset,
                    expected: self.expected,
                    flaw: self.flaw,
                });
            }
        }
        Ok(())
    }

    /// Cuts the log at the break, durably, and returns how many bytes that were. `segments` are the sound ones, the last
    /// of which may be the one with the break.
    ///
    /// The last file goes first, so that a crash on the way leaves a log that is broken in the same place.
    pub(crate) fn cut(
        &self,
        disk: &dyn Disk,
        options: &Options,
        firsts: &[u64],
        segments: &[Segment],
    ) -> Result<u64> {
        let mut bytes = 0;
        for first in firsts[segments.len()..].iter().rev() {
            let path = path_of(&options.dir, *first);
            bytes += disk.open(&path)?.len()?;
            disk.remove(&path)?;
        }
        if let Some(segment) = segments.get(self.position) {
            let file = disk.open(&self.file)?;
            bytes += file.len()? - segment.end;
            file.truncate(segment.end)?;
            file.sync_data()?;
        }
        disk.sync_dir(&options.dir)?;
        Ok(bytes)
    }
}
