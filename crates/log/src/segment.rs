//! One file of the log.
//!
//! A segment is named by its first index in 20 digits, so that the names sort as the log runs. It begins with:
//!
//! ```text
//!   0            8           12         16            24
//!   +------------+-----------+----------+-------------+--------+--------+----
//!   | "LBLOG\0\0\0" | version u32 | crc u32 | first index u64 | frame  | frame  | ...
//!   +------------+-----------+----------+-------------+--------+--------+----
//! ```
//!
//! The CRC-32C covers magic, version and first index. These 24 bytes keep their shape in every version, so that an older
//! program can tell "newer" from "damaged".

use crate::{Error, Flaw, Result};
use crc_fast::{CrcAlgorithm, Digest};
use std::path::{Path, PathBuf};

/// Bytes before the first frame.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 24;

/// The length of a segment without frames.
pub(crate) const EMPTY_SEGMENT: u64 = SEGMENT_HEADER_BYTES as u64;

/// The format that this program writes, and the newest that it reads.
pub(crate) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"LBLOG\0\0\0";
const NAME_DIGITS: usize = 20;
const NAME_SUFFIX: &str = ".log";

/// The distance in bytes between the places that a segment remembers, so that a reader begins near what it looks for.
const WAYPOINT_DISTANCE: u64 = 256 << 10;

/// What is known of a segment file while the log is open.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// The index of its first record, present or to come.
    pub(crate) first: u64,
    /// Where its sound frames end, in bytes.
    pub(crate) end: u64,
    /// Indexes and the offsets at which their frames begin, ascending, some distance apart.
    waypoints: Vec<(u64, u64)>,
}

impl Segment {
    /// A segment without frames.
    pub(crate) fn new(first: u64) -> Segment {
        Segment {
            first,
            end: EMPTY_SEGMENT,
            waypoints: Vec::new(),
        }
    }

    /// Notes that the frame of `index`, or of a mark behind it, begins at `end` and is so many bytes long.
    pub(crate) fn push(&mut self, index: u64, bytes: u64) {
        let last = self.waypoints.last().map_or(0, |(_, offset)| *offset);
        if self.end - last >= WAYPOINT_DISTANCE {
            self.waypoints.push((index, self.end));
        }
        self.end += bytes;
    }

    /// Where to begin looking for `index`: the offset of a frame at or before it.
    pub(crate) fn near(&self, index: u64) -> u64 {
        let after = self.waypoints.partition_point(|(i, _)| *i < index);
        match after.checked_sub(1) {
            Some(before) => self.waypoints[before].1,
            None => EMPTY_SEGMENT,
        }
    }
}

/// The path of the segment that begins at `first`.
pub(crate) fn path_of(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:0NAME_DIGITS$}{NAME_SUFFIX}"))
}

/// The first index that a file name stands for, if it is the name of a segment.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(NAME_SUFFIX)?;
    let plain = digits.len() == NAME_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn header_crc(version: u32, first: u64) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&MAGIC);
    digest.update(&version.to_le_bytes());
    digest.update(&first.to_le_bytes());
    digest.finalize() as u32
}

/// The header of the segment that begins at `first`.
pub(crate) fn encode_header(first: u64) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&header_crc(VERSION, first).to_le_bytes());
    bytes[16..24].copy_from_slice(&first.to_le_bytes());
    bytes
}

/// Checks the header of `file`, whose name says that it begins at `first`. The outer error is a segment of a newer
/// version, the inner one is damage.
pub(crate) fn check_header(
    file: &Path,
    bytes: &[u8],
    first: u64,
) -> Result<std::result::Result<(), Flaw>> {
    let Some(bytes) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() else {
        return Ok(Err(Flaw::SegmentHeader));
    };
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[8..12]);
    let version = u32::from_le_bytes(word);
    word.copy_from_slice(&bytes[12..16]);
    let crc = u32::from_le_bytes(word);
    let mut long = [0; 8];
    long.copy_from_slice(&bytes[16..24]);
    let found = u64::from_le_bytes(long);
    if bytes[..8] != MAGIC || crc != header_crc(version, found) || version == 0 {
        return Ok(Err(Flaw::SegmentHeader));
    }
    if version > VERSION {
        return Err(Error::Newer {
            file: file.to_path_buf(),
            found: version,
            known: VERSION,
        });
    }
    if found != first {
        return Ok(Err(Flaw::SegmentBegins { found }));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_sort_as_the_log_runs_and_only_segments_have_them() {
        let path = path_of(Path::new("d"), 42);
        assert_eq!(path, Path::new("d/00000000000000000042.log"));
        assert_eq!(parse_name("00000000000000000042.log"), Some(42));
        let top = path_of(Path::new(""), u64::MAX);
        assert_eq!(parse_name(top.to_str().unwrap()), Some(u64::MAX));
        let others = [
            "42.log",
            "0000000000000000004x.log",
            "00000000000000000042",
            "+0000000000000000042.log",
            "99999999999999999999.log",
        ];
        assert!(others.iter().all(|name| parse_name(name).is_none()));
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let file = Path::new("f");
        let mut bytes = encode_header(7);
        assert_eq!(check_header(file, &bytes, 7).unwrap(), Ok(()));
        let wrong = check_header(file, &bytes, 8).unwrap();
        assert_eq!(wrong, Err(Flaw::SegmentBegins { found: 7 }));
        bytes[8] = 2;
        assert_eq!(
            check_header(file, &bytes, 7).unwrap(),
            Err(Flaw::SegmentHeader)
        );
        bytes[12..16].copy_from_slice(&header_crc(2, 7).to_le_bytes());
        let newer = check_header(file, &bytes, 7).unwrap_err();
        assert!(
            matches!(
                newer,
                Error::Newer {
                    found: 2,
                    known: 1,
                    ..
                }
            ),
            "{newer}"
        );
    }

    #[test]
    fn waypoints_lead_to_a_frame_at_or_before_the_index() {
        let mut segment = Segment::new(10);
        for index in 10..1010 {
            segment.push(index, 4096);
        }
        for index in 10..1010 {
            let offset = 24 + (index - 10) * 4096;
            let near = segment.near(index);
            assert!(near <= offset && offset - near <= WAYPOINT_DISTANCE + 4096);
            assert_eq!((near - 24) % 4096, 0);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_are_no_segment_header(bytes: Vec<u8>, first: u64) {
            if let Ok(Ok(())) = check_header(Path::new("f"), &bytes, first) {
                prop_assert_eq!(&bytes[..24], &encode_header(first)[..]);
            }
        }

        #[test]
        fn a_changed_segment_header_is_refused(first: u64, at in 0..24usize, bit in 0..8u8) {
            let mut bytes = encode_header(first);
            bytes[at] ^= 1 << bit;
            let checked = check_header(Path::new("f"), &bytes, first);
            prop_assert!(!matches!(checked, Ok(Ok(()))));
        }
    }
}
