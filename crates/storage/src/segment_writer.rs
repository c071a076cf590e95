//! [`SegmentWriter`]: batches into a segment file, as they are. The format is in [`crate::segment`].

use std::collections::HashMap;
use std::io::IoSlice;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_ipc::convert::{IpcSchemaEncoder, metadata_to_fb};
use arrow_ipc::{Block, FooterBuilder, MetadataVersion};
use arrow_schema::SchemaRef;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flatbuffers::FlatBufferBuilder;
use longbow_disk::{Disk, File};

use crate::batch::Batch;
use crate::checksum::{Crc32c, combine, crc32c};
use crate::error::{Error, Result};
use crate::message::ALIGNMENT;
use crate::row_runs::RowRuns;
use crate::schema::schema_to_message;
use crate::segment::{
    BLOCKS_KEY, CONTINUATION, MAGIC, ROWS_KEY, SegmentMeta, VERSION, VERSION_KEY,
};

/// Bytes that are checksummed and then written: few enough to stay in a core's cache in between.
const PIECE: usize = 512 << 10;
const ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];

/// Writes one segment file, batch by batch.
#[derive(Debug)]
pub struct SegmentWriter {
    path: PathBuf,
    file: Box<dyn File>,
    schema: SchemaRef,
    offset: u64,
    crc: u32,
    blocks: Vec<Block>,
    block_crcs: Vec<u8>,
    runs: RowRuns,
}

impl SegmentWriter {
    /// Creates the file, replacing one that is there.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn create(disk: &dyn Disk, path: &Path, schema: &SchemaRef) -> Result<Self> {
        let mut writer = SegmentWriter {
            path: path.into(),
            file: disk.create(path)?,
            schema: schema.clone(),
            offset: 0,
            crc: crc32c(&[]),
            blocks: Vec::new(),
            block_crcs: Vec::new(),
            runs: RowRuns::default(),
        };
        let message = schema_to_message(schema);
        let padding = message.len().next_multiple_of(8) - message.len();
        let prefix = message_prefix(message.len() + padding)?;
        writer.append(&[MAGIC, &[0, 0], &prefix, &message, &ZEROS[..padding]])?;
        Ok(writer)
    }

    /// Appends a batch whose rows have the numbers in `rows`, ranges in order. A batch of an older schema gets
    /// its missing columns as null.
    ///
    /// # Errors
    /// If `rows` are not as many as the batch has, or not after those before; if the disk refuses.
    pub fn write(
        &mut self,
        batch: &Batch,
        rows: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<()> {
        let batch = batch.with_schema(&self.schema)?;
        let before = self.runs.len();
        for range in rows {
            self.runs.push(range)?;
        }
        let added = self.runs.len() - before;
        if added != batch.rows() as u64 {
            return Err(Error::RowCount {
                numbers: added,
                rows: batch.rows() as u64,
            });
        }
        let (header, body) = (batch.header(), batch.body());
        let start = self.offset + 8 + header.len() as u64;
        let padding = (start.next_multiple_of(ALIGNMENT as u64) - start) as usize;
        let prefix = message_prefix(header.len() + padding)?;
        let offset = self.offset;
        let crc = self.append(&[&prefix, header, &ZEROS[..padding], body])?;
        let message = 8 + header.len() + padding;
        let block = Block::new(offset as i64, message as i32, body.len() as i64);
        self.blocks.push(block);
        self.block_crcs.extend_from_slice(&crc.to_le_bytes());
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.runs.len()
    }

    /// Writes the footer. With `sync` the contents are durable when this returns; the file's name is once the
    /// caller has synced the folder.
    ///
    /// # Errors
    /// If no rows were written, or if the disk refuses.
    pub fn finish(mut self, sync: bool) -> Result<SegmentMeta> {
        let (Some(first_row), Some(last_row)) = (self.runs.first(), self.runs.last()) else {
            return Err(Error::EmptySegment { path: self.path });
        };
        let footer = self.footer();
        let length = u32::try_from(footer.len()).map_err(|_| Error::TooLong {
            what: "footer",
            length: footer.len() as u64,
        })?;
        let end = [CONTINUATION, [0; 4]].concat();
        self.append(&[&end, &footer, &length.to_le_bytes(), MAGIC])?;
        if sync {
            self.file.sync_data()?;
        }
        let file = self.path.file_name().unwrap_or_default();
        Ok(SegmentMeta {
            file: file.to_string_lossy().into_owned(),
            rows: self.runs.len(),
            bytes: self.offset,
            crc32c: self.crc,
            first_row,
            last_row,
        })
    }

    fn footer(&self) -> Vec<u8> {
        let metadata = HashMap::from([
            (VERSION_KEY.to_owned(), VERSION.to_string()),
            (ROWS_KEY.to_owned(), STANDARD.encode(self.runs.encode())),
            (BLOCKS_KEY.to_owned(), STANDARD.encode(&self.block_crcs)),
        ]);
        let mut builder = FlatBufferBuilder::new();
        let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &self.schema);
        let dictionaries = builder.create_vector::<Block>(&[]);
        let blocks = builder.create_vector(&self.blocks);
        let metadata = metadata_to_fb(&mut builder, &metadata);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(blocks);
        footer.add_custom_metadata(metadata);
        let root = footer.finish();
        builder.finish(root, None);
        builder.finished_data().to_vec()
    }

    /// Appends the parts; the checksum of them together.
    ///
    /// The checksum goes ahead of the write, piece by piece: bytes that are mapped from a file and were not read yet have
    /// no pages in this process, and a write from them stops at each; and the write finds a piece in the cache.
    fn append(&mut self, parts: &[&[u8]]) -> Result<u32> {
        let mut crc = Crc32c::new();
        let mut length = 0;
        let mut ready: Vec<IoSlice<'_>> = Vec::new();
        for piece in parts.iter().flat_map(|part| part.chunks(PIECE)) {
            crc.update(piece);
            length += piece.len() as u64;
            ready.push(IoSlice::new(piece));
            if piece.len() == PIECE {
                self.file.append_vectored(&ready)?;
                ready.clear();
            }
        }
        if !ready.is_empty() {
            self.file.append_vectored(&ready)?;
        }
        let crc = crc.finish();
        self.crc = combine(self.crc, crc, length);
        self.offset += length;
        Ok(crc)
    }
}

/// Writes a whole segment: `runs` are the row numbers of `batches` together.
///
/// # Errors
/// As [`SegmentWriter`].
pub fn write_segment(
    disk: &dyn Disk,
    path: &Path,
    schema: &SchemaRef,
    batches: &[Batch],
    runs: &RowRuns,
    sync: bool,
) -> Result<SegmentMeta> {
    let mut writer = SegmentWriter::create(disk, path, schema)?;
    let mut at = 0;
    for batch in batches {
        let end = at + batch.rows() as u64;
        writer.write(batch, runs.ranges(at..end))?;
        at = end;
    }
    if at != runs.len() {
        return Err(Error::RowCount {
            numbers: runs.len(),
            rows: at,
        });
    }
    writer.finish(sync)
}

fn message_prefix(length: usize) -> Result<[u8; 8]> {
    // The format has the length as an i32.
    let length = i32::try_from(length).map_err(|_| Error::TooLong {
        what: "message header",
        length: length as u64,
    })?;
    let mut prefix = [0; 8];
    prefix[..4].copy_from_slice(&CONTINUATION);
    prefix[4..].copy_from_slice(&length.to_le_bytes());
    Ok(prefix)
}
