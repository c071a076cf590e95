//! What an index holds in memory, as bytes: the blocks that it names are in their file.
//!
//! All numbers are little-endian; there is no padding.
//!
//! ```text
//! offset  bytes  what
//!      0  8      magic: "LBWSPFR\0"
//!      8  4      version: 1
//!     12  1      element type: 0 float32, 1 float16, 2 int8, 3 uint8
//!     13  1      metric: 0 euclidean, 1 cosine
//!     14  2      zero
//!     16  4      dimension
//!     20  8      seed of the rotation
//!     28  8      rows in the index
//!     36  4      number of postings
//!     40  4 dim  centre, f32; zeros if there are no rows and none was chosen
//!      …         for each posting:
//!                  4 d  centroid, f32, rotated; d is the dimension, rounded up to 16
//!                  4    number of blocks
//!                  4    each block's slot in the file, whose slots have all one length: see `block`
//!     end-4  4   CRC-32C (Castagnoli) of all bytes before
//! ```

use std::io::Write;

use super::SpFresh;
use crate::checkpoint::{Saved, Sink};
use crate::encode::Encoder;
use crate::error::Result;

pub(super) const MAGIC: [u8; 8] = *b"LBWSPFR\0";
pub(super) const VERSION: u32 = 1;

impl SpFresh {
    /// Makes the blocks durable, and writes the rest to `out`; the format is described in the module. What it names stays
    /// in the file until [`SpFresh::hold`] was called for a later one. Inserts wait meanwhile.
    ///
    /// # Errors
    /// If the writer or the file of blocks fails.
    pub fn save(&self, out: &mut dyn Write) -> Result<Saved> {
        let _writer = self.writer.lock();
        let directory = self.directory.load_full();
        self.store.file.sync()?;
        let rows = self.len() as u64;
        let mut sink = Sink::new(out);
        sink.put(&MAGIC)?;
        sink.put(&VERSION.to_le_bytes())?;
        sink.put(&[self.space.scalar as u8, self.space.metric as u8, 0, 0])?;
        sink.put(&(self.space.dim as u32).to_le_bytes())?;
        sink.put(&self.params.seed.to_le_bytes())?;
        sink.put(&rows.to_le_bytes())?;
        sink.put(&(directory.len() as u32).to_le_bytes())?;
        // An empty index may have no origin yet; zeros stand for none.
        let centre = self.encoder.get().map(Encoder::centre);
        for x in centre.unwrap_or(&vec![0.0; self.space.dim]) {
            sink.put(&x.to_le_bytes())?;
        }
        for posting in directory.iter() {
            sink.put(posting.centroid.bytes())?;
            sink.put(&(posting.blocks.len() as u32).to_le_bytes())?;
            for block in &posting.blocks {
                sink.put(&block.slot().to_le_bytes())?;
            }
        }
        let blocks = directory.iter().flat_map(|posting| &posting.blocks);
        self.store.name(blocks.map(|block| block.slot()));
        sink.finish(rows)
    }
}
