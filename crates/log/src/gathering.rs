//! Waiting for those who were just told.
//!
//! Callers that hand in again as soon as they are told fall into two halves by themselves: one is told while the other is
//! queued, so each waits for the sync of the others before its own. If the second half waits for the first to come back,
//! which takes them far less time than a sync, there is one sync for all: half as many syncs, and each entry waits for one.
//! (PostgreSQL's `commit_delay` is for the same; here its length and its use follow from what is seen.)
//!
//! Nothing is held back if nobody was told, when everyone is back, after half of the time that the last sync took or 10 ms, or if
//! a sync takes its time for the bytes. Waiting in vain is tried ever more seldom, so loads that come by themselves pay next
//! to nothing.

use std::time::{Duration, Instant};

/// The most syncs without an attempt.
const MOST_SKIPPED: u32 = 64;

/// The longest that a sync waits: one that took far longer, on a disk that stalled, says nothing about the next.
const LONGEST: Duration = Duration::from_millis(10);

/// Where a sync takes longer than bytes at this rate, it is not they that it takes its time for: twice as many take hardly
/// longer. Else the disk had better work than wait.
const BYTES_A_NANOSECOND: u128 = 1;

/// Whether the next sync waits for more, and for how many.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Hand-ins that are expected, as many as were told of the last sync.
    missing: usize,
    /// Until when they are waited for; `None` if they are not.
    until: Option<Instant>,
    /// Once everyone is back: the last index of theirs, up to which all is written before it is synced.
    goal: u64,
    /// Syncs to go before the next attempt, and how many they were after the last that was in vain.
    skips: u32,
    skipped: u32,
}

impl Gathering {
    /// A sync that took so long ended at `now`, so many hand-ins are told of it, and with what is queued meanwhile they
    /// were so many bytes.
    pub(crate) fn begin(&mut self, told: usize, bytes: u64, took: Duration, now: Instant) {
        if self.until.take().is_some() && self.missing > 0 {
            self.skipped = (self.skipped * 2).clamp(1, MOST_SKIPPED);
            self.skips = self.skipped;
        }
        self.missing = told;
        if let Some(left) = self.skips.checked_sub(1) {
            self.skips = left;
        } else if told > 0 && u128::from(bytes) < took.as_nanos() * BYTES_A_NANOSECOND {
            self.until = Some(now + (took / 2).min(LONGEST));
        }
    }

    /// Something was handed in that ends with the index `last`.
    pub(crate) fn note_arrival(&mut self, last: u64) {
        self.missing = self.missing.saturating_sub(1);
        if self.missing == 0 && self.until.take().is_some() {
            self.skipped = self.skipped.saturating_sub(1);
            self.goal = last;
        }
    }

    /// What was handed in last was refused: it is never written.
    pub(crate) fn give_up(&mut self) {
        *self = Gathering::default();
    }

    /// The last index that is to be written before the next sync.
    pub(crate) fn goal(&self) -> u64 {
        self.goal
    }

    /// Until when the next sync waits, if it does at this time.
    pub(crate) fn holds_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_secs(3600);

    #[test]
    fn holds_until_everyone_is_back() {
        let mut gathering = Gathering::default();
        let now = Instant::now();
        assert_eq!(gathering.holds_until(now), None);
        for (took, longest) in [(LONGEST, LONGEST / 2), (SYNC, LONGEST)] {
            gathering.begin(2, 1, took, now);
            gathering.note_arrival(1);
            assert_eq!(gathering.holds_until(now), Some(now + longest));
            assert_eq!(gathering.holds_until(now + longest), None);
            gathering.note_arrival(2);
            assert_eq!((gathering.holds_until(now), gathering.goal()), (None, 2));
        }
    }

    #[test]
    fn holds_nothing_back_for_nobody_or_for_too_long() {
        let mut gathering = Gathering::default();
        let now = Instant::now();
        gathering.begin(0, 1, SYNC, now);
        assert_eq!(gathering.holds_until(now), None);
        gathering.begin(1, 1, Duration::from_nanos(2), now);
        assert_eq!(gathering.holds_until(now + Duration::from_nanos(1)), None);
    }

    #[test]
    fn holds_nothing_back_where_the_bytes_take_the_time() {
        let took = Duration::from_millis(600_000);
        for (bytes, holds) in [(599_000_000_000, true), (601_000_000_000, false)] {
            let mut gathering = Gathering::default();
            let now = Instant::now();
            gathering.begin(1, bytes, took, now);
            assert_eq!(gathering.holds_until(now).is_some(), holds, "{bytes}");
        }
    }

    /// How many of so many syncs were held back.
    fn held(gathering: &mut Gathering, syncs: usize, come_back: bool) -> usize {
        let mut held = 0;
        for _ in 0..syncs {
            let now = Instant::now();
            gathering.begin(1, 1, SYNC, now);
            held += usize::from(gathering.holds_until(now).is_some());
            if come_back {
                gathering.note_arrival(1);
            }
        }
        held
    }

    #[test]
    fn what_is_in_vain_is_tried_ever_more_seldom() {
        let mut gathering = Gathering::default();
        assert_eq!(held(&mut gathering, 1000, true), 1000);
        let tried = held(&mut gathering, 1000, false);
        assert!((8..32).contains(&tried), "{tried}");
        // After as many successes all is as before.
        held(&mut gathering, 64 * 64, true);
        assert_eq!(held(&mut gathering, 100, true), 100);
    }
}
