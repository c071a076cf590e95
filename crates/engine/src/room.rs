//! Room for rows that come, within the memory limit.
//!
//! Where there is none, a writer makes some before it is refused, and so goes on at the pace of what makes room: tails are written
//! into files, and dead rows leave graphs, whose places the new rows take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use longbow_index::Progress;
use parking_lot::Mutex;

use crate::bell::Bell;
use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::hot;
use crate::memory::{Coming, Memory, Reckoned, to_come};
use crate::schema::DatasetSchema;
use crate::seal;
use crate::vacuum;

/// Most tails that are written into files for room for one batch: others may fill what it frees.
const MOST_SEALS: usize = 8;
/// How long a writer waits while nothing goes on: searches that see dead rows hold them, and on a busy machine those who stand back for
/// all others have hardly any time.
const PATIENCE: Duration = match cfg!(test) {
    true => Duration::from_millis(20),
    false => Duration::from_secs(30),
};
/// How long at all, where others take the room that is made.
const LONGEST: Duration = Duration::from_secs(120);
/// How long it waits for jobs to end, so that dead rows begin to leave: no other begins meanwhile,
/// but where the machine is busy, one that runs has hardly any time of a processor.
const PAUSE: Duration = Duration::from_secs(1);
/// Writers that wait for dead rows to leave, at most: each has a thread, and its batch in memory.
pub(crate) const MOST_WAITERS: usize = 32;
/// After this it looks again, though no batch was applied: nothing tells that searches which hold dead rows have ended.
const LOOK: Duration = Duration::from_millis(1);

impl Engine {
    /// Takes room for a batch of `rows` with `bytes` for the dataset `dataset`, until it is applied; refuses it if it does not fit the memory
    /// limit, now or once it is indexed, and no room can be made for it.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], or what the disk says.
    pub(crate) fn admit(
        &self,
        (dataset, schema): (&str, &DatasetSchema),
        rows: usize,
        bytes: u64,
    ) -> Result<Taken> {
        let limit = self.options().memory_limit;
        let coming = Coming {
            dataset,
            schema,
            rows: rows as u64,
        };
        let (mut seals, mut wait, mut waiter) = (0, Wait::default(), None);
        loop {
            let Full {
                memory,
                others,
                now,
            } = match self.take(&coming, bytes) {
                Ok(taken) => return Ok(taken),
                Err(full) => full,
            };
            self.check_writable()?;
            let used = memory.total();
            if now <= limit && !wait.is_too_long() {
                // What is on its way is applied soon, or refused.
                self.shared().on_the_way.freed.wait(LOOK);
                continue;
            }
            let may_fit = now.saturating_sub(memory.tail_bytes + memory.kept_bytes) <= limit;
            if may_fit && hot::let_go(self.catalog(), now.saturating_sub(limit)) {
                continue;
            }
            let fits_sealed = |all: u64| all.saturating_sub(memory.tail_bytes) <= limit;
            if fits_sealed(now) && seals < MOST_SEALS && self.seal_longest()? {
                seals += 1;
                continue;
            }
            let left = self.reckon(&coming, Reckoned::OnceDeadLeft);
            let left = fits_sealed(used.saturating_add(bytes).saturating_add(left));
            // What is on its way takes the place of rows that die then.
            let mut may_wait = bytes <= limit && (left || others > 0);
            if may_wait && waiter.is_none() {
                waiter = self.shared().waiters.try_acquire().ok();
                may_wait = waiter.is_some();
            }
            if !(may_wait && self.let_dead_leave(left, others, &mut wait)) {
                let asked = now - used;
                return Err(Error::MemoryLimit { used, asked, limit });
            }
        }
    }

    fn reckon(&self, coming: &Coming<'_>, how: Reckoned) -> u64 {
        to_come(self.catalog(), self.options(), Some(coming), how)
    }

    /// Takes room if there is some now.
    fn take(&self, coming: &Coming<'_>, bytes: u64) -> std::result::Result<Taken, Full> {
        let (limit, shared) = (self.options().memory_limit, self.shared());
        let most = bytes.saturating_add(coming.most_bytes(self.catalog(), self.options()));
        // One at a time, so that no two take the same room.
        let _alone = shared.on_the_way.admission.lock();
        // First: what is applied meanwhile counts twice, and not for nothing.
        let others = shared.on_the_way.bytes.load(Ordering::Acquire);
        let memory = self.memory();
        let asked = |how| bytes.saturating_add(self.reckon(coming, how));
        let all = |how| memory.total().saturating_add(asked(how));
        if all(Reckoned::Above).saturating_add(others) <= limit {
            return Ok(Taken::new(&shared.on_the_way, most));
        }
        let now = all(Reckoned::Now);
        match now.saturating_add(others) <= limit {
            true => Ok(Taken::new(&shared.on_the_way, most)),
            false => Err(Full {
                memory,
                others,
                now,
            }),
        }
    }

    /// Writes the longest tail into segments; false if there is none, or if the files must be left as they are.
    fn seal_longest(&self) -> Result<bool> {
        if self.shared().log.poisoned().is_some() {
            return Ok(false);
        }
        let tail = |dataset: &Arc<Dataset>| dataset.view().tail.bytes();
        let datasets = self.catalog().datasets();
        match datasets.iter().max_by_key(|dataset| tail(dataset)) {
            Some(dataset) if tail(dataset) > 0 => {
                seal::seal(self.shared(), dataset)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Takes a step to rid graphs of dead rows, by this thread, if there is room once they have `left`; or waits: for those who do, for `others`
    /// that are on their way, for rows on their way into graphs, whose old versions only then are known to be there, or for searches that
    /// see the dead. False if there is nothing to wait for, or nothing went on for too long.
    fn let_dead_leave(&self, left: bool, others: u64, wait: &mut Wait) -> bool {
        let (mut most, mut reached) = (Progress::Ended, 0u64);
        if others > 0 {
            most = Progress::Waiting;
        }
        for dataset in self.catalog().datasets().iter() {
            for index in dataset.indexes().iter() {
                let view = dataset.view();
                reached = reached.wrapping_add(index.watermark());
                let progress = match left && vacuum::leaving(&view, index) > 0 {
                    true => vacuum::hasten(dataset, index, PAUSE),
                    false => Progress::Ended,
                };
                let is_behind = index.waiting(view.next_row) > 0;
                most = match (progress, most) {
                    (Progress::Working, _) | (_, Progress::Working) => Progress::Working,
                    (Progress::Waiting, _) | (_, Progress::Waiting) => Progress::Waiting,
                    _ if is_behind => Progress::Waiting,
                    _ => Progress::Ended,
                };
            }
        }
        if most == Progress::Working || reached != wait.reached {
            (wait.last, wait.reached) = (Instant::now(), reached);
        }
        if most == Progress::Ended || wait.is_over() {
            return false;
        }
        if most == Progress::Waiting {
            self.shared().on_the_way.freed.wait(LOOK);
        }
        true
    }
}

/// There is no room for a batch.
struct Full {
    memory: Memory,
    /// What others take on their way.
    others: u64,
    /// What all would take but for those.
    now: u64,
}

/// Room that batches take on their way, from their admission until they are applied.
#[derive(Debug, Default)]
pub(crate) struct OnTheWay {
    bytes: AtomicU64,
    /// Held by who looks whether there is room for a batch.
    admission: Mutex<()>,
    /// Rung when one is applied, or refused.
    freed: Bell,
}

/// Room that a batch takes on its way, until it is applied: then it counts where it is.
#[derive(Debug)]
pub(crate) struct Taken {
    all: Arc<OnTheWay>,
    bytes: u64,
}

impl Taken {
    fn new(all: &Arc<OnTheWay>, bytes: u64) -> Self {
        all.bytes.fetch_add(bytes, Ordering::AcqRel);
        Taken {
            all: Arc::clone(all),
            bytes,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.all.freed.ring();
    }
}

/// How long a writer has waited.
struct Wait {
    began: Instant,
    /// When something went on, and how far indexes were then.
    last: Instant,
    reached: u64,
}

impl Default for Wait {
    fn default() -> Self {
        let now = Instant::now();
        Wait {
            began: now,
            last: now,
            reached: 0,
        }
    }
}

impl Wait {
    fn is_over(&self) -> bool {
        self.last.elapsed() >= PATIENCE || self.is_too_long()
    }

    fn is_too_long(&self) -> bool {
        self.began.elapsed() >= LONGEST
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use longbow_disk::MemoryDisk;

    use super::*;
    use crate::graph::tests::batch;
    use crate::id::Id;
    use crate::moment::Moment;
    use crate::options::Options;

    fn is_refused(put: Result<()>) -> bool {
        matches!(put, Err(Error::MemoryLimit { .. }))
    }

    fn open() -> Result<Engine> {
        let options = Options {
            memory_limit: 6 << 20,
            ..Options::new("data")
        };
        Engine::open(Arc::new(MemoryDisk::new()), options)
    }

    /// Puts rows a few at a time; the first that are refused end it.
    fn put(engine: &Engine, ids: Range<u64>) -> Result<()> {
        for start in ids.clone().step_by(100) {
            let batch = batch(start..ids.end.min(start + 100))?;
            let mut session = engine.put("d", &batch.schema())?;
            session.record_batch(&batch)?.wait()?;
        }
        Ok(())
    }

    #[test]
    fn dead_rows_that_are_seen_make_no_room_and_others_do() -> Result<()> {
        let engine = open()?;
        assert!(is_refused(put(&engine, 0..100_000)));
        let fit = engine.dataset("d")?.view().live;
        drop(engine);

        let engine = open()?;
        let ended = fit * 3 / 4;
        put(&engine, 0..ended)?;
        let dataset = engine.dataset("d")?;
        assert!(dataset.wait_for_index(Duration::from_secs(300)));
        let moment = Moment::of(Arc::clone(&dataset));
        let dead = ended / 2;
        let ids = (0..dead as i64).map(Id::Int).collect();
        engine.delete_ids("d", ids)?.wait()?;
        // As many in one batch, of which none is taken, as come a few at a time later.
        let whole = batch(ended..ended + dead)?;
        let mut session = engine.put("d", &whole.schema())?;
        assert!(is_refused(session.record_batch(&whole).map(drop)));
        drop(moment);
        // Not at once, where others are at it who have hardly any time.
        let more = || put(&engine, dataset.view().next_row..ended + dead);
        let mut tries = std::iter::repeat_with(more).take(1_000);
        assert!(tries.any(|put| put.is_ok()));
        assert_eq!(dataset.view().live, ended);
        assert!(is_refused(put(&engine, 100_000..200_000)));
        Ok(())
    }

    #[test]
    fn what_is_on_its_way_takes_room() -> Result<()> {
        let engine = open()?;
        put(&engine, 0..100)?;
        let schema = Arc::clone(&engine.dataset("d")?.view().schema);
        let limit = engine.options().memory_limit;
        let admit = || engine.admit(("d", &schema), 1, limit / 2);
        let (first, is_let_go) = (admit()?, AtomicBool::new(false));
        let begun = AtomicBool::new(false);
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                begun.store(true, Ordering::Release);
                let taken = admit().map(drop);
                (taken, is_let_go.load(Ordering::Acquire))
            });
            while !begun.load(Ordering::Acquire) {
                thread::yield_now();
            }
            (0..1_000).for_each(|_| thread::yield_now());
            is_let_go.store(true, Ordering::Release);
            drop(first);
            let (taken, has_waited) = second.join().expect("no panic");
            assert!(has_waited);
            taken
        })?;
        assert_eq!(engine.shared().on_the_way.bytes.load(Ordering::Acquire), 0);
        // What never fits waits for nobody.
        let _first = admit()?;
        assert!(is_refused(
            engine.admit(("d", &schema), 1, limit + 1).map(drop)
        ));
        Ok(())
    }
}
