//! What of the log may go, and letting it go.
//!
//! A segment goes when a checkpoint has all of it, and it is older than records are retained, and nobody who follows the
//! log still has to read it. The last two hold only for so many bytes: a follower that has stopped does not fill the disk.

use crate::segment::{Segment, path_of};
use crate::spares::Spare;
use crate::state::Shared;
use crate::{Log, Options, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Who still needs which records.
#[derive(Debug)]
pub(crate) struct Retention {
    /// The highest index that a purge was asked for.
    covered: AtomicU64,
    /// Held while segments are removed.
    purging: Mutex<()>,
    holds: Arc<Mutex<Holds>>,
}

#[derive(Debug, Default)]
struct Holds {
    /// The first index that each needs.
    firsts: BTreeMap<u64, u64>,
    /// The number of the next.
    next: u64,
}

/// Keeps records from being purged for someone who reads along, within [`Options::retain_bytes`](crate::Options). Dropping
/// it lets them go.
#[derive(Debug)]
pub struct Hold {
    number: u64,
    holds: Arc<Mutex<Holds>>,
}

impl Hold {
    /// From now on only the records from this index on are needed.
    pub fn move_to(&self, first: u64) {
        self.holds.lock().firsts.insert(self.number, first);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.holds.lock().firsts.remove(&self.number);
    }
}

impl Retention {
    /// A checkpoint has everything up to this index.
    pub(crate) fn covering(after: u64) -> Retention {
        Retention {
            covered: AtomicU64::new(after),
            purging: Mutex::new(()),
            holds: Arc::default(),
        }
    }

    /// The first index that anybody holds.
    fn first_held(&self) -> u64 {
        let holds = self.holds.lock();
        holds.firsts.values().copied().min().unwrap_or(u64::MAX)
    }
}

/// How many segments at the front, and how many bytes, are covered up to an index. The last segment, which is being
/// written, never is.
fn covered_by(segments: &VecDeque<Segment>, covered: u64) -> (usize, u64) {
    let behind = segments.iter().skip(1).map(|next| next.first);
    let ends = segments.iter().zip(behind);
    let all = ends.take_while(|(_, next)| *next <= covered.saturating_add(1));
    all.fold((0, 0), |(count, bytes), (segment, _)| {
        (count + 1, bytes + segment.end)
    })
}

/// Whether the oldest segment, which is covered, may go.
fn may_go(segments: &VecDeque<Segment>, covered_bytes: u64, held: u64, options: &Options) -> bool {
    let (Some(oldest), Some(next)) = (segments.front(), segments.get(1)) else {
        return false;
    };
    let age_us = (options.clock)().saturating_sub(oldest.last_us);
    let is_young = u128::from(age_us) < options.retain_age.as_micros();
    let is_wanted = is_young || held < next.first;
    !is_wanted || covered_bytes > options.retain_bytes
}

impl Log {
    /// Lets the segments go whose last index is at most `up_to`, and which are not retained, for their age or by a
    /// [`Hold`]; except the one that is being written. The file of a segment is removed, or kept for a later one. The caller
    /// promises to open with at least `up_to` as `after` from now on. What is retained goes in a later call, however small
    /// its `up_to`. So does what is not acknowledged yet. Not to be called by a completion.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`](crate::Error::Disk); and what an append may fail with where a vote would go, which is appended again
    /// first. What did not go stays, and the purge can be tried again.
    pub fn purge(&self, up_to: u64) -> Result<()> {
        let Shared { disk, options, .. } = &*self.shared;
        let retention = &self.shared.retention;
        let covered = retention.covered.fetch_max(up_to, Ordering::AcqRel);
        let covered = covered.max(up_to);
        let _one_at_a_time = retention.purging.lock();
        // A vote that is not acknowledged yet is not known yet.
        let known = covered.min(self.shared.shards.noted());
        let mut removed = false;
        let mut recycled = None;
        loop {
            let next = self.oldest_may_go(known);
            if next.is_some() || removed {
                // A segment may only go when the removal of those before it, by an earlier purge perhaps, cannot be
                // undone by a power loss: the log has no holes. And a file may only be written over when its old name
                // cannot come back.
                disk.sync_dir(&options.dir)?;
                if let Some(spare) = recycled.take() {
                    self.shared.spares.add(spare);
                }
            }
            let Some(next) = next else {
                return Ok(());
            };
            self.keep_votes(next)?;
            let Some(mut oldest) = self.shared.segments.lock().pop_front() else {
                return Ok(());
            };
            match self.forget(&mut oldest) {
                Ok(spare) => recycled = spare,
                Err(error) => {
                    self.shared.segments.lock().push_front(oldest);
                    return Err(error.into());
                }
            }
            self.shared.shards.release(next);
            removed = true;
        }
    }

    /// The first index behind the oldest segment, if that may go.
    fn oldest_may_go(&self, covered: u64) -> Option<u64> {
        let held = self.shared.retention.first_held();
        let segments = self.shared.segments.lock();
        let (count, bytes) = covered_by(&segments, covered);
        let goes = count > 0 && may_go(&segments, bytes, held, &self.shared.options);
        segments.get(1).filter(|_| goes).map(|next| next.first)
    }

    /// Keeps the records from `first` on for a reader, as far as they are still there.
    pub fn hold(&self, first: u64) -> Hold {
        let holds = self.shared.retention.holds.clone();
        let mut all = holds.lock();
        let number = all.next;
        all.next += 1;
        all.firsts.insert(number, first);
        drop(all);
        Hold { number, holds }
    }

    /// Bytes of segments that no purge was asked for yet: what a checkpoint would let go.
    pub fn uncovered_bytes(&self) -> u64 {
        let covered = self.shared.retention.covered.load(Ordering::Acquire);
        let segments = self.shared.segments.lock();
        let all: u64 = segments.iter().map(|segment| segment.end).sum();
        all - covered_by(&segments, covered).1
    }

    /// Takes the name of a segment away from its file; the file is a spare then, or gone.
    fn forget(&self, segment: &mut Segment) -> longbow_disk::Result<Option<Spare>> {
        let Shared { disk, options, .. } = &*self.shared;
        let path = path_of(&options.dir, segment.first);
        let bytes = disk.open(&path)?.len()?;
        if !self.shared.can_recycle(segment, bytes) {
            return disk.remove(&path).map(|()| None);
        }
        let spare = Spare {
            path: self.shared.spares.new_path(options),
            bytes,
        };
        disk.rename(&path, &spare.path)?;
        Ok(Some(spare))
    }
}
