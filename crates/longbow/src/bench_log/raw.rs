//! What the disk can do by itself: the same bytes a sync, written by one thread into a file whose blocks are there.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longbow_disk::{Disk, File, RealDisk};
use serde::Serialize;

use super::case::Syncing;
use super::error::Error;
use super::load::noise;
use super::report::rounded;
use crate::histogram::Histogram;

/// What is written at once while the file is filled with zeros, and the length of the parts of a write.
const PIECE: usize = 1 << 20;

/// How many pieces there are to write: more than a processor keeps near, as the log's entries are.
const PIECES: usize = 16;

/// A stretch has at least so many writes, however long they take.
const MIN_WRITES: u64 = 3;

/// A file full of zeros, to be written over from its beginning to its end, again and again.
pub struct RawFile {
    path: PathBuf,
    file: Box<dyn File>,
    size: u64,
    offset: u64,
    noise: Vec<Bytes>,
    /// The piece that the next write begins with.
    next: usize,
}

/// How fast one thread wrote.
#[derive(Debug, Clone, Serialize)]
pub struct RawRow {
    /// Bytes between two syncs.
    pub bytes_per_sync: u64,
    /// How they were made durable.
    pub sync: &'static str,
    /// Writes, each with its sync, in a second.
    pub syncs_per_s: f64,
    /// Megabytes (10^6) in a second.
    pub mb_per_s: f64,
    /// The time of a write and its sync in microseconds.
    pub p50_us: f64,
    /// As `p50_us`.
    pub p95_us: f64,
    /// As `p50_us`.
    pub p99_us: f64,
    /// As `p50_us`.
    pub max_us: f64,
}

impl RawFile {
    /// A file of at least `size` bytes in `dir`.
    pub fn create(dir: &Path, size: u64) -> Result<RawFile, Error> {
        let path = dir.join("raw");
        let file = RealDisk.create(&path)?;
        let zeros = vec![0; PIECE];
        let mut written = 0;
        while written < size {
            let now = (size - written).min(PIECE as u64) as usize;
            file.append_vectored(&[IoSlice::new(&zeros[..now])])?;
            written += now as u64;
        }
        file.sync_data()?;
        RealDisk.sync_dir(dir)?;
        Ok(RawFile {
            path,
            file,
            size,
            offset: 0,
            noise: (1..=PIECES as u64)
                .map(|seed| noise(PIECE as u64, seed))
                .collect(),
            next: 0,
        })
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Gives the space back.
    pub fn remove(self) -> Result<(), Error> {
        Ok(RealDisk.remove(&self.path)?)
    }

    /// Writes and syncs for a stretch of time; there is no sync where none is waited for. A write is at least a byte, and
    /// at most the file.
    pub fn measure(
        &mut self,
        bytes_per_sync: u64,
        sync: Syncing,
        time: Duration,
    ) -> Result<RawRow, Error> {
        let bytes = bytes_per_sync.clamp(1, self.size);
        let mut latencies = Histogram::new();
        let mut writes = 0;
        let began = Instant::now();
        let mut now = began;
        while writes < MIN_WRITES || now - began < time {
            self.write(bytes, sync)?;
            let ended = Instant::now();
            latencies.note(ended - now);
            now = ended;
            writes += 1;
        }
        let seconds = (now - began).as_secs_f64();
        let at = |quantile| rounded(latencies.percentile_us(quantile).unwrap_or_default());
        Ok(RawRow {
            bytes_per_sync: bytes,
            sync: sync.name(),
            syncs_per_s: rounded(writes as f64 / seconds),
            mb_per_s: rounded((writes * bytes) as f64 / seconds / 1e6),
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: at(1.0),
        })
    }

    fn write(&mut self, bytes: u64, sync: Syncing) -> Result<(), Error> {
        if self.offset + bytes > self.size {
            self.offset = 0;
        }
        let whole = (bytes / PIECE as u64) as usize;
        let rest = (bytes % PIECE as u64) as usize;
        let piece = |nth: usize| &self.noise[(self.next + nth) % PIECES];
        let mut parts: Vec<IoSlice<'_>> = (0..whole).map(|nth| IoSlice::new(piece(nth))).collect();
        parts.push(IoSlice::new(&piece(whole)[..rest]));
        match sync {
            Syncing::Fdatasync => {
                self.file.write_at(self.offset, &parts)?;
                self.file.sync_data()?;
            }
            Syncing::Dsync => self.file.write_at_synced(self.offset, &parts)?,
            Syncing::Background | Syncing::None => self.file.write_at(self.offset, &parts)?,
        }
        self.offset += bytes;
        self.next = (self.next + whole + 1) % PIECES;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_over_and_keeps_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut raw = RawFile::create(folder.path(), 3 << 20).expect("created");
        for sync in Syncing::ALL {
            for bytes in [1, 1000, PIECE as u64, (2 << 20) + 5, 1 << 40] {
                let row = raw.measure(bytes, sync, Duration::ZERO).expect("measured");
                assert_eq!(row.bytes_per_sync, bytes.min(3 << 20));
                assert!(row.p50_us <= row.p99_us && row.p99_us <= row.max_us);
                assert!(row.syncs_per_s > 0.0 && row.max_us > 0.0, "{row:?}");
            }
        }
        assert_eq!(raw.file.len().expect("a length"), 3 << 20);
        raw.remove().expect("removed");
        assert_eq!(RealDisk.list(folder.path()).expect("listed"), [""; 0]);
    }
}
