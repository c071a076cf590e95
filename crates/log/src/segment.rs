//! One file of the log.
//!
//! A segment is named by its first index in 20 digits, so that the names sort as the log runs. It begins with:
//!
//! ```text
//!   0              8             12        16                24             28        32
//!   +--------------+-------------+---------+-----------------+--------------+---------+-------+-------+----
//!   |"LBLOG\0\0\0" | version u32 | crc u32 | first index u64 | previous u32 | crc u32 | frame | frame | ...
//!   +--------------+-------------+---------+-----------------+--------------+---------+-------+-------+----
//! ```
//!
//! The first CRC-32C covers magic, version and first index. These 24 bytes keep their shape in every version, so that an
//! older program can tell "newer" from "damaged"; version 1 has nothing else before its first frame. The second covers
//! bytes 0 to 28. `previous` is the checksum of the last frame header of the segment before, 0 if there is none or it
//! is of version 1.
//!
//! A purged segment is kept, by a name that ends in `.spare`, and becomes a segment again: a sync finds its blocks
//! allocated then and changes no metadata. What its earlier lives left behind the last frame is no frame of this one,
//! because a frame's checksum covers the first index of its segment: a spare serves only if that of its last life, by
//! the header that is found, is smaller than any that is still to come. After a power loss that header may be older than
//! frames behind it, of a life whose name was lost; should the same index begin the segment again, those frames break
//! the chain, and vouch for nothing that was not durable.

use crate::frame::{Format, u32_at, u64_at};
use crate::{Error, Flaw, Result};
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes before the first frame.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 32;

/// The same in version 1, and what has the same shape in all versions.
const COMMON_HEADER_BYTES: usize = 24;

/// The length of a segment without entries, in bytes.
pub const EMPTY_SEGMENT: u64 = SEGMENT_HEADER_BYTES as u64;

/// The format that this program writes, and the newest that it reads.
pub(crate) const VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"LBLOG\0\0\0";
const NAME_DIGITS: usize = 20;
const NAME_SUFFIX: &str = ".log";
const SPARE_SUFFIX: &str = ".spare";

/// The distance in bytes between the places that a segment remembers, so that a reader begins near what it looks for.
const WAYPOINT_DISTANCE: u64 = 256 << 10;

/// What a segment's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) format: Format,
    /// Where the first frame begins.
    pub(crate) begin: u64,
    /// What the first frame names as the checksum before it; `None` in version 1.
    pub(crate) link: Option<u32>,
    /// The checksum of the last frame header of the segment before; 0 for unknown.
    pub(crate) previous: u32,
}

/// A map of a segment's file, which is in use for as long as any slice of it.
struct Used {
    map: Bytes,
    _user: Arc<()>,
}

impl AsRef<[u8]> for Used {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Makes the slices of a map users of the segment.
pub(crate) fn used(map: Bytes, users: &Arc<()>) -> Bytes {
    Bytes::from_owner(Used {
        map,
        _user: users.clone(),
    })
}

/// What is known of a segment file while the log is open.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The index of its first record, present or to come.
    pub(crate) first: u64,
    /// Where its sound frames end, in bytes.
    pub(crate) end: u64,
    /// When its last record was written, in microseconds since the Unix epoch; 0 if it has none.
    pub(crate) last_us: u64,
    pub(crate) format: Format,
    begin: u64,
    /// Indexes and the offsets at which their frames begin, ascending, some distance apart.
    waypoints: Vec<(u64, u64)>,
    /// A clone is with everyone who reads the file, and with every slice of a map of it.
    pub(crate) users: Arc<()>,
}

impl Segment {
    /// A segment without frames.
    pub(crate) fn new(first: u64, header: &SegmentHeader) -> Segment {
        Segment {
            first,
            end: header.begin,
            last_us: 0,
            format: header.format,
            begin: header.begin,
            waypoints: Vec::new(),
            users: Arc::new(()),
        }
    }

    /// Whether nobody reads the file or holds a slice of it any more. Nobody new can come when the segment is no longer
    /// among those of the log.
    pub(crate) fn is_unused(&mut self) -> bool {
        Arc::get_mut(&mut self.users).is_some()
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
            None => self.begin,
        }
    }
}

/// The path of the segment that begins at `first`.
pub(crate) fn path_of(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:0NAME_DIGITS$}{NAME_SUFFIX}"))
}

/// The path of the spare file of that number.
pub(crate) fn spare_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:0NAME_DIGITS$}{SPARE_SUFFIX}"))
}

/// The first index that a file name stands for, if it is the name of a segment.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    parse_digits(name, NAME_SUFFIX)
}

/// The number of a spare file, if it is the name of one.
pub(crate) fn parse_spare_name(name: &str) -> Option<u64> {
    parse_digits(name, SPARE_SUFFIX)
}

fn parse_digits(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    let plain = digits.len() == NAME_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn common_crc(version: u32, first: u64) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&MAGIC);
    digest.update(&version.to_le_bytes());
    digest.update(&first.to_le_bytes());
    digest.finalize() as u32
}

/// The header of the segment that begins at `first`, and what its first frame names as the checksum before it.
pub(crate) fn encode_header(first: u64, previous: u32) -> ([u8; SEGMENT_HEADER_BYTES], u32) {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&common_crc(VERSION, first).to_le_bytes());
    bytes[16..24].copy_from_slice(&first.to_le_bytes());
    bytes[24..28].copy_from_slice(&previous.to_le_bytes());
    let crc = crc32_iscsi(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    (bytes, crc)
}

/// Whether a file that begins so never was a segment. What a torn write leaves is zero, or of the magic, byte by byte.
fn is_foreign(bytes: &[u8]) -> bool {
    let mut begin = bytes.iter().zip(MAGIC);
    begin.any(|(byte, magic)| *byte != 0 && *byte != magic)
}

/// The header at the front of `file`, whose name says that it begins at `first`. The outer error is a segment of a newer
/// version, the inner one is damage.
pub(crate) fn check_header(
    file: &Path,
    bytes: &[u8],
    first: u64,
) -> Result<std::result::Result<SegmentHeader, Flaw>> {
    if is_foreign(bytes) {
        return Ok(Err(Flaw::Foreign));
    }
    let Some(common) = bytes.first_chunk::<COMMON_HEADER_BYTES>() else {
        return Ok(Err(Flaw::SegmentHeader));
    };
    let version = u32_at(common, 8);
    let found = u64_at(common, 16);
    if common[..8] != MAGIC || u32_at(common, 12) != common_crc(version, found) || version == 0 {
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
    if version == 1 {
        return Ok(Ok(SegmentHeader {
            format: Format::One,
            begin: COMMON_HEADER_BYTES as u64,
            link: None,
            previous: 0,
        }));
    }
    Ok(rest_of_header(bytes, first).ok_or(Flaw::SegmentHeader))
}

/// What version 2 adds to the common part.
fn rest_of_header(bytes: &[u8], first: u64) -> Option<SegmentHeader> {
    let bytes = bytes.first_chunk::<SEGMENT_HEADER_BYTES>()?;
    let crc = u32_at(bytes, 28);
    (crc == crc32_iscsi(&bytes[..28])).then(|| SegmentHeader {
        format: Format::Two(first),
        begin: EMPTY_SEGMENT,
        link: Some(crc),
        previous: u32_at(bytes, 24),
    })
}

/// The first index that a spare file with this beginning had when it was a segment: 0 if it never was, `None` if the
/// bytes make no sense.
pub(crate) fn spare_first(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Option<u64> {
    if bytes == &[0; SEGMENT_HEADER_BYTES] {
        return Some(0);
    }
    let first = u64_at(bytes, 16);
    rest_of_header(bytes, first).and((bytes[..8] == MAGIC).then_some(first))
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
        let (mut bytes, crc) = encode_header(7, 9);
        let header = SegmentHeader {
            format: Format::Two(7),
            begin: 32,
            link: Some(crc),
            previous: 9,
        };
        assert_eq!(check_header(file, &bytes, 7).unwrap(), Ok(header));
        assert_eq!(spare_first(&bytes), Some(7));
        assert_eq!(spare_first(&[0; SEGMENT_HEADER_BYTES]), Some(0));
        let wrong = check_header(file, &bytes, 8).unwrap();
        assert_eq!(wrong, Err(Flaw::SegmentBegins { found: 7 }));
        bytes[8] = 3;
        assert_eq!(
            check_header(file, &bytes, 7).unwrap(),
            Err(Flaw::SegmentHeader)
        );
        bytes[12..16].copy_from_slice(&common_crc(3, 7).to_le_bytes());
        let newer = check_header(file, &bytes, 7).unwrap_err();
        assert!(
            matches!(
                newer,
                Error::Newer {
                    found: 3,
                    known: 2,
                    ..
                }
            ),
            "{newer}"
        );
    }

    #[test]
    fn waypoints_lead_to_a_frame_at_or_before_the_index() {
        let (bytes, _) = encode_header(10, 0);
        let header = check_header(Path::new("f"), &bytes, 10).unwrap().unwrap();
        let mut segment = Segment::new(10, &header);
        for index in 10..1010 {
            segment.push(index, 4096);
        }
        for index in 10..1010 {
            let offset = 32 + (index - 10) * 4096;
            let near = segment.near(index);
            assert!(near <= offset && offset - near <= WAYPOINT_DISTANCE + 4096);
            assert_eq!((near - 32) % 4096, 0);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_are_no_segment_header(bytes: Vec<u8>, first: u64) {
            let checked = check_header(Path::new("f"), &bytes, first);
            prop_assert!(!matches!(checked, Ok(Ok(_))));
            if let Some(bytes) = bytes.first_chunk() {
                prop_assert!(spare_first(bytes).is_none() || bytes == &[0; SEGMENT_HEADER_BYTES]);
            }
        }

        #[test]
        fn a_changed_segment_header_is_refused(first: u64, at in 0..32usize, bit in 0..8u8) {
            let (mut bytes, _) = encode_header(first, 77);
            bytes[at] ^= 1 << bit;
            let checked = check_header(Path::new("f"), &bytes, first);
            prop_assert!(!matches!(checked, Ok(Ok(_))));
            prop_assert_eq!(spare_first(&bytes), None);
        }
    }
}
