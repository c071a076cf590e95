use std::sync::Arc;

use longbow_kernels::rabitq::{Base, Lut, SLOTS};

use super::block::{Draft, Layout, Member, Way};
use super::near::{Found, Near};
use super::shard::address;
use crate::encode::{Encoded, Encoder};
use crate::stats::SearchStats;
use crate::vector8::Vector8;

/// Part of an estimate's standard error by which it is lowered.
const SLACK: f32 = 1.0;

/// The centroids of all postings, in memory, in blocks as those of a posting around the origin: all are estimated by each
/// search, 32 at a time, and the near ones compared by their eight-bit codes.
///
/// That is 16 bytes a centroid of 128 dimensions: twenty thousand centroids, of two million vectors, are passed by in the
/// time in which a graph over them follows some dozen nodes. And none is missed: centroids that stand alone in a space
/// of many dimensions are the ones that no edge of a graph leads to.
#[derive(Debug, Clone, Default)]
pub(super) struct Centroids {
    /// All full but the last.
    blocks: Vec<Arc<Draft>>,
}

/// A query as it is compared with many.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) encoder: &'a Encoder,
    pub(super) query: &'a Encoded,
    pub(super) lut: &'a Lut,
}

impl Centroids {
    pub(super) fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1) * SLOTS;
        full + self.blocks.last().map_or(0, |block| block.len())
    }

    /// Adds the centroid of a posting, whose number is `member.row`.
    pub(super) fn push(&mut self, encoder: &Encoder, layout: &Layout, member: Member<'_>) {
        if self.blocks.last().is_none_or(|last| last.len() == SLOTS) {
            self.blocks.push(Arc::new(Draft::new(layout)));
        }
        let last = self.blocks.last_mut().expect("one was added");
        let mut bits = vec![0; layout.dim / 16];
        let (add, factor) = from_origin(encoder, member, &mut bits);
        let bits = &bits;
        let way = Way { bits, add, factor };
        Arc::make_mut(last).push(layout, member, way);
    }

    /// Takes the centroid of a posting out; the last one takes its place.
    pub(super) fn remove(&mut self, encoder: &Encoder, layout: &Layout, id: u64) {
        let is_it = |block: &Arc<Draft>| {
            let read = block.read(layout);
            (0..block.len()).find(|at| read.row(*at) == id)
        };
        let mut blocks = self.blocks.iter().enumerate();
        let Some((at, slot)) = blocks.find_map(|(at, block)| Some((at, is_it(block)?))) else {
            return;
        };
        let last = Arc::make_mut(self.blocks.last_mut().expect("it has the centroid"));
        let copy = last.clone();
        last.pop();
        if last.len() == 0 {
            self.blocks.pop();
        }
        // Unless it was the last one itself.
        if let Some(hole) = self.blocks.get_mut(at)
            && slot < hole.len()
        {
            let member = copy.read(layout).member(copy.len() - 1);
            let mut bits = vec![0; layout.dim / 16];
            let (add, factor) = from_origin(encoder, member, &mut bits);
            let bits = &bits;
            let way = Way { bits, add, factor };
            Arc::make_mut(hole).put(layout, slot, member, way);
        }
    }

    /// Brings those that can be among the nearest to what was found in other shards, by the addresses of their postings.
    pub(super) fn nearest(
        &self,
        asked: Asked<'_>,
        (layout, shard): (&Layout, usize),
        near: &mut Near,
        stats: &mut SearchStats,
    ) {
        let Asked {
            encoder,
            query,
            lut,
        } = asked;
        let base = Base {
            distance: query.norm,
            slack: SLACK * query.norm.sqrt(),
        };
        let mut estimates = [0f32; SLOTS];
        for block in &self.blocks {
            let read = block.read(layout);
            // SAFETY: a block has ways of the layout's dimension, which is that of the table, and is aligned.
            let below = unsafe {
                encoder
                    .rabitq
                    .estimate(lut, read.ways(), base, near.bound(), &mut estimates)
            };
            let mut below = below & (u32::MAX >> (SLOTS - block.len()));
            stats.bytes_touched += read.first_part().len() as u64;
            while below != 0 {
                let slot = below.trailing_zeros() as usize;
                below &= below - 1;
                if estimates[slot] > near.bound() {
                    continue;
                }
                let member = read.member(slot);
                // SAFETY: the code of a centroid has the dimension of the encoder.
                let distance = unsafe { encoder.distance(query, member.vector()) };
                stats.distance_computations += 1;
                near.push(Found {
                    distance,
                    row: address(shard, member.row),
                    error: 0.0,
                });
            }
        }
    }

    /// The numbers of the postings.
    #[cfg(test)]
    pub(super) fn ids(&self, layout: &Layout) -> Vec<u64> {
        let blocks = self.blocks.iter();
        let ids = blocks.flat_map(|block| (0..block.len()).map(|at| block.read(layout).row(at)));
        ids.collect()
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self, layout: &Layout) -> usize {
        self.blocks.len() * (layout.bytes + 64)
    }
}

/// The way to a centroid from the origin.
fn from_origin(encoder: &Encoder, member: Member<'_>, bits: &mut [u16]) -> (f32, f32) {
    let zeros = vec![0u8; member.code.len()];
    // SAFETY: codes of members have the dimension of the encoder, and so do the zeros.
    unsafe { encoder.way(Vector8::new(&zeros, 0.0), member.vector(), bits) }
}
