//! Each group of nodes has one on the level above.
//!
//! A level above the lowest is a sample of the one below. A group of nodes that are far from all of the sample would be found by
//! few walks, since those begin elsewhere: the first of it, or one when it has grown, joins the sample, and another succeeds it when it leaves.

use crate::sync::atomic::Ordering;

use super::QuantizedGraph;
use super::elsewhere::{NARROW, WIDE};
use super::insert::Pace;
use super::level::Level;
use super::link::FAR;
use super::scratch::Scratch;

/// Nodes near another of which one should be on the level above. Of nodes on a plane one in so many would be within half the way
/// to the nearest of a sample of a 64th, of others fewer, so that few are there for no other reason.
const MANY: usize = 16;
/// Where fewer than one node in so many was not drawn, groups are no matter.
const HARDLY: u64 = 128;

impl QuantizedGraph {
    /// How far what counts as near reaches around the node in `scratch`, if a walk for it began beyond that though many nodes of its level, which
    /// the walk found and which are sorted, are within; or if it is the first of its kind, far from all, for the others are to find it.
    ///
    /// # Safety
    /// What was found was written.
    pub(super) unsafe fn near_if_remote(&self, level: &Level, scratch: &Scratch) -> Option<f32> {
        // SAFETY: the caller vouches for the nodes.
        unsafe {
            let nearest = scratch.found.first()?;
            if self.is_far(level, *nearest, scratch.query.own_scale()) {
                return Some(0.0);
            }
            let near = FAR * scratch.found.get(MANY - 1)?.distance();
            let (here, start) = (scratch.query.here(), scratch.start?.node());
            let start = level.blocks.between(self.encoder(), here, start);
            (near < start).then_some(near)
        }
    }

    /// Of how many nodes of each level above the edges are followed by a walk that cannot look elsewhere later: of one where there are
    /// hardly groups.
    pub(super) fn breadth(&self) -> usize {
        let above = u64::from(self.levels[1].blocks.claimed());
        match self.remote.load(Ordering::Relaxed) * HARDLY < above {
            true => NARROW,
            false => WIDE,
        }
    }

    /// How many of some nodes of the level above the lowest were not drawn.
    ///
    /// # Safety
    /// They and those that they stand for were written, and are not free.
    pub(super) unsafe fn count_remote(&self, nodes: impl Iterator<Item = u32>) -> u64 {
        let was_drawn = |node: &u32| {
            // SAFETY: the caller vouches for the nodes.
            let row = unsafe {
                let below = self.levels[1].blocks.row(*node) as u32;
                self.ground().blocks.row(below)
            };
            self.draw_level(row) > 0
        };
        nodes.filter(|node| !was_drawn(node)).count() as u64
    }

    /// Puts others that stay in the places of nodes that leave a level above the lowest, where walks for those around them would begin
    /// too far away.
    pub(super) fn succeed(&self, height: usize, nodes: &[u32]) {
        let room = nodes.iter().fold(self.room(), |room, node| {
            // SAFETY: listed nodes were written, and stay so until the removal ends.
            unsafe { self.succeed_one(height, *node, room) }
        });
        self.pool.give(room);
    }

    /// # Safety
    /// The node was written, and its place is not given to another meanwhile.
    unsafe fn succeed_one(
        &self,
        height: usize,
        node: u32,
        mut scratch: Box<Scratch>,
    ) -> Box<Scratch> {
        let below = &self.levels[height - 1];
        // SAFETY: the caller vouches for the node, and so for the one that it stands for; edges lead to nodes that were written.
        unsafe {
            let gone = self.levels[height].blocks.row(node) as u32;
            self.gather(below, gone, &mut scratch);
            let Some(next) = scratch.found.iter().min().map(|next| next.node()) else {
                return scratch;
            };
            scratch = self.look_for(height - 1, next, scratch);
            scratch.found.sort_unstable();
            // Where walks don't come to it, the one that leaves was the only one to begin at.
            let is_reached = scratch.found.iter().any(|found| found.node() == next);
            let near = self.near_if_remote(below, &scratch);
            if is_reached && near.is_none() {
                return scratch;
            }
            let near = near.filter(|_| is_reached);
            let next = u64::from(next);
            let placed = self.place_up((height, height), next, (near, Pace::Whole), scratch);
            // A level that is full does without.
            placed.unwrap_or_else(|_| self.room())
        }
    }
}
