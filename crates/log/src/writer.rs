//! Writing what is queued.

use crate::claim;
use crate::frame::{HEADER_BYTES, Header, ZERO_HEADER};
use crate::frames::{Frames, How};
use crate::group::Group;
use crate::jobs::writes_are_synced;
use crate::recovery::{Opened, remove_segment};
use crate::segment::{EMPTY_SEGMENT, path_of, used};
use crate::spares::begin_segment;
use crate::state::{Shared, State};
use crate::{Error, Options, Result, SyncMode};
use bytes::Bytes;
use longbow_disk::File;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The writer: it alone writes to segments and begins new ones.
pub(crate) struct Writer {
    file: Arc<dyn File>,
    /// The segment's bytes, also those to come.
    map: Option<Bytes>,
    /// Shared with all who read the segment.
    users: Arc<()>,
    /// The first index of the segment.
    first: u64,
    /// The checksum of the last header.
    link: u32,
    /// When the segment was begun, or first written to since it was opened, in microseconds since the Unix epoch.
    begun_us: Option<u64>,
    /// Where the sound frames of the segment end, in bytes.
    end: u64,
    /// The length of the file, in bytes: what is written below it changes no metadata.
    reserved: u64,
    /// The name of the segment is not synced yet, and nobody else knows of that.
    new_name: bool,
    /// Whether nothing follows the last mark.
    marked: bool,
    /// Memory that each batch uses again.
    buffer: Vec<u8>,
}

/// What a batch that was written leaves to be done.
pub(crate) struct Written {
    bytes: u64,
    file: Arc<dyn File>,
    /// The name of the segment is not synced yet.
    new_name: bool,
}

impl Written {
    /// Notes that the batch was handed to the operating system.
    pub(crate) fn note(self, state: &mut State, batch: VecDeque<Group>, options: &Options) {
        state.written = batch[batch.len() - 1].last();
        state.unsafe_groups.extend(batch);
        if writes_are_synced(options) {
            return state.note_durable(state.written, 0);
        }
        state.unsynced_bytes += self.bytes;
        state.unsynced_since.get_or_insert_with(Instant::now);
        state.unsynced_dir |= self.new_name;
        let known = state.unsynced_files.last();
        if !known.is_some_and(|file| Arc::ptr_eq(file, &self.file)) {
            state.unsynced_files.push(self.file);
        }
    }
}

/// Why a batch was not written.
pub(crate) struct Refusal {
    cause: Arc<longbow_disk::Error>,
    /// The log is as it was before the batch, and goes on.
    survived: bool,
}

impl Refusal {
    pub(crate) fn note(self, state: &mut State, batch: VecDeque<Group>) {
        let cause = self.cause;
        if self.survived && state.poison.is_none() {
            return state.refuse(batch, &Error::NoSpace { cause });
        }
        state.poison(cause);
        // They fail with those before them.
        state.unsafe_groups.extend(batch);
    }
}

impl Writer {
    /// A writer that goes on behind what was opened.
    pub(crate) fn new(options: &Options, opened: &Opened) -> Result<Writer> {
        let last = opened.segments.last();
        let (first, end, users) = match last {
            Some(last) => (last.first, last.end, last.users.clone()),
            None => Default::default(),
        };
        let file = opened.file.clone();
        let map = file.map_ahead(options.segment_size);
        Ok(Writer {
            map: map.map(|map| used(map, &users)),
            users,
            reserved: file.len()?,
            file,
            first,
            link: opened.link,
            begun_us: None,
            end,
            new_name: false,
            marked: opened.marked,
            buffer: Vec::new(),
        })
    }

    /// Hands a batch to the operating system; `durable` is the last index that survives power loss.
    pub(crate) fn commit(
        &mut self,
        shared: &Shared,
        batch: &mut VecDeque<Group>,
        durable: u64,
    ) -> std::result::Result<Written, Refusal> {
        let bytes = batch.iter().map(|group| group.bytes).sum();
        let first = batch[0].first;
        let mut written = self.put_down(shared, batch, bytes, durable);
        if let Err(cause) = &written
            && cause.is_no_space()
            && shared.give_up_spares()
            && self.roll_back(shared, first).is_ok()
        {
            written = self.put_down(shared, batch, bytes, durable);
        }
        match written {
            Ok(()) => Ok(self.note_written(shared, batch, bytes)),
            Err(cause) => Err(self.refuse(shared, first, cause)),
        }
    }

    /// Writes a batch, into a new segment where this one has no room for it.
    fn put_down(
        &mut self,
        shared: &Shared,
        batch: &mut VecDeque<Group>,
        bytes: u64,
        durable: u64,
    ) -> longbow_disk::Result<()> {
        self.make_room(shared, &batch[0], bytes)?;
        let started = Instant::now();
        self.write(&shared.options, batch, durable)?;
        if writes_are_synced(&shared.options) {
            // Before anyone can see that it is durable.
            shared.options.observer.synced(started.elapsed(), bytes);
        }
        Ok(())
    }

    /// Begins a new segment if the batch would make this one too large, or it is too old.
    fn make_room(
        &mut self,
        shared: &Shared,
        group: &Group,
        bytes: u64,
    ) -> longbow_disk::Result<()> {
        let Shared { disk, options, .. } = shared;
        let end = self.end + bytes;
        let (first, now_us) = (group.first, group.timestamp_us);
        let age =
            Duration::from_micros(now_us.saturating_sub(*self.begun_us.get_or_insert(now_us)));
        let is_old = !options.segment_age.is_zero() && age >= options.segment_age;
        // The first segment of a new log, and one that was cut, lie in a file whose growth each sync has to note. A log
        // that is hardly written to may keep it.
        let grows = self.reserved <= self.end
            && self.end >= options.segment_size / 64
            && shared.spares.is_any();
        // A segment without an entry, with a mark perhaps, has the name that the next one would have.
        if first == self.first || (end <= options.segment_size && !is_old && !grows) {
            let is_mapped = |map: &Bytes| map.len() as u64 >= end;
            if self.map.as_ref().is_some_and(|map| !is_mapped(map)) {
                self.map_ahead(end);
            }
            return Ok(());
        }
        let begun = begin_segment(&**disk, options, &shared.spares, first, self.link)?;
        if options.sync == SyncMode::EveryAck {
            disk.sync_dir(&options.dir)?;
        }
        if writes_are_synced(options) {
            // The writes that follow make only themselves durable.
            begun.file.sync_data()?;
        }
        // Otherwise it is done before anything in the segment is called durable.
        self.new_name = options.sync != SyncMode::EveryAck;
        self.file = begun.file;
        self.users = begun.segment.users.clone();
        self.map_ahead(options.segment_size.max(EMPTY_SEGMENT + bytes));
        self.first = first;
        self.begun_us = Some(now_us);
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

    /// Hands the frames of a batch to the operating system.
    fn write(
        &mut self,
        options: &Options,
        batch: &mut VecDeque<Group>,
        durable: u64,
    ) -> longbow_disk::Result<()> {
        let how = match options.sync {
            SyncMode::EveryAck if writes_are_synced(options) => How::Synced,
            SyncMode::EveryAck => How::AheadOfSync,
            SyncMode::Background { .. } | SyncMode::Never => How::Lazily,
        };
        let mut frames = Frames::new(&*self.file, how, self.end, &mut self.buffer);
        let mut link = self.link;
        let mut end = self.end;
        for group in batch {
            for (pending, index) in group.entries.iter_mut().zip(group.first..) {
                pending.sum();
                let pending = &*pending;
                let header = pending.header(index, group.timestamp_us, durable, link);
                let (bytes, crc) = header.encode(self.first);
                link = crc;
                frames.push(&bytes, &pending.payload, pending.len)?;
            }
            end += group.bytes;
        }
        frames.finish(terminator(self.reserved, end), &mut self.buffer)?;
        self.link = link;
        Ok(())
    }

    fn note_written(
        &mut self,
        shared: &Shared,
        batch: &mut VecDeque<Group>,
        bytes: u64,
    ) -> Written {
        let mut segments = shared.segments.lock();
        if let Some(segment) = segments.back_mut() {
            for group in batch.iter() {
                segment.last_us = group.timestamp_us;
                for (pending, index) in group.entries.iter().zip(group.first..) {
                    segment.push(index, pending.bytes());
                }
            }
        }
        drop(segments);
        let mut at = self.end;
        for group in batch {
            if group.wants_map() {
                group.mapped = self.mapped(at + HEADER_BYTES as u64, group.entries[0].len);
            }
            at += group.bytes;
        }
        self.end += bytes;
        self.marked = false;
        // Before anyone can see that it was written.
        shared.options.observer.written(bytes);
        Written {
            bytes,
            file: self.file.clone(),
            new_name: mem::take(&mut self.new_name),
        }
    }

    /// Gives up a batch that could not be written. On a full disk the log is brought back to where it was before the
    /// batch; in all other cases, and if that fails, it cannot go on.
    fn refuse(&mut self, shared: &Shared, first: u64, cause: longbow_disk::Error) -> Refusal {
        let no_space = cause.is_no_space();
        let rolled_back = no_space.then(|| self.roll_back(shared, first));
        if let Some(Err(error)) = &rolled_back {
            tracing::error!(%error, "cannot cut an unfinished write");
        }
        Refusal {
            cause: Arc::new(cause),
            survived: matches!(rolled_back, Some(Ok(()))),
        }
    }

    /// Removes, durably, what an unfinished write or an unfinished new segment left on the disk.
    fn roll_back(&mut self, shared: &Shared, first: u64) -> Result<()> {
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

    /// Written bytes of the segment.
    fn mapped(&self, at: u64, len: u32) -> Option<Bytes> {
        let map = self.map.as_ref()?;
        let start = usize::try_from(at).ok()?;
        let end = start.checked_add(len as usize)?;
        (end <= map.len()).then(|| map.slice(start..end))
    }

    /// Leaves a mark that says that everything is durable.
    fn leave_mark(&mut self, mark: Header) -> longbow_disk::Result<()> {
        if self.marked {
            return Ok(());
        }
        let mark = Header {
            mark: true,
            previous: self.link,
            ..mark
        };
        let (mark, _) = mark.encode(self.first);
        let end = terminator(self.reserved, self.end + HEADER_BYTES as u64);
        let parts = [IoSlice::new(&mark), IoSlice::new(end)];
        match self.file.write_at(self.end, &parts) {
            Ok(()) => self.file.sync_data(),
            // The log is whole without its mark; a part of a mark is cut like any torn tail.
            Err(error) if error.is_no_space() => self.file.truncate(self.end),
            Err(error) => Err(error),
        }
    }
}

/// The zeros that end what is written up to `end` in a file of `reserved` bytes: where the file goes on, they keep what
/// lies there from being taken for the rest of a torn write.
fn terminator(reserved: u64, end: u64) -> &'static [u8] {
    let left = reserved.saturating_sub(end);
    &ZERO_HEADER[..left.min(ZERO_HEADER.len() as u64) as usize]
}

impl Shared {
    /// Ends a log in which nothing is under way any more: everything is made durable, and a mark says so.
    pub(crate) fn finish(&self) {
        if self.poisoned().is_none()
            && let Err(error) = self.end_durably()
        {
            self.poison(Arc::new(error));
        }
    }

    fn end_durably(&self) -> longbow_disk::Result<()> {
        if self.options.sync == SyncMode::Never {
            let mut state = self.state.lock();
            state.sync_wanted = state.written;
            drop(self.sync(state));
            if self.poisoned().is_some() {
                return Ok(());
            }
        }
        let state = self.state.lock();
        let durable = state.durable;
        let mark = Header {
            index: state.written,
            durable,
            timestamp_us: state.last_timestamp,
            ..Header::default()
        };
        drop(state);
        self.writer.lock().leave_mark(mark)?;
        if let Err(error) = claim::write(&*self.disk, &self.options, durable) {
            // The log is sound without it.
            tracing::warn!(%error, "cannot note how far the log is durable");
        }
        Ok(())
    }

    /// Frees the space of the spare files; whether there were any.
    fn give_up_spares(&self) -> bool {
        let spares = self.spares.take_all();
        let Shared { disk, options, .. } = self;
        let removed = spares.iter().try_for_each(|spare| disk.remove(&spare.path));
        // Some file systems free the space only when the name is gone for good.
        if let Err(error) = removed.and_then(|()| disk.sync_dir(&options.dir)) {
            // What is left is found at the next start.
            tracing::warn!(%error, "cannot remove the spare files of the log");
        }
        !spares.is_empty()
    }
}
