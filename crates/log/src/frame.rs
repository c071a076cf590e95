//! The bytes around one entry.
//!
//! All numbers are little-endian; every frame begins at a multiple of 8.
//!
//! ```text
//!   0        4        8           12       16       24        32             40     48    49     50       56
//!   +--------+--------+-----------+--------+--------+---------+--------------+------+-----+------+--------+
//!   | header | length | payload   | shard  | index  | durable | timestamp_us | term | kind| flags| 6 zero |
//!   | crc u32| u32    | crc u32   | u32    | u64    | u64     | u64          | u64  | u8  | u8   | bytes  |
//!   +--------+--------+-----------+--------+--------+---------+--------------+------+-----+------+--------+
//!   | payload: `length` bytes                                       | zeros up to a multiple of 8         |
//!   +---------------------------------------------------------------+-------------------------------------+
//! ```
//!
//! Both checksums are CRC-32C; the header's covers bytes 4 to 56, and through the payload's checksum the payload too. They
//! are apart so that the costly one is computed by the caller of `append` before the index is known, and so that a header
//! can be believed even if its payload is torn. `durable` is the highest index known to be synced when the frame was
//! written: it is how recovery tells a torn tail from damage. Flag 1 makes a *mark*: a frame without payload that repeats
//! the index before it and only carries `durable`.

use crate::Flaw;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 56;

/// Frames begin at multiples of this many bytes.
pub(crate) const ALIGNMENT: u64 = 8;

/// What pads a frame.
pub(crate) const PADDING: [u8; 8] = [0; 8];

const FLAG_MARK: u8 = 1;

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
    pub(crate) kind: u8,
    pub(crate) mark: bool,
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

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

impl Header {
    /// The length of the whole frame in bytes.
    pub(crate) fn frame_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.len) + padding_after(self.len) as u64
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.shard.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.index.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.durable.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.timestamp_us.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.term.to_le_bytes());
        bytes[48] = self.kind;
        bytes[49] = if self.mark { FLAG_MARK } else { 0 };
        let crc = crc32_iscsi(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header in `bytes`, or None if they are not the header of a frame that this program would write.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        // The cheap tests come first: the search for frames behind a broken one tries every multiple of 8.
        if bytes[50..] != [0; 6] || bytes[49] > FLAG_MARK {
            return None;
        }
        let header = Header {
            len: u32_at(bytes, 4),
            payload_crc: u32_at(bytes, 8),
            shard: u32_at(bytes, 12),
            index: u64_at(bytes, 16),
            durable: u64_at(bytes, 24),
            timestamp_us: u64_at(bytes, 32),
            term: u64_at(bytes, 40),
            kind: bytes[48],
            mark: bytes[49] == FLAG_MARK,
        };
        let vouches = if header.mark {
            header.len == 0 && header.durable <= header.index
        } else {
            header.index > 0 && header.durable < header.index
        };
        let sound = vouches
            && u64::from(header.len) <= crate::MAX_ENTRY_BYTES
            && u32_at(bytes, 0) == crc32_iscsi(&bytes[4..]);
        sound.then_some(header)
    }

    /// Checks the bytes behind the header, payload and padding.
    pub(crate) fn check_payload(&self, rest: &[u8]) -> Result<(), Flaw> {
        let len = self.len as usize;
        if rest.len() as u64 != self.frame_bytes() - HEADER_BYTES as u64 {
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
                kind,
                mark,
            }
        })
    }

    proptest! {
        #[test]
        fn headers_come_back_as_they_were(header in any_header()) {
            prop_assert_eq!(Header::decode(&header.encode()), Some(header));
            prop_assert_eq!(header.frame_bytes() % ALIGNMENT, 0);
        }

        #[test]
        fn random_bytes_are_no_header(bytes: [u8; HEADER_BYTES], rest: Vec<u8>) {
            if let Some(header) = Header::decode(&bytes) {
                prop_assert_eq!(header.encode(), bytes);
                let _ = header.check_payload(&rest);
            }
        }

        #[test]
        fn a_changed_header_is_no_header(header in any_header(), at in 0..HEADER_BYTES, bit in 0..8u8) {
            let mut bytes = header.encode();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Header::decode(&bytes), None);
        }

        #[test]
        fn a_changed_payload_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..200),
                                        at: prop::sample::Index, bit in 0..8u8, split: prop::sample::Index) {
            let whole = Bytes::from(payload.clone());
            let cut = split.index(payload.len());
            let crc = payload_crc(&[whole.slice(..cut), whole.slice(cut..)]);
            prop_assert_eq!(crc, payload_crc(&[whole]));
            let header = Header {
                len: payload.len() as u32, payload_crc: crc, shard: 0, index: 1, durable: 0,
                timestamp_us: 0, term: 0, kind: 0, mark: false,
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
