//! Room to work in for one search or insert, reused by the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::candidate::Candidate;
use crate::pool::Room;
use crate::stats::SearchStats;
use crate::visited::Visited;

/// Room for one search or insert.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) visited: Visited,
    /// Nodes still to be walked from, the nearest on top.
    pub(crate) open: BinaryHeap<Reverse<Candidate>>,
    /// The nearest nodes that were found, the farthest on top.
    pub(crate) found: BinaryHeap<Candidate>,
    /// The nearest of those by which it is seen what is too far, the farthest on top.
    pub(crate) nearest: BinaryHeap<Candidate>,
    /// Neighbours that are to be scored, and their distances.
    pub(crate) fresh: Vec<u32>,
    pub(crate) distances: Vec<f32>,
    /// Those of them that are near enough.
    pub(crate) near: Vec<Candidate>,
    pub(crate) stats: SearchStats,
}

impl Room for Scratch {
    fn bytes(&self) -> usize {
        self.visited.bytes()
            + (self.open.capacity()
                + self.found.capacity()
                + self.nearest.capacity()
                + self.near.capacity())
                * size_of::<Candidate>()
            + (self.fresh.capacity() + self.distances.capacity()) * size_of::<u32>()
    }
}
