//! [`Segment`]: an immutable file of rows, mapped.
//!
//! A segment is a standard Arrow IPC file, so any Arrow reader opens it; what storage adds is in the footer.
//!
//! ```text
//! 0        8
//! ARROW1   the schema as an encapsulated message
//! 00 00
//! for each batch, in order of rows; the block of the footer spans both lines:
//!   FF FF FF FF   length u32   header as received    zeros, so that the body starts at a multiple of 64
//!   body as received, a multiple of 8 bytes
//! FF FF FF FF   00 00 00 00           end of stream
//! footer        flatbuffer: schema, blocks, and in custom_metadata
//!   longbow.segment   version of what is below, "1"
//!   longbow.rows      base64 of the row numbers, see [`RowRuns::encode`]
//!   longbow.blocks    base64 of a CRC-32C for each block, u32 little-endian
//! length of the footer u32   ARROW1
//! ```
//! The checksum of the whole file is in [`SegmentMeta`], so in the manifest. Those of the blocks say where damage is.

use std::ops::Range;
use std::path::Path;

use arrow_ipc::{Footer, root_as_footer};
use arrow_schema::SchemaRef;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use longbow_disk::Disk;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::checksum::{combine, crc32c};
use crate::error::{Error, Result};
use crate::row_ranks::RowRanks;
use crate::row_runs::RowRuns;
use crate::schema::schema_from_flatbuffer;

/// First and last bytes of an Arrow file.
pub(crate) const MAGIC: &[u8; 6] = b"ARROW1";
/// What begins each encapsulated message.
pub(crate) const CONTINUATION: [u8; 4] = [0xFF; 4];
/// Version of the footer's own keys.
pub(crate) const VERSION: u32 = 1;
pub(crate) const VERSION_KEY: &str = "longbow.segment";
pub(crate) const ROWS_KEY: &str = "longbow.rows";
pub(crate) const BLOCKS_KEY: &str = "longbow.blocks";
/// The footer's length and the magic at the end.
const TAIL: usize = 10;

/// What the manifest knows of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentMeta {
    /// Name of the file in the dataset's folder.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// CRC-32C of the file.
    pub crc32c: u32,
    /// Smallest row number in it.
    pub first_row: u64,
    /// Largest row number in it.
    pub last_row: u64,
}

/// A segment's rows, pointing into the mapped file.
#[derive(Debug)]
pub struct Segment {
    meta: SegmentMeta,
    schema: SchemaRef,
    batches: Vec<Batch>,
    /// Rows before each batch, and in the end all of them.
    starts: Vec<u64>,
    runs: RowRuns,
    ranks: Option<RowRanks>,
}

impl Segment {
    /// Maps a segment file and checks all of it: length, checksum, structure, values.
    ///
    /// # Errors
    /// If the file is missing, not what `meta` says, damaged (by offset), or written by a newer version.
    pub fn open(disk: &dyn Disk, path: &Path, meta: &SegmentMeta) -> Result<Self> {
        let map = disk.map(path)?;
        if map.len() as u64 != meta.bytes {
            return Err(Error::FileLength {
                path: path.into(),
                expected: meta.bytes,
                got: map.len() as u64,
            });
        }
        let file = SegmentFile { path, map: &map };
        let got = crc32c(&map);
        if got != meta.crc32c {
            return Err(file.find_damage(meta.crc32c, got));
        }
        file.read(meta)
    }

    /// What the manifest knows of it.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The schema of all its batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Its batches, in order of rows.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Its row numbers.
    pub fn runs(&self) -> &RowRuns {
        &self.runs
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.meta.rows
    }

    /// Smallest row number.
    pub fn first_row(&self) -> u64 {
        self.meta.first_row
    }

    /// Largest row number.
    pub fn last_row(&self) -> u64 {
        self.meta.last_row
    }

    /// Batch and position in it of a row number.
    pub fn locate(&self, row: u64) -> Option<(usize, usize)> {
        let before = match &self.ranks {
            Some(ranks) => ranks.rank(row)?,
            None => self.runs.rank(row)?,
        };
        self.place(before)
    }

    /// Batch and position in it of the row that comes after `before` others of the segment.
    pub fn place(&self, before: u64) -> Option<(usize, usize)> {
        // Batches mostly have as many rows as the first.
        let even = usize::try_from(before / self.starts.get(1)?.max(&1)).ok()?;
        let batch = match self.starts.get(even..even.saturating_add(2)) {
            Some([start, end]) if (*start..*end).contains(&before) => even,
            _ => self.starts.partition_point(|start| *start <= before) - 1,
        };
        let position = (before - self.starts[batch]) as usize;
        (batch < self.batches.len()).then_some((batch, position))
    }

    /// The row number at position `i` of a batch.
    pub fn row_at(&self, batch: usize, i: usize) -> Option<u64> {
        let (start, end) = (*self.starts.get(batch)?, *self.starts.get(batch + 1)?);
        let position = start + i as u64;
        if position >= end {
            return None;
        }
        self.runs.select(position)
    }

    /// The row numbers of a batch as runs: first row number, its position in the batch, number of rows. None for
    /// a batch that is not there.
    pub fn row_ranges(&self, batch: usize) -> impl Iterator<Item = (u64, usize, usize)> + '_ {
        let positions = match (self.starts.get(batch), self.starts.get(batch + 1)) {
            (Some(start), Some(end)) => *start..*end,
            _ => 0..0,
        };
        let mut at = 0;
        self.runs.ranges(positions).map(move |rows| {
            let start = at;
            at += (rows.end - rows.start) as usize;
            (rows.start, start, at - start)
        })
    }
}

/// A mapped file on its way to be a [`Segment`].
struct SegmentFile<'a> {
    path: &'a Path,
    map: &'a Bytes,
}

impl SegmentFile<'_> {
    fn read(&self, meta: &SegmentMeta) -> Result<Segment> {
        let footer = self.footer()?;
        let version = self.number(&footer, VERSION_KEY)?;
        if version > VERSION {
            return Err(Error::NewerVersion {
                path: self.path.into(),
                found: version,
                supported: VERSION,
            });
        }
        let schema = footer
            .schema()
            .ok_or_else(|| self.damaged_footer("schema"))?;
        let schema = schema_from_flatbuffer(schema).map_err(|_| self.damaged_footer("schema"))?;
        let runs = RowRuns::decode(&self.base64(&footer, ROWS_KEY)?);
        let runs = runs.map_err(|_| self.damaged_footer(ROWS_KEY))?;
        let mut batches = Vec::new();
        let mut starts = vec![0];
        let mut rows = 0;
        for block in self.blocks(&footer)? {
            let batch = self.batch(&schema, block)?;
            rows += batch.rows() as u64;
            starts.push(rows);
            batches.push(batch);
        }
        let found = (rows, runs.len(), runs.first(), runs.last());
        let (first, last) = (Some(meta.first_row), Some(meta.last_row));
        if found != (meta.rows, meta.rows, first, last) {
            return Err(self.damaged_footer("list of rows"));
        }
        Ok(Segment {
            meta: meta.clone(),
            schema,
            batches,
            starts,
            ranks: RowRanks::of(&runs),
            runs,
        })
    }

    fn batch(&self, schema: &SchemaRef, block: Block) -> Result<Batch> {
        let damaged = || self.damaged(block.message.start, "message");
        let prefix = self.map[block.message.clone()].first_chunk::<8>();
        let prefix = prefix.ok_or_else(damaged)?;
        let (start, length) = prefix.split_at(4);
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        let offset = block.message.start as u64;
        let header = block.message.start + 8..block.body.start;
        if start != CONTINUATION || length as usize != header.len() {
            return Err(damaged());
        }
        let batch = Batch::from_message(schema, self.map.slice(header), self.map.slice(block.body));
        batch.map_err(|source| Error::SegmentBatch {
            path: self.path.into(),
            offset,
            source: Box::new(source),
        })
    }

    fn footer(&self) -> Result<Footer<'_>> {
        let damaged = |what| self.damaged(self.map.len().saturating_sub(TAIL), what);
        let end = self.map.len().checked_sub(TAIL);
        let end = end.ok_or_else(|| damaged("end"))?;
        let (length, magic) = self.map[end..].split_at(4);
        if magic != MAGIC {
            return Err(damaged("magic"));
        }
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        let start = end.checked_sub(length as usize);
        let start = start.ok_or_else(|| damaged("length of the footer"))?;
        root_as_footer(&self.map[start..end]).map_err(|_| self.damaged(start, "footer"))
    }

    fn blocks(&self, footer: &Footer<'_>) -> Result<Vec<Block>> {
        let blocks = footer.recordBatches().into_iter().flatten();
        blocks
            .map(|block| {
                let start = usize::try_from(block.offset()).ok()?;
                let middle = start.checked_add(usize::try_from(block.metaDataLength()).ok()?)?;
                let end = middle.checked_add(usize::try_from(block.bodyLength()).ok()?)?;
                (middle - start >= 8 && end <= self.map.len()).then_some(Block {
                    message: start..middle,
                    body: middle..end,
                })
            })
            .collect::<Option<_>>()
            .ok_or_else(|| self.damaged_footer("list of batches"))
    }

    fn metadata<'f>(&self, footer: &Footer<'f>, key: &'static str) -> Result<&'f str> {
        let found = footer
            .custom_metadata()
            .into_iter()
            .flatten()
            .find(|pair| pair.key() == Some(key));
        let value = found.and_then(|pair| pair.value());
        value.ok_or_else(|| self.damaged_footer(key))
    }

    fn number(&self, footer: &Footer<'_>, key: &'static str) -> Result<u32> {
        let text = self.metadata(footer, key)?;
        text.parse().map_err(|_| self.damaged_footer(key))
    }

    fn base64(&self, footer: &Footer<'_>, key: &'static str) -> Result<Vec<u8>> {
        let text = self.metadata(footer, key)?;
        let bytes = STANDARD.decode(text);
        bytes.map_err(|_| self.damaged_footer(key))
    }

    /// The file's checksum is wrong: says which block it is if all the rest is intact, else that it is somewhere
    /// in the file.
    fn find_damage(&self, expected: u32, got: u32) -> Error {
        let whole = Error::Checksum {
            path: self.path.into(),
            offset: 0,
            length: self.map.len() as u64,
            expected,
            got,
        };
        self.damaged_block(expected).unwrap_or(whole)
    }

    fn damaged_block(&self, whole: u32) -> Option<Error> {
        let footer = self.footer().ok()?;
        let blocks = self.blocks(&footer).ok()?;
        let sums = self.base64(&footer, BLOCKS_KEY).ok()?;
        let (sums, _) = sums.as_chunks::<4>();
        let mut error = None;
        let mut end = 0;
        let mut intact = crc32c(&[]);
        for (block, sum) in blocks.iter().zip(sums) {
            let bytes = block.message.start..block.body.end;
            let expected = u32::from_le_bytes(*sum);
            let between = self.map.get(end..bytes.start)?;
            intact = combine(intact, crc32c(between), between.len() as u64);
            intact = combine(intact, expected, bytes.len() as u64);
            end = bytes.end;
            let got = crc32c(&self.map[bytes.clone()]);
            if got != expected && error.is_none() {
                error = Some(Error::Checksum {
                    path: self.path.into(),
                    offset: bytes.start as u64,
                    length: bytes.len() as u64,
                    expected,
                    got,
                });
            }
        }
        // The sums are to be believed if with them, and with the other bytes as they are, the file's sum is right.
        let rest = &self.map[end..];
        let intact = combine(intact, crc32c(rest), rest.len() as u64);
        error.filter(|_| intact == whole)
    }

    fn damaged_footer(&self, what: &'static str) -> Error {
        self.damaged(self.map.len().saturating_sub(TAIL), what)
    }

    fn damaged(&self, offset: usize, what: &'static str) -> Error {
        Error::Damaged {
            path: self.path.into(),
            offset: offset as u64,
            what,
        }
    }
}

/// Places in the file of a batch's encapsulated header and its body.
struct Block {
    message: Range<usize>,
    body: Range<usize>,
}
