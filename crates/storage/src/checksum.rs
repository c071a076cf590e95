//! CRC-32C (Castagnoli; RFC 3720, B.4), the checksum of everything that storage writes.

use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// The checksum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32Iscsi, bytes) as u32
}

/// The checksum of bytes that come in parts.
#[derive(Debug)]
pub(crate) struct Crc32c(crc_fast::Digest);

impl Crc32c {
    pub fn new() -> Self {
        Crc32c(crc_fast::Digest::new(Crc32Iscsi))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> u32 {
        self.0.finalize() as u32
    }
}

/// The checksum of two neighbouring pieces from the checksum of each; `len` is that of the second.
pub(crate) fn combine(first: u32, second: u32, len: u64) -> u32 {
    crc_fast::checksum_combine(Crc32Iscsi, u64::from(first), u64::from(second), len) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn parts_make_the_whole() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 17, 500, 999, 1000] {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(
                combine(crc32c(a), crc32c(b), b.len() as u64),
                crc32c(&bytes)
            );
            let mut digest = Crc32c::new();
            digest.update(a);
            digest.update(b);
            assert_eq!(digest.finish(), crc32c(&bytes));
        }
    }
}
