//! Searches and sweeps beside each other.

use super::SpFresh;
use crate::visits::Visit;

impl SpFresh {
    /// Begins a visit. Whoever says by a moment of its own which rows are visible begins one before that moment, and ends
    /// it after the search.
    pub fn enter(&self) -> Visit {
        self.visits.enter()
    }

    /// Marks the moment as of which rows are dead that will be swept out: visits from now on do not see them.
    pub fn turn(&self) {
        self.visits.turn();
    }

    /// Whether all visits have ended that began before the last [`SpFresh::turn`]: only then [`SpFresh::sweep`] may take out
    /// rows that were dead at that moment.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.visits.are_over()
    }

    /// Bytes that a row takes in memory, and in the file of blocks, on average over many: those of its share of a posting.
    #[must_use]
    pub fn bytes_per_row(space: crate::Space, params: super::SpFreshParams) -> crate::RowBytes {
        let dim = space
            .dim
            .next_multiple_of(longbow_kernels::rabitq::DIM_STEP);
        let block = super::block::Layout::new(dim).bytes;
        let slots = longbow_kernels::rabitq::SLOTS;
        // Half of a posting's vectors went to another when it was split, so it is about three quarters full.
        let vectors = params.split * 3 / 4;
        let blocks = vectors.div_ceil(slots) + 1;
        let centroid = 5 * dim + block / slots;
        let posting = POSTING + blocks * BLOCK;
        // Vectors on boundaries are in several postings; of real data, about one in three is.
        let copies = if params.replicas > 1 { 4 } else { 3 };
        crate::RowBytes {
            vector: centroid.div_ceil(vectors),
            edges: 0,
            other: posting.div_ceil(vectors),
            saved: (blocks * block * copies / 3 + 4 * dim + 4 + 4 * blocks).div_ceil(vectors),
        }
    }
}

/// A posting with its centroid, and a block of it, in memory, besides the codes.
const POSTING: usize = 256;
const BLOCK: usize = 80;
