//! Walking over the frames of one segment.

use crate::frame::{ALIGNMENT, HEADER_BYTES, Header};
use crate::segment::{EMPTY_SEGMENT, check_header, path_of};
use crate::{Error, Flaw, Record, Result};
use bytes::Bytes;
use longbow_disk::{Disk, File};
use std::path::{Path, PathBuf};

/// How much is read at once, in bytes.
const WINDOW: u64 = 1 << 20;

/// What is found at the reader's place.
pub(crate) enum Step {
    /// A sound frame; the reader has moved behind it.
    Frame { header: Header, payload: Bytes },
    /// The end of the segment.
    End,
    /// A broken frame; the reader has not moved.
    Bad(Flaw),
}

/// Reads the frames of one segment file in order.
pub(crate) struct Reader {
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn File>,
    /// The file is read up to here, in bytes.
    pub(crate) end: u64,
    /// The place of the next frame.
    pub(crate) offset: u64,
    window: Bytes,
    window_at: u64,
}

impl Reader {
    /// Opens the segment that begins at `first`; the reader stands at its beginning, before the header.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, first: u64) -> Result<Reader> {
        let path = path_of(dir, first);
        let file = disk.open(&path)?;
        let end = file.len()?;
        Ok(Reader {
            path,
            file,
            end,
            offset: 0,
            window: Bytes::new(),
            window_at: 0,
        })
    }

    /// The bytes from `offset` on, at most `len`: fewer only at the end.
    fn bytes(&mut self, offset: u64, len: u64) -> Result<Bytes> {
        let len = len.min(self.end.saturating_sub(offset));
        let held = self.window_at..=self.window_at + self.window.len() as u64;
        if !(held.contains(&offset) && held.contains(&(offset + len))) {
            // Bounded by the length of the file, which `end` never exceeds.
            let wanted = len.max(WINDOW).min(self.end - offset);
            let mut buffer = vec![0; wanted as usize];
            let found = self.file.read_at(offset, &mut buffer)?;
            buffer.truncate(found);
            self.window = Bytes::from(buffer);
            self.window_at = offset;
        }
        let start = (offset - self.window_at) as usize;
        let stop = (start + len as usize).min(self.window.len());
        Ok(self.window.slice(start..stop))
    }

    /// Checks the segment's header and moves behind it.
    pub(crate) fn enter(&mut self, first: u64) -> Result<std::result::Result<(), Flaw>> {
        let bytes = self.bytes(0, EMPTY_SEGMENT)?;
        let checked = check_header(&self.path, &bytes, first)?;
        if checked.is_ok() {
            self.offset = EMPTY_SEGMENT;
        }
        Ok(checked)
    }

    fn header(&mut self, offset: u64) -> Result<Option<Header>> {
        let bytes = self.bytes(offset, HEADER_BYTES as u64)?;
        Ok(bytes.first_chunk().and_then(Header::decode))
    }

    /// Reads the frame at the reader's place and moves behind it if it is sound.
    pub(crate) fn step(&mut self) -> Result<Step> {
        if self.offset >= self.end {
            return Ok(Step::End);
        }
        if self.end - self.offset < HEADER_BYTES as u64 {
            return Ok(Step::Bad(Flaw::CutShort));
        }
        let Some(header) = self.header(self.offset)? else {
            return Ok(Step::Bad(Flaw::Header));
        };
        let rest = header.frame_bytes() - HEADER_BYTES as u64;
        let mut payload = self.bytes(self.offset + HEADER_BYTES as u64, rest)?;
        if let Err(flaw) = header.check_payload(&payload) {
            return Ok(Step::Bad(flaw));
        }
        payload.truncate(header.len as usize);
        self.offset += header.frame_bytes();
        Ok(Step::Frame { header, payload })
    }

    /// The error for a frame at `offset` that is not the sound frame of index `expected`.
    pub(crate) fn damaged(&self, offset: u64, expected: u64, flaw: Flaw) -> Error {
        Error::Damaged {
            file: self.path.clone(),
            offset,
            expected,
            flaw,
        }
    }

    /// From the reader's place to the end, sound frames or not, the highest index that a header says was durable.
    /// A sound header is believed for its length, so that payloads are not searched for what looks like frames.
    pub(crate) fn highest_claim(&mut self) -> Result<u64> {
        let mut highest = 0;
        let mut offset = self.offset.next_multiple_of(ALIGNMENT);
        while offset < self.end && self.end - offset >= HEADER_BYTES as u64 {
            match self.header(offset)? {
                Some(header) => {
                    highest = highest.max(header.durable);
                    offset += header.frame_bytes();
                }
                None => offset += ALIGNMENT,
            }
        }
        Ok(highest)
    }
}

/// The record in a sound frame.
pub(crate) fn record(header: &Header, payload: Bytes) -> Record {
    Record {
        index: header.index,
        term: header.term,
        shard: header.shard,
        kind: header.kind,
        timestamp_us: header.timestamp_us,
        payload,
    }
}
