//! The thread that writes what is queued and completes it.

use crate::entry::Ack;
use crate::frame::{HEADER_BYTES, Header, PADDING, padding_after};
use crate::recovery::{create_segment, remove_segment};
use crate::segment::{EMPTY_SEGMENT, Segment, path_of};
use crate::state::{Pending, Shared, State};
use crate::{Error, Result, SyncMode};
use bytes::Bytes;
use longbow_disk::File;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

/// The writer: it alone appends to segments and begins new ones.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) file: Arc<dyn File>,
    /// The segment's bytes, also those to come.
    pub(crate) map: Option<Bytes>,
    /// Where the sound frames of the segment end, in bytes.
    pub(crate) end: u64,
    /// Whether nothing follows the last mark.
    pub(crate) marked: bool,
}

/// What the writer finds when it looks at the queue.
enum Work {
    Write(Vec<Pending>),
    /// The log is poisoned: these are to be failed.
    Fail(Vec<Pending>, Error),
    /// Closed, and nothing is left.
    End,
}

impl Writer {
    /// Works until the log is closed and everything queued is completed.
    pub(crate) fn run(mut self) {
        loop {
            match self.next_work() {
                Work::Write(batch) => self.commit(batch),
                Work::Fail(batch, error) => self.fail(batch, &error),
                Work::End => break,
            }
        }
        self.finish();
        self.shared.state.lock().finished = true;
        self.shared.unsynced.notify_all();
        self.shared.progress.notify_all();
    }

    fn next_work(&self) -> Work {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        loop {
            if let Some(error) = state.poisoned() {
                if !state.queue.is_empty() {
                    return Work::Fail(state.queue.drain(..).collect(), error);
                }
            } else if !state.queue.is_empty() {
                break;
            }
            if state.closed {
                return Work::End;
            }
            shared.work.wait(&mut state);
        }
        if !shared.options.linger.is_zero() {
            let until = Instant::now() + shared.options.linger;
            while !self.fills_a_batch(&state) && !state.closed && state.poison.is_none() {
                if shared.work.wait_until(&mut state, until).timed_out() {
                    break;
                }
            }
        }
        let mut bytes = 0;
        let mut count = 0;
        for pending in state
            .queue
            .iter()
            .take(shared.options.max_batch_entries.max(1))
        {
            bytes += pending.bytes();
            if count > 0 && bytes > shared.options.max_batch_bytes {
                break;
            }
            count += 1;
        }
        Work::Write(state.queue.drain(..count).collect())
    }

    fn fills_a_batch(&self, state: &State) -> bool {
        let options = &self.shared.options;
        state.queue.len() >= options.max_batch_entries
            || state.queued_bytes >= options.max_batch_bytes
    }

    /// Writes a batch, syncs it if the mode asks for that, and completes it.
    fn commit(&mut self, batch: Vec<Pending>) {
        let bytes = total_bytes(&batch);
        let first = batch[0].header.index;
        if let Err(cause) = self.make_room(first, bytes) {
            return self.refuse(batch, cause);
        }
        if let Err(cause) = self.write(&batch) {
            return self.refuse(batch, cause);
        }
        self.note_written(&batch, bytes);
        if self.shared.options.sync == SyncMode::EveryAck
            && let Err(cause) = self.shared.sync_once()
        {
            self.shared.poison(Arc::new(cause));
        }
        let state = self.shared.wait_for_disk(self.shared.state.lock());
        let poisoned = state.poisoned();
        let durable = state.durable;
        drop(state);
        match poisoned {
            Some(error) => self.fail(batch, &error),
            None => self.acknowledge(batch, self.end - bytes, durable),
        }
    }

    /// Begins a new segment if the batch would make this one too large.
    fn make_room(&mut self, first: u64, bytes: u64) -> longbow_disk::Result<()> {
        let shared = &self.shared;
        let end = self.end + bytes;
        if self.end == EMPTY_SEGMENT || end <= shared.options.segment_size {
            if self
                .map
                .as_ref()
                .is_some_and(|map| (map.len() as u64) < end)
            {
                self.map = self.file.map_ahead(end);
            }
            return Ok(());
        }
        let file = create_segment(&*shared.disk, &shared.options, first)?;
        match shared.options.sync {
            SyncMode::EveryAck => shared.disk.sync_dir(&shared.options.dir)?,
            // The syncer does it before it calls anything in the segment durable.
            SyncMode::Background { .. } => shared.state.lock().unsynced_dir = true,
        }
        self.file = Arc::from(file);
        let most = shared.options.segment_size.max(EMPTY_SEGMENT + bytes);
        self.map = self.file.map_ahead(most);
        self.end = EMPTY_SEGMENT;
        shared.segments.lock().push_back(Segment::new(first));
        Ok(())
    }

    /// Hands the frames of a batch to the operating system. Between two payloads lie the padding of the first and the
    /// header of the second, so that a frame takes one slice more than its payload has parts.
    fn write(&self, batch: &[Pending]) -> longbow_disk::Result<()> {
        let durable = self.shared.state.lock().durable;
        let mut between = Vec::with_capacity(batch.len() * (HEADER_BYTES + PADDING.len()));
        let mut cuts = Vec::with_capacity(batch.len());
        for pending in batch {
            let header = Header {
                durable,
                ..pending.header
            };
            between.extend_from_slice(&header.encode());
            cuts.push(between.len());
            between.extend_from_slice(&PADDING[..padding_after(header.len)]);
        }
        let mut parts = Vec::with_capacity(batch.len() * 2 + 1);
        let mut from = 0;
        for (pending, cut) in batch.iter().zip(cuts) {
            parts.push(IoSlice::new(&between[from..cut]));
            parts.extend(pending.payload.iter().map(|p| IoSlice::new(p)));
            from = cut;
        }
        parts.push(IoSlice::new(&between[from..]));
        self.file.append_vectored(&parts).map(|_| ())
    }

    fn note_written(&mut self, batch: &[Pending], bytes: u64) {
        self.end += bytes;
        self.marked = false;
        if let Some(segment) = self.shared.segments.lock().back_mut() {
            for pending in batch {
                segment.push(pending.header.index, pending.bytes());
            }
        }
        let mut state = self.shared.state.lock();
        state.written = batch[batch.len() - 1].header.index;
        state.unsynced_bytes += bytes;
        state.unsynced_since.get_or_insert_with(Instant::now);
        let known = state.unsynced_files.last();
        if !known.is_some_and(|file| Arc::ptr_eq(file, &self.file)) {
            state.unsynced_files.push(self.file.clone());
        }
        drop(state);
        self.shared.unsynced.notify_one();
        self.shared.options.observer.written(bytes);
    }

    /// Gives up a batch that could not be written. On a full disk the log is brought back to where it was before the
    /// batch, and goes on; in all other cases, and if that fails, it is poisoned.
    fn refuse(&mut self, batch: Vec<Pending>, cause: longbow_disk::Error) {
        let cause = Arc::new(cause);
        if !cause.is_no_space() {
            self.shared.poison(cause.clone());
        } else if let Err(error) = self.roll_back(batch[0].header.index) {
            tracing::error!(%error, "cannot cut an unfinished write");
            self.shared.poison(cause.clone());
        } else {
            return self.refuse_all(batch, Error::NoSpace { cause });
        }
        self.fail(batch, &Error::Poisoned { cause });
    }

    /// Removes, durably, what an unfinished write or an unfinished new segment left on the disk.
    fn roll_back(&self, first: u64) -> Result<()> {
        let shared = &self.shared;
        let last = shared.segments.lock().back().map(|s| s.first);
        let begun = path_of(&shared.options.dir, first);
        if last != Some(first) && shared.disk.exists(&begun)? {
            remove_segment(&*shared.disk, &shared.options, first)?;
        }
        if self.file.len()? != self.end {
            self.file.truncate(self.end)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Refuses a batch and everything queued behind it, whose indexes are given to the entries that come next.
    fn refuse_all(&mut self, mut batch: Vec<Pending>, error: Error) {
        let mut state = self.shared.state.lock();
        batch.extend(state.queue.drain(..));
        state.next = batch[0].header.index;
        drop(state);
        self.fail(batch, &error);
    }

    fn fail(&self, batch: Vec<Pending>, error: &Error) {
        self.release(&batch);
        for pending in batch {
            pending.complete(Err(error.clone()));
        }
    }

    /// Acknowledges a batch whose frames begin at `start` in the segment.
    fn acknowledge(&self, batch: Vec<Pending>, start: u64, durable: u64) {
        self.release(&batch);
        let mut at = start;
        for pending in batch {
            let payload = self.mapped(at + HEADER_BYTES as u64, pending.header.len);
            at += pending.bytes();
            let index = pending.header.index;
            let durable = index <= durable;
            pending.complete(Ok(Ack {
                index,
                durable,
                payload,
            }));
        }
    }

    /// Written bytes of the segment.
    fn mapped(&self, at: u64, len: u32) -> Option<Bytes> {
        let map = self.map.as_ref()?;
        let start = usize::try_from(at).ok()?;
        let end = start.checked_add(len as usize)?;
        (end <= map.len()).then(|| map.slice(start..end))
    }

    fn release(&self, batch: &[Pending]) {
        self.shared.state.lock().queued_bytes -= total_bytes(batch);
        self.shared.progress.notify_all();
    }

    /// Makes everything durable and leaves a mark that says so.
    fn finish(&mut self) {
        self.wait_until_durable();
        if let Err(error) = self.leave_mark() {
            self.shared.poison(Arc::new(error));
        }
    }

    /// Waits until everything written is durable, or the log is poisoned.
    fn wait_until_durable(&self) {
        let mut state = self.shared.state.lock();
        while state.durable < state.written && state.poison.is_none() {
            self.shared.progress.wait(&mut state);
        }
    }

    fn leave_mark(&self) -> longbow_disk::Result<()> {
        let state = self.shared.state.lock();
        if self.marked || state.poison.is_some() {
            return Ok(());
        }
        let mark = Header {
            index: state.written,
            durable: state.durable,
            timestamp_us: state.last_timestamp,
            mark: true,
            ..Header::default()
        };
        drop(state);
        match self.file.append_vectored(&[IoSlice::new(&mark.encode())]) {
            Ok(_) => self.file.sync_data(),
            // The log is whole without its mark; a part of a mark is cut like any torn tail.
            Err(error) if error.is_no_space() => self.file.truncate(self.end),
            Err(error) => Err(error),
        }
    }
}

/// The bytes that the frames of a batch take in the file.
fn total_bytes(batch: &[Pending]) -> u64 {
    batch.iter().map(Pending::bytes).sum()
}
