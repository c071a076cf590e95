//! What an index holds in memory, as bytes: the blocks that it names are in their file.
//!
//! All numbers are little-endian; there is no padding.
//!
//! ```text
//! offset  bytes  what
//!      0  36     the head of an index of codes, with the magic "LBWSPFR\0" and version 3: see `Origin::put_head`
//!     36         centre, f32: see `Origin::put_centre`; zeros if there are no rows and none was chosen
//!      …  4      number of shards, 1 to 64
//!      …         for each shard:
//!                  4      number of postings
//!                         for each posting:
//!                  d        eight-bit code of the centroid, rotated; d is the dimension, for the dot product one more,
//!                           rounded up to 16
//!                  4        scale of the code, f32
//!                  4        number of blocks
//!                  4        each block's slot in the file: see `places` and `block`
//!     end-4  4   CRC-32C (Castagnoli) of all bytes before
//! ```
//!
//! Versions 1 and 2 are of files whose blocks had one part. They are refused, and whoever has the rows builds the index anew.

use std::io::Write;

use super::SpFresh;
use crate::checkpoint::{Saved, Sink};
use crate::error::Result;

pub(super) const MAGIC: [u8; 8] = *b"LBWSPFR\0";
pub(super) const VERSION: u32 = 3;

impl SpFresh {
    /// Makes the blocks durable, and writes the rest to `out`; the format is described in the module. What it names stays
    /// in the file until [`SpFresh::hold`] was called for a later one. Inserts wait meanwhile.
    ///
    /// # Errors
    /// If the writer or the file of blocks fails.
    pub fn save(&self, out: &mut dyn Write) -> Result<Saved> {
        let shards = self.shards.iter();
        let _writers: Vec<_> = shards.map(|shard| shard.writer.lock()).collect();
        let directories = self.directories();
        self.store.file.sync()?;
        let rows = self.len() as u64;
        let mut sink = Sink::new(out);
        self.origin.put_head((MAGIC, VERSION), rows, &mut sink)?;
        self.origin.put_centre(&mut sink)?;
        sink.put(&(directories.len() as u32).to_le_bytes())?;
        for directory in &directories {
            sink.put(&(directory.len() as u32).to_le_bytes())?;
            for posting in directory.iter() {
                let (code, scale) = posting.centroid.code();
                sink.put(code)?;
                sink.put(&scale.to_le_bytes())?;
                sink.put(&(posting.blocks.len() as u32).to_le_bytes())?;
                for block in &posting.blocks {
                    sink.put(&block.slot().to_le_bytes())?;
                }
            }
        }
        let postings = directories.iter().flat_map(|directory| directory.iter());
        let blocks = postings.flat_map(|posting| &posting.blocks);
        self.store.name(blocks.map(|block| block.slot()));
        sink.finish(rows)
    }
}
