//! [`Tombstones`]: rows that are dead and still in segments.

use std::path::Path;

use longbow_disk::Disk;
use roaring::RoaringTreemap;

use crate::checksum::crc32c;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::manifest::FileRef;

/// Version of the file that is written.
pub const TOMBSTONES_VERSION: u32 = 1;
const ENVELOPE: Envelope = Envelope {
    magic: *b"LBTOMB\0\0",
    version: TOMBSTONES_VERSION,
    limit: 8 << 30,
};

/// A set of row numbers, as it is saved with a checkpoint.
///
/// The file is the frame of `envelope` with the magic `LBTOMB\0\0`; its payload is the set as a roaring treemap in
/// the portable format (<https://github.com/RoaringBitmap/RoaringFormatSpec>, "64-bit implementations"):
///
/// ```text
/// 24            32
/// bitmaps u64   for each: high half of its rows u32, a roaring bitmap of the low halves
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tombstones {
    rows: RoaringTreemap,
}

impl Tombstones {
    /// Adds a row; false if it was there.
    pub fn insert(&mut self, row: u64) -> bool {
        self.rows.insert(row)
    }

    /// Takes a row out, as when compaction has dropped it; false if it was not there.
    pub fn remove(&mut self, row: u64) -> bool {
        self.rows.remove(row)
    }

    /// Whether a row is dead.
    pub fn contains(&self, row: u64) -> bool {
        self.rows.contains(row)
    }

    /// Number of dead rows.
    pub fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Whether no row is dead.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter()
    }

    /// The rows as a set.
    pub fn rows(&self) -> &RoaringTreemap {
        &self.rows
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.rows.serialized_size());
        // Writing to a vector cannot fail, and the length of the payload is checked when it is read.
        let written = self.rows.serialize_into(&mut payload);
        debug_assert!(written.is_ok());
        ENVELOPE.seal(&payload)
    }

    /// Reads the bytes of a file; `path` is for errors.
    ///
    /// # Errors
    /// If the file is damaged or of a newer version. Never panics.
    pub fn decode(path: &Path, file: &[u8]) -> Result<Self> {
        let (_, mut payload) = ENVELOPE.open(path, file)?;
        let total = payload.len();
        let rows = RoaringTreemap::deserialize_from(&mut payload);
        let damaged = || Error::Damaged {
            path: path.into(),
            offset: (file.len() - total) as u64,
            what: "set of rows",
        };
        let rows = rows.map_err(|_| damaged())?;
        if !payload.is_empty() {
            return Err(damaged());
        }
        Ok(Tombstones { rows })
    }

    /// Writes the file, durable when this returns.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn save(&self, disk: &dyn Disk, path: &Path) -> Result<FileRef> {
        let bytes = self.encode();
        disk.write_atomic(path, &bytes)?;
        let file = path.file_name().unwrap_or_default();
        Ok(FileRef {
            file: file.to_string_lossy().into_owned(),
            bytes: bytes.len() as u64,
            crc32c: crc32c(&bytes),
        })
    }

    /// Reads the file that a manifest names.
    ///
    /// # Errors
    /// If it is not the one meant, damaged or of a newer version, or if the disk refuses.
    pub fn load(disk: &dyn Disk, path: &Path, expected: &FileRef) -> Result<Self> {
        let file = ENVELOPE.read(disk, path)?;
        let tombstones = Self::decode(path, &file)?;
        let got = crc32c(&file);
        if got != expected.crc32c {
            return Err(Error::Checksum {
                path: path.into(),
                offset: 0,
                length: file.len() as u64,
                expected: expected.crc32c,
                got,
            });
        }
        Ok(tombstones)
    }
}

impl From<RoaringTreemap> for Tombstones {
    fn from(rows: RoaringTreemap) -> Self {
        Tombstones { rows }
    }
}

impl FromIterator<u64> for Tombstones {
    fn from_iter<I: IntoIterator<Item = u64>>(rows: I) -> Self {
        let rows = rows.into_iter().collect();
        Tombstones { rows }
    }
}
