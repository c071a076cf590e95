//! What the callers and the log's threads share.

use crate::gate::Gates;
use crate::gathering::Gathering;
use crate::group::{Done, Group};
use crate::retention::Retention;
use crate::segment::Segment;
use crate::shards::Shards;
use crate::spares::Spares;
use crate::writer::Writer;
use crate::{Error, Options, Result, SyncMode};
use longbow_disk::{Disk, File};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Everything behind the one short lock.
pub(crate) struct State {
    /// What was handed in and is not being written yet, in the order of the indexes.
    pub(crate) queue: VecDeque<Group>,
    /// Entries and bytes in the queue, and when the first of them came.
    pub(crate) queue_entries: usize,
    pub(crate) queue_bytes: u64,
    pub(crate) queue_since: Option<Instant>,
    /// Who is waited for before the next sync.
    pub(crate) gathering: Gathering,
    /// How many batches were taken from the queue.
    batches: usize,
    /// What is written, and not yet as safe as was promised; and what was refused behind it.
    pub(crate) unsafe_groups: VecDeque<Group>,
    /// What is to be told, and whether it survives power loss.
    pub(crate) told: VecDeque<(Group, Result<bool>)>,
    /// Bytes of all entries that were not completed yet.
    pub(crate) queued_bytes: u64,
    /// The index of the next entry.
    pub(crate) next: u64,
    /// The last index that was handed to the operating system.
    pub(crate) written: u64,
    /// The last index that survives power loss.
    pub(crate) durable: u64,
    /// The last index that somebody wants to survive power loss, where nothing else asks for a sync.
    pub(crate) sync_wanted: u64,
    /// Bytes handed to the operating system and not synced yet.
    pub(crate) unsynced_bytes: u64,
    /// Files with unsynced bytes, in the order of the log.
    pub(crate) unsynced_files: Vec<Arc<dyn File>>,
    /// Whether the name of a segment is not synced yet.
    pub(crate) unsynced_dir: bool,
    /// The age of the oldest byte that no sync covers yet, and of the oldest that the sync under way covers.
    pub(crate) unsynced_since: Option<Instant>,
    pub(crate) syncing_since: Option<Instant>,
    pub(crate) last_timestamp: u64,
    /// The first failure of the disk.
    pub(crate) poison: Option<Arc<longbow_disk::Error>>,
    /// No more appends are taken.
    pub(crate) closed: bool,
    /// Some thread is at one of the three jobs.
    pub(crate) writing: bool,
    pub(crate) syncing: bool,
    pub(crate) teller: Option<ThreadId>,
    /// The log's threads that have not ended, those of them that wait for a job, and whether one of these was called.
    pub(crate) threads: usize,
    pub(crate) idle: usize,
    pub(crate) called: bool,
    /// One of the threads wakes when nobody is waited for any longer.
    pub(crate) timed: bool,
}

impl State {
    /// The state of a log whose last record is durable and has the index `last`.
    pub(crate) fn after(last: u64, last_timestamp: u64, threads: usize) -> State {
        State {
            queue: VecDeque::new(),
            queue_entries: 0,
            queue_bytes: 0,
            queue_since: None,
            gathering: Gathering::default(),
            batches: 0,
            unsafe_groups: VecDeque::new(),
            told: VecDeque::new(),
            queued_bytes: 0,
            next: last + 1,
            written: last,
            durable: last,
            sync_wanted: last,
            unsynced_bytes: 0,
            unsynced_files: Vec::new(),
            unsynced_dir: false,
            unsynced_since: None,
            syncing_since: None,
            last_timestamp,
            poison: None,
            closed: false,
            writing: false,
            syncing: false,
            teller: None,
            threads,
            idle: 0,
            called: false,
            timed: false,
        }
    }

    pub(crate) fn poisoned(&self) -> Option<Error> {
        let cause = self.poison.clone()?;
        Some(Error::Poisoned { cause })
    }

    /// The last index that readers may see: acknowledged, or about to be.
    pub(crate) fn readable(&self, mode: SyncMode) -> u64 {
        match mode {
            SyncMode::EveryAck => self.durable,
            SyncMode::Background { .. } | SyncMode::Never => self.written,
        }
    }

    /// Whether the disk is too far behind for another acknowledgement.
    pub(crate) fn is_behind(&self, mode: SyncMode) -> bool {
        let SyncMode::Background {
            max_unsynced_bytes,
            max_unsynced_age,
        } = mode
        else {
            return false;
        };
        let oldest = self.syncing_since.or(self.unsynced_since);
        let is_old = |since: Instant| since.elapsed() > max_unsynced_age;
        self.unsynced_bytes > max_unsynced_bytes || oldest.is_some_and(is_old)
    }

    /// Notes the first failure.
    pub(crate) fn poison(&mut self, cause: Arc<longbow_disk::Error>) {
        if self.poison.is_none() {
            tracing::error!(%cause, "the log is closed for writing");
            self.poison = Some(cause);
        }
    }

    /// Notes that everything up to `target`, of which `bytes` were not synced before, is durable now.
    pub(crate) fn note_durable(&mut self, target: u64, bytes: u64) {
        self.durable = target;
        self.unsynced_bytes -= bytes;
        self.syncing_since = None;
    }

    /// Queues a hand-in and gives it its indexes, or says why not.
    pub(crate) fn enqueue(
        &mut self,
        mut group: Group,
        options: &Options,
        now_us: u64,
    ) -> std::result::Result<u64, (Error, Done)> {
        let limit = options.max_queued_bytes;
        let queued = self.queued_bytes;
        let refused = if let Some(poisoned) = self.poisoned() {
            Some(poisoned)
        } else if self.closed {
            Some(Error::Closed)
        } else if queued > 0 && queued + group.bytes > limit {
            Some(Error::QueueFull { queued, limit })
        } else {
            None
        };
        if let Some(error) = refused {
            return Err((error, group.into_done()));
        }
        group.first = self.next;
        group.gate = self.current_gate();
        group.timestamp_us = now_us.max(self.last_timestamp);
        self.last_timestamp = group.timestamp_us;
        self.next = group.last() + 1;
        self.queued_bytes += group.bytes;
        self.queue_bytes += group.bytes;
        self.queue_entries += group.entries.len();
        if group.until_durable {
            self.sync_wanted = self.sync_wanted.max(group.last());
        }
        if self.queue.is_empty() && !options.linger.is_zero() {
            self.queue_since = Some(Instant::now());
        }
        let first = group.first;
        self.gathering.note_arrival(group.last());
        self.queue.push_back(group);
        Ok(first)
    }

    /// Where the callers of what is queued now wait.
    pub(crate) fn current_gate(&self) -> usize {
        Gates::of(self.batches)
    }

    /// Takes from the queue what goes into one write. It is not empty.
    pub(crate) fn take_batch(&mut self, options: &Options) -> VecDeque<Group> {
        let fits = self.queue_entries <= options.max_batch_entries
            && self.queue_bytes <= options.max_batch_bytes;
        self.batches = self.batches.wrapping_add(1);
        if fits {
            return self.take_queue();
        }
        let mut left = (options.max_batch_entries, options.max_batch_bytes);
        let fitting = self.queue.iter().take_while(|group| {
            let entries = left.0.checked_sub(group.entries.len());
            let bytes = left.1.checked_sub(group.bytes);
            let fits = entries.zip(bytes);
            left = fits.unwrap_or(left);
            fits.is_some()
        });
        let count = fitting.count().max(1);
        let batch: VecDeque<Group> = self.queue.drain(..count).collect();
        for group in &batch {
            self.queue_entries -= group.entries.len();
            self.queue_bytes -= group.bytes;
        }
        self.queue_since = None;
        batch
    }

    /// Finds out what may be told after a sync that took so long.
    pub(crate) fn settle_synced(&mut self, mode: SyncMode, took: Duration) {
        let before = self.told.len();
        self.settle(mode);
        if mode == SyncMode::EveryAck {
            let told = self
                .told
                .iter()
                .skip(before)
                .filter(|(_, result)| result.is_ok());
            let (told, bytes) = told.fold((0, self.queue_bytes), |(told, bytes), (group, _)| {
                (told + 1, bytes + group.bytes)
            });
            self.gathering.begin(told, bytes, took, Instant::now());
        }
    }

    /// Finds out what may be told now.
    pub(crate) fn settle(&mut self, mode: SyncMode) {
        if let Some(error) = self.poisoned() {
            return self.fail_all(&error);
        }
        let on_writing = mode != SyncMode::EveryAck && !self.is_behind(mode);
        while let Some(group) = self.unsafe_groups.front() {
            let durable = group.last() <= self.durable;
            let waits = !durable && (group.until_durable || !on_writing);
            if waits && group.refused.is_none() {
                return;
            }
            if let Some(mut group) = self.unsafe_groups.pop_front() {
                let refused = group.refused.take();
                self.told
                    .push_back((group, refused.map_or(Ok(durable), Err)));
            }
        }
    }

    /// Fails everything that is not acknowledged, but what is just being written and what is behind it.
    fn fail_all(&mut self, error: &Error) {
        let written = mem::take(&mut self.unsafe_groups);
        self.fail(written, error);
        if !self.writing {
            let queued = self.take_queue();
            self.fail(queued, error);
        }
    }

    /// Refuses a batch and everything queued behind it, whose indexes are given to the entries that come next.
    pub(crate) fn refuse(&mut self, batch: VecDeque<Group>, error: &Error) {
        self.next = batch[0].first;
        self.gathering.give_up();
        for mut group in batch.into_iter().chain(self.take_queue()) {
            // They are told when those before them are.
            group.refused = Some(error.clone());
            self.unsafe_groups.push_back(group);
        }
    }

    /// Takes everything that is queued.
    fn take_queue(&mut self) -> VecDeque<Group> {
        self.queue_entries = 0;
        self.queue_bytes = 0;
        self.queue_since = None;
        mem::take(&mut self.queue)
    }

    /// Lets these be told of a failure.
    fn fail(&mut self, groups: VecDeque<Group>, error: &Error) {
        let failed = groups.into_iter().map(|group| (group, Err(error.clone())));
        self.told.extend(failed);
    }
}

/// A log, as its threads see it.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    /// There may be a job for one of the log's threads.
    pub(crate) work: Condvar,
    /// Where callers wait for their entries.
    pub(crate) gates: Gates,
    /// `durable` grew, or the log was poisoned, or entries were refused, or it ended.
    pub(crate) progress: Condvar,
    /// With whoever is at the writing, and never waited for.
    pub(crate) writer: Mutex<Writer>,
    /// Never held together with `state`.
    pub(crate) segments: Mutex<VecDeque<Segment>>,
    pub(crate) spares: Spares,
    pub(crate) shards: Shards,
    pub(crate) retention: Retention,
}

impl Shared {
    /// The failure that closed the log for writing, if there was one.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        self.state.lock().poisoned()
    }

    /// Ends the log's writing life with its first failure, and wakes everyone to see it.
    pub(crate) fn poison(&self, cause: Arc<longbow_disk::Error>) {
        let mut state = self.state.lock();
        state.poison(cause);
        state.settle(self.options.sync);
        drop(state);
        self.work.notify_all();
        self.progress.notify_all();
    }
}
