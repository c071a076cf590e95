//! The frame around storage's small files: magic, version, checksum, length.
//!
//! ```text
//! 0        8         12        16        24
//! magic    version   CRC-32C   length    payload
//! 8 bytes  u32       u32       u64       `length` bytes, to the end of the file
//! ```
//! Numbers are little-endian. The checksum is of the version, the length and the payload, in this order.

use std::path::Path;

use longbow_disk::Disk;

use crate::checksum::Crc32c;
use crate::error::{Error, Result};

const HEAD: usize = 24;

/// A kind of file.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub magic: [u8; 8],
    /// Newest version that this code writes and reads.
    pub version: u32,
    /// Longest file that is read.
    pub limit: u64,
}

impl Envelope {
    pub fn seal(&self, payload: &[u8]) -> Vec<u8> {
        let mut file = Vec::with_capacity(HEAD + payload.len());
        file.extend_from_slice(&self.magic);
        file.extend_from_slice(&self.version.to_le_bytes());
        file.extend_from_slice(&checksum(self.version, payload).to_le_bytes());
        file.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        file.extend_from_slice(payload);
        file
    }

    /// Checks a file and gives its version and payload. `path` is for errors.
    pub fn open<'a>(&self, path: &Path, file: &'a [u8]) -> Result<(u32, &'a [u8])> {
        let damaged = |offset: usize, what| Error::Damaged {
            path: path.into(),
            offset: offset as u64,
            what,
        };
        if file.get(..8) != Some(&self.magic) {
            return Err(damaged(0, "magic"));
        }
        let (head, payload) = file
            .split_first_chunk::<HEAD>()
            .ok_or_else(|| damaged(8, "head"))?;
        let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let expected = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
        let length = u64::from_le_bytes([
            head[16], head[17], head[18], head[19], head[20], head[21], head[22], head[23],
        ]);
        // A newer version may have another head, so it is told apart before anything else is believed.
        if version > self.version {
            return Err(Error::NewerVersion {
                path: path.into(),
                found: version,
                supported: self.version,
            });
        }
        if length != payload.len() as u64 {
            return Err(Error::FileLength {
                path: path.into(),
                expected: length.saturating_add(HEAD as u64),
                got: file.len() as u64,
            });
        }
        let got = checksum(version, payload);
        if got != expected {
            return Err(Error::Checksum {
                path: path.into(),
                offset: 0,
                length: file.len() as u64,
                expected,
                got,
            });
        }
        Ok((version, payload))
    }

    /// Reads a file of this kind, whole.
    pub fn read(&self, disk: &dyn Disk, path: &Path) -> Result<Vec<u8>> {
        Ok(disk.read(path, self.limit)?)
    }
}

fn checksum(version: u32, payload: &[u8]) -> u32 {
    let mut crc = Crc32c::new();
    crc.update(&version.to_le_bytes());
    crc.update(&(payload.len() as u64).to_le_bytes());
    crc.update(payload);
    crc.finish()
}
