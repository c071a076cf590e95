//! Opening a log: reading what is there, cutting a torn tail, going on behind it.

use crate::ahead::{Ahead, read_ahead};
use crate::claim;
use crate::damage::Break;
use crate::frame::Format;
use crate::pace::Pace;
use crate::reader::{Reader, record};
use crate::segment::{Segment, SegmentHeader, parse_name, parse_spare_name, path_of};
use crate::shards::Shards;
use crate::spares::{Spares, begin_segment};
use crate::verify::size_bytes;
use crate::walk::{Walked, walk};
use crate::{Error, Flaw, Options, Replay, Result};
use longbow_disk::{Disk, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
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
    /// How many bytes the segment files have, all of which were read.
    pub bytes: u64,
}

/// An opened log, before its threads are started. The last segment is the one to append to.
pub(crate) struct Opened {
    pub(crate) segments: Vec<Segment>,
    pub(crate) file: Arc<dyn File>,
    pub(crate) recovery: Recovery,
    pub(crate) last_timestamp: u64,
    /// Whether nothing follows the last mark.
    pub(crate) marked: bool,
    /// The checksum of the last header of the log.
    pub(crate) link: u32,
    pub(crate) spares: Spares,
    pub(crate) shards: Shards,
    /// First indexes of segments that end before the first of the log, oldest first. They are to be removed.
    pub(crate) superseded: Vec<u64>,
}

/// The walk over all segments.
struct Scan<'a> {
    disk: &'a dyn Disk,
    options: &'a Options,
    after: u64,
    replay: &'a mut dyn Replay,
    pace: Pace,
    segments: Vec<Segment>,
    shards: Shards,
    superseded: Vec<u64>,
    /// The index that should come next.
    next: u64,
    /// The highest index that a sound frame says was durable.
    claimed: u64,
    /// The same by the claim of the last close.
    promised: u64,
    replayed: u64,
    last_timestamp: u64,
    marked: bool,
    /// The checksum of the last header; `None` before the first segment, and behind one of version 1.
    link: Option<u32>,
}

impl Scan<'_> {
    /// Reads the next segment, behind which the segment begins that has `follows` as its first index; answers where it
    /// breaks, if it does.
    fn segment(
        &mut self,
        ahead: &mut Ahead<'_, '_>,
        first: u64,
        follows: Option<u64>,
    ) -> Result<Option<(u64, Flaw)>> {
        let mut steps = ahead.segment()?;
        if begins_anew(self.disk, &self.options.dir, first, self.next, self.after)? {
            self.supersede(first);
        }
        if first != self.next {
            return Ok(Some((0, Flaw::SegmentBegins { found: first })));
        }
        let header = match steps.enter()? {
            Ok(header) if self.continues(&header) => header,
            Ok(_) => return Ok(Some((0, Flaw::Chain))),
            Err(flaw) => return Ok(Some((0, flaw))),
        };
        self.link = header.link;
        let mut segment = Segment::new(first, &header);
        let mut next = self.next;
        let flaw = walk(&mut steps, &mut next, follows, &mut |walked| {
            segment.last_us = segment.last_us.max(walked.header.timestamp_us);
            segment.push(
                walked.header.index + u64::from(walked.header.mark),
                walked.end - walked.offset,
            );
            self.frame(walked)
        });
        self.pace.skip(header.begin + (steps.bytes - segment.end));
        self.segments.push(segment);
        Ok(flaw?.map(|flaw| (steps.offset, flaw)))
    }

    /// Lets the log begin at `first`; what was read of it is covered by the checkpoint.
    fn supersede(&mut self, first: u64) {
        let old = std::mem::take(&mut self.segments);
        self.superseded.extend(old.iter().map(|old| old.first));
        self.next = first;
        self.link = None;
    }

    /// Takes note of a frame, and hands its record over.
    fn frame(&mut self, walked: Walked) -> Result<ControlFlow<()>> {
        let header = &walked.header;
        self.claimed = self.claimed.max(header.durable);
        self.marked = header.mark;
        self.link = walked.link;
        self.pace.frame(walked.end - walked.offset, header.mark);
        if !header.mark {
            self.next = header.index + 1;
            self.shards.note(header, &walked.payload);
            self.last_timestamp = self.last_timestamp.max(header.timestamp_us);
            if header.index > self.after {
                self.replayed += 1;
                self.replay.record(record(header, walked.payload))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether a segment names the last frame that was read; one that cannot know it does not.
    fn continues(&self, header: &SegmentHeader) -> bool {
        match (self.link, header.previous) {
            (Some(link), previous) => header.format == Format::One || link == previous,
            (None, _) => true,
        }
    }

    fn all(&mut self, firsts: &[u64], ahead: &mut Ahead<'_, '_>) -> Result<Option<Break>> {
        for (position, first) in firsts.iter().enumerate() {
            let follows = firsts.get(position + 1).copied();
            if let Some((offset, flaw)) = self.segment(ahead, *first, follows)? {
                return Ok(Some(Break {
                    file: path_of(&self.options.dir, *first),
                    offset,
                    expected: self.next,
                    flaw,
                    claimed: self.promised,
                    position,
                }));
            }
        }
        // A log that ends soundly may still have lost its end.
        let lost = self.promised >= self.next.max(self.after.saturating_add(1));
        Ok(lost.then(|| Break {
            file: path_of(
                &self.options.dir,
                firsts.last().copied().unwrap_or(self.next),
            ),
            offset: self.segments.last().map_or(0, |segment| segment.end),
            expected: self.next,
            flaw: Flaw::CutShort,
            claimed: self.promised,
            position: firsts.len().saturating_sub(1),
        }))
    }

    /// Cuts the log where it breaks, unless that is damage; answers how many bytes that were.
    fn cut(&mut self, broken: &Break, firsts: &[u64]) -> Result<u64> {
        let firsts = &firsts[self.superseded.len()..];
        let broken = &Break {
            position: broken.position.saturating_sub(self.superseded.len()),
            ..broken.clone()
        };
        broken.refuse_damage(self.disk, self.options, firsts)?;
        let cut_bytes = broken.cut(self.disk, self.options, firsts, &self.segments)?;
        tracing::warn!(
            file = %broken.file.display(), offset = broken.offset, index = broken.expected,
            cut_bytes, flaw = %broken.flaw, "cut the torn tail of the log"
        );
        self.marked = false;
        Ok(cut_bytes)
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

    /// Leaves the segments out of which nothing is needed but votes.
    fn forget_needless(&mut self, firsts: &[u64]) {
        if self.segments.is_empty() {
            // What was cut begins with the first.
            self.superseded.extend(firsts.first());
        }
        if self.next <= self.after {
            // A power loss took records that the checkpoint has. No record behind the checkpoint is there either.
            self.supersede(self.after.saturating_add(1));
        }
    }

    /// Ends with the segments as they are now; answers the first index of the log.
    fn settle(&mut self) -> u64 {
        let begin = self.segments[0].first;
        // One of the new one's name was replaced by it.
        self.superseded.retain(|old| *old != begin);
        self.shards.release(begin);
        self.shards.go_on_behind(self.next - 1);
        begin
    }

    /// The last segment if it can be appended to, else a new one. Everything before the end is durable then.
    fn file_to_append_to(&mut self, spares: &Spares) -> Result<Arc<dyn File>> {
        if !self.segments.is_empty() {
            self.sync()?;
        }
        if let Some(last) = self.segments.last() {
            let path = path_of(&self.options.dir, last.first);
            if last.format != Format::One {
                return Ok(Arc::from(self.disk.open(&path)?));
            }
            if last.first == self.next {
                // Without a record it has the name of the one that is to come, and is replaced by it.
                self.segments.pop();
            }
        }
        let previous = self.link.unwrap_or_default();
        let begun = begin_segment(self.disk, self.options, spares, self.next, previous)?;
        begun.file.sync_data()?;
        self.disk.sync_dir(&self.options.dir)?;
        self.link = Some(begun.link);
        self.marked = self.segments.is_empty();
        self.segments.push(begun.segment);
        Ok(begun.file)
    }
}

/// Whether the log begins with the segment at `first` although an older one is there, which ends before the index `next`:
/// a power loss took records that the checkpoint up to `after` has, and a start that went on behind it was cut short
/// before it had removed what was left. Such a segment names none before it; a hole that is damage is followed by one
/// that does.
pub(crate) fn begins_anew(
    disk: &dyn Disk,
    dir: &Path,
    first: u64,
    next: u64,
    after: u64,
) -> Result<bool> {
    if first <= next || first > after.saturating_add(1) {
        return Ok(false);
    }
    let header = Reader::open(disk, dir, first)?.enter(first)?;
    Ok(header.is_ok_and(|header| header.link.is_some() && header.previous == 0))
}

/// Removes one segment file, durably: the next may only go when this one cannot come back.
pub(crate) fn remove_segment(disk: &dyn Disk, options: &Options, first: u64) -> Result<()> {
    disk.remove(&path_of(&options.dir, first))?;
    Ok(disk.sync_dir(&options.dir)?)
}

/// The first indexes of the segments among the names of the folder, ascending.
fn segments_among(names: &[String], options: &Options) -> Vec<u64> {
    let mut firsts = Vec::new();
    for name in names {
        match parse_name(name) {
            Some(first) => firsts.push(first),
            None if parse_spare_name(name).is_some() || name == claim::NAME => {}
            None => {
                tracing::warn!(dir = %options.dir.display(), name, "not a log segment, ignored")
            }
        }
    }
    firsts.sort_unstable();
    firsts
}

/// Opens the log in the folder; see [`Log::open`](crate::Log::open).
pub(crate) fn recover(
    disk: &dyn Disk,
    options: &Options,
    after: u64,
    replay: &mut dyn Replay,
) -> Result<Opened> {
    disk.create_dir_all(&options.dir)?;
    let names = disk.list(&options.dir)?;
    let firsts = segments_among(&names, options);
    let behind = after.saturating_add(1);
    let first = firsts.first().copied().unwrap_or(behind);
    if first > behind {
        return Err(Error::Missing { after, first });
    }
    let bytes = size_bytes(disk, &options.dir)?;
    let mut scan = Scan {
        disk,
        options,
        after,
        replay,
        pace: Pace::begin(bytes),
        segments: Vec::new(),
        shards: Shards::default(),
        superseded: Vec::new(),
        next: first,
        claimed: 0,
        promised: claim::read(disk, &options.dir)?,
        replayed: 0,
        last_timestamp: 0,
        marked: true,
        link: None,
    };
    let broken = read_ahead(disk, &options.dir, &firsts, |ahead| {
        scan.all(&firsts, ahead)
    })?;
    // Before anything is changed.
    scan.replay.finish()?;
    scan.pace.end();
    let cut_bytes = match &broken {
        Some(broken) => scan.cut(broken, &firsts)?,
        None => 0,
    };
    scan.forget_needless(&firsts);
    let spares = Spares::find(disk, options, &names, scan.next)?;
    let file = scan.file_to_append_to(&spares)?;
    let begin = scan.settle();
    Ok(Opened {
        recovery: Recovery {
            first_index: begin,
            last_index: scan.next - 1,
            replayed: scan.replayed,
            cut_bytes,
            cut_at: broken.map(|b| (b.file, b.offset)),
            bytes,
        },
        segments: scan.segments,
        file,
        last_timestamp: scan.last_timestamp,
        marked: scan.marked,
        link: scan.link.unwrap_or_default(),
        spares,
        shards: scan.shards,
        superseded: scan.superseded,
    })
}
