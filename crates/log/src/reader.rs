//! Walking over the frames of one segment.

use crate::buffers::Buffers;
use crate::frame::{ALIGNMENT, Format, HEADER_BYTES, Header};
use crate::segment::{EMPTY_SEGMENT, SegmentHeader, check_header, path_of};
use crate::{Error, Flaw, Record, Result};
use bytes::Bytes;
use longbow_disk::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much is read at once, in bytes.
const WINDOW: u64 = 1 << 20;

/// What is no shorter is read by itself, with the header behind it: what else a window would hold of the next frame would
/// only be read twice.
const LARGE: u64 = WINDOW / 4;

/// What is found at the reader's place.
pub(crate) enum Step {
    /// A sound frame; the reader has moved behind it.
    Frame { header: Header, payload: Bytes },
    /// The end of what was written: that of the file, or zeros.
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
    pub(crate) format: Format,
    /// What the next frame names as the checksum before it, where that is known.
    pub(crate) link: Option<u32>,
    /// Held so that the file is not written over meanwhile.
    pub(crate) user: Option<Arc<()>>,
    /// Where the window's buffers come from.
    pub(crate) buffers: Arc<Buffers>,
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
            format: Format::One,
            link: None,
            user: None,
            buffers: Arc::default(),
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
            let wanted = match len {
                LARGE.. => len + HEADER_BYTES as u64,
                _ => WINDOW,
            };
            let wanted = wanted.min(self.end - offset) as usize;
            // Given back before another is taken.
            self.window = Bytes::new();
            let read = |buffer: &mut [u8]| self.file.read_at(offset, buffer);
            self.window = self.buffers.fill(wanted, read)?;
            self.window_at = offset;
        }
        let start = (offset - self.window_at) as usize;
        let stop = (start + len as usize).min(self.window.len());
        Ok(self.window.slice(start..stop))
    }

    /// Checks the segment's header and moves behind it. Without that, or `format` set, no frame can be read.
    pub(crate) fn enter(&mut self, first: u64) -> Result<std::result::Result<SegmentHeader, Flaw>> {
        let bytes = self.bytes(0, EMPTY_SEGMENT)?;
        let checked = check_header(&self.path, &bytes, first)?;
        if let Ok(header) = checked {
            self.offset = header.begin;
            self.format = header.format;
            self.link = header.link;
        }
        Ok(checked)
    }

    /// Reads the frame at the reader's place and moves behind it if it is sound.
    pub(crate) fn step(&mut self) -> Result<Step> {
        if self.offset >= self.end {
            return Ok(Step::End);
        }
        let header_bytes = self.format.header_bytes();
        let bytes = self.bytes(self.offset, header_bytes)?;
        let Some((header, crc)) = self.format.decode(&bytes) else {
            // Nothing was ever written from here on, or the last write ended with zeros.
            let ended = self.format != Format::One && bytes.iter().all(|byte| *byte == 0);
            let short = (bytes.len() as u64) < header_bytes;
            return Ok(match (ended, short) {
                (true, _) => Step::End,
                (false, true) => Step::Bad(Flaw::CutShort),
                (false, false) => Step::Bad(Flaw::Header),
            });
        };
        if self.link.is_some_and(|link| link != header.previous) {
            return Ok(Step::Bad(Flaw::Chain));
        }
        let mut payload = self.bytes(self.offset + header_bytes, header.body_bytes())?;
        if let Err(flaw) = header.check_payload(&payload) {
            return Ok(Step::Bad(flaw));
        }
        payload.truncate(header.len as usize);
        self.offset += self.format.frame_bytes(&header);
        self.link = match self.format {
            Format::One => None,
            Format::Two(_) => Some(crc),
        };
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

    /// From the reader's place to the end, sound frames or not, the highest index that a header says was durable; `None`
    /// if there is no header. A sound header is believed for its length, so that payloads are not searched for what
    /// looks like frames.
    pub(crate) fn highest_claim(&mut self) -> Result<Option<u64>> {
        let mut highest = None;
        let header_bytes = self.format.header_bytes();
        let mut offset = self.offset.next_multiple_of(ALIGNMENT);
        while offset < self.end && self.end - offset >= header_bytes {
            let bytes = self.bytes(offset, WINDOW)?;
            let places = (bytes.len() as u64).saturating_sub(header_bytes - ALIGNMENT) / ALIGNMENT;
            let found = (0..places * ALIGNMENT)
                .step_by(ALIGNMENT as usize)
                .find_map(|at| Some((at, self.format.decode(&bytes[at as usize..])?.0)));
            match found {
                Some((at, header)) => {
                    highest = highest.max(Some(header.durable));
                    offset += at + self.format.frame_bytes(&header);
                }
                // The file was cut while it was read.
                None if places == 0 => break,
                None => offset += places * ALIGNMENT,
            }
        }
        Ok(highest)
    }
}

/// [`Reader::highest_claim`] for a segment with this first index whose header has a flaw. Its version is not known then,
/// and where the header names another index its frames may be under that one.
pub(crate) fn highest_claim_despite(
    flaw: Flaw,
    reader: &mut Reader,
    first: u64,
) -> Result<Option<u64>> {
    let mut formats = vec![Format::Two(first), Format::One];
    if let Flaw::SegmentBegins { found } = flaw {
        formats.push(Format::Two(found));
    }
    let mut highest = None;
    for format in formats {
        reader.format = format;
        highest = highest.max(reader.highest_claim()?);
    }
    Ok(highest)
}

/// The record in a sound frame.
pub(crate) fn record(header: &Header, payload: Bytes) -> Record {
    Record {
        index: header.index,
        term: header.term,
        shard: header.shard,
        shard_index: header.shard_index,
        kind: header.kind,
        timestamp_us: header.timestamp_us,
        payload,
    }
}
