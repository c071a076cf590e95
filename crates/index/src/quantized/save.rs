//! A quantised graph as bytes. One-bit codes are not written: they follow from the eight-bit codes and the edges.
//!
//! All numbers are little-endian; there is no padding.
//!
//! ```text
//! offset  bytes  what
//!      0  8      magic: "LBWQGRF\0"
//!      8  4      version: 1
//!     12  1      element type: 0 float32, 1 float16, 2 int8, 3 uint8
//!     13  1      metric: 0 euclidean, 1 cosine
//!     14  2      zero
//!     16  4      dimension
//!     20  8      seed of the rotation
//!     28  8      rows in the graph
//!     36  4 dim  centre, f32; zeros if there are no rows and none was chosen
//!      …         for each of the six levels, the lowest first:
//!                  4      n, number of nodes
//!                  4      entry: node where walks begin; ff ff ff ff if n is 0
//!                  for each node:
//!                    8      row; above the lowest level, the node of the level below
//!                    4      next twin; ff ff ff ff: none
//!                    4      slots of edges for which no nearer neighbour stands in, one bit each
//!                    4      scale of the eight-bit code, f32
//!                    128    32 neighbours; ff ff ff ff: a free slot
//!                    d      eight-bit code; d is the dimension, rounded up to 16
//!     end-4  4   CRC-32C (Castagnoli) of all bytes before
//! ```

use std::io::Write;
use std::sync::atomic::Ordering;

use super::QuantizedGraph;
use super::block::NONE;
use super::encode::Encoder;
use super::level::Level;
use crate::checkpoint::{Saved, Sink};
use crate::error::{Error, Result};

pub(super) const MAGIC: [u8; 8] = *b"LBWQGRF\0";
pub(super) const VERSION: u32 = 1;
/// Bytes before the centre.
pub(super) const HEADER: usize = 36;
/// Bytes of a node besides its code.
pub(crate) const NODE: usize = 20 + 128;

impl QuantizedGraph {
    /// Writes the graph to `out`; the format is described in the module.
    ///
    /// No insert may run meanwhile. Searches may.
    ///
    /// # Errors
    /// If an insert runs, or the writer fails.
    pub fn save(&self, out: &mut dyn Write) -> Result<Saved> {
        // An insert claims a node of the lowest level before any other. With as many claimed after as had ended before,
        // none ran in between: what was read then is whole, and all those nodes are written.
        let ended = self.len() as u64;
        let sizes: Vec<(u32, u32)> = self
            .levels
            .iter()
            .map(|level| (level.blocks.claimed(), level.entry().unwrap_or(NONE)))
            .collect();
        let claimed = u64::from(self.ground().blocks.claimed());
        if claimed != ended {
            return Err(Error::Busy { claimed, ended });
        }
        let mut sink = Sink::new(out);
        sink.put(&MAGIC)?;
        sink.put(&VERSION.to_le_bytes())?;
        sink.put(&[self.space.scalar as u8, self.space.metric as u8, 0, 0])?;
        sink.put(&(self.space.dim as u32).to_le_bytes())?;
        sink.put(&self.params.seed.to_le_bytes())?;
        sink.put(&ended.to_le_bytes())?;
        // An empty graph may have no origin yet; zeros stand for none.
        let centre = self.encoder.get().map(Encoder::centre);
        for x in centre.unwrap_or(&vec![0.0; self.space.dim]) {
            sink.put(&x.to_le_bytes())?;
        }
        for (level, (nodes, entry)) in self.levels.iter().zip(sizes) {
            sink.put(&nodes.to_le_bytes())?;
            sink.put(&entry.to_le_bytes())?;
            for node in 0..nodes {
                // SAFETY: all inserts that claimed nodes up to that number had ended, so all nodes are written.
                unsafe { put_node(level, node, nodes, &mut sink)? };
            }
        }
        sink.finish(ended)
    }
}

/// Writes a node. Inserts that began after all may have led its edges to nodes from `nodes` on: those are left out.
///
/// # Safety
/// All nodes below `nodes` were written, and `node` is one of them.
unsafe fn put_node(level: &Level, node: u32, nodes: u32, sink: &mut Sink<'_>) -> Result<()> {
    // SAFETY: the caller vouches for the node; twins and neighbours were written before they were linked.
    unsafe {
        sink.put(&level.blocks.row(node).to_le_bytes())?;
        let mut twin = level.blocks.twin(node);
        while twin != NONE && twin >= nodes {
            twin = level.blocks.twin(twin);
        }
        sink.put(&twin.to_le_bytes())?;
        let apart = level.blocks.apart(node).load(Ordering::Relaxed);
        sink.put(&apart.to_le_bytes())?;
        sink.put(&level.blocks.vector(node).scale.to_le_bytes())?;
        for id in level.blocks.ids(node) {
            let id = id.load(Ordering::Acquire);
            let id = if id < nodes { id } else { NONE };
            sink.put(&id.to_le_bytes())?;
        }
        sink.put(level.blocks.code(node))
    }
}
