//! A broken place in the log: is it a torn tail or damage?

use crate::reader::{Reader, highest_claim_despite};
use crate::segment::{Segment, path_of};
use crate::{Error, Flaw, Options, Result};
use longbow_disk::{Disk, File};
use std::path::{Path, PathBuf};

/// The first place where the log does not go on as it should.
#[derive(Debug, Clone)]
pub(crate) struct Break {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    /// The index that should be there.
    pub(crate) expected: u64,
    pub(crate) flaw: Flaw,
    /// The highest index that is known, from elsewhere than the log's frames, to have been durable.
    pub(crate) claimed: u64,
    /// Which of the segments, in the order of their first indexes, it is in.
    pub(crate) position: usize,
}

impl Break {
    /// Looks through everything from the break on for a frame that says that the index was durable. If there is one, the
    /// bytes had been safe and are damaged now. If there is none, a crash interrupted the writing here: unless no writing of
    /// ours can have left what is found.
    pub(crate) fn refuse_damage(
        &self,
        disk: &dyn Disk,
        options: &Options,
        firsts: &[u64],
    ) -> Result<()> {
        let damaged = |file: &Path, offset, flaw| Error::Damaged {
            file: file.to_path_buf(),
            offset,
            expected: self.expected,
            flaw,
        };
        if self.claimed >= self.expected {
            return Err(damaged(&self.file, self.offset, self.flaw));
        }
        for (behind, first) in firsts[self.position..].iter().enumerate() {
            let from = if behind == 0 { self.offset } else { 0 };
            let (claim, flaw) = highest_claim(disk, options, *first, from)?;
            if flaw == Some(Flaw::Foreign) {
                return Err(damaged(&path_of(&options.dir, *first), 0, Flaw::Foreign));
            }
            if claim >= Some(self.expected) {
                return Err(damaged(&self.file, self.offset, self.flaw));
            }
        }
        Ok(())
    }

    /// Cuts the log at the break, durably, and returns how many bytes that were, up to the last that is not zero.
    /// `segments` are the sound ones, the last
    /// of which may be the one with the break.
    ///
    /// The last file goes first, so that a crash on the way leaves a log that is broken in the same place. If nothing is
    /// left, the first file stays, for the caller to replace: a folder without any segment is not a log.
    pub(crate) fn cut(
        &self,
        disk: &dyn Disk,
        options: &Options,
        firsts: &[u64],
        segments: &[Segment],
    ) -> Result<u64> {
        let mut bytes = 0;
        for (position, first) in firsts.iter().enumerate().skip(segments.len()).rev() {
            let path = path_of(&options.dir, *first);
            bytes += last_used(&*disk.open(&path)?, 0)?;
            if position > 0 {
                disk.remove(&path)?;
            }
        }
        if let Some(segment) = segments.get(self.position) {
            let file = disk.open(&self.file)?;
            bytes += last_used(&*file, segment.end)? - segment.end;
            file.truncate(segment.end)?;
            file.sync_data()?;
        }
        disk.sync_dir(&options.dir)?;
        Ok(bytes)
    }
}

/// The highest index that a frame of a segment, from an offset on, says was durable, and the flaw of the segment's header.
fn highest_claim(
    disk: &dyn Disk,
    options: &Options,
    first: u64,
    from: u64,
) -> Result<(Option<u64>, Option<Flaw>)> {
    let mut reader = Reader::open(disk, &options.dir, first)?;
    let entered = reader.enter(first)?;
    reader.offset = from;
    match entered {
        Ok(_) => Ok((reader.highest_claim()?, None)),
        Err(flaw) => {
            let claim = highest_claim_despite(flaw, &mut reader, first)?;
            Ok((claim, Some(flaw)))
        }
    }
}

/// The offset behind the last byte from `from` on that is not zero, or `from`.
fn last_used(file: &dyn File, from: u64) -> Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = from;
    let mut used = from;
    loop {
        let found = file.read_at(offset, &mut buffer)?;
        if let Some(last) = buffer[..found].iter().rposition(|byte| *byte != 0) {
            used = offset + last as u64 + 1;
        }
        offset += found as u64;
        if found < buffer.len() {
            return Ok(used);
        }
    }
}
