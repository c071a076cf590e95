//! The bytes of a piece: read again, mangled, and of other versions.

use longbow_text::{Builder, Column, Error, Piece, Tokenizer, VERSION};
use proptest::prelude::*;

fn piece() -> Piece {
    let columns = [0, 9].map(|number| Column {
        number,
        tokenizer: Tokenizer::Words,
    });
    let mut builder = Builder::new(&columns).expect("a builder");
    for row in 0..300 {
        let text = format!("row {row} of many words {}", row % 7);
        builder
            .add(5 + row * 2, &[Some(&text), None])
            .expect("it is added");
    }
    builder.finish().expect("it is built").expect("it has rows")
}

#[test]
fn what_was_written_is_read() {
    let (piece, bytes) = (piece(), piece().encode().expect("bytes"));
    let read = Piece::decode(bytes.clone()).expect("a piece");
    assert_eq!((read.rows(), read.len()), (piece.rows(), 300));
    assert_eq!(read.encode().expect("bytes"), bytes);
}

#[test]
fn a_newer_version_is_refused_as_such() {
    let mut bytes = piece().encode().expect("bytes");
    bytes[8] += 1;
    let refused = Piece::decode(bytes);
    assert!(matches!(refused, Err(Error::NewerVersion { found, .. }) if found == VERSION + 1));
}

#[test]
fn a_file_of_the_first_version_opens() {
    let golden = include_bytes!("../golden/piece-1.text");
    let read = Piece::decode(golden.to_vec()).expect("it opens");
    assert_eq!((read.rows(), read.len()), ((5, 603), 300));
}

proptest! {
    #[test]
    fn mangled_bytes_are_refused(at in 0_usize..100_000, bit in 0_u8..8, cut in any::<bool>()) {
        static BYTES: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| piece().encode().expect("bytes"));
        let mut bytes = BYTES.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if cut {
            bytes = BYTES[..at].to_vec();
        }
        prop_assert!(Piece::decode(bytes).is_err());
    }

    /// The checksum is right: what follows is still not believed.
    #[test]
    fn wrong_heads_are_refused(head in "[ -~]{0,40}|\\{\"first_row\":0,\"documents\":[0-9]{1,20},\"columns\":\\[[0-9]{0,6}\\],\"files\":\\[\\]\\}", rest in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut bytes = b"LBTEXT\0\0\x01\0\0\0\0\0\0\0".to_vec();
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend(rest);
        let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes[16..]) as u32;
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        prop_assert!(Piece::decode(bytes).is_err());
    }
}
