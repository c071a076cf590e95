//! Looking over a log that nobody has open: all of its damage, not only the first. Nothing is changed.

use crate::ahead::{Ahead, Steps, read_ahead};
use crate::frame::Format;
use crate::reader::{highest_claim_despite, record};
use crate::recovery::begins_anew;
use crate::segment::{SegmentHeader, parse_name, path_of};
use crate::walk::walk;
use crate::{Error, Flaw, Record, Result, claim};
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
    pub(crate) side: Side,
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
pub fn verify(
    disk: &dyn Disk,
    dir: &Path,
    after: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Survey> {
    let firsts = segments(disk, dir)?;
    let mut walk = Walk::new(disk, dir, after, progress)?;
    walk.all(&firsts, u64::MAX, &mut |_| ControlFlow::Continue(()))?;
    Ok(walk.survey())
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
    after: u64,
    from: u64,
    each: &mut dyn FnMut(Record) -> ControlFlow<()>,
) -> Result<Survey> {
    let firsts = segments(disk, dir)?;
    let start = firsts.partition_point(|first| *first <= from);
    let progress = &mut |_| ();
    let mut walk = Walk::new(disk, dir, after, progress)?;
    walk.all(&firsts[start.saturating_sub(1)..], from, each)?;
    Ok(walk.survey())
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
    /// Where its sound frames end, in bytes.
    end: u64,
    /// The highest index that one of its headers says was durable, those behind the break included.
    pub(crate) claimed: u64,
    /// Whether the log begins with it, whatever is left of an older one.
    anew: bool,
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
    /// The index up to which the caller has everything.
    after: u64,
    /// The index up to which the last close says that everything was durable.
    promised: u64,
    progress: &'a mut dyn FnMut(u64),
    pub(crate) found: Vec<Found>,
    /// Whether all segments were read.
    complete: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        after: u64,
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Walk<'a>> {
        let promised = claim::read(disk, dir)?;
        Ok(Walk {
            disk,
            dir,
            after,
            promised,
            progress,
            found: Vec::new(),
            complete: false,
        })
    }

    /// Reads the segments that begin at `firsts`, until `each`, which is told of records from an index on, breaks off.
    pub(crate) fn all(
        &mut self,
        firsts: &[u64],
        from: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<()> {
        read_ahead(self.disk, self.dir, firsts, |ahead| {
            self.all_of(ahead, firsts, from, each)
        })
    }

    fn all_of(
        &mut self,
        ahead: &mut Ahead<'_, '_>,
        firsts: &[u64],
        from: u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut whole = true;
        for (position, first) in firsts.iter().enumerate() {
            let before = self.found.last();
            let anew = self.begins_anew(*first)?;
            whole &= anew || before.is_none_or(|before| before.next == *first);
            let mut ended = ControlFlow::Continue(());
            let follows = firsts.get(position + 1).copied();
            let mut found = self.segment(ahead.segment(), *first, follows, &mut |record| {
                if whole && record.index >= from {
                    ended = each(record);
                }
                ended
            })?;
            found.anew = anew;
            whole &= found.broken.is_none();
            self.found.push(found);
            if ended.is_break() {
                return Ok(());
            }
        }
        self.complete = true;
        Ok(())
    }

    /// Whether the log begins at `first` although there are segments before it, by the rule of recovery.
    fn begins_anew(&self, first: u64) -> Result<bool> {
        let before = self.found.last().filter(|before| before.broken.is_none());
        let Some(before) = before else {
            return Ok(false);
        };
        match begins_anew(self.disk, self.dir, first, before.next, self.after) {
            // That it cannot be read is found again where it is read.
            Err(Error::Disk(_)) => Ok(false),
            other => other,
        }
    }

    /// Reads one segment up to its end or its first break, and looks behind the break for what vouches for it.
    fn segment(
        &mut self,
        steps: Result<Steps<'_>>,
        first: u64,
        follows: Option<u64>,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<Found> {
        let mut found = Found {
            first,
            next: first,
            bytes: 0,
            end: 0,
            claimed: 0,
            anew: false,
            misplaced: false,
            broken: None,
            link: None,
        };
        let mut told = 0;
        let broken = steps.and_then(|mut steps| {
            found.bytes = steps.bytes;
            let flaw = self.frames(&mut steps, &mut found, follows, &mut told, each);
            found.end = steps.offset;
            match flaw.and_then(|flaw| Ok((flaw, behind(flaw, &steps, first)?))) {
                Ok((flaw, claim)) => {
                    found.claimed = found.claimed.max(claim.unwrap_or(0));
                    Ok(flaw.map(|flaw| (found.end, Problem::Flaw(flaw))))
                }
                Err(error) => Ok(Some((found.end, unreadable(error)?))),
            }
        });
        found.broken = match broken {
            Ok(broken) => broken,
            Err(error) => Some((0, unreadable(error)?)),
        };
        (self.progress)(found.bytes.saturating_sub(told));
        Ok(found)
    }

    /// Walks over the sound frames; answers what is wrong at the place of `steps`, if anything is.
    fn frames(
        &mut self,
        steps: &mut Steps<'_>,
        found: &mut Found,
        follows: Option<u64>,
        told: &mut u64,
        each: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<Option<Flaw>> {
        let header = match steps.enter()? {
            Ok(header) => header,
            Err(flaw) => return Ok(Some(flaw)),
        };
        found.misplaced = !self.continues(found.first, &header);
        found.link = header.link;
        let Found {
            next,
            claimed,
            link,
            ..
        } = found;
        walk(steps, next, follows, &mut |walked| {
            (self.progress)(walked.end - *told);
            *told = walked.end;
            *claimed = walked.header.durable.max(*claimed);
            *link = walked.link;
            match walked.header.mark {
                true => Ok(ControlFlow::Continue(())),
                false => Ok(each(record(&walked.header, walked.payload))),
            }
        })
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

/// The highest index that a header from a flaw on says was durable.
fn behind(flaw: Option<Flaw>, steps: &Steps<'_>, first: u64) -> Result<Option<u64>> {
    let Some(flaw) = flaw else {
        return Ok(None);
    };
    let mut reader = steps.reader()?;
    match steps.offset {
        0 => highest_claim_despite(flaw, &mut reader, first),
        _ => reader.highest_claim(),
    }
}

/// A failure of the disk is something to be listed; any other ends the walk.
fn unreadable(error: Error) -> Result<Problem> {
    match error {
        Error::Disk(_) => Ok(Problem::Unreadable(error)),
        other => Err(other),
    }
}

/// On which side of a segment's beginning and end something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The segment is not the one that should be there.
    Before,
    /// The segment is broken inside.
    Inside,
    /// The segment is sound, but what came behind it is gone.
    Behind,
}

impl Walk<'_> {
    /// Tells torn from damaged, by the rule of recovery: a break is damage if a header from there on, or the last close,
    /// says that the index missing there was durable.
    pub(crate) fn survey(&self) -> Survey {
        let found = &self.found;
        let last = found.iter().map(|s| s.next.saturating_sub(1)).max();
        let mut survey = Survey {
            files: found.len() as u64,
            bytes: found.iter().map(|segment| segment.bytes).sum(),
            entries: found.iter().map(|s| s.next - s.first).sum(),
            first_index: found.first().map_or(0, |segment| segment.first),
            last_index: last.unwrap_or(0),
            ..Survey::default()
        };
        let mut expected = survey.first_index;
        for (position, segment) in found.iter().enumerate() {
            let rest = &found[position..];
            if segment.anew {
                expected = segment.first;
            }
            for (side, offset, problem) in segment.problems(expected) {
                let from = match side {
                    Side::Inside => segment.next,
                    _ => expected,
                };
                let claimed = rest.iter().map(|s| s.claimed).max().unwrap_or(0);
                let claimed = claimed.max(self.promised);
                let foreign = rest.iter().any(Found::is_foreign);
                if claimed < from && !foreign && matches!(problem, Problem::Flaw(_)) {
                    let file = path_of(self.dir, segment.first);
                    survey.torn = Some(Torn { file, offset });
                    return survey;
                }
                let through = match (side, rest.get(1)) {
                    (Side::Inside, Some(following)) => following.first - 1,
                    (Side::Inside, None) => claimed.max(from),
                    _ if segment.first > from => segment.first - 1,
                    _ => segment.next.saturating_sub(1),
                };
                let damage = self.damage(segment.first, side, offset, problem, from, through);
                survey.damages.push(damage);
            }
            expected = match (&segment.broken, rest.get(1)) {
                (Some(_), Some(following)) => following.first.max(segment.next),
                _ => segment.next,
            };
        }
        survey.damages.extend(self.lost_end());
        survey
    }

    /// What came behind a log that ends soundly, if the last close says that there was more.
    fn lost_end(&self) -> Option<Damage> {
        let last = self.found.last();
        let from = last.map_or(self.after.saturating_add(1), |segment| segment.next);
        let ends = self.complete && last.is_none_or(|last| last.broken.is_none());
        let lost = ends && self.promised >= from.max(self.after.saturating_add(1));
        let (first, offset) = last.map_or((from, 0), |last| (last.first, last.end));
        let problem = Problem::Flaw(Flaw::CutShort);
        lost.then(|| self.damage(first, Side::Behind, offset, problem, from, self.promised))
    }

    fn damage(
        &self,
        segment: u64,
        side: Side,
        offset: u64,
        problem: Problem,
        from: u64,
        through: u64,
    ) -> Damage {
        let file = path_of(self.dir, segment);
        let error = match problem {
            Problem::Flaw(flaw) => Error::Damaged {
                file: file.clone(),
                offset,
                expected: from,
                flaw,
            },
            Problem::Unreadable(error) => error,
        };
        Damage {
            file,
            offset,
            error,
            from,
            through,
            segment,
            side,
        }
    }
}

impl Found {
    fn is_foreign(&self) -> bool {
        matches!(self.broken, Some((_, Problem::Flaw(Flaw::Foreign))))
    }

    /// What is wrong with it where the index `expected` should come next, and at which offset.
    fn problems(&self, expected: u64) -> impl Iterator<Item = (Side, u64, Problem)> {
        let found = self.first;
        let flaw = match found == expected {
            true => self.misplaced.then_some(Flaw::Chain),
            false => Some(Flaw::SegmentBegins { found }),
        };
        let before = flaw.map(|flaw| (Side::Before, 0, Problem::Flaw(flaw)));
        let inside = self.broken.clone();
        let inside = inside.map(|(offset, problem)| (Side::Inside, offset, problem));
        before.into_iter().chain(inside)
    }
}
