//! Rows that come into the graph at once, and to their best edges later.
//!
//! Most of what an insert takes is to look for the best neighbours, and to find out for each of them what its new edge is worth. An
//! insert in haste looks at a few, leads the nearest to the new node as always, and others where an edge can go that is worth
//! little. So it takes less than half of the time, and searches find the row nearly as surely. What was left undone is done for each such
//! node later ([`QuantizedGraph::refine`]), also after a checkpoint in between, which tells which were left.
//!
//! Good for: rows that came in a burst, and are searched right now. Not for: building, since both together take longer.

use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::SLOTS;

use super::QuantizedGraph;
use super::block::NONE;
use super::insert::Pace;
use super::level::Level;
use super::link::Why;
use crate::candidate::Candidate;
use crate::error::Result;

/// Breadth of the walk of an insert in haste.
pub(super) const HASTY: usize = 24;
/// Neighbours that are led to a new node by it, at most.
const LED: usize = 16;

impl QuantizedGraph {
    /// As [`QuantizedGraph::insert`], in less than half of the time; [`QuantizedGraph::refine`] does the rest.
    ///
    /// # Errors
    /// As [`QuantizedGraph::insert`].
    pub fn insert_in_haste(&self, row: u64, vector: &[u8]) -> Result<()> {
        self.insert_at(Pace::Haste, row, vector)
    }

    /// Does what was left undone for up to so many nodes. Returns whether there were any. May be called from many threads at
    /// once, while inserts and searches run.
    pub fn refine(&self, most: usize) -> bool {
        if self.hasty() == 0 {
            // Room to work in is of the encoder, and without an insert there may be no origin yet.
            return false;
        }
        let mut scratch = self.room();
        let mut refined = false;
        for _ in 0..most {
            // Held before a node is taken from the list: until it is let go none begins to leave.
            let _moving = self.still.read();
            let _visit = self.enter();
            let Some((height, node)) = self.hasty.lock().pop() else {
                break;
            };
            let level = &self.levels[height];
            // SAFETY: the node was written, and none of the list leaves; edges lead to nodes that were written.
            unsafe {
                scratch = self.look_for(height, node, scratch);
                scratch.found.retain(|found| found.node() != node);
                // Searches that began before a node was to leave may still come to it.
                let leaves = |to: u32| level.blocks.is_leaving(to);
                self.choose_anew(level, node, &mut scratch, leaves);
                let edges = self.by_length(level, node);
                let neighbors = edges.iter().rev().map(|(id, _)| *id);
                let stays = |id: &u32| *id != NONE && !level.blocks.is_leaving(*id);
                self.link_back(level, node, neighbors.filter(stays), &mut scratch);
            }
            refined = true;
        }
        self.pool.give(scratch);
        refined
    }

    /// Nodes for which something was left undone.
    #[must_use]
    pub fn hasty(&self) -> usize {
        self.hasty.lock().len()
    }

    /// Forgets nodes that leave. No insert and no refining may run.
    pub(super) fn forget_hasty(&self) {
        // SAFETY: nodes of the list were written, and have not left yet.
        let leaves =
            |height: usize, node: u32| unsafe { self.levels[height].blocks.is_leaving(node) };
        let mut hasty = self.hasty.lock();
        hasty.retain(|(height, node)| !leaves(*height, *node));
    }

    /// Leads some of its neighbours to a new node.
    ///
    /// # Safety
    /// All were written.
    pub(super) unsafe fn link_back_in_haste(
        &self,
        (height, node): (usize, u32),
        chosen: &[Candidate],
        bits: &mut [u16],
    ) {
        let level = &self.levels[height];
        // SAFETY: the caller vouches for the nodes.
        unsafe {
            if let Some(nearest) = chosen.first() {
                let link = (nearest.node(), node, Why::Guides);
                self.link(level, link, bits, &mut Vec::new());
            }
            for neighbor in chosen.iter().take(LED).skip(1) {
                self.link_in_haste(level, (neighbor.node(), node), bits);
            }
        }
        self.hasty.lock().push((height, node));
    }

    /// Adds `new` to the neighbours of `node`, if there is room, or in the place of the longest edge that is not apart and can go.
    ///
    /// # Safety
    /// Both were written.
    unsafe fn link_in_haste(&self, level: &Level, (node, new): (u32, u32), bits: &mut [u16]) {
        let _change = level.lock(node);
        // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
        unsafe {
            let Some(ids) = self.edges_without(level, node, new) else {
                return;
            };
            let lengths = self.about_lengths(level, node, &ids);
            let slot = ids.iter().position(|id| *id == NONE).or_else(|| {
                let apart = level.blocks.apart(node).load(Ordering::Relaxed);
                let mut others: Vec<usize> = (0..SLOTS).filter(|s| apart >> s & 1 == 0).collect();
                others.sort_unstable_by(|a, b| lengths[*b].total_cmp(&lengths[*a]));
                let can_go = |slot: &usize| {
                    let to = ids[*slot];
                    !self.guides(level, node, to) && level.blocks.let_go(to)
                };
                others.into_iter().find(can_go)
            });
            if let Some(slot) = slot {
                self.set_edge(level, node, slot, new, bits);
                let apart = level.blocks.apart(node);
                apart.fetch_and(!(1 << slot), Ordering::Relaxed);
                if slot > 0 && self.length(level, node, new) < lengths[0] {
                    self.put_first(level, node, slot, bits);
                }
            }
        }
    }
}
