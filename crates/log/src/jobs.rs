//! Who does what: three jobs, each with one thread at a time.
//!
//! *Writing* hands what is queued to the operating system, *syncing* makes it durable, *telling* completes the entries in
//! order. Whoever finds a job to be done that nobody is at may take it: the log's own threads, and a caller that would
//! have to wait anyway and finds the log idle, which saves it two changes of thread. So the next batch is written while
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
    /// Whether there is something that may be written, now or when it has lingered.
    fn has_batch(&self, options: &Options) -> bool {
        if self.writing || self.queue.is_empty() || self.is_behind(options.sync) {
            return false;
        }
        let waited_for = self.syncing && options.sync == SyncMode::EveryAck;
        !(waited_for || self.gathers_until().is_some()) || self.queue_bytes >= WORTH_WRITING
    }

    /// Until when the next sync waits for more.
    fn gathers_until(&self) -> Option<Instant> {
        let is_any = !self.queue.is_empty() || self.durable < self.written;
        let gathers = is_any && !self.closed && self.poison.is_none();
        gathers.then(|| self.gathering.holds_until()).flatten()
    }

    /// Until when the queue waits for more.
    fn lingers_until(&self, options: &Options) -> Option<Instant> {
        let is_full = self.queue_entries >= options.max_batch_entries
            || self.queue_bytes >= options.max_batch_bytes;
        let since = self.queue_since.filter(|_| !is_full && !self.closed);
        since.map(|since| since + options.linger)
    }

    fn can_write(&self, options: &Options) -> bool {
        let lingers = |until| Instant::now() < until;
        self.has_batch(options) && !self.lingers_until(options).is_some_and(lingers)
    }

    fn can_sync(&self, mode: SyncMode) -> bool {
        let wanted = match mode {
            SyncMode::Never => self.sync_wanted.min(self.written),
            SyncMode::Background { .. } | SyncMode::EveryAck => self.written,
        };
        let gathers = || self.written < self.gathering.goal() || self.gathers_until().is_some();
        !self.syncing && self.poison.is_none() && self.durable < wanted && !gathers()
    }

    fn can_tell(&self) -> bool {
        self.teller.is_none() && !self.told.is_empty()
    }

    /// The most urgent thing to be done, and whether there is another.
    fn next_job(&self, options: &Options) -> (Option<Job>, bool) {
        let write = self.can_write(options).then_some(Job::Write);
        let sync = self.can_sync(options.sync).then_some(Job::Sync);
        let tell = self.can_tell().then_some(Job::Tell);
        // Also a batch that lingers: somebody must be there when it is to be written.
        let waiting = self.has_batch(options).then_some(Job::Write);
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
        if state.idle > 0
            && !state.called
            // What lingers or is held back needs a thread that wakes in time.
            && (state.has_batch(&self.options)
                || (!state.timed && state.gathers_until().is_some())
                || state.next_job(&self.options).0.is_some())
        {
            state.called = true;
            self.work.notify_one();
        }
    }

    /// The life of one of the log's threads.
    pub(crate) fn work(&self) {
        let mut state = self.state.lock();
        loop {
            let (job, another) = state.next_job(&self.options);
            if let Some(job) = job {
                if another {
                    self.call_for_work(&mut state);
                }
                state = self.run(job, state);
            } else if state.is_over(self.options.sync) {
                break;
            } else {
                self.rest(&mut state);
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

    /// Waits for something to be done, or for its time to come.
    fn rest(&self, state: &mut MutexGuard<'_, State>) {
        let lingers = state.lingers_until(&self.options);
        let lingers = lingers.filter(|_| state.has_batch(&self.options));
        let gathers = state.gathers_until();
        state.idle += 1;
        if let Some(until) = lingers.or(gathers) {
            state.timed |= gathers.is_some();
            self.work.wait_until(state, until);
            state.timed &= gathers.is_none();
        } else {
            self.work.wait(state);
        }
        state.idle -= 1;
        state.called = false;
    }

    /// Does what there is to be done until `done`, or until there is nothing that nobody else is at.
    pub(crate) fn help<'a>(&'a self, mut state: MutexGuard<'a, State>, done: impl Fn() -> bool) {
        while !done() {
            // It is told first of all, and what others handed in meanwhile is for the log's own threads.
            let (job, another) = match state.next_job(&self.options) {
                (Some(_), another) if state.can_tell() => (Job::Tell, another),
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
mod tests {
    use super::*;
    use crate::{Entry, Log, Observer};
    use longbow_disk::MemoryDisk;
    use parking_lot::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// Holds each sync back until it may end.
    struct Held(Mutex<Receiver<()>>);

    impl Observer for Held {
        fn written(&self, _bytes: u64) {}

        fn synced(&self, _took: Duration, _bytes: u64) {
            // An error: the test has no more to hold back.
            let _ = self.0.lock().recv();
        }
    }

    fn held_log(sync: SyncMode) -> (Log, Sender<()>) {
        let (release, held) = channel();
        let options = Options {
            sync,
            observer: Arc::new(Held(Mutex::new(held))),
            prepared_segments: 0,
            ..Options::new("log")
        };
        let disk = Arc::new(MemoryDisk::new());
        let (log, _) = Log::open(disk, options, 0, &mut |_| Ok(())).unwrap();
        (log, release)
    }

    #[test]
    fn a_caller_works_beside_a_sync_that_it_does_not_wait_for() {
        let sync = SyncMode::Background {
            max_unsynced_bytes: u64::MAX,
            max_unsynced_age: Duration::MAX,
        };
        let (log, release) = held_log(sync);
        log.append_and_wait([Entry::default()]).unwrap();
        wait_for(&log, |state| state.syncing && state.idle == 1);
        // Nobody can be called.
        log.shared.state.lock().called = true;
        let (tell, told) = channel();
        thread::scope(|scope| {
            scope.spawn(|| tell.send(log.append_and_wait([Entry::default()])).unwrap());
            let told = told.recv_timeout(Duration::from_secs(60));
            // If it was not told, this lets it go, so that the test can end.
            log.shared.work.notify_all();
            drop(release);
            assert!(matches!(told, Ok(Ok(ack)) if ack.index == 2 && !ack.durable));
        });
    }

    /// A log that is told that so many hand-ins were just told of a sync that took an hour.
    fn gathering_log(missing: usize) -> (Log, Receiver<u64>) {
        struct Syncs(Mutex<Sender<u64>>);
        impl Observer for Syncs {
            fn written(&self, _bytes: u64) {}
            fn synced(&self, _took: Duration, bytes: u64) {
                // An error: the test has ended.
                let _ = self.0.lock().send(bytes);
            }
        }
        let (tell, syncs) = channel();
        let options = Options {
            sync: SyncMode::EveryAck,
            observer: Arc::new(Syncs(Mutex::new(tell))),
            prepared_segments: 0,
            ..Options::new("log")
        };
        let disk = Arc::new(MemoryDisk::new());
        let (log, _) = Log::open(disk, options, 0, &mut |_| Ok(())).unwrap();
        let hour = Duration::from_secs(3600);
        let mut state = log.shared.state.lock();
        state.gathering.begin(missing, 1, hour, Instant::now());
        drop(state);
        (log, syncs)
    }

    #[test]
    fn a_sync_waits_for_those_who_were_just_told() {
        let (log, syncs) = gathering_log(2);
        let (tell, told) = channel();
        let append = || {
            let tell = tell.clone();
            let done = move |ack: crate::Result<crate::Ack>| tell.send(ack.unwrap().index).unwrap();
            log.append(durable(), Box::new(done)).unwrap();
        };
        append();
        // One of the log's threads looks at the time, and neither writes.
        wait_for(&log, |state| state.timed && state.idle == THREADS);
        assert_eq!(log.shared.state.lock().queue.len(), 1);
        append();
        assert_eq!((told.recv().unwrap(), told.recv().unwrap()), (1, 2));
        let bytes = 2 * crate::frame_bytes(0);
        assert_eq!(syncs.try_iter().collect::<Vec<_>>(), [bytes]);
    }

    #[test]
    fn a_log_that_is_closed_waits_for_nobody() {
        let (log, _syncs) = gathering_log(2);
        thread::scope(|scope| {
            let caller = scope.spawn(|| log.append_and_wait([durable()]));
            wait_for(&log, |state| state.timed && state.idle == THREADS);
            log.close().unwrap();
            assert_eq!(caller.join().unwrap().unwrap().index, 1);
        });
    }

    /// Waits until the log is in a state.
    fn wait_for(log: &Log, is_there: impl Fn(&State) -> bool) {
        while !is_there(&log.shared.state.lock()) {
            thread::yield_now();
        }
    }

    fn durable() -> Entry {
        Entry {
            durable: true,
            ..Entry::default()
        }
    }

    #[test]
    fn a_log_can_be_closed_while_a_caller_works_for_it() {
        // Several times: the threads may look only after the caller is done.
        let modes = [SyncMode::EveryAck, SyncMode::Never];
        for sync in modes.into_iter().cycle().take(40) {
            let (log, release) = held_log(sync);
            let (tell, told) = channel();
            thread::scope(|scope| {
                wait_for(&log, |state| state.idle == THREADS);
                let caller = scope.spawn(|| log.append_and_wait([durable()]));
                wait_for(&log, |state| state.syncing && state.idle == THREADS);
                let log = &log;
                scope.spawn(move || tell.send(log.close()).unwrap());
                // The threads of the log looked for something to do, found nothing, and wait for the caller.
                wait_for(log, |state| state.closed && state.idle == THREADS);
                drop(release);
                assert_eq!(caller.join().unwrap().unwrap().index, 1);
                let closed = told.recv_timeout(Duration::from_secs(60));
                // If it hangs, this lets it go, so that the test can end.
                log.shared.work.notify_all();
                assert!(matches!(closed, Ok(Ok(()))), "{closed:?}");
            });
        }
    }

    #[test]
    fn a_caller_that_works_is_told_before_it_works_for_others() {
        let (log, release) = held_log(SyncMode::EveryAck);
        thread::scope(|scope| {
            wait_for(&log, |state| state.idle == THREADS);
            let (tell, told) = channel();
            let log = &log;
            scope.spawn(move || tell.send(log.append_and_wait([durable()])).unwrap());
            wait_for(log, |state| state.syncing);
            let other = scope.spawn(|| log.append_and_wait([durable()]));
            wait_for(log, |state| state.next == 3);
            // One sync ends; the next does not.
            release.send(()).unwrap();
            let told = told.recv_timeout(Duration::from_secs(60));
            let others = other.is_finished();
            drop(release);
            assert!(matches!(told, Ok(Ok(ack)) if ack.index == 1));
            assert!(!others);
            assert_eq!(other.join().unwrap().unwrap().index, 2);
        });
    }
}
