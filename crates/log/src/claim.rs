//! The file that says how far a log was durable when it was closed.
//!
//! ```text
//!   0                8                   16        20
//!   +----------------+-------------------+---------+------+
//!   | "LBCLAIM\0"    | durable index u64 | crc u32 | zero |
//!   +----------------+-------------------+---------+------+
//! ```
//!
//! The CRC-32C covers bytes 0 to 16. Frames vouch for those before them; nothing in the log vouches for the last. This
//! file does, from elsewhere on the disk: when the last frames are gone, or a whole segment, the log is damaged. What it
//! says stays true when the log goes on, so it is only replaced at the next close.

use crate::frame::u64_at;
use crate::{Options, Result};
use crc_fast::crc32_iscsi;
use longbow_disk::Disk;
use std::path::{Path, PathBuf};

/// Its name in the folder of the log.
pub(crate) const NAME: &str = "durable.claim";

const MAGIC: [u8; 8] = *b"LBCLAIM\0";
const BYTES: usize = 24;

fn path_of(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

fn encode(durable: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&durable.to_le_bytes());
    let crc = crc32_iscsi(&bytes[..16]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<u64> {
    let durable = u64_at(bytes.get(..BYTES)?, 8);
    (bytes == encode(durable)).then_some(durable)
}

/// Says that everything up to `durable` survives power loss.
pub(crate) fn write(disk: &dyn Disk, options: &Options, durable: u64) -> longbow_disk::Result<()> {
    disk.write_atomic(&path_of(&options.dir), &encode(durable))
}

/// The highest index that was ever claimed; 0 if there is no such file, or none that can be read and makes sense: the log
/// is sound without it.
pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> Result<u64> {
    let path = path_of(dir);
    if !disk.exists(&path)? {
        return Ok(0);
    }
    let claimed = disk
        .read(&path, 1 << 20)
        .ok()
        .and_then(|bytes| decode(&bytes));
    if claimed.is_none() {
        tracing::warn!(file = %path.display(), "is broken, and not needed; it is replaced when the log is closed");
    }
    Ok(claimed.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_come_back_and_nothing_else_is_one(durable: u64, at in 0..BYTES, bit in 0..8u8, other: Vec<u8>) {
            let mut bytes = encode(durable);
            prop_assert_eq!(decode(&bytes), Some(durable));
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode(&bytes), None);
            prop_assert_eq!(decode(&other), None);
        }
    }
}
