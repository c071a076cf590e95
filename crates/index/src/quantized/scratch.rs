use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longbow_kernels::rabitq::Lut;

use super::front::Front;
use super::later::Later;
use crate::candidate::Candidate;
use crate::encode::Encoded;
use crate::pool::Room;
use crate::stats::SearchStats;
use crate::visited::Visited;

/// Room for one search or insert.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) query: Encoded,
    pub(super) lut: Lut,
    pub(super) visited: Visited,
    pub(super) front: Front,
    /// Nodes that were visited, by the distance to their eight-bit codes.
    pub(super) found: Vec<Candidate>,
    /// Where the walk began on its lowest level.
    pub(super) start: Option<Candidate>,
    /// Those that had been found before the walk looked elsewhere.
    pub(super) elsewhere: Vec<Candidate>,
    /// Neighbours to be compared.
    pub(super) fresh: Vec<Candidate>,
    /// Neighbours to be compared later, or never.
    pub(super) later: Later,
    /// Of a search with a filter: neighbours that do not pass, behind which it looks next.
    pub(super) behind: Vec<Candidate>,
    /// Of the same, where it goes through nodes that do not pass: those that do.
    pub(super) held: Front,
    /// Of the same: nodes that do not pass, by about their distance.
    pub(super) around: BinaryHeap<Reverse<Candidate>>,
    /// Far neighbours to which a new node should lead.
    pub(super) handed: Vec<u32>,
    /// Of an insert: the copy of its vector.
    pub(super) copy: Vec<u8>,
    /// Signs of an edge.
    pub(super) bits: Vec<u16>,
    pub(super) stats: SearchStats,
}

impl Room for Scratch {
    fn bytes(&self) -> usize {
        self.query.bytes()
            + self.lut.bytes()
            + self.visited.bytes()
            + self.front.bytes()
            + self.held.bytes()
            + self.found.capacity() * size_of::<Candidate>()
            + self.elsewhere.capacity() * size_of::<Candidate>()
            + self.fresh.capacity() * size_of::<Candidate>()
            + self.later.bytes()
            + self.behind.capacity() * size_of::<Candidate>()
            + self.around.capacity() * size_of::<Candidate>()
            + self.copy.capacity()
            + self.handed.capacity() * size_of::<u32>()
            + self.bits.capacity() * size_of::<u16>()
    }
}
