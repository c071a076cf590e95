//! A quantised graph as bytes. One-bit codes are not written: they follow from the eight-bit codes and the edges.
//!
//! All numbers are little-endian; there is no padding.
//!
//! ```text
//! offset  bytes  what
//!      0  36     the head of an index of codes, with the magic "LBWQGRF\0" and version 1: see `Origin::put_head`
//!     36         centre, f32: see `Origin::put_centre`; zeros if there are no rows and none was chosen
//!      …         for each of the six levels, the lowest first:
//!                  4      n, number of nodes
//!                  4      entry: node where walks begin; ff ff ff ff if n is 0
//!                  for each node:
//!                    8      row; above the lowest level, the node of the level below
//!                    4      next twin; ff ff ff ff: none
//!                    4      slots of edges for which no nearer neighbour stands in, one bit each
//!                    4      scale of the eight-bit code, f32
//!                    128    32 neighbours; ff ff ff ff: a free slot
//!                    d      eight-bit code; d is the dimension, for the dot product one more, rounded up to 16
//!      …         only if nodes came in haste and are not refined yet, for each of the six levels, the lowest first:
//!                  4      n, number of such nodes
//!                  4 n    the nodes, each with an edge
//!     end-4  4   CRC-32C (Castagnoli) of all bytes before
//! ```
//!
//! Older programs refuse a file with such lists by its length.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::Octets;

use super::QuantizedGraph;
use super::block::{FREE, NONE};
use super::level::Level;
use super::removal::Removal;
use crate::checkpoint::{Saved, Sink};
use crate::error::{Error, Result};

pub(super) const MAGIC: [u8; 8] = *b"LBWQGRF\0";
pub(super) const VERSION: u32 = 1;
/// Bytes of a node besides its code.
pub(crate) const NODE: usize = 20 + 128;

impl QuantizedGraph {
    /// Writes the graph to `out`; the format is described in the module. Nodes are numbered anew, without those that are
    /// free.
    ///
    /// No insert may run meanwhile. Searches may.
    ///
    /// # Errors
    /// If an insert runs, or the writer fails.
    pub fn save(&self, out: &mut dyn Write) -> Result<Saved> {
        let removal = self.removal.lock();
        let _still = self.still.try_write().ok_or(Error::Busy)?;
        // Two nodes may have the same next twin then: one that stays, and one that leaves, which nothing leads to.
        let passed = removal.as_ref().is_some_and(Removal::has_passed_twins);
        // And two nodes the same row, one of which leaves: it is written with the one that is dead.
        let twice = removal.as_ref().map_or(&[][..], Removal::twice);
        let gone: HashMap<u32, u64> = twice.iter().map(|of| (of.heir, of.gone)).collect();
        // SAFETY: no insert runs, so all nodes that were claimed are written.
        let numbers: Vec<Vec<u32>> = unsafe { self.levels.iter().map(|l| numbered(l)).collect() };
        let rows = u64::from(taken(&numbers[0]));
        let (mut sink, mut room) = (Sink::new(out), Octets::default());
        self.origin.put_head((MAGIC, VERSION), rows, &mut sink)?;
        self.origin.put_centre(&mut sink)?;
        for (height, level) in self.levels.iter().enumerate() {
            let number = |node: u32| numbers[height].get(node as usize).copied();
            let count = taken(&numbers[height]);
            sink.put(&count.to_le_bytes())?;
            // While all nodes of a level leave, walks begin nowhere; but where there are nodes, a reader is told one.
            let any = if count == 0 { NONE } else { 0 };
            let entry = level.entry().and_then(number).unwrap_or(any);
            sink.put(&entry.to_le_bytes())?;
            for node in (0..level.blocks.claimed()).filter(|node| number(*node) != Some(NONE)) {
                // SAFETY: as above.
                unsafe {
                    let row = level.blocks.row(node);
                    let row = match height {
                        0 => gone.get(&node).copied().unwrap_or(row),
                        _ => u64::from(numbers[height - 1][row as usize]),
                    };
                    sink.put(&row.to_le_bytes())?;
                    let alone = passed && level.blocks.is_leaving(node);
                    put_node(level, node, number, (alone, &mut room), &mut sink)?;
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.put_hasty(&numbers, &mut sink)? };
        sink.finish(rows)
    }

    /// Writes which nodes are to be refined, if there are any.
    ///
    /// # Safety
    /// All nodes that were claimed are written.
    unsafe fn put_hasty(&self, numbers: &[Vec<u32>], sink: &mut Sink<'_>) -> Result<()> {
        let mut nodes = vec![Vec::new(); numbers.len()];
        for (height, node) in self.hasty.lock().iter() {
            // SAFETY: the caller vouches for the nodes.
            let ids = unsafe { self.levels[*height].blocks.ids(*node) };
            // One from which all others have left leads nowhere, and there is nothing to refine.
            if ids.iter().any(|id| id.load(Ordering::Relaxed) != NONE) {
                nodes[*height].push(numbers[*height][*node as usize]);
            }
        }
        if nodes.iter().all(Vec::is_empty) {
            return Ok(());
        }
        for nodes in nodes {
            sink.put(&(nodes.len() as u32).to_le_bytes())?;
            for node in nodes {
                sink.put(&node.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

/// For each node its number among those that are not free, or [`NONE`].
///
/// # Safety
/// All nodes that were claimed are written.
unsafe fn numbered(level: &Level) -> Vec<u32> {
    let mut next = 0;
    let number = |node: u32| {
        // SAFETY: the caller vouches for the node.
        if unsafe { level.blocks.row(node) } == FREE {
            return NONE;
        }
        next += 1;
        next - 1
    };
    (0..level.blocks.claimed()).map(number).collect()
}

/// How many have a number.
fn taken(numbers: &[u32]) -> u32 {
    numbers.iter().filter(|number| **number != NONE).count() as u32
}

/// Writes all of a node but its row; without its next twin if it is to be `alone`.
///
/// # Safety
/// All nodes were written, and `node` is one of them.
unsafe fn put_node(
    level: &Level,
    node: u32,
    number: impl Fn(u32) -> Option<u32>,
    (alone, room): (bool, &mut Octets),
    sink: &mut Sink<'_>,
) -> Result<()> {
    let numbered = |node: u32| number(node).unwrap_or(NONE).to_le_bytes();
    // SAFETY: the caller vouches for the node.
    unsafe {
        let twin = if alone { NONE } else { level.blocks.twin(node) };
        sink.put(&numbered(twin))?;
        let apart = level.blocks.apart(node).load(Ordering::Relaxed);
        sink.put(&apart.to_le_bytes())?;
        sink.put(&level.blocks.scale(node).to_le_bytes())?;
        for id in level.blocks.ids(node) {
            sink.put(&numbered(id.load(Ordering::Acquire)))?;
        }
        let code = level.blocks.here(node, room).vector.code.cast::<u8>();
        sink.put(std::slice::from_raw_parts(code, level.blocks.dim()))
    }
}
