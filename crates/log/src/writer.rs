//! The thread that writes what is queued and completes it.

use crate::claim;
use crate::entry::Ack;
use crate::frame::{HEADER_BYTES, Header, PADDING, ZERO_HEADER, padding_after};
use crate::recovery::remove_segment;
use crate::segment::{EMPTY_SEGMENT, path_of, used};
use crate::spares::begin_segment;
use crate::state::{Pending, Shared, State};
use crate::{Error, Result, SyncMethod, SyncMode};
use bytes::Bytes;
use longbow_disk::File;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The writer: it alone writes to segments and begins new ones.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    file: Arc<dyn File>,
    /// The segment's bytes, also those to come.
    map: Option<Bytes>,
    /// Shared with all who read the segment.
    users: Arc<()>,
    /// The first index of the segment.
    first: u64,
    /// The checksum of the last header.
    link: u32,
    /// Where the sound frames of the segment end, in bytes.
    end: u64,
    /// The length of the file, in bytes: what is written below it changes no metadata.
    reserved: u64,
    /// Whether nothing follows the last mark.
    marked: bool,
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
    /// A writer that goes on at `end` in the last segment, whose file this is.
    pub(crate) fn new(
        shared: Arc<Shared>,
        file: Arc<dyn File>,
        end: u64,
        link: u32,
        marked: bool,
    ) -> Result<Writer> {
        let last = shared
            .segments
            .lock()
            .back()
            .map(|s| (s.first, s.users.clone()));
        let (first, users) = last.unwrap_or_default();
        let map = file.map_ahead(shared.options.segment_size);
        Ok(Writer {
            map: map.map(|map| used(map, &users)),
            users,
            reserved: file.len()?,
            shared,
            file,
            first,
            link,
            end,
            marked,
        })
    }

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
        let started = Instant::now();
        let mut written = self.put_down(&batch, bytes);
        if let Err(cause) = &written
            && cause.is_no_space()
            && self.give_up_spares()
            && self.roll_back(first).is_ok()
        {
            written = self.put_down(&batch, bytes);
        }
        if let Err(cause) = written {
            return self.refuse(batch, cause);
        }
        self.note_written(&batch, bytes);
        if self.shared.options.sync == SyncMode::EveryAck {
            self.make_durable(bytes, started.elapsed());
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

    /// Writes a batch, into a new segment where this one has no room for it.
    fn put_down(&mut self, batch: &[Pending], bytes: u64) -> longbow_disk::Result<()> {
        self.make_room(batch[0].header.index, bytes)?;
        self.write(batch)
    }

    /// Syncs what was just written, if the write did not, and took so long, do that itself.
    fn make_durable(&self, bytes: u64, took: Duration) {
        if self.shared.options.sync_method == SyncMethod::Dsync {
            let mut state = self.shared.state.lock();
            state.unsynced_files.clear();
            let target = state.written;
            drop(state);
            self.shared.note_durable(target, bytes, took);
        } else if let Err(cause) = self.shared.sync_once() {
            self.shared.poison(Arc::new(cause));
        }
    }

    /// Begins a new segment if the batch would make this one too large.
    fn make_room(&mut self, first: u64, bytes: u64) -> longbow_disk::Result<()> {
        let shared = self.shared.clone();
        let end = self.end + bytes;
        // A segment without an entry, with a mark perhaps, has the name that the next one would have.
        if first == self.first || end <= shared.options.segment_size {
            if self
                .map
                .as_ref()
                .is_some_and(|map| (map.len() as u64) < end)
            {
                self.map_ahead(end);
            }
            return Ok(());
        }
        let begun = begin_segment(
            &*shared.disk,
            &shared.options,
            &shared.spares,
            first,
            self.link,
        )?;
        match shared.options.sync {
            SyncMode::EveryAck => shared.disk.sync_dir(&shared.options.dir)?,
            // The syncer does it before it calls anything in the segment durable.
            SyncMode::Background { .. } => shared.state.lock().unsynced_dir = true,
            SyncMode::Never => {}
        }
        if shared.options.sync == SyncMode::EveryAck
            && shared.options.sync_method == SyncMethod::Dsync
        {
            // The writes that follow make only themselves durable.
            begun.file.sync_data()?;
        }
        self.file = begun.file;
        self.users = begun.segment.users.clone();
        self.map_ahead(shared.options.segment_size.max(EMPTY_SEGMENT + bytes));
        self.first = first;
        self.link = begun.link;
        self.end = EMPTY_SEGMENT;
        self.reserved = begun.bytes;
        shared.segments.lock().push_back(begun.segment);
        Ok(())
    }

    fn map_ahead(&mut self, bytes: u64) {
        let map = self.file.map_ahead(bytes);
        self.map = map.map(|map| used(map, &self.users));
    }

    /// Hands the frames of a batch to the operating system. Between two payloads lie the padding of the first and the
    /// header of the second, so that a frame takes one slice more than its payload has parts.
    fn write(&mut self, batch: &[Pending]) -> longbow_disk::Result<()> {
        let durable = self.shared.state.lock().durable;
        let mut between = Vec::with_capacity(batch.len() * (HEADER_BYTES + PADDING.len()));
        let mut cuts = Vec::with_capacity(batch.len());
        let mut link = self.link;
        let mut end = self.end;
        for pending in batch {
            let header = Header {
                durable,
                previous: link,
                ..pending.header
            };
            let (bytes, crc) = header.encode(self.first);
            link = crc;
            between.extend_from_slice(&bytes);
            cuts.push(between.len());
            between.extend_from_slice(&PADDING[..padding_after(header.len)]);
            end += pending.bytes();
        }
        let mut parts = Vec::with_capacity(batch.len() * 2 + 2);
        let mut from = 0;
        for (pending, cut) in batch.iter().zip(cuts) {
            parts.push(IoSlice::new(&between[from..cut]));
            parts.extend(pending.payload.iter().map(|p| IoSlice::new(p)));
            from = cut;
        }
        parts.push(IoSlice::new(&between[from..]));
        parts.push(self.terminator(end));
        if self.shared.options.sync == SyncMode::EveryAck
            && self.shared.options.sync_method == SyncMethod::Dsync
        {
            self.file.write_at_synced(self.end, &parts)?;
        } else {
            self.file.write_at(self.end, &parts)?;
        }
        self.link = link;
        Ok(())
    }

    /// The zeros that end what is written up to `end`: where the file goes on, they keep what lies there from being
    /// taken for the rest of a torn write.
    fn terminator(&self, end: u64) -> IoSlice<'static> {
        let left = self.reserved.saturating_sub(end);
        IoSlice::new(&ZERO_HEADER[..left.min(ZERO_HEADER.len() as u64) as usize])
    }

    fn note_written(&mut self, batch: &[Pending], bytes: u64) {
        self.end += bytes;
        self.marked = false;
        if let Some(segment) = self.shared.segments.lock().back_mut() {
            for pending in batch {
                segment.push(pending.header.index, pending.bytes());
            }
        }
        // Before anyone can see that it was written.
        self.shared.options.observer.written(bytes);
        let mut state = self.shared.state.lock();
        state.written = batch[batch.len() - 1].header.index;
        state.unsynced_bytes += bytes;
        state.unsynced_since.get_or_insert_with(Instant::now);
        let known = state.unsynced_files.last();
        let tracked = self.shared.options.sync != SyncMode::Never;
        if tracked && !known.is_some_and(|file| Arc::ptr_eq(file, &self.file)) {
            state.unsynced_files.push(self.file.clone());
        }
        drop(state);
        self.shared.unsynced.notify_one();
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
    fn roll_back(&mut self, first: u64) -> Result<()> {
        let shared = &self.shared;
        let last = shared.segments.lock().back().map(|s| s.first);
        let begun = path_of(&shared.options.dir, first);
        if last != Some(first) && shared.disk.exists(&begun)? {
            remove_segment(&*shared.disk, &shared.options, first)?;
        }
        if self.file.len()? != self.end {
            self.file.truncate(self.end)?;
            self.file.sync_data()?;
            self.reserved = self.end;
        }
        Ok(())
    }

    /// Frees the space of the spare files; whether there were any.
    fn give_up_spares(&self) -> bool {
        let spares = self.shared.spares.take_all();
        let Shared { disk, options, .. } = &*self.shared;
        let removed = spares.iter().try_for_each(|spare| disk.remove(&spare.path));
        // Some file systems free the space only when the name is gone for good.
        if let Err(error) = removed.and_then(|()| disk.sync_dir(&options.dir)) {
            // What is left is found at the next start.
            tracing::warn!(%error, "cannot remove the spare files of the log");
        }
        !spares.is_empty()
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
        if self.shared.options.sync == SyncMode::Never
            && let Err(error) = self.shared.sync_all_segments()
        {
            return self.shared.poison(Arc::new(error));
        }
        self.wait_until_durable();
        if let Err(error) = self.leave_mark() {
            return self.shared.poison(Arc::new(error));
        }
        let state = self.shared.state.lock();
        let durable = state.durable;
        let poisoned = state.poison.is_some();
        drop(state);
        if !poisoned
            && let Err(error) = claim::write(&*self.shared.disk, &self.shared.options, durable)
        {
            // The log is sound without it.
            tracing::warn!(%error, "cannot note how far the log is durable");
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
            previous: self.link,
            ..Header::default()
        };
        drop(state);
        let (mark, _) = mark.encode(self.first);
        let end = self.terminator(self.end + HEADER_BYTES as u64);
        match self.file.write_at(self.end, &[IoSlice::new(&mark), end]) {
            Ok(()) => self.file.sync_data(),
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
