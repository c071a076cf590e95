//! The frames of a batch on their way into the file.
//!
//! Small payloads are copied together with the headers, large ones are written from where the caller has them: the
//! system copies each piece by itself into the pages of the file, which for pieces of a kilobyte takes twice as long as for
//! whole pages. And what is gathered is still in the processor's cache when the system copies it.

use crate::frame::{PADDING, padding_after};
use bytes::Bytes;
use longbow_disk::File;
use std::io::IoSlice;
use std::mem;
use std::ops::Range;

/// Payload parts up to this size are gathered.
const SMALL: usize = 4 << 10;

/// So much is handed to the system at once, so that what is gathered stays in the cache, and where a sync is waited for,
/// the disk begins with the first part of a large batch while the rest is copied.
pub(crate) const CHUNK: usize = 256 << 10;

/// How a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// In chunks that the system writes to the disk when it likes.
    Lazily,
    /// In chunks that are on their way to the disk at once, because a sync follows.
    AheadOfSync,
    /// In one piece that is durable when it is written.
    Synced,
}

/// A piece of the file.
enum Piece<'a> {
    Gathered(Range<usize>),
    Direct(&'a [u8]),
}

/// Collects frames and writes them.
pub(crate) struct Frames<'a> {
    file: &'a dyn File,
    how: How,
    /// Where the collected pieces go, in bytes.
    at: u64,
    /// How many bytes they are.
    filled: usize,
    gathered: Vec<u8>,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Frames<'a> {
    /// To be written at `at`. `buffer` is used again by the next batch.
    pub(crate) fn new(file: &'a dyn File, how: How, at: u64, buffer: &mut Vec<u8>) -> Frames<'a> {
        Frames {
            file,
            how,
            at,
            filled: 0,
            gathered: mem::take(buffer),
            pieces: Vec::new(),
        }
    }

    /// Adds a frame.
    pub(crate) fn push(
        &mut self,
        header: &[u8],
        payload: &'a [Bytes],
        len: u32,
    ) -> longbow_disk::Result<()> {
        self.gather(header);
        for part in payload {
            if part.len() <= SMALL {
                self.gather(part);
            } else {
                self.push_large(part)?;
            }
        }
        self.gather(&PADDING[..padding_after(len)]);
        self.write_if_full()
    }

    /// Writes the rest, and `end` behind it.
    pub(crate) fn finish(mut self, end: &[u8], buffer: &mut Vec<u8>) -> longbow_disk::Result<()> {
        self.gather(end);
        let written = self.write();
        *buffer = self.gathered;
        buffer.clear();
        // One batch of huge headers must not hold its memory for good.
        buffer.shrink_to(2 * CHUNK);
        written
    }

    fn gather(&mut self, bytes: &[u8]) {
        let start = self.gathered.len();
        self.gathered.extend_from_slice(bytes);
        let end = self.gathered.len();
        self.filled += bytes.len();
        match self.pieces.last_mut() {
            Some(Piece::Gathered(range)) => range.end = end,
            _ => self.pieces.push(Piece::Gathered(start..end)),
        }
    }

    fn push_large(&mut self, mut rest: &'a [u8]) -> longbow_disk::Result<()> {
        while !rest.is_empty() {
            let room = match self.how {
                How::AheadOfSync => CHUNK.saturating_sub(self.filled).max(1),
                How::Lazily | How::Synced => rest.len(),
            };
            let (now, later) = rest.split_at(rest.len().min(room));
            self.pieces.push(Piece::Direct(now));
            self.filled += now.len();
            rest = later;
            self.write_if_full()?;
        }
        Ok(())
    }

    fn write_if_full(&mut self) -> longbow_disk::Result<()> {
        if self.filled >= CHUNK && self.how != How::Synced {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> longbow_disk::Result<()> {
        let slice = |piece: &Piece<'a>| match piece {
            Piece::Gathered(range) => IoSlice::new(&self.gathered[range.clone()]),
            Piece::Direct(bytes) => IoSlice::new(bytes),
        };
        let parts: Vec<IoSlice<'_>> = self.pieces.iter().map(slice).collect();
        match self.how {
            How::Lazily => self.file.write_at(self.at, &parts)?,
            How::Synced => self.file.write_at_synced(self.at, &parts)?,
            How::AheadOfSync => {
                self.file.write_at(self.at, &parts)?;
                if self.filled >= CHUNK {
                    self.file.start_writeback(self.at, self.filled as u64);
                }
            }
        }
        self.at += self.filled as u64;
        self.filled = 0;
        self.gathered.clear();
        self.pieces.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longbow_disk::{Disk, MemoryDisk};
    use proptest::prelude::*;
    use std::path::Path;

    fn check(how: How, payloads: &[Vec<u8>]) {
        let disk = MemoryDisk::new();
        let file = disk.create(Path::new("f")).unwrap();
        file.append_vectored(&[IoSlice::new(b"before")]).unwrap();
        let parts: Vec<Vec<Bytes>> = payloads
            .iter()
            .map(|p| {
                let whole = Bytes::from(p.clone());
                vec![whole.slice(..p.len() / 3), whole.slice(p.len() / 3..)]
            })
            .collect();
        let mut expected = b"before".to_vec();
        let mut buffer = Vec::new();
        let mut frames = Frames::new(&*file, how, 6, &mut buffer);
        for (payload, parts) in payloads.iter().zip(&parts) {
            frames.push(b"HEADER", parts, payload.len() as u32).unwrap();
            expected.extend_from_slice(b"HEADER");
            expected.extend_from_slice(payload);
            expected.resize(expected.len() + padding_after(payload.len() as u32), 0);
        }
        frames.finish(b"END", &mut buffer).unwrap();
        expected.extend_from_slice(b"END");
        assert!(disk.read(Path::new("f"), 64 << 20).unwrap() == expected);
        assert!(buffer.is_empty() && buffer.capacity() <= 2 * CHUNK);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_file_holds_the_frames_however_they_are_written(
            sizes in prop::collection::vec(prop_oneof![0..100usize, 3000..9000usize, 100_000..1_400_000usize], 0..12)
        ) {
            let payloads: Vec<Vec<u8>> = (1u8..).zip(sizes).map(|(fill, size)| vec![fill; size]).collect();
            for how in [How::Lazily, How::AheadOfSync, How::Synced] {
                check(how, &payloads);
            }
        }
    }
}
