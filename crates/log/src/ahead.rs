//! Reading and checking segments ahead of whoever walks over them, each in a thread of its own.
//!
//! What is found is handed over in the order in which it lies in the files, and nothing is judged here: the walk sees
//! exactly what it would see if it read by itself.

use crate::buffers::Buffers;
use crate::frame::Header;
use crate::reader::{Reader, Step};
use crate::segment::SegmentHeader;
use crate::{Error, Flaw, Result};
use bytes::Bytes;
use longbow_disk::Disk;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

/// The most bytes that all threads together are ahead, but for a larger entry each.
const AHEAD_BYTES: u64 = 64 << 20;

/// The most segments that are read at once.
const MAX_THREADS: usize = 8;

/// A segment that is no larger is read by the walk itself: a thread would cost more.
const SMALL_BYTES: u64 = 1 << 20;

/// Frames are handed over when they have so many bytes together.
const BATCH_BYTES: u64 = 256 << 10;

/// A sound frame, and where the reader is behind it.
struct Frame {
    header: Header,
    payload: Bytes,
    offset: u64,
    link: Option<u32>,
}

/// What a thread hands over.
enum Found {
    /// The segment's header, or what is wrong with it.
    Header(std::result::Result<SegmentHeader, Flaw>),
    /// Frames that follow each other.
    Frames(Vec<Frame>),
    /// [`Step::End`] or [`Step::Bad`]; nothing comes behind it.
    Stop(Step),
}

/// How far a thread is ahead of the walk.
struct Lead {
    most: u64,
    /// In bytes; `None` when nobody listens any more.
    bytes: Mutex<Option<u64>>,
    shrunk: Condvar,
}

impl Lead {
    /// Waits until so many bytes more are within the limit, or nothing else is there, or nobody listens any more.
    fn grow(&self, by: u64) {
        let mut lead = self.bytes.lock();
        while lead.is_some_and(|bytes| bytes > 0 && bytes + by > self.most) {
            self.shrunk.wait(&mut lead);
        }
        *lead = lead.map(|bytes| bytes + by);
    }

    fn shrink(&self, by: u64) {
        let mut lead = self.bytes.lock();
        *lead = lead.map(|bytes| bytes - by);
        self.shrunk.notify_one();
    }

    fn end(&self) {
        *self.bytes.lock() = None;
        self.shrunk.notify_one();
    }
}

/// The segments of a log, in the order in which they are walked over.
pub(crate) struct Ahead<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    disk: &'env dyn Disk,
    dir: &'env Path,
    buffers: Arc<Buffers>,
    /// Those that are not opened yet.
    firsts: std::slice::Iter<'env, u64>,
    threads: usize,
    opened: VecDeque<Result<Steps<'env>>>,
}

/// Hands the segments that begin at `firsts`, read ahead, to `walk`.
pub(crate) fn read_ahead<T>(
    disk: &dyn Disk,
    dir: &Path,
    firsts: &[u64],
    walk: impl FnOnce(&mut Ahead<'_, '_>) -> T,
) -> T {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS));
    thread::scope(|scope| {
        let mut ahead = Ahead {
            scope,
            disk,
            dir,
            buffers: Arc::default(),
            firsts: firsts.iter(),
            threads,
            opened: VecDeque::new(),
        };
        walk(&mut ahead)
    })
}

impl<'env> Ahead<'_, 'env> {
    /// The next segment; [`Error::Closed`] behind the last.
    pub(crate) fn segment(&mut self) -> Result<Steps<'env>> {
        while self.opened.len() < self.threads {
            let Some(first) = self.firsts.next() else {
                break;
            };
            let opened = self.open(*first);
            self.opened.push_back(opened);
        }
        self.opened.pop_front().unwrap_or(Err(Error::Closed))
    }

    fn open(&self, first: u64) -> Result<Steps<'env>> {
        let mut reader = Reader::open(self.disk, self.dir, first)?;
        reader.buffers = self.buffers.clone();
        let bytes = reader.end;
        let source = match bytes {
            0..=SMALL_BYTES => Source::Here(Box::new(reader)),
            _ => Source::Ahead(self.spawn(first, reader)?),
        };
        Ok(Steps {
            disk: self.disk,
            dir: self.dir,
            first,
            bytes,
            offset: 0,
            link: None,
            source,
        })
    }

    /// Starts the thread of a segment.
    fn spawn(&self, first: u64, mut reader: Reader) -> Result<Stream> {
        let (sender, found) = channel();
        let lead = Arc::new(Lead {
            most: AHEAD_BYTES / self.threads as u64,
            bytes: Mutex::new(Some(0)),
            shrunk: Condvar::new(),
        });
        let stream = Stream {
            found,
            lead: lead.clone(),
            frames: Vec::new().into_iter(),
            batch_bytes: 0,
        };
        let run = move || {
            if let Err(error) = read(&mut reader, first, &lead, &sender) {
                // Whoever does not listen any more does not need it.
                let _ = sender.send(Err(error));
            }
        };
        let name = "log-reader";
        let builder = thread::Builder::new().name(name.to_string());
        builder.spawn_scoped(self.scope, run).map_err(|cause| {
            let cause = Arc::new(cause);
            Error::Thread { name, cause }
        })?;
        Ok(stream)
    }
}

/// Reads a segment up to its end or its first break, or until nobody listens any more.
fn read(
    reader: &mut Reader,
    first: u64,
    lead: &Lead,
    sender: &Sender<Result<Found>>,
) -> Result<()> {
    let entered = reader.enter(first)?;
    let sound = entered.is_ok();
    let mut heard = sender.send(Ok(Found::Header(entered))).is_ok() && sound;
    while heard {
        let begun = reader.offset;
        let mut frames = Vec::new();
        let mut stop = None;
        while stop.is_none() && reader.offset - begun < BATCH_BYTES {
            match reader.step() {
                Ok(Step::Frame { header, payload }) => frames.push(Frame {
                    header,
                    payload,
                    offset: reader.offset,
                    link: reader.link,
                }),
                last => stop = Some(last),
            }
        }
        lead.grow(reader.offset - begun);
        heard = sender.send(Ok(Found::Frames(frames))).is_ok();
        if let Some(last) = stop {
            // As above.
            let _ = sender.send(Ok(Found::Stop(last?)));
            return Ok(());
        }
    }
    Ok(())
}

/// What a thread finds in a segment.
struct Stream {
    found: Receiver<Result<Found>>,
    lead: Arc<Lead>,
    /// The rest of the frames that came together.
    frames: std::vec::IntoIter<Frame>,
    /// How many bytes those had.
    batch_bytes: u64,
}

impl Stream {
    fn next(&self) -> Result<Found> {
        // A thread that ended without a last word has panicked.
        self.found.recv().unwrap_or(Err(Error::Closed))
    }

    /// The next frame, or the last step; `offset` is the reader's place.
    fn step(&mut self, offset: u64) -> Result<std::result::Result<Frame, Step>> {
        loop {
            if let Some(frame) = self.frames.next() {
                return Ok(Ok(frame));
            }
            self.lead.shrink(std::mem::take(&mut self.batch_bytes));
            match self.next()? {
                Found::Frames(frames) => {
                    self.batch_bytes = frames.last().map_or(0, |last| last.offset - offset);
                    self.frames = frames.into_iter();
                }
                Found::Stop(step) => return Ok(Err(step)),
                Found::Header(_) => {}
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The thread may wait for the walk to come nearer. It ends when it hands over what it has.
        self.lead.end();
    }
}

enum Source {
    Here(Box<Reader>),
    Ahead(Stream),
}

/// A segment, step by step.
pub(crate) struct Steps<'env> {
    disk: &'env dyn Disk,
    dir: &'env Path,
    first: u64,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// The place of the next frame; 0 before the segment was entered.
    pub(crate) offset: u64,
    /// What the next frame names as the checksum before it, where that is known.
    pub(crate) link: Option<u32>,
    source: Source,
}

impl Steps<'_> {
    /// As [`Reader::enter`].
    pub(crate) fn enter(&mut self) -> Result<std::result::Result<SegmentHeader, Flaw>> {
        let entered = match &mut self.source {
            Source::Here(reader) => reader.enter(self.first)?,
            Source::Ahead(stream) => match stream.next()? {
                Found::Header(entered) => entered,
                Found::Frames(_) | Found::Stop(_) => return Err(Error::Closed),
            },
        };
        if let Ok(header) = &entered {
            self.offset = header.begin;
            self.link = header.link;
        }
        Ok(entered)
    }

    /// As [`Reader::step`].
    pub(crate) fn step(&mut self) -> Result<Step> {
        match &mut self.source {
            Source::Here(reader) => {
                let step = reader.step()?;
                (self.offset, self.link) = (reader.offset, reader.link);
                Ok(step)
            }
            Source::Ahead(stream) => match stream.step(self.offset)? {
                Ok(frame) => {
                    (self.offset, self.link) = (frame.offset, frame.link);
                    let Frame {
                        header, payload, ..
                    } = frame;
                    Ok(Step::Frame { header, payload })
                }
                Err(step) => Ok(step),
            },
        }
    }

    /// A reader of the segment that stands where this one does.
    pub(crate) fn reader(&self) -> Result<Reader> {
        let mut reader = Reader::open(self.disk, self.dir, self.first)?;
        // What is wrong with the header was told when the segment was entered.
        let _ = reader.enter(self.first)?;
        reader.offset = self.offset;
        Ok(reader)
    }
}
