//! The bytes around one entry.
//!
//! All numbers are little-endian; every frame begins at a multiple of 8. The header fills a cache line:
//!
//! ```text
//!   0        4        8           12       16       24        32             40     48            56     57      58     60         64
//!   +--------+--------+-----------+--------+--------+---------+--------------+------+-------------+------+-------+------+----------+
//!   | header | length | payload   | shard  | index  | durable | timestamp_us | term | shard_index | kind | flags | zero | previous |
//!   | crc u32| u32    | crc u32   | u32    | u64    | u64     | u64          | u64  | u64         | u8   | u8    | u16  | crc u32  |
//!   +--------+--------+-----------+--------+--------+---------+--------------+------+-------------+------+-------+------+----------+
//!   | payload: `length` bytes                                       | zeros up to a multiple of 8                                  |
//!   +---------------------------------------------------------------+--------------------------------------------------------------+
//! ```
//!
//! Both checksums are CRC-32C; the header's covers the first index of the segment, which is not stored here, and bytes 4
//! to 64, and through the payload's checksum the payload too. They are apart so that the costly one is computed by the
//! caller of `append` before the index is known, and so that a header can be believed even if its payload is torn.
//! Because of the first index, what an earlier use of a recycled file left behind is no frame; and `previous`, the
//! header's checksum of the frame before (for the first: of the segment's header), shows a frame in the wrong place.
//!
//! `durable` is the highest index known to be synced when the frame was written: it is how recovery tells a torn tail
//! from damage. Flag 1 makes a *mark*: a frame without payload that repeats the index before it and only carries
//! `durable`. 64 zero bytes where a frame should begin, or as many as the file still has, end what was written.
//!
//! Kinds 240 to 247 are the log's own, told in `control.rs`.
//!
//! Version 1 had 56 bytes: `kind`, `flags` and six zeros at 48, no `shard_index`, no `previous`, and a header's checksum
//! over bytes 4 to 56 alone. It is still read.

use crate::{Flaw, RESERVED_KINDS};
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 64;

/// The same in version 1.
const HEADER_BYTES_1: usize = 56;

/// What ends the written part of a file that is longer.
pub(crate) const ZERO_HEADER: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// Frames begin at multiples of this many bytes.
pub(crate) const ALIGNMENT: u64 = 8;

/// What pads a frame.
pub(crate) const PADDING: [u8; 8] = [0; 8];

const FLAG_MARK: u8 = 1;

/// What an entry with a payload of so many bytes takes in a segment: header, payload, padding.
pub fn frame_bytes(payload_bytes: u64) -> u64 {
    HEADER_BYTES as u64 + payload_bytes.next_multiple_of(ALIGNMENT)
}

/// How the frames of a segment are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Version 1.
    One,
    /// Version 2, in a segment with this first index.
    Two(u64),
}

/// The decoded header of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) len: u32,
    pub(crate) payload_crc: u32,
    pub(crate) shard: u32,
    pub(crate) index: u64,
    pub(crate) durable: u64,
    pub(crate) timestamp_us: u64,
    pub(crate) term: u64,
    pub(crate) shard_index: u64,
    pub(crate) kind: u8,
    pub(crate) mark: bool,
    /// The checksum of the header before; always 0 in version 1.
    pub(crate) previous: u32,
}

/// The checksum of a payload in parts.
pub(crate) fn payload_crc(parts: &[Bytes]) -> u32 {
    match parts {
        [] => 0,
        [one] => crc32_iscsi(one),
        _ => {
            let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
            parts.iter().for_each(|p| digest.update(p));
            digest.finalize() as u32
        }
    }
}

/// How many zeros follow a payload of `len` bytes.
pub(crate) fn padding_after(len: u32) -> usize {
    (len.wrapping_neg() & 7) as usize
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

/// The checksum of a header's bytes in the segment that begins at `first`.
fn header_crc(bytes: &[u8; HEADER_BYTES], first: u64) -> u32 {
    let mut covered = [0; 8 + HEADER_BYTES - 4];
    covered[..8].copy_from_slice(&first.to_le_bytes());
    covered[8..].copy_from_slice(&bytes[4..]);
    crc32_iscsi(&covered)
}

impl Format {
    /// Bytes before a payload.
    pub(crate) fn header_bytes(self) -> u64 {
        match self {
            Format::One => HEADER_BYTES_1 as u64,
            Format::Two(_) => HEADER_BYTES as u64,
        }
    }

    /// The length of a whole frame in bytes.
    pub(crate) fn frame_bytes(self, header: &Header) -> u64 {
        self.header_bytes() + header.body_bytes()
    }

    /// The header at the front of `bytes` and its checksum, or None if they do not begin with the header of a frame of
    /// this segment. `previous` is not looked at.
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<(Header, u32)> {
        match self {
            Format::One => decode_1(bytes.first_chunk()?),
            Format::Two(first) => Header::decode(bytes.first_chunk()?, first),
        }
    }
}

/// A header of version 1.
fn decode_1(bytes: &[u8; HEADER_BYTES_1]) -> Option<(Header, u32)> {
    if bytes[50..] != [0; 6] || bytes[49] > FLAG_MARK {
        return None;
    }
    let header = Header::common(bytes, bytes[48], bytes[49]);
    let crc = u32_at(bytes, 0);
    (header.is_possible() && crc == crc32_iscsi(&bytes[4..])).then_some((header, crc))
}

impl Header {
    /// The length of payload and padding in bytes.
    pub(crate) fn body_bytes(&self) -> u64 {
        u64::from(self.len) + padding_after(self.len) as u64
    }

    /// Whether it is part of a shard's sequence, or changes one, or is a vote.
    pub(crate) fn is_for_shards(&self) -> bool {
        !self.mark && (self.shard_index != 0 || RESERVED_KINDS.contains(&self.kind))
    }

    /// The bytes of the header in the segment that begins at `first`, and its checksum, which the next frame repeats.
    pub(crate) fn encode(&self, first: u64) -> ([u8; HEADER_BYTES], u32) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.shard.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.index.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.durable.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.timestamp_us.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.term.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.shard_index.to_le_bytes());
        bytes[56] = self.kind;
        bytes[57] = if self.mark { FLAG_MARK } else { 0 };
        bytes[60..].copy_from_slice(&self.previous.to_le_bytes());
        let crc = header_crc(&bytes, first);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    fn decode(bytes: &[u8; HEADER_BYTES], first: u64) -> Option<(Header, u32)> {
        // The cheap tests come first: the search for frames behind a broken one tries every multiple of 8.
        if bytes[58..60] != [0; 2] || bytes[57] > FLAG_MARK {
            return None;
        }
        let header = Header {
            shard_index: u64_at(bytes, 48),
            previous: u32_at(bytes, 60),
            ..Header::common(bytes, bytes[56], bytes[57])
        };
        let crc = u32_at(bytes, 0);
        (header.is_possible() && crc == header_crc(bytes, first)).then_some((header, crc))
    }

    /// What lies at the same places in all versions.
    fn common(bytes: &[u8], kind: u8, flags: u8) -> Header {
        Header {
            len: u32_at(bytes, 4),
            payload_crc: u32_at(bytes, 8),
            shard: u32_at(bytes, 12),
            index: u64_at(bytes, 16),
            durable: u64_at(bytes, 24),
            timestamp_us: u64_at(bytes, 32),
            term: u64_at(bytes, 40),
            kind,
            mark: flags == FLAG_MARK,
            ..Header::default()
        }
    }

    /// Whether this program would write such a header.
    fn is_possible(&self) -> bool {
        let vouches = if self.mark {
            self.len == 0 && self.durable <= self.index
        } else {
            self.index > 0 && self.durable < self.index
        };
        vouches && u64::from(self.len) <= crate::MAX_ENTRY_BYTES
    }

    /// Checks the bytes behind the header, payload and padding.
    pub(crate) fn check_payload(&self, rest: &[u8]) -> Result<(), Flaw> {
        let len = self.len as usize;
        if rest.len() as u64 != self.body_bytes() {
            return Err(Flaw::CutShort);
        }
        let (payload, padding) = rest.split_at(len);
        let crc = if payload.is_empty() {
            0
        } else {
            crc32_iscsi(payload)
        };
        if crc != self.payload_crc {
            return Err(Flaw::Payload);
        }
        if padding.iter().any(|b| *b != 0) {
            return Err(Flaw::Padding);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: u64 = 7;

    fn decode(bytes: &[u8]) -> Option<Header> {
        Format::Two(FIRST).decode(bytes).map(|(header, _)| header)
    }

    fn any_header() -> impl Strategy<Value = Header> {
        let payload = prop::collection::vec(any::<u8>(), 0..100);
        let numbers = (
            any::<u32>(),
            1u64..,
            any::<u64>(),
            any::<u64>(),
            any::<u64>(),
        );
        (payload, numbers, any::<u8>(), any::<bool>()).prop_map(|(payload, n, kind, mark)| {
            let payload = if mark { Vec::new() } else { payload };
            let len = payload.len() as u32;
            Header {
                len,
                payload_crc: payload_crc(&[Bytes::from(payload)]),
                shard: n.0,
                index: n.1,
                durable: n.2 % n.1,
                timestamp_us: n.3,
                term: n.4,
                shard_index: n.4 ^ n.0 as u64,
                kind,
                mark,
                previous: n.0,
            }
        })
    }

    proptest! {
        #[test]
        fn headers_come_back_as_they_were(header in any_header()) {
            let (bytes, crc) = header.encode(FIRST);
            prop_assert_eq!(Format::Two(FIRST).decode(&bytes), Some((header, crc)));
            prop_assert_eq!(Format::Two(FIRST).frame_bytes(&header) % ALIGNMENT, 0);
            prop_assert_eq!(Format::Two(8).decode(&bytes), None);
            prop_assert_eq!(Format::One.decode(&bytes), None);
        }

        #[test]
        fn random_bytes_are_no_header(bytes: [u8; HEADER_BYTES], rest: Vec<u8>) {
            if let Some(header) = decode(&bytes) {
                prop_assert_eq!(header.encode(FIRST).0, bytes);
                let _ = header.check_payload(&rest);
            }
            if let Some((header, _)) = Format::One.decode(&rest) {
                let _ = header.check_payload(&rest);
            }
        }

        #[test]
        fn a_changed_header_is_no_header(header in any_header(), at in 0..HEADER_BYTES, bit in 0..8u8) {
            let (mut bytes, _) = header.encode(FIRST);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode(&bytes), None);
        }

        #[test]
        fn a_changed_payload_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..200),
                                        at: prop::sample::Index, bit in 0..8u8, split: prop::sample::Index) {
            let whole = Bytes::from(payload.clone());
            let cut = split.index(payload.len());
            let crc = payload_crc(&[whole.slice(..cut), whole.slice(cut..)]);
            prop_assert_eq!(crc, payload_crc(&[whole]));
            let header = Header {
                len: payload.len() as u32, payload_crc: crc, index: 1, ..Header::default()
            };
            let mut rest = payload;
            rest.resize(rest.len() + padding_after(header.len), 0);
            prop_assert_eq!(header.check_payload(&rest), Ok(()));
            let at = at.index(rest.len());
            rest[at] ^= 1 << bit;
            prop_assert!(header.check_payload(&rest).is_err());
            prop_assert_eq!(header.check_payload(&rest[1..]), Err(Flaw::CutShort));
        }
    }
}
