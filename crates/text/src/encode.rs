//! The bytes of a piece, for a file.
//!
//! ```text
//! 0        8         12        16            24
//! magic    version   CRC-32C   head length   head (JSON)   rows   lengths   files
//! 8 bytes  u32       u32       u64
//! ```
//! Numbers are little-endian. The checksum is of all that follows it. The head says how long the other parts are: `rows`
//! are the offsets of the documents' rows from the first, `lengths` the lengths of the texts of each column, both u32 a
//! document; `files` are those of the tantivy index.

use serde::{Deserialize, Serialize};
use tantivy::directory::OwnedBytes;

use crate::error::{Error, Result};
use crate::piece::{ColumnLengths, Piece};

/// Version of the files that are written.
pub const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"LBTEXT\0\0";
const HEAD: usize = 24;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    first_row: u64,
    documents: u64,
    columns: Vec<u16>,
    /// Names and lengths.
    files: Vec<(String, u64)>,
}

fn checksum(bytes: &[u8]) -> u32 {
    // A CRC of 32 bits.
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

impl Piece {
    /// The bytes that [`Piece::decode`] reads.
    ///
    /// # Errors
    /// If a name of a file is no text, which does not happen.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let files = self.files.all();
        let entry = |(path, bytes): &(std::path::PathBuf, OwnedBytes)| {
            let name = path.to_str().ok_or(Error::Damaged("a name"))?;
            Ok((name.to_owned(), bytes.len() as u64))
        };
        let head = Head {
            first_row: self.first_row,
            documents: self.offsets.len() as u64,
            columns: self.columns.iter().map(|column| column.number).collect(),
            files: files.iter().map(entry).collect::<Result<_>>()?,
        };
        let head = serde_json::to_vec(&head).map_err(|_| Error::Damaged("head"))?;
        let mut out = Vec::with_capacity(HEAD + head.len() + self.bytes());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(head.len() as u64).to_le_bytes());
        out.extend_from_slice(&head);
        let lengths = self.columns.iter().flat_map(|column| &column.lengths);
        for number in self.offsets.iter().chain(lengths) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for (_, bytes) in &files {
            out.extend_from_slice(bytes);
        }
        let sum = checksum(&out[16..]);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        Ok(out)
    }

    /// Reads what [`Piece::encode`] made.
    ///
    /// # Errors
    /// If it is damaged, or of a newer version. Never panics.
    pub fn decode(bytes: Vec<u8>) -> Result<Piece> {
        let bytes = OwnedBytes::new(bytes);
        if bytes.get(..8) != Some(MAGIC) {
            return Err(Error::Damaged("magic"));
        }
        let number = |at: usize| {
            let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
            four.map(u32::from_le_bytes).ok_or(Error::Damaged("head"))
        };
        let found = number(8)?;
        if found > VERSION {
            let supported = VERSION;
            return Err(Error::NewerVersion { found, supported });
        }
        let sum = number(12)?;
        if bytes.len() < HEAD || checksum(&bytes[16..]) != sum {
            return Err(Error::Damaged("checksum"));
        }
        let head_len = u64::from(number(16)?) | u64::from(number(20)?) << 32;
        let mut reader = Reader {
            bytes: &bytes,
            at: HEAD,
        };
        let head: Head = serde_json::from_slice(reader.take(head_len)?.as_slice())
            .map_err(|_| Error::Damaged("head"))?;
        let offsets = reader.numbers(head.documents)?;
        if offsets.is_empty() || !offsets.is_sorted_by(|a, b| a < b) {
            return Err(Error::Damaged("rows"));
        }
        let mut columns = Vec::new();
        for number in head.columns {
            let lengths = reader.numbers(head.documents)?;
            columns.push(ColumnLengths { number, lengths });
        }
        let mut files = Vec::new();
        for (name, len) in head.files {
            files.push((name, reader.take(len)?));
        }
        if reader.at != bytes.len() {
            return Err(Error::Damaged("length"));
        }
        Piece::from_files(files, (head.first_row, offsets), columns)
    }
}

struct Reader<'a> {
    bytes: &'a OwnedBytes,
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, len: u64) -> Result<OwnedBytes> {
        let end = usize::try_from(len)
            .ok()
            .and_then(|len| len.checked_add(self.at));
        let end = end.filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(Error::Damaged("length"))?;
        let taken = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(taken)
    }

    fn numbers(&mut self, count: u64) -> Result<Vec<u32>> {
        let bytes = self.take(count.checked_mul(4).ok_or(Error::Damaged("length"))?)?;
        let (fours, _) = bytes.as_chunks::<4>();
        Ok(fours.iter().map(|four| u32::from_le_bytes(*four)).collect())
    }
}
