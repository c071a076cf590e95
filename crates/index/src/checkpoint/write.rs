use std::io::Write;

use crc_fast::{CrcAlgorithm, Digest};

use super::{MAGIC, VERSION};
use crate::error::Result;
use crate::hnsw::Hnsw;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// Rows in the checkpoint.
    pub rows: u64,
    /// Bytes written.
    pub bytes: u64,
    /// CRC-32C of all bytes but the last four, which hold it.
    pub checksum: u32,
}

/// Bytes gathered before they are handed to the writer.
const BUFFER: usize = 64 << 10;

/// Gathers, counts and sums up bytes on their way out.
pub(crate) struct Sink<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    digest: Digest,
    bytes: u64,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Sink {
            out,
            buffer: Vec::with_capacity(2 * BUFFER),
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            bytes: 0,
        }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.digest.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
    /// Writes the checksum behind all, and tells what was written.
    pub(crate) fn finish(mut self, rows: u64) -> Result<Saved> {
        self.flush()?;
        let checksum = self.digest.finalize() as u32;
        self.out.write_all(&checksum.to_le_bytes())?;
        Ok(Saved {
            rows,
            bytes: self.bytes + size_of::<u32>() as u64,
            checksum,
        })
    }
}

impl Hnsw {
    /// Writes all rows and links to `out`; the format is described in the module. Vectors are not written.
    ///
    /// No insert may run meanwhile. Searches may.
    ///
    /// # Errors
    /// If an insert runs, or the writer fails.
    pub fn save(&self, out: &mut dyn Write) -> Result<Saved> {
        let parts = self.parts()?;
        let (space, params) = (self.space(), self.params());
        let mut sink = Sink::new(out);
        sink.put(&MAGIC)?;
        sink.put(&VERSION.to_le_bytes())?;
        sink.put(&[space.scalar as u8, space.metric as u8])?;
        sink.put(&(params.m as u16).to_le_bytes())?;
        sink.put(&(space.dim as u32).to_le_bytes())?;
        sink.put(&params.seed.to_le_bytes())?;
        sink.put(&parts.nodes().to_le_bytes())?;
        sink.put(&parts.entry().to_le_bytes())?;
        for node in 0..parts.nodes() {
            sink.put(&parts.row(node).to_le_bytes())?;
        }
        for node in 0..parts.nodes() {
            sink.put(&parts.twin(node).to_le_bytes())?;
        }
        for node in 0..parts.nodes() {
            sink.put(&[parts.level(node) as u8])?;
        }
        let mut links = Vec::with_capacity(4 * params.m * size_of::<u32>());
        for node in 0..parts.nodes() {
            for list in parts.lists(node) {
                links.clear();
                links.extend(parts.list(node, list).flat_map(u32::to_le_bytes));
                sink.put(&((links.len() / size_of::<u32>()) as u16).to_le_bytes())?;
                sink.put(&links)?;
            }
        }
        sink.finish(u64::from(parts.nodes()))
    }
}
