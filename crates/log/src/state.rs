//! What the callers, the writer and the syncer share.

use crate::entry::{Ack, Done, Entry, checked_len};
use crate::frame::{Header, payload_crc};
use crate::segment::Segment;
use crate::spares::Spares;
use crate::{Error, Options, Result, SyncMode};
use bytes::Bytes;
use longbow_disk::{Disk, File};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An entry on its way to the disk.
pub(crate) struct Pending {
    /// Complete but for the index, which is given when it is queued, and `durable` and `previous`, filled in when it is
    /// written.
    pub(crate) header: Header,
    pub(crate) payload: Vec<Bytes>,
    pub(crate) done: Done,
}

impl Pending {
    fn new(
        entry: Entry,
        timestamp_us: u64,
        done: Done,
    ) -> std::result::Result<Pending, (Error, Done)> {
        let len = match checked_len(&entry.payload) {
            Ok(len) => len,
            Err(error) => return Err((error, done)),
        };
        let header = Header {
            len,
            payload_crc: payload_crc(&entry.payload),
            shard: entry.shard,
            timestamp_us,
            term: entry.term,
            shard_index: entry.shard_index,
            kind: entry.kind,
            ..Header::default()
        };
        let payload = entry.payload;
        Ok(Pending {
            header,
            payload,
            done,
        })
    }

    /// What it takes in the file and counts for in the queue, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.header.frame_bytes()
    }

    /// Tells the caller. A caller that panics must not take the log with it.
    pub(crate) fn complete(self, result: Result<Ack>) {
        let done = self.done;
        if catch_unwind(AssertUnwindSafe(|| done(result))).is_err() {
            let index = self.header.index;
            tracing::error!(index, "the completion of a log entry panicked");
        }
    }
}

/// Everything behind the one short lock.
pub(crate) struct State {
    /// Entries that were not handed to the operating system yet.
    pub(crate) queue: VecDeque<Pending>,
    /// Bytes of all entries that were not completed yet.
    pub(crate) queued_bytes: u64,
    /// The index of the next entry.
    pub(crate) next: u64,
    /// The last index that was handed to the operating system.
    pub(crate) written: u64,
    /// The last index that survives power loss.
    pub(crate) durable: u64,
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
    /// The writer has ended; nothing will become unsynced any more.
    pub(crate) finished: bool,
}

impl State {
    /// The state of a log whose last record is durable and has the index `last`.
    pub(crate) fn after(last: u64, last_timestamp: u64) -> State {
        State {
            queue: VecDeque::new(),
            queued_bytes: 0,
            next: last + 1,
            written: last,
            durable: last,
            unsynced_bytes: 0,
            unsynced_files: Vec::new(),
            unsynced_dir: false,
            unsynced_since: None,
            syncing_since: None,
            last_timestamp,
            poison: None,
            closed: false,
            finished: false,
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
    fn over_limit(&self, max_bytes: u64, max_age: Duration) -> bool {
        let oldest = self.syncing_since.or(self.unsynced_since);
        self.unsynced_bytes > max_bytes || oldest.is_some_and(|since| since.elapsed() > max_age)
    }
}

/// A log, as its threads see it.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    /// Something was queued, or the log was closed or poisoned.
    pub(crate) work: Condvar,
    /// Something was written that needs a sync, or the writer has ended.
    pub(crate) unsynced: Condvar,
    /// `durable` grew, or the log was poisoned, or entries were refused.
    pub(crate) progress: Condvar,
    /// Never held together with `state`.
    pub(crate) segments: Mutex<VecDeque<Segment>>,
    pub(crate) spares: Spares,
}

impl Shared {
    /// Queues an entry, or says why not and gives the completion back.
    pub(crate) fn enqueue(
        &self,
        entry: Entry,
        done: Done,
    ) -> std::result::Result<u64, (Error, Done)> {
        // The checksum, the costly part, is computed here by the caller, outside the lock.
        let mut pending = Pending::new(entry, (self.options.clock)(), done)?;
        let bytes = pending.bytes();
        let mut state = self.state.lock();
        let limit = self.options.max_queued_bytes;
        let queued = state.queued_bytes;
        let refused = if let Some(poisoned) = state.poisoned() {
            Some(poisoned)
        } else if state.closed {
            Some(Error::Closed)
        } else if queued > 0 && queued + bytes > limit {
            Some(Error::QueueFull { queued, limit })
        } else {
            None
        };
        if let Some(error) = refused {
            drop(state);
            return Err((error, pending.done));
        }
        let index = state.next;
        pending.header.index = index;
        pending.header.timestamp_us = pending.header.timestamp_us.max(state.last_timestamp);
        state.last_timestamp = pending.header.timestamp_us;
        state.next += 1;
        state.queued_bytes += bytes;
        state.queue.push_back(pending);
        drop(state);
        self.work.notify_one();
        Ok(index)
    }

    /// Ends the log's writing life with its first failure, and wakes everyone to see it.
    pub(crate) fn poison(&self, cause: Arc<longbow_disk::Error>) {
        let mut state = self.state.lock();
        if state.poison.is_none() {
            tracing::error!(%cause, "the log is closed for writing");
            state.poison = Some(cause);
        }
        drop(state);
        self.work.notify_all();
        self.unsynced.notify_all();
        self.progress.notify_all();
    }

    /// Waits, in the background mode, until the disk is within its limits again.
    pub(crate) fn wait_for_disk<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        if let SyncMode::Background {
            max_unsynced_bytes,
            max_unsynced_age,
        } = self.options.sync
        {
            while state.poison.is_none() && state.over_limit(max_unsynced_bytes, max_unsynced_age) {
                self.progress.wait(&mut state);
            }
        }
        state
    }
}
