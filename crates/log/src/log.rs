//! The log as its users see it.

use crate::entry::Ack;
use crate::frames::CHUNK;
use crate::gate::{Gates, Waiter};
use crate::group::{Done, Group};
use crate::jobs::{THREADS, writes_are_synced};
use crate::reader::{Reader, Step, record};
use crate::recovery::{Opened, recover, remove_segment};
use crate::replay::{Each, Replay};
use crate::retention::Retention;
use crate::state::{Shared, State};
use crate::writer::Writer;
use crate::{Entry, Error, Flaw, Options, Record, Recovery, ReplayError, Result, SyncMode};
use longbow_disk::Disk;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// An open write-ahead log. All methods take `&self` and may be called from any thread. Dropping it closes it.
pub struct Log {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Log {
    /// Opens the log in `options.dir`, or begins one, and hands each record with an index above `after` to `replay`, in
    /// order. `after` is the index up to which the caller has everything already, from a checkpoint; 0 for nothing.
    ///
    /// A torn tail, as a crash in mid-write leaves it, is cut and reported in [`Recovery`]. When this returns, all that
    /// was replayed is durable. An empty log, or one that a power loss left shorter than the checkpoint, goes on at
    /// `after + 1`.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] and [`Error::Newer`] leave the folder unchanged. [`Error::Missing`] if the log begins behind
    /// `after + 1`. [`Error::Replay`] carries the failure of `replay`. Only one log at a time may be open in a folder;
    /// the caller holds the lock for that.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        after: u64,
        replay: &mut dyn FnMut(Record) -> std::result::Result<(), ReplayError>,
    ) -> Result<(Log, Recovery)> {
        Log::open_with(disk, options, after, &mut Each(replay))
    }

    /// [`Log::open`] for whoever does not do all at once what it is handed.
    ///
    /// # Errors
    ///
    /// As [`Log::open`]; and what the replay answers.
    pub fn open_with(
        disk: Arc<dyn Disk>,
        options: Options,
        after: u64,
        replay: &mut dyn Replay,
    ) -> Result<(Log, Recovery)> {
        let opened = recover(&*disk, &options, after, replay)?;
        let recovery = opened.recovery.clone();
        let superseded = opened.superseded.clone();
        let log = Log::start(disk, options, opened, after)?;
        log.remove_superseded(&superseded)?;
        Ok((log, recovery))
    }

    /// Removes segments that the log does not go on from, once the votes in them are behind them. Only now, so that the
    /// folder is never without a segment.
    fn remove_superseded(&self, superseded: &[u64]) -> Result<()> {
        let Shared { disk, options, .. } = &*self.shared;
        if !superseded.is_empty() {
            self.keep_votes(self.first_index())?;
        }
        superseded
            .iter()
            .try_for_each(|first| remove_segment(&**disk, options, *first))
    }

    fn start(disk: Arc<dyn Disk>, options: Options, opened: Opened, after: u64) -> Result<Log> {
        let last = opened.recovery.last_index;
        let shared = Arc::new(Shared {
            disk,
            state: Mutex::new(State::after(last, opened.last_timestamp, THREADS)),
            work: Condvar::new(),
            gates: Gates::default(),
            progress: Condvar::new(),
            writer: Mutex::new(Writer::new(&options, &opened)?),
            segments: Mutex::new(VecDeque::from(opened.segments)),
            spares: opened.spares,
            shards: opened.shards,
            retention: Retention::covering(after),
            options,
        });
        let log = Log {
            shared: shared.clone(),
            threads: Mutex::default(),
        };
        for _ in 0..THREADS {
            let shared = shared.clone();
            log.spawn("log-worker", move || shared.work())?;
        }
        if shared.options.prepared_segments > 0 {
            log.spawn("log-preparer", move || shared.prepare_spares())?;
        }
        Ok(log)
    }

    fn spawn(&self, name: &'static str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let builder = thread::Builder::new().name(name.to_string());
        let handle = builder.spawn(run).map_err(|cause| {
            let cause = Arc::new(cause);
            Error::Thread { name, cause }
        })?;
        self.threads.lock().push(handle);
        Ok(())
    }

    /// Queues an entry and returns the index it is given: the one after the last, in the order of the calls.
    ///
    /// `done` is called exactly once, on a thread of the log or of another caller, and in the order of the indexes: with
    /// an [`Ack`] once the entry is as safe as the [`SyncMode`] promises, or with the error. It must be short and must
    /// not wait for the log. Until then the index is a promise only: when a full disk refuses entries
    /// ([`Error::NoSpace`]), their indexes are given to those that come next. An entry that failed by
    /// [`Error::Poisoned`] may or may not be there, whole, when the log is opened again.
    ///
    /// # Errors
    ///
    /// An entry that cannot even be queued ([`Error::TooLong`], [`Error::ReservedKind`], [`Error::QueueFull`],
    /// [`Error::Poisoned`], [`Error::Closed`]) is refused at once: `done` is called with the same error, by this thread,
    /// before it returns.
    pub fn append(&self, entry: Entry, done: Box<dyn FnOnce(Result<Ack>) + Send>) -> Result<u64> {
        self.queue(Group::new([entry], Done::Call(done)))
            .map(|range| range.start)
    }

    /// Queues several entries, which get consecutive indexes and are acknowledged or refused together: cheaper for each
    /// than [`append`](Log::append), because `done` is called once for all of them. After a crash before that, some of
    /// them may be there, each whole.
    ///
    /// # Errors
    ///
    /// As `append`; [`Error::Empty`] for no entries.
    pub fn append_all(
        &self,
        entries: impl IntoIterator<Item = Entry>,
        done: Box<dyn FnOnce(Result<Ack>) + Send>,
    ) -> Result<Range<u64>> {
        self.queue(Group::new(entries, Done::Call(done)))
    }

    /// Appends entries as [`append_all`](Log::append_all) does, and waits until they are as safe as the [`SyncMode`]
    /// promises. On a log that has nothing else to do, this thread does what there is to be done, which is quicker than to
    /// wake another. Not to be called by a completion, nor on a thread of an async runtime.
    ///
    /// # Errors
    ///
    /// As for `append_all`, and as its completion would be told.
    pub fn append_and_wait(&self, entries: impl IntoIterator<Item = Entry>) -> Result<Ack> {
        let waiter = Waiter::new();
        let group = Group::new(entries, Done::Wait(waiter.clone()));
        self.queue_and_wait(group, &waiter)
    }

    /// Queues what `waiter` is told of, and waits for that.
    pub(crate) fn queue_and_wait(
        &self,
        group: std::result::Result<Group, (Error, Done)>,
        waiter: &Waiter,
    ) -> Result<Ack> {
        let mut group = group.map_err(|(error, _)| error)?;
        self.sum_ahead(&mut group);
        let options = &self.shared.options;
        let now_us = (options.clock)();
        let mut state = self.shared.state.lock();
        let queued = state.enqueue(group, options, now_us);
        queued.map_err(|(error, _)| error)?;
        let gate = state.current_gate();
        if state.is_idle_but_for_one(options.sync) && options.linger.is_zero() {
            self.shared.help(state, true, || waiter.is_told());
        } else {
            self.shared.call_for_work(&mut state);
            drop(state);
        }
        self.shared.gates.wait(gate, waiter)
    }

    /// Has the checksums computed by this thread, beside others and before the short lock: but not of many entries for a log
    /// that idles and will write them piece by piece, because the disk can begin with the first of them while the rest is summed.
    fn sum_ahead(&self, group: &mut Group) {
        let options = &self.shared.options;
        let by_pieces = options.sync == SyncMode::EveryAck && !writes_are_synced(options);
        let many = group.entries.len() > 1 && group.bytes > CHUNK as u64;
        let at_once = by_pieces && many && options.linger.is_zero();
        if !(at_once && self.shared.state.lock().is_idle()) {
            group.sum();
        }
    }

    /// Queues a hand-in, whose completion is told if it is refused.
    pub(crate) fn queue(
        &self,
        group: std::result::Result<Group, (Error, Done)>,
    ) -> Result<Range<u64>> {
        self.queue_with(group, |state| self.shared.call_for_work(state))
    }

    /// The same; `then` sees to it that it is written.
    pub(crate) fn queue_with(
        &self,
        group: std::result::Result<Group, (Error, Done)>,
        then: impl FnOnce(&mut State),
    ) -> Result<Range<u64>> {
        let queued = group.and_then(|mut group| {
            self.sum_ahead(&mut group);
            let count = group.entries.len() as u64;
            let now_us = (self.shared.options.clock)();
            let mut state = self.shared.state.lock();
            let first = state.enqueue(group, &self.shared.options, now_us)?;
            then(&mut state);
            Ok(first..first + count)
        });
        queued.map_err(|(error, done)| {
            done.tell(Err(error.clone()));
            error
        })
    }

    /// The index that was given last, to an entry that may still be on its way; 0 before the first.
    pub fn last_index(&self) -> u64 {
        self.shared.state.lock().next - 1
    }

    /// The last index that survives power loss.
    pub fn durable_index(&self) -> u64 {
        self.shared.state.lock().durable
    }

    /// The first index that can be read; one past the last if there is no record.
    pub fn first_index(&self) -> u64 {
        self.shared.segments.lock().front().map_or(1, |s| s.first)
    }

    /// Bytes of entries that are not acknowledged yet.
    pub fn queued_bytes(&self) -> u64 {
        self.shared.state.lock().queued_bytes
    }

    /// The most that there may be of these; beyond it, appends are refused.
    pub fn max_queued_bytes(&self) -> u64 {
        self.shared.options.max_queued_bytes
    }

    /// Bytes handed to the operating system that are not synced yet.
    pub fn unsynced_bytes(&self) -> u64 {
        self.shared.state.lock().unsynced_bytes
    }

    /// Bytes of all segments, up to the last that was written in each.
    pub fn size_bytes(&self) -> u64 {
        self.shared.segments.lock().iter().map(|s| s.end).sum()
    }

    /// The failure that closed the log for writing, if there was one: [`Error::Poisoned`].
    pub fn poisoned(&self) -> Option<Error> {
        self.shared.poisoned()
    }

    /// Waits until everything appended so far is durable, and returns the last durable index. Entries that a full disk
    /// refuses on the way are not waited for. In [`SyncMode::Never`] this is what syncs.
    pub fn sync(&self) -> Result<u64> {
        let mut state = self.shared.state.lock();
        let target = state.next - 1;
        state.sync_wanted = state.sync_wanted.max(target);
        self.shared.call_for_work(&mut state);
        while state.durable < target.min(state.next - 1) {
            if let Some(poisoned) = state.poisoned() {
                return Err(poisoned);
            }
            self.shared.progress.wait(&mut state);
        }
        Ok(state.durable)
    }

    /// Waits until as many segments as the options ask for are written ahead, or there is no space for them.
    pub fn wait_until_prepared(&self) {
        self.shared
            .spares
            .wait(self.shared.options.prepared_segments);
    }

    /// Reads acknowledged records from index `from` on, in order: as many as fit into `max_bytes` of payload, but at
    /// least one if there is any. Empty if the log ends before `from`. In the background mode the last of them may not
    /// be durable yet; compare with [`durable_index`](Log::durable_index).
    ///
    /// # Errors
    ///
    /// [`Error::Purged`] if `from` is not there any more; [`Error::Damaged`] if what is there is broken.
    pub fn read(&self, from: u64, max_bytes: u64) -> Result<Vec<Record>> {
        let last = self.shared.state.lock().readable(self.shared.options.sync);
        let mut batch = Batch {
            next: from.max(1),
            last,
            ..Batch::of(max_bytes)
        };
        while !batch.is_full() {
            let mut reader = self.reader_at(batch.next)?;
            batch.fill(&mut reader)?;
        }
        Ok(batch.records)
    }

    /// A reader of the segment that holds `index`, standing at a frame at or before it.
    pub(crate) fn reader_at(&self, index: u64) -> Result<Reader> {
        let Shared { disk, options, .. } = &*self.shared;
        // Opened under the lock, so that the file is not purged in between.
        let segments = self.shared.segments.lock();
        let behind = segments.partition_point(|s| s.first <= index);
        let Some(position) = behind.checked_sub(1) else {
            let first = segments.front().map_or(1, |s| s.first);
            return Err(Error::Purged { from: index, first });
        };
        let segment = &segments[position];
        let mut reader = Reader::open(&**disk, &options.dir, segment.first)?;
        reader.format = segment.format;
        reader.user = Some(segment.users.clone());
        reader.end = reader.end.min(segment.end);
        reader.offset = segment.near(index);
        Ok(reader)
    }

    /// Refuses further appends, writes and syncs what is queued, and ends the threads. The same happens on drop, where
    /// the outcome is only traced. Reads go on. From within a completion it only asks for the end, without waiting.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`] if not everything could be written and synced.
    pub fn close(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let is_completion = state.teller == Some(thread::current().id());
        drop(state);
        self.shared.work.notify_all();
        self.shared.spares.close();
        if is_completion {
            return Ok(());
        }
        // Held meanwhile, so that whoever else closes the log waits for its end too.
        for handle in self.threads.lock().drain(..) {
            if handle.join().is_err() {
                tracing::error!("a thread of the log panicked");
            }
        }
        self.poisoned().map_or(Ok(()), Err)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the log was not closed cleanly");
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("options", &self.shared.options)
            .field("first_index", &self.first_index())
            .field("last_index", &self.last_index())
            .field("durable_index", &self.durable_index())
            .finish_non_exhaustive()
    }
}

/// Records being read.
pub(crate) struct Batch {
    pub(crate) next: u64,
    pub(crate) last: u64,
    bytes_left: u64,
    pub(crate) records: Vec<Record>,
}

impl Batch {
    /// Nothing yet, and at most so many bytes of payload.
    pub(crate) fn of(bytes_left: u64) -> Batch {
        Batch {
            next: 1,
            last: 0,
            bytes_left,
            records: Vec::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.next > self.last || (self.bytes_left == 0 && !self.records.is_empty())
    }

    /// Takes what is wanted from the rest of one segment.
    pub(crate) fn fill(&mut self, reader: &mut Reader) -> Result<()> {
        let begun = self.next;
        while !self.is_full() {
            let offset = reader.offset;
            match reader.step()? {
                Step::End if self.next > begun => return Ok(()),
                Step::End => return Err(reader.damaged(offset, self.next, Flaw::CutShort)),
                Step::Bad(flaw) => return Err(reader.damaged(offset, self.next, flaw)),
                Step::Frame { header, .. } if header.mark || header.index < self.next => {}
                Step::Frame { header, .. } if header.index > self.next => {
                    let found = header.index;
                    return Err(reader.damaged(offset, self.next, Flaw::Index { found }));
                }
                Step::Frame { header, payload } => {
                    let bytes = payload.len() as u64;
                    if bytes > self.bytes_left && !self.records.is_empty() {
                        self.bytes_left = 0;
                        return Ok(());
                    }
                    self.bytes_left = self.bytes_left.saturating_sub(bytes);
                    self.next += 1;
                    self.records.push(record(&header, payload));
                }
            }
        }
        Ok(())
    }
}
