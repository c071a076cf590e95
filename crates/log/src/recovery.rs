//! Opening a log: reading what is there, cutting a torn tail, going on behind it.

use crate::damage::Break;
use crate::reader::{Reader, Step, record};
use crate::segment::{Segment, encode_header, parse_name, path_of};
use crate::{Error, Flaw, Options, Record, ReplayError, Result};
use longbow_disk::{Disk, File};
use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;

/// What was found when a log was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The first index that can be read; one past `last_index` if there is no record.
    pub first_index: u64,
    /// The last index; appends go on behind it.
    pub last_index: u64,
    /// How many records were handed to the replay.
    pub replayed: u64,
    /// How many bytes of a torn tail were cut; 0 after a clean end.
    pub cut_bytes: u64,
    /// Where the torn tail began: file and offset in bytes.
    pub cut_at: Option<(PathBuf, u64)>,
}

/// The caller's replay.
pub(crate) type Replay<'a> = dyn FnMut(Record) -> std::result::Result<(), ReplayError> + 'a;

/// An opened log, before its threads are started. The last segment is the one to append to.
pub(crate) struct Opened {
    pub(crate) segments: Vec<Segment>,
    pub(crate) file: Arc<dyn File>,
    pub(crate) recovery: Recovery,
    pub(crate) last_timestamp: u64,
    /// Whether nothing follows the last mark.
    pub(crate) marked: bool,
}

/// The walk over all segments.
struct Scan<'a, 'b> {
    disk: &'a dyn Disk,
    options: &'a Options,
    after: u64,
    replay: &'a mut Replay<'b>,
    segments: Vec<Segment>,
    /// The index that should come next.
    next: u64,
    /// The highest index that a sound frame says was durable.
    claimed: u64,
    replayed: u64,
    last_timestamp: u64,
    marked: bool,
}

impl Scan<'_, '_> {
    /// Reads one segment; answers where it breaks, if it does.
    fn segment(&mut self, first: u64) -> Result<Option<(u64, Flaw)>> {
        let mut reader = Reader::open(self.disk, &self.options.dir, first)?;
        if first != self.next {
            return Ok(Some((0, Flaw::SegmentBegins { found: first })));
        }
        if let Err(flaw) = reader.enter(first)? {
            return Ok(Some((0, flaw)));
        }
        self.segments.push(Segment::new(first));
        loop {
            let offset = reader.offset;
            match reader.step()? {
                Step::End => return Ok(None),
                Step::Bad(flaw) => return Ok(Some((offset, flaw))),
                Step::Frame { header, payload } => {
                    let expected = if header.mark {
                        self.next - 1
                    } else {
                        self.next
                    };
                    if header.index != expected {
                        let found = header.index;
                        return Ok(Some((offset, Flaw::Index { found })));
                    }
                    if let Some(segment) = self.segments.last_mut() {
                        segment.push(self.next, header.frame_bytes());
                    }
                    self.claimed = self.claimed.max(header.durable);
                    self.marked = header.mark;
                    if !header.mark {
                        self.next += 1;
                        self.last_timestamp = self.last_timestamp.max(header.timestamp_us);
                        self.hand_over(record(&header, payload))?;
                    }
                }
            }
        }
    }

    fn hand_over(&mut self, record: Record) -> Result<()> {
        let index = record.index;
        if index <= self.after {
            return Ok(());
        }
        self.replayed += 1;
        (self.replay)(record).map_err(|cause| {
            let cause = Arc::from(cause);
            Error::Replay { index, cause }
        })
    }

    fn all(&mut self, firsts: &[u64]) -> Result<Option<Break>> {
        for (position, first) in firsts.iter().enumerate() {
            if let Some((offset, flaw)) = self.segment(*first)? {
                return Ok(Some(Break {
                    file: path_of(&self.options.dir, *first),
                    offset,
                    expected: self.next,
                    flaw,
                    position,
                }));
            }
        }
        Ok(None)
    }

    /// Makes every record durable that may not be: those of a process that was killed are perhaps only in memory.
    fn sync(&self) -> Result<()> {
        let ends = self.segments.iter().skip(1).map(|s| s.first);
        for (segment, end) in self.segments.iter().zip(ends.chain([u64::MAX])) {
            if end > self.claimed {
                let path = path_of(&self.options.dir, segment.first);
                self.disk.open(&path)?.sync_data()?;
            }
        }
        Ok(self.disk.sync_dir(&self.options.dir)?)
    }

    /// Removes every segment, oldest first.
    fn forget_all(&mut self) -> Result<()> {
        for segment in self.segments.drain(..) {
            remove_segment(self.disk, self.options, segment.first)?;
        }
        Ok(())
    }
}

/// Removes one segment file, durably: the next may only go when this one cannot come back.
pub(crate) fn remove_segment(disk: &dyn Disk, options: &Options, first: u64) -> Result<()> {
    disk.remove(&path_of(&options.dir, first))?;
    Ok(disk.sync_dir(&options.dir)?)
}

/// Creates the segment that begins at `first`. Neither its contents nor its name are synced yet.
pub(crate) fn create_segment(
    disk: &dyn Disk,
    options: &Options,
    first: u64,
) -> longbow_disk::Result<Box<dyn File>> {
    let file = disk.create(&path_of(&options.dir, first))?;
    file.append_vectored(&[IoSlice::new(&encode_header(first))])?;
    Ok(file)
}

/// The first indexes of the segments in the folder, ascending.
fn list_segments(disk: &dyn Disk, options: &Options) -> Result<Vec<u64>> {
    let mut firsts = Vec::new();
    for name in disk.list(&options.dir)? {
        match parse_name(&name) {
            Some(first) => firsts.push(first),
            None => {
                tracing::warn!(dir = %options.dir.display(), name, "not a log segment, ignored")
            }
        }
    }
    firsts.sort_unstable();
    Ok(firsts)
}

/// Opens the log in the folder; see [`Log::open`](crate::Log::open).
pub(crate) fn recover(
    disk: &dyn Disk,
    options: &Options,
    after: u64,
    replay: &mut Replay<'_>,
) -> Result<Opened> {
    disk.create_dir_all(&options.dir)?;
    let firsts = list_segments(disk, options)?;
    let behind = after.saturating_add(1);
    let first = firsts.first().copied().unwrap_or(behind);
    if first > behind {
        return Err(Error::Missing { after, first });
    }
    let mut scan = Scan {
        disk,
        options,
        after,
        replay,
        segments: Vec::new(),
        next: first,
        claimed: 0,
        replayed: 0,
        last_timestamp: 0,
        marked: true,
    };
    let mut cut_bytes = 0;
    let broken = scan.all(&firsts)?;
    if let Some(broken) = &broken {
        broken.refuse_damage(disk, options, &firsts)?;
        cut_bytes = broken.cut(disk, options, &firsts, &scan.segments)?;
        tracing::warn!(
            file = %broken.file.display(), offset = broken.offset, index = broken.expected,
            cut_bytes, flaw = %broken.flaw, "cut the torn tail of the log"
        );
        scan.marked = false;
    }
    if scan.next <= after {
        // A power loss took records that the checkpoint has. No record behind the checkpoint is there either.
        scan.forget_all()?;
        scan.next = behind;
    }
    let file = if let Some(last) = scan.segments.last() {
        scan.sync()?;
        disk.open(&path_of(&options.dir, last.first))?
    } else {
        let file = create_segment(disk, options, scan.next)?;
        file.sync_data()?;
        disk.sync_dir(&options.dir)?;
        scan.segments.push(Segment::new(scan.next));
        scan.marked = true;
        file
    };
    Ok(Opened {
        recovery: Recovery {
            first_index: scan.segments[0].first,
            last_index: scan.next - 1,
            replayed: scan.replayed,
            cut_bytes,
            cut_at: broken.map(|b| (b.file, b.offset)),
        },
        segments: scan.segments,
        file: Arc::from(file),
        last_timestamp: scan.last_timestamp,
        marked: scan.marked,
    })
}
