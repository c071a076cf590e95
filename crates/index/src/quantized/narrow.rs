//! How far a walk goes beyond the nearest that it has found.
//!
//! A walk that ends when it has followed the edges of a fixed number of nodes takes as long for a query whose neighbours are
//! much nearer than all else as for one around which much is about as near. One that follows the edges of what is within
//! a multiple of the distance of the nearest ends early for the first, and goes on for the second (Al-Jazzazi, Diwan,
//! Gou, Musco, Musco and Suel, arXiv 2505.15636): at the same recall of all queries, it takes less time for them. So an effort is a number of nodes
//! for ordinary queries, and says how far is too far: as far as the ball would be that holds so many, where the number of
//! rows in a ball grows as it does in most data.

use longbow_kernels::Metric;

use super::QuantizedGraph;
use super::front::Front;

/// By which power of the number of rows in a ball its squared radius grows. Had rows as many dimensions of their own as 2 by this, some two dozen,
/// as many nodes as the effort would be within. Of fewer dimensions there are fewer, and fewer are needed.
const GROWTH: f32 = 0.085;
/// Part of the effort beyond what is asked for that a walk may take more, where much is about as near.
const MORE: usize = 2;

/// How a walk of some effort for the nearest `k` narrows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Narrow {
    /// The nodes that it holds at most.
    pub(super) most: usize,
    /// What is farther than `times` the squared distance of the `k`th is too far.
    k: usize,
    times: f32,
}

impl Narrow {
    /// Of a walk that holds `ef` nodes for the nearest `k`, where distances are as meaningful as those of Euclid.
    pub(super) fn new(k: usize, ef: usize) -> Self {
        if ef <= k {
            return Narrow::not(ef);
        }
        Narrow {
            most: ef.saturating_add((ef - k) / MORE),
            k,
            times: (ef as f32 / k as f32).powf(GROWTH),
        }
    }

    /// Of a walk that holds `ef` nodes, however far.
    pub(super) fn not(ef: usize) -> Self {
        Narrow {
            most: ef,
            k: 1,
            times: f32::INFINITY,
        }
    }

    #[inline(always)]
    pub(super) fn narrow(&self, front: &mut Front) {
        if self.times < f32::INFINITY {
            front.narrow(self.k, self.times);
        }
    }
}

impl QuantizedGraph {
    /// How a walk of breadth `ef` for the nearest `k` narrows.
    pub(super) fn narrow(&self, k: usize, ef: usize) -> Narrow {
        match self.space.metric {
            Metric::Euclidean | Metric::Cosine => Narrow::new(k, ef),
            // On the sphere queries are about as far from all.
            Metric::Dot => Narrow::not(ef),
        }
    }
}
