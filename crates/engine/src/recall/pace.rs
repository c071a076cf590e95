//! How much of the time measuring takes.
//!
//! It takes what processor time nobody else wants; but what it reads drives out what searches need, of the memory or of the
//! caches, and on the way to them it is in theirs. So it rests for most of the time where rows have to be read from the disk,
//! and a job that takes long where there are searches meanwhile.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use longbow_disk::reads;

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::shared::Shared;
use crate::vacuum;

/// The share that jobs take where rows are not in memory.
const WHERE_COLD: f64 = 0.05;
/// How many times its share the thread takes for a new gauge, and for calibration.
const HASTE: f64 = 5.0;
/// Longest that a job rests for searches in all: of many rows it would take hours.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it waits for dead rows to leave that wait for searches.
const HELD: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 2_000 });
/// Longest sleep.
pub(super) const ROUND: Duration = Duration::from_millis(200);

/// The pace of a job for one index.
pub(crate) struct Pace<'a> {
    pub(super) shared: &'a Shared,
    pub(super) dataset: &'a Dataset,
    pub(super) index: &'a ColumnIndex,
    /// The share of a core that it may take; without one it rests for nobody.
    part: Option<f64>,
    haste: f64,
    /// Whether it rests for searches amid its work. What it sees of dead rows stays meanwhile, so where these wait a piece of it ends.
    is_long: bool,
    began: Instant,
    /// What this thread had had read from the disk then.
    before: u64,
    /// For how long it has rested for searches.
    rested: Cell<Duration>,
    /// And waited for dead rows.
    waited: Cell<Duration>,
}

impl<'a> Pace<'a> {
    /// Of a job that begins now.
    pub(crate) fn new(
        shared: &'a Shared,
        (dataset, index): (&'a Dataset, &'a ColumnIndex),
        part: Option<f64>,
    ) -> Self {
        Pace {
            shared,
            dataset,
            index,
            part,
            haste: 1.0,
            is_long: false,
            began: Instant::now(),
            before: reads(),
            rested: Cell::default(),
            waited: Cell::default(),
        }
    }

    /// More of the time.
    pub(super) fn hasty(mut self) -> Self {
        self.haste = HASTE;
        self
    }

    /// Rests for searches amid its work, in pieces after each of which it lets go of what it sees.
    pub(super) fn long(mut self) -> Self {
        self.is_long = true;
        // Of searches long before it knows nothing.
        self.shared.searched.store(false, Ordering::Relaxed);
        self
    }

    /// Whether it is held to a share.
    pub(super) fn is_kept(&self) -> bool {
        self.part.is_some()
    }

    /// Whether there are searches to rest for.
    pub(super) fn was_searched(&self) -> bool {
        let may_rest = self.is_kept() && self.is_long && self.rested.get() < PATIENCE;
        may_rest && self.shared.searched.load(Ordering::Relaxed)
    }

    /// Whether dead rows that are to leave the graph may wait for a long job that is held to a share. Shorter ones see nothing amid their
    /// work, but for each walk of its own.
    pub(super) fn is_in_the_way(&self) -> bool {
        self.is_long && self.dead_wait()()
    }

    /// What tells a walk whether dead rows may wait for it, of any job that is held to a share: where nothing else is left of the processors, a
    /// walk that is displaced lasts long.
    pub(super) fn dead_wait(&self) -> impl Fn() -> bool + Sync + 'a {
        let (may_be, index) = (self.is_kept(), self.index);
        move || may_be && index.graph().is_held()
    }

    /// Waits while it would be in the way, for some time. Says to end if it still is, or the node stops.
    pub(super) fn wait_for_dead(&self) -> ControlFlow<()> {
        let began = Instant::now();
        let mut waited = ControlFlow::Continue(());
        while waited.is_continue() && self.is_in_the_way() {
            waited = match began.elapsed() > HELD {
                true => ControlFlow::Break(()),
                false => self.wait_until(Instant::now() + ROUND / 8),
            };
        }
        self.waited.set(self.waited.get() + began.elapsed());
        waited?;
        self.wait_until(Instant::now())
    }

    /// Rests after a piece of the job that began at `since`, when this thread had had read so much. Says to end if the node stops, and a job
    /// that is held to a share where most of the graph is to leave it, too; a long one also where any of it waits.
    pub(super) fn pause(&self, since: Instant, before: u64) -> ControlFlow<()> {
        let Some(part) = self.part else {
            return self.wait_until(since);
        };
        if vacuum::is_crowded(self.dataset, self.index) || self.is_in_the_way() {
            return ControlFlow::Break(());
        }
        // What had something read goes by that. One page of all that a job reads must not keep the rest of it from resting.
        if reads() > before {
            return self.wait_until(rest(since, part));
        }
        if !self.was_searched() {
            return self.wait_until(since);
        }
        // Whoever searches from now on says so again.
        self.shared.searched.store(false, Ordering::Relaxed);
        let began = Instant::now();
        let left = PATIENCE.saturating_sub(self.rested.get());
        let until = rest(since, self.share(part)).min(began + left);
        let waited = self.wait_until(until);
        self.rested.set(self.rested.get() + began.elapsed());
        waited
    }

    /// Waits, unless the node stops.
    fn wait_until(&self, until: Instant) -> ControlFlow<()> {
        loop {
            if self.shared.stopping.load(Ordering::Acquire) {
                return ControlFlow::Break(());
            }
            match until.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => self.shared.recall.wait(left.min(ROUND)),
                _ => return ControlFlow::Continue(()),
            }
        }
    }

    fn share(&self, part: f64) -> f64 {
        (part * self.haste).min(1.0)
    }

    /// When the next such job may begin, now that this one is done, for all of them to take no more than their share of the time.
    pub(super) fn due(&self) -> Instant {
        // What had something read rested already, to take a part of the time that it lasted.
        let share = match reads() > self.before {
            true => WHERE_COLD,
            false => self.share(self.part.unwrap_or(1.0)),
        };
        let idle = self.rested.get() + self.waited.get();
        rest(self.began + idle, share) - idle
    }
}

/// When to go on after work since `began`, to take no more than a share of the time.
fn rest(began: Instant, share: f64) -> Instant {
    let now = Instant::now();
    now + (now - began).mul_f64((1.0 / share.min(1.0) - 1.0).max(0.0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longbow_disk::MemoryDisk;

    use super::*;
    use crate::engine::Engine;
    use crate::error::Result;
    use crate::graph::Graph;
    use crate::graph::tests::indexed;
    use crate::options::Options;

    #[test]
    fn it_rests_for_searches_and_ends_where_dead_rows_wait() -> Result<()> {
        let options = Options {
            // Only this test says whether there were searches.
            recall_share: 0.0,
            ..Options::new("data")
        };
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options)?;
        let dataset = indexed(1_000)?;
        let index = Arc::clone(&dataset.indexes()[0]);
        let shared = engine.shared();
        let mut pace = Pace::new(shared, (&dataset, &index), Some(0.5)).long();
        // As if something had been read since.
        pace.before += 1;
        let rests = || {
            let before = pace.rested.get();
            shared.note_search();
            // As if nothing was read in this piece.
            let goes_on = pace.pause(Instant::now(), u64::MAX).is_continue();
            assert_eq!(pace.rested.get() > before, goes_on);
            goes_on
        };
        assert!(rests());
        let graph = index.graph();
        let Graph::Quantized(codes) = &*graph else {
            panic!("{:?}", graph.kind());
        };
        let seen = index.reached();
        assert!(rests(), "nothing is to leave");
        assert!(codes.retire(&|row| row < 100)? > 0);
        assert!(!rests() && pace.dead_wait()());
        assert!(pace.wait_for_dead().is_break());
        // Who was asked to by the caller is in nobody's way for long, and samples hold nothing but amid a walk.
        for (part, waits) in [(None, false), (Some(0.5), true)] {
            let mut other = Pace::new(shared, (&dataset, &index), part);
            if part.is_none() {
                other = other.long();
            }
            assert!(other.pause(Instant::now(), reads()).is_continue());
            assert!(!other.is_in_the_way());
            assert_eq!(other.dead_wait()(), waits);
        }
        drop(seen);
        assert!(pace.wait_for_dead().is_continue());
        assert!(rests());
        engine.close()
    }
}
