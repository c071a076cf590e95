//! Who does what: three jobs, each with one thread at a time.
//!
//! *Writing* hands what is queued to the operating system, *syncing* makes it durable, *telling* completes the entries in
//! order. Whoever finds a job to be done that nobody is at may take it: the log's own threads, and a caller that would
//! have to wait anyway, or has nothing better to do (`here.rs`), and finds the log idle, which saves it two changes of thread. So the next batch is written while
//! one is synced, and one is synced while the callers of the one before are woken; what queued while the disk was busy
//! is the next batch, so group commit needs no interval. `gathering.rs` says when a sync is worth holding back for a moment.

use crate::gate::GATES;
use crate::state::{Shared, State};
use crate::{Options, SyncMethod, SyncMode};
use parking_lot::MutexGuard;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// The log's own threads. One writes or tells while another waits for the disk.
pub(crate) const THREADS: usize = 2;

/// While a sync is under way that acknowledgements wait for, or before one that waits for more, so many bytes are worth a
/// write of their own. Fewer wait: they would not be acknowledged earlier, and cost a call each.
const WORTH_WRITING: u64 = 64 << 10;

/// Something to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Write,
    Sync,
    Tell,
}

impl State {
    /// Whether there is something that may be written at this time, or when it has lingered.
    fn has_batch(&self, options: &Options, now: Instant) -> bool {
        if self.writing || self.queue.is_empty() || self.is_behind(options.sync) {
            return false;
        }
        let waited_for = self.syncing && options.sync == SyncMode::EveryAck;
        !(waited_for || self.gathers_until(now).is_some()) || self.queue_bytes >= WORTH_WRITING
    }

    /// Until when the next sync waits for more, if it does at this time.
    fn gathers_until(&self, now: Instant) -> Option<Instant> {
        let is_any = !self.queue.is_empty() || self.durable < self.written;
        let gathers = is_any && !self.closed && self.poison.is_none();
        gathers.then(|| self.gathering.holds_until(now)).flatten()
    }

    /// Until when the queue waits for more.
    fn lingers_until(&self, options: &Options) -> Option<Instant> {
        let is_full = self.queue_entries >= options.max_batch_entries
            || self.queue_bytes >= options.max_batch_bytes;
        let since = self.queue_since.filter(|_| !is_full && !self.closed);
        since.map(|since| since + options.linger)
    }

    /// When something that is not to be done at this time is to be done at the latest, if nothing happens before.
    fn rests_until(&self, options: &Options, now: Instant) -> Option<Instant> {
        let lingers = self.lingers_until(options);
        let lingers = lingers.filter(|_| self.has_batch(options, now));
        lingers.into_iter().chain(self.gathers_until(now)).min()
    }

    fn can_write(&self, options: &Options, now: Instant) -> bool {
        let lingers = |until| now < until;
        self.has_batch(options, now) && !self.lingers_until(options).is_some_and(lingers)
    }

    fn can_sync(&self, mode: SyncMode, now: Instant) -> bool {
        let wanted = match mode {
            SyncMode::Never => self.sync_wanted.min(self.written),
            SyncMode::Background { .. } | SyncMode::EveryAck => self.written,
        };
        let gathers = || self.written < self.gathering.goal() || self.gathers_until(now).is_some();
        !self.syncing && self.poison.is_none() && self.durable < wanted && !gathers()
    }

    fn can_tell(&self) -> bool {
        self.teller.is_none() && !self.told.is_empty()
    }

    /// The most urgent thing to be done at this time, and whether there is another.
    fn next_job(&self, options: &Options, now: Instant) -> (Option<Job>, bool) {
        let write = self.can_write(options, now).then_some(Job::Write);
        let sync = self.can_sync(options.sync, now).then_some(Job::Sync);
        let tell = self.can_tell().then_some(Job::Tell);
        // Also a batch that lingers: somebody must be there when it is to be written.
        let waiting = self.has_batch(options, now).then_some(Job::Write);
        let another = [waiting, sync, tell].iter().flatten().count() > 1;
        // The disk must not idle while callers are woken, if there is someone else to wake them. Where nobody waits for
        // the disk, a sync is the last thing that a thread should be stuck in.
        let disk_first = options.sync == SyncMode::EveryAck && self.idle > 0;
        let job = if disk_first {
            write.or(sync).or(tell)
        } else {
            tell.or(write).or(sync)
        };
        (job, another)
    }

    /// Closed, and nothing is left to be done or being done.
    fn is_over(&self, mode: SyncMode) -> bool {
        let is_safe =
            self.durable == self.written || mode == SyncMode::Never || self.poison.is_some();
        self.closed
            && is_safe
            && !(self.writing || self.syncing || self.teller.is_some())
            && self.queue.is_empty()
            && self.unsafe_groups.is_empty()
            && self.told.is_empty()
    }

    /// Whether a caller that is going to wait may as well do the work: there is nothing else to be done than what it just
    /// queued, and nobody at anything, but for a sync that no acknowledgement waits for.
    pub(crate) fn is_idle_but_for_one(&self, mode: SyncMode) -> bool {
        let in_the_way = self.syncing && mode == SyncMode::EveryAck;
        self.queue.len() == 1 && self.tells_nobody() && !in_the_way
    }

    /// Whether there is nothing to be done, and nobody at anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.tells_nobody() && !self.syncing
    }

    /// Whether nothing is being written, and nobody waits to be told of what was.
    fn tells_nobody(&self) -> bool {
        self.unsafe_groups.is_empty()
            && self.told.is_empty()
            && !(self.writing || self.teller.is_some())
    }
}

impl Shared {
    /// Calls one of the log's threads if there is a job that nobody is at.
    pub(crate) fn call_for_work(&self, state: &mut State) {
        let now = Instant::now();
        if state.idle > 0
            && !state.called
            // What lingers or is held back needs a thread that wakes in time.
            && (state.has_batch(&self.options, now)
                || (!state.timed && state.gathers_until(now).is_some())
                || state.next_job(&self.options, now).0.is_some())
        {
            state.called = true;
            self.work.notify_one();
        }
    }

    /// The life of one of the log's threads.
    pub(crate) fn work(&self) {
        let mut state = self.state.lock();
        loop {
            // One time for all that is decided: what is not to be done yet has to be waited for with an end.
            let now = Instant::now();
            let (job, another) = state.next_job(&self.options, now);
            if let Some(job) = job {
                if another {
                    self.call_for_work(&mut state);
                }
                state = self.run(job, state);
            } else if state.is_over(self.options.sync) {
                break;
            } else {
                self.rest(&mut state, now);
            }
        }
        state.threads -= 1;
        let was_last = state.threads == 0;
        drop(state);
        self.work.notify_all();
        if was_last {
            self.finish();
        }
        self.progress.notify_all();
    }

    /// Waits for something to be done, of which there is nothing at `now`, or for its time to come.
    fn rest(&self, state: &mut MutexGuard<'_, State>, now: Instant) {
        let until = state.rests_until(&self.options, now);
        let gathers = state.gathers_until(now);
        state.idle += 1;
        if let Some(until) = until {
            state.timed |= gathers.is_some();
            self.work.wait_until(state, until);
            state.timed &= gathers.is_none();
        } else {
            self.work.wait(state);
        }
        state.idle -= 1;
        state.called = false;
    }

    /// Does what there is to be done until `done`, or until there is nothing that nobody else is at, or only a sync and that is
    /// not wanted.
    pub(crate) fn help<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        syncs: bool,
        done: impl Fn() -> bool,
    ) {
        while !done() {
            // It is told first of all, and what others handed in meanwhile is for the log's own threads.
            let (job, another) = match state.next_job(&self.options, Instant::now()) {
                (Some(_), another) if state.can_tell() => (Job::Tell, another),
                (Some(Job::Sync), _) if !syncs => break,
                (Some(job), another) => (job, another),
                (None, _) => break,
            };
            if another {
                self.call_for_work(&mut state);
            }
            state = match job {
                Job::Tell => self.tell(state, &done),
                job => self.run(job, state),
            };
        }
        self.call_for_work(&mut state);
        if state.is_over(self.options.sync) {
            // This thread was the last that was at something: the others may end.
            self.work.notify_all();
        }
    }

    fn run<'a>(&'a self, job: Job, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        match job {
            Job::Write => self.write(state),
            Job::Sync => self.sync(state),
            Job::Tell => self.tell(state, || false),
        }
    }

    fn write<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let mut batch = state.take_batch(&self.options);
        let durable = state.durable;
        state.writing = true;
        drop(state);
        let mut writer = self.writer.lock();
        let started = Instant::now();
        let outcome = writer.commit(self, &mut batch, durable);
        let took = started.elapsed();
        drop(writer);
        let mut state = self.state.lock();
        state.writing = false;
        match outcome {
            Ok(written) => written.note(&mut state, batch, &self.options),
            Err(refusal) => refusal.note(&mut state, batch),
        }
        if writes_are_synced(&self.options) {
            state.settle_synced(self.options.sync, took);
        } else {
            state.settle(self.options.sync);
        }
        self.progress.notify_all();
        state
    }

    /// Tells whatever there is to be told, or until `enough`.
    fn tell<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        enough: impl Fn() -> bool,
    ) -> MutexGuard<'a, State> {
        state.teller = Some(thread::current().id());
        while !state.told.is_empty() && !enough() {
            let mut told = mem::take(&mut state.told);
            let bytes: u64 = told.iter().map(|(group, _)| group.bytes).sum();
            // Before they are told: a completion may find room for the next entry.
            state.queued_bytes -= bytes;
            drop(state);
            for (group, result) in &told {
                if result.is_ok() {
                    self.shards.note_group(group);
                }
            }
            let mut gates = [false; GATES];
            for (group, result) in &mut told {
                if let Some(gate) = group.gate() {
                    gates[gate] = true;
                }
                group.complete(mem::replace(result, Ok(false)));
            }
            for (gate, _) in gates.into_iter().enumerate().filter(|(_, told)| *told) {
                self.gates.open(gate);
            }
            // Nobody waits for the memory.
            drop(told);
            state = self.state.lock();
        }
        state.teller = None;
        state
    }

    /// Syncs everything that was written when it was called.
    pub(crate) fn sync<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let target = state.written;
        let bytes = state.unsynced_bytes;
        let files = mem::take(&mut state.unsynced_files);
        let dir = mem::take(&mut state.unsynced_dir);
        state.syncing_since = state.unsynced_since.take();
        state.syncing = true;
        drop(state);
        let started = Instant::now();
        let synced = files.iter().try_for_each(|file| file.sync_data());
        let synced = synced.and_then(|()| match dir {
            true => self.disk.sync_dir(&self.options.dir),
            false => Ok(()),
        });
        let took = started.elapsed();
        if synced.is_ok() {
            // Before anyone can see that something is durable.
            self.options.observer.synced(took, bytes);
        }
        let mut state = self.state.lock();
        state.syncing = false;
        match synced {
            Ok(()) => state.note_durable(target, bytes),
            Err(cause) => state.poison(Arc::new(cause)),
        }
        state.settle_synced(self.options.sync, took);
        self.progress.notify_all();
        state
    }
}

/// Whether each write is durable when it returns.
pub(crate) fn writes_are_synced(options: &Options) -> bool {
    options.sync == SyncMode::EveryAck && options.sync_method == SyncMethod::Dsync
}

#[cfg(test)]
mod tests;
