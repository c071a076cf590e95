//! Files that are ready to become segments.
//!
//! A file whose blocks are allocated and written can be written over without changing metadata, so that a sync costs
//! what the data costs; and its pages are in memory already. Purged segments are kept for that, and while the machine has
//! nothing better to do a first one is written full of zeros.

use crate::frame::{Format, ZERO_HEADER};
use crate::segment::{
    EMPTY_SEGMENT, SEGMENT_HEADER_BYTES, Segment, SegmentHeader, encode_header, parse_spare_name,
    path_of, spare_first, spare_path,
};
use crate::state::Shared;
use crate::{Options, Result};
use longbow_disk::{Disk, File};
use parking_lot::{Condvar, Mutex};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much is zeroed at once, and how often that is synced: a foreground sync never waits for more, in bytes.
const ZEROS: usize = 1 << 20;

/// A file that may become a segment.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The spare files of a log.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    state: Mutex<State>,
    /// A spare came or went, or the log is being closed, or no more can be made.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Spare>,
    /// The number in the name of the next.
    next: u64,
    closed: bool,
    /// The last attempt to make one failed.
    failed: bool,
}

impl Spares {
    /// The spare files in the folder, given the names there, for segments from index `next` on. What is of no use is
    /// removed.
    pub(crate) fn find(
        disk: &dyn Disk,
        options: &Options,
        names: &[String],
        next: u64,
    ) -> Result<Spares> {
        let mut state = State::default();
        for number in names.iter().filter_map(|name| parse_spare_name(name)) {
            state.next = state.next.max(number.saturating_add(1));
            let path = spare_path(&options.dir, number);
            let (first, bytes) = match look_at(disk, &path) {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "a spare file of the log cannot be read, ignored");
                    continue;
                }
            };
            let held: u64 = state.files.iter().map(|spare| spare.bytes).sum();
            let serves = first.is_some_and(|first| first < next);
            if serves && held + bytes <= options.spare_bytes {
                state.files.push(Spare { path, bytes });
            } else {
                disk.remove(&path)?;
            }
        }
        Ok(Spares {
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// A path that no spare has.
    pub(crate) fn new_path(&self, options: &Options) -> PathBuf {
        let mut state = self.state.lock();
        state.next += 1;
        spare_path(&options.dir, state.next - 1)
    }

    /// Takes the spare that was used last: most of it is still in memory. None if there is none, and neither if the thread
    /// that prepares them, which may have the lowest of priorities, is just adding one: writing does not wait for it.
    pub(crate) fn take(&self) -> Option<Spare> {
        let mut state = self.state.try_lock()?;
        state.failed = false;
        let spare = state.files.pop();
        drop(state);
        self.changed.notify_all();
        spare
    }

    pub(crate) fn add(&self, spare: Spare) {
        self.state.lock().files.push(spare);
        self.changed.notify_all();
    }

    /// Whether there is one to be taken.
    pub(crate) fn is_any(&self) -> bool {
        let state = self.state.try_lock();
        state.is_some_and(|state| !state.files.is_empty())
    }

    /// Bytes of all spares.
    pub(crate) fn bytes(&self) -> u64 {
        self.state
            .lock()
            .files
            .iter()
            .map(|spare| spare.bytes)
            .sum()
    }

    /// Takes all spares, to give their space back.
    pub(crate) fn take_all(&self) -> Vec<Spare> {
        let mut state = self.state.lock();
        // No use in making new ones before another segment is begun.
        state.failed = true;
        let files = std::mem::take(&mut state.files);
        drop(state);
        self.changed.notify_all();
        files
    }

    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Waits until there are `wanted` spares, or the last attempt to make one failed, or the log is closed.
    pub(crate) fn wait(&self, wanted: usize) {
        let mut state = self.state.lock();
        while state.files.len() < wanted && !state.failed && !state.closed {
            self.changed.wait(&mut state);
        }
    }

    /// Waits until there are fewer than `wanted` spares. False if the log is closed.
    fn wait_for_want(&self, wanted: usize) -> bool {
        let mut state = self.state.lock();
        // After a failure, the next segment that is begun is the time to try again.
        while !state.closed && (state.failed || state.files.len() >= wanted) {
            self.changed.wait(&mut state);
        }
        !state.closed
    }

    fn note_failure(&self) {
        self.state.lock().failed = true;
        self.changed.notify_all();
    }
}

impl Shared {
    /// Whether a purged segment is worth keeping for later.
    pub(crate) fn can_recycle(&self, segment: &mut Segment, bytes: u64) -> bool {
        let size = self.options.segment_size;
        matches!(segment.format, Format::Two(_))
            && (size / 2..=size.saturating_mul(2)).contains(&bytes)
            && self.spares.bytes() + bytes <= self.options.spare_bytes
            && segment.is_unused()
    }

    /// The thread that writes spare files ahead, until the log is closed.
    pub(crate) fn prepare_spares(&self) {
        (self.options.low_priority)();
        let wanted = self.options.prepared_segments;
        while self.spares.wait_for_want(wanted) {
            let path = self.spares.new_path(&self.options);
            match self.write_zeros(&path) {
                Ok(Some(bytes)) => self.spares.add(Spare { path, bytes }),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot prepare a segment of the log ahead");
                    // What is left of it is found, or removed, at the next start.
                    let _ = self.disk.remove(&path);
                    self.spares.note_failure();
                }
            }
        }
    }

    /// Writes a file of a segment's size full of zeros. `None` if the log is closed meanwhile, or the disk is so full
    /// that its rest is better left to what is really there, which counts as a failure.
    fn write_zeros(&self, path: &Path) -> longbow_disk::Result<Option<u64>> {
        let size = self.options.segment_size;
        if self.disk.free_space(&self.options.dir)? < size.saturating_mul(4) {
            self.spares.note_failure();
            return Ok(None);
        }
        let file = self.disk.create(path)?;
        let zeros = vec![0; ZEROS.min(size as usize)];
        let mut written = 0;
        while written < size {
            if self.spares.is_closed() {
                self.disk.remove(path)?;
                return Ok(None);
            }
            let now = (size - written).min(zeros.len() as u64);
            file.append_vectored(&[IoSlice::new(&zeros[..now as usize])])?;
            file.sync_data()?;
            written += now;
        }
        self.disk.sync_dir(&self.options.dir)?;
        Ok(Some(size))
    }
}

/// The first index by the header of a spare file, if it makes sense, and the length of the file.
fn look_at(disk: &dyn Disk, path: &Path) -> longbow_disk::Result<(Option<u64>, u64)> {
    let file = disk.open(path)?;
    let mut header = [0; SEGMENT_HEADER_BYTES];
    let found = file.read_at(0, &mut header)?;
    let first = spare_first(&header).filter(|_| found == SEGMENT_HEADER_BYTES);
    Ok((first, file.len()?))
}

/// A segment that was just begun.
pub(crate) struct Begun {
    pub(crate) file: Arc<dyn File>,
    /// What the first frame names as the checksum before it.
    pub(crate) link: u32,
    /// The length of the file.
    pub(crate) bytes: u64,
    pub(crate) segment: Segment,
}

/// Begins the segment whose first index is `first`, in a spare file if there is one. Nothing of it is synced yet. `previous` is the checksum of the last frame header before it.
pub(crate) fn begin_segment(
    disk: &dyn Disk,
    options: &Options,
    spares: &Spares,
    first: u64,
    previous: u32,
) -> longbow_disk::Result<Begun> {
    let spare = spares.take().unwrap_or_else(|| Spare {
        path: spares.new_path(options),
        bytes: 0,
    });
    let begun = begin_in(disk, options, &spare, first, previous);
    if begun.is_err() {
        // It may be gone, or a segment by now, which the caller sees to.
        let _ = disk.remove(&spare.path);
    }
    begun
}

fn begin_in(
    disk: &dyn Disk,
    options: &Options,
    spare: &Spare,
    first: u64,
    previous: u32,
) -> longbow_disk::Result<Begun> {
    let (bytes, link) = encode_header(first, previous);
    let file = if spare.bytes == 0 {
        disk.create(&spare.path)?
    } else {
        disk.open(&spare.path)?
    };
    // Zeros behind the header: what an earlier life left there is not the end of a torn write.
    let room = spare.bytes.saturating_sub(EMPTY_SEGMENT);
    let ended = room.min(ZERO_HEADER.len() as u64) as usize;
    let parts = [IoSlice::new(&bytes), IoSlice::new(&ZERO_HEADER[..ended])];
    file.write_at(0, &parts)?;
    drop(file);
    let path = path_of(&options.dir, first);
    disk.rename(&spare.path, &path)?;
    let file: Arc<dyn File> = Arc::from(disk.open(&path)?);
    let header = SegmentHeader {
        format: Format::Two(first),
        begin: EMPTY_SEGMENT,
        link: Some(link),
        previous,
    };
    Ok(Begun {
        bytes: file.len()?,
        file,
        link,
        segment: Segment::new(first, &header),
    })
}
