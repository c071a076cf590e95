//! Looking over a log that nobody has open: all of its damage, not only the first. Nothing is changed.

use crate::frame::Format;
use crate::reader::{Reader, Step, highest_claim_despite, record};
use crate::segment::{SegmentHeader, parse_name, path_of};
use crate::{Error, Flaw, Record, Result};
use longbow_disk::Disk;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A place of a log that is not as it was written.
#[derive(Debug, Clone)]
pub struct Damage {
    /// The segment file.
    pub file: PathBuf,
    /// Where in the file what is broken begins, in bytes.
    pub offset: u64,
    /// [`Error::Damaged`], or [`Error::Disk`] where the disk does not give the bytes.
    pub error: Error,
    /// The first index that cannot be vouched for.
    pub from: u64,
    /// The last index that cannot be vouched for, below `from` if there is none; in the last segment, the last that is
    /// known to have been there.
    pub through: u64,
    /// The segment's first index.
    pub(crate) segment: u64,
    /// Whether the segment is broken inside, and not only in the wrong place.
    pub(crate) inside: bool,
}

/// An unfinished write at the end, as a crash leaves it: no damage, the next start cuts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The segment file that it begins in.
    pub file: PathBuf,
    /// Where it begins, in bytes.
    pub offset: u64,
}

/// What looking over a log found.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Segment files.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Sound entries before the first break of each segment.
    pub entries: u64,
    /// The first index that the log should have; 0 if it has no segments.
    pub first_index: u64,
    /// The last index of a sound entry, or one less than the first.
    pub last_index: u64,
    /// Everything that is broken, in the order of the log.
    pub damages: Vec<Damage>,
    /// The torn tail, if there is one.
    pub torn: Option<Torn>,
}

/// Reads every byte of the log in `dir`, which nobody may have open, and lists what is broken. `progress` is told how
/// many bytes were read since it was last told.
///
/// The log is whole to [`Log::open`](crate::Log::open) exactly if `damages` is empty.
///
/// # Errors
///
/// [`Error::Newer`], or [`Error::Disk`] if the folder cannot be listed. What cannot be read of a segment is in the list.
pub fn verify(disk: &dyn Disk, dir: &Path, progress: &mut dyn FnMut(u64)) -> Result<Survey> {
    let firsts = segments(disk, dir)?;
    let mut walk = Walk::new(disk, dir, u64::MAX, progress);
    walk.all(&firsts, &mut |_| ControlFlow::Continue(()))?;
    Ok(judge(dir, &walk.found))
}

/// Hands every sound record with an index of at least `from` to `each`, in order, up to the first break or until `each`
/// says so. The answer covers what was read on the way, which is not the whole log.
///
/// # Errors
///
/// As [`verify`].
pub fn records(
    disk: &dyn Disk,
    dir: &Path,
    from: u64,
    each: &mut dyn FnMut(Record) -> ControlFlow<()>,
) -> Result<Survey> {
    let firsts = segments(disk, dir)?;
    let start = firsts.partition_point(|first| *first <= from);
    let progress = &mut |_| ();
    let mut walk = Walk::new(disk, dir, from, progress);
    walk.all(&firsts[start.saturating_sub(1)..], each)?;
    Ok(judge(dir, &walk.found))
}

/// How many bytes the segment files in `dir` have.
///
/// # Errors
///
/// [`Error::Disk`] if the folder cannot be listed or a file cannot be opened.
pub fn size_bytes(disk: &dyn Disk, dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for first in segments(disk, dir)? {
        bytes += disk.open(&path_of(dir, first))?.len()?;
    }
    Ok(bytes)
}

/// The first indexes of the segments in `dir`, ascending; none if there is no such folder.
///
/// # Errors
///
/// [`Error::Disk`] if the folder cannot be listed.
pub fn segments(disk: &dyn Disk, dir: &Path) -> Result<Vec<u64>> {
    if !disk.exists(dir)? {
        return Ok(Vec::new());
    }
    let names = disk.list(dir)?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| parse_name(name)).collect();
    firsts.sort_unstable();
    Ok(firsts)
}

/// Why a segment cannot be read on.
#[derive(Debug, Clone)]
enum Problem {
    Flaw(Flaw),
    Unreadable(Error),
}

/// One segment as it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) first: u64,
    /// The index that comes after its last sound entry.
    next: u64,
    /// Its length.
    pub(crate) bytes: u64,
    /// The highest index that one of its headers says was durable, those behind the break included.
    pub(crate) claimed: u64,
    /// Whether it names another frame than the one before it.
    misplaced: bool,
    /// Where it breaks, if it does.
    broken: Option<(u64, Problem)>,
    /// The checksum of its last header, where that is known.
    link: Option<u32>,
}

/// The walk over segments.
pub(crate) struct Walk<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    from: u64,
    progress: &'a mut dyn FnMut(u64),
    pub(crate) found: Vec<Found>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        from: u64,
        progress: &'a mut dyn FnMut(u64),
    ) -> Walk<'a> {
        let found = Vec::new();
        Walk {
            disk,
            dir,
            from,
            progress,
            found,
        }
    }

    /// Reads the segments that begin at `firsts`, until `each` breaks off.
    pub(crate) fn all(
        &mut self,
        firsts: &[u64],
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut whole = true;
        for (position, first) in firsts.iter().enumerate() {
            let before = self.found.last();
            whole &= before.is_none_or(|before| before.next == *first);
            let mut ended = ControlFlow::Continue(());
            let from = self.from;
            let follows = firsts.get(position + 1).copied();
            let found = self.segment(*first, follows, &mut |record| {
                if whole && record.index >= from {
                    ended = each(record);
                }
                ended
            })?;
            whole &= found.broken.is_none();
            self.found.push(found);
            if ended.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Reads one segment up to its end or its first break, and looks behind the break for what vouches for it.
    fn segment(
        &mut self,
        first: u64,
        follows: Option<u64>,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<Found> {
        let mut found = Found {
            first,
            next: first,
            bytes: 0,
            claimed: 0,
            misplaced: false,
            broken: None,
            link: None,
        };
        let mut told = 0;
        let broken = Reader::open(self.disk, self.dir, first).and_then(|mut reader| {
            found.bytes = reader.end;
            let flaw = self.frames(&mut reader, &mut found, follows, &mut told, each);
            let claim = match flaw {
                Ok(Some(_)) if reader.offset > 0 => reader.highest_claim().map(Some),
                Ok(Some(flaw)) => highest_claim_despite(flaw, &mut reader, first).map(Some),
                _ => Ok(None),
            };
            let place = reader.offset;
            match (flaw, claim) {
                (Ok(None), _) => Ok(None),
                (Ok(Some(flaw)), Ok(claim)) => {
                    found.claimed = found.claimed.max(claim.flatten().unwrap_or(0));
                    Ok(Some((place, Problem::Flaw(flaw))))
                }
                (Err(error), _) | (_, Err(error)) => Ok(Some((place, unreadable(error)?))),
            }
        });
        found.broken = match broken {
            Ok(broken) => broken,
            Err(error) => Some((0, unreadable(error)?)),
        };
        (self.progress)(found.bytes.saturating_sub(told));
        Ok(found)
    }

    /// Walks over the sound frames; answers what is wrong at the reader's place, if anything is.
    fn frames(
        &mut self,
        reader: &mut Reader,
        found: &mut Found,
        follows: Option<u64>,
        told: &mut u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<Option<Flaw>> {
        let header = match reader.enter(found.first)? {
            Ok(header) => header,
            Err(flaw) => return Ok(Some(flaw)),
        };
        found.misplaced = !self.continues(found.first, &header);
        found.link = header.link;
        loop {
            let offset = reader.offset;
            (self.progress)(offset - *told);
            *told = offset;
            let (header, payload) = match reader.step()? {
                // What lies there is from earlier lives of the file, if from anything.
                Step::End | Step::Bad(_) if follows == Some(found.next) => return Ok(None),
                Step::End => return Ok(reader.highest_claim()?.map(|_| Flaw::Header)),
                Step::Bad(flaw) => return Ok(Some(flaw)),
                Step::Frame { header, payload } => (header, payload),
            };
            let mark = u64::from(header.mark);
            if header.index != found.next.saturating_sub(mark) {
                reader.offset = offset;
                let found = header.index;
                return Ok(Some(Flaw::Index { found }));
            }
            found.claimed = found.claimed.max(header.durable);
            found.link = reader.link;
            if !header.mark {
                found.next += 1;
                if each(record(&header, payload)).is_break() {
                    return Ok(None);
                }
            }
        }
    }

    /// Whether a segment names the last frame of the one before it, as far as both are known.
    fn continues(&self, first: u64, header: &SegmentHeader) -> bool {
        let before = self.found.last().filter(|before| {
            before.broken.is_none() && before.next == first && header.format != Format::One
        });
        let link = before.and_then(|before| before.link);
        link.is_none_or(|link| link == header.previous)
    }
}

/// A failure of the disk is something to be listed; any other ends the walk.
fn unreadable(error: Error) -> Result<Problem> {
    match error {
        Error::Disk(_) => Ok(Problem::Unreadable(error)),
        other => Err(other),
    }
}

/// Tells torn from damaged, by the rule of recovery: a break is damage if a header from there on says that the index
/// missing there was durable.
pub(crate) fn judge(dir: &Path, found: &[Found]) -> Survey {
    let mut survey = Survey {
        files: found.len() as u64,
        bytes: found.iter().map(|segment| segment.bytes).sum(),
        entries: found.iter().map(|s| s.next - s.first).sum(),
        first_index: found.first().map_or(0, |segment| segment.first),
        last_index: found
            .iter()
            .map(|s| s.next.saturating_sub(1))
            .max()
            .unwrap_or(0),
        ..Survey::default()
    };
    let mut expected = survey.first_index;
    for (position, segment) in found.iter().enumerate() {
        let rest = &found[position..];
        let flaw = match segment.first != expected {
            true => Some(Flaw::SegmentBegins {
                found: segment.first,
            }),
            false => segment.misplaced.then_some(Flaw::Chain),
        };
        let outside = flaw.map(|flaw| (0, Problem::Flaw(flaw)));
        let inside = segment.broken.clone();
        for (problem, inside) in [(outside, false), (inside, true)] {
            let Some((offset, problem)) = problem else {
                continue;
            };
            let from = if inside { segment.next } else { expected };
            let place = Place {
                dir,
                rest,
                offset,
                from,
                inside,
            };
            match place.damage(problem) {
                Ok(damage) => survey.damages.push(damage),
                Err(torn) => {
                    survey.torn = Some(torn);
                    return survey;
                }
            }
        }
        expected = match (&segment.broken, rest.get(1)) {
            (Some(_), Some(following)) => following.first.max(segment.next),
            _ => segment.next,
        };
    }
    survey
}

/// A place where the log does not go on as it should.
struct Place<'a> {
    dir: &'a Path,
    /// The segment that it is in, and those behind.
    rest: &'a [Found],
    offset: u64,
    /// The index that should be there.
    from: u64,
    /// Whether it is in the segment, and not before it.
    inside: bool,
}

impl Place<'_> {
    fn damage(&self, problem: Problem) -> std::result::Result<Damage, Torn> {
        let Place { from, offset, .. } = *self;
        let segment = &self.rest[0];
        let file = path_of(self.dir, segment.first);
        let claimed = self.rest.iter().map(|s| s.claimed).max().unwrap_or(0);
        let vouched = claimed >= from;
        let error = match problem {
            Problem::Flaw(_) if !vouched => return Err(Torn { file, offset }),
            Problem::Flaw(flaw) => Error::Damaged {
                file: file.clone(),
                offset,
                expected: from,
                flaw,
            },
            Problem::Unreadable(error) => error,
        };
        let through = match (self.inside, self.rest.get(1)) {
            (true, Some(following)) => following.first - 1,
            (true, None) => claimed.max(from),
            (false, _) if segment.first > from => segment.first - 1,
            (false, _) => segment.next.saturating_sub(1),
        };
        Ok(Damage {
            file,
            offset,
            error,
            from,
            through,
            segment: segment.first,
            inside: self.inside,
        })
    }
}
