//! How far a walk goes beyond the nearest that it has found.
//!
//! A walk that ends when it has followed the edges of a fixed number of nodes takes as long for a query whose neighbours are
//! much nearer than all else as for one around which much is about as near. One that follows the edges of what is within
//! a multiple of the distance of the nearest ends early for the first and goes on for the second, and so takes less for the
//! same recall of all (Al-Jazzazi, Diwan, Gou, Musco, Musco and Suel, arXiv 2505.15636). Here an effort stays
//! a number of nodes, of ordinary queries, and says which multiple that is: the ball that holds so many, where the number of rows in a
//! ball grows with its radius as it does in most data.
//!
//! Good for distances that say how near something is: Euclidean ones, and cosines. Not for inner products, by which a query may be about as far
//! from all. `longbow bench ann` shows what an effort finds and takes; by it the constants were chosen, so that an effort finds about as much as when
//! it was a number of nodes.

use longbow_kernels::Metric;

/// Part of the effort at which it is seen how far the nearest are, if that is more than is asked for: so what a walk looks at grows
/// with its effort however few are near.
const PART: usize = 8;
/// By which power of the number of rows in a ball its squared radius grows, about: as where rows have two dozen dimensions of their own. Where they
/// have fewer, fewer are within, and fewer are needed.
const GROWTH: f32 = 0.085;
/// Part of the effort beyond what is asked for that a walk may hold in addition, where much is about as near.
const MORE: usize = 2;
/// By how much cosines of about the same direction may differ in `f32`.
const LEAST: f32 = 4.0 * f32::EPSILON;

/// What a walk of some effort follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Narrow {
    /// The nodes that it holds at most.
    pub(crate) most: usize,
    /// What is farther than `times` the distance (squared, or that of cosines) of the `nth` that was found is too far; infinite if nothing is.
    pub(crate) nth: usize,
    times: f32,
    /// Added to that distance.
    least: f32,
}

impl Narrow {
    /// Of a walk with an effort for the nearest `k` by a metric.
    pub(crate) fn new(metric: Metric, k: usize, ef: usize) -> Self {
        let least = match metric {
            Metric::Euclidean => 0.0,
            Metric::Cosine => LEAST,
            Metric::Dot => return Narrow::not(ef),
        };
        if ef <= k {
            return Narrow::not(ef);
        }
        let nth = k.max(ef / PART).max(1);
        Narrow {
            most: ef.saturating_add((ef - k) / MORE),
            nth,
            times: (ef as f32 / nth as f32).powf(GROWTH),
            least,
        }
    }

    /// Of a walk that follows so many, however far they are.
    pub(crate) fn not(ef: usize) -> Self {
        Narrow {
            most: ef,
            nth: 1,
            times: f32::INFINITY,
            least: 0.0,
        }
    }

    /// The distance beyond which all is too far, by that of the `nth`.
    #[inline(always)]
    pub(crate) fn reach(&self, nth: f32) -> f32 {
        self.times * (nth + self.least)
    }

    /// Whether anything is too far.
    #[inline(always)]
    pub(crate) fn narrows(&self) -> bool {
        self.times < f32::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_effort_goes_farther_and_holds_more() {
        for metric in [Metric::Euclidean, Metric::Cosine] {
            for k in [1, 10, 100] {
                let mut before = Narrow::new(metric, k, k);
                assert_eq!(before, Narrow::not(k));
                before.times = 1.0;
                for ef in (k + 1..5_000).chain([usize::MAX]) {
                    let next = Narrow::new(metric, k, ef);
                    assert!(next.narrows() && next.most >= ef && next.most >= before.most);
                    assert!(next.nth >= before.nth.max(k) && next.nth <= ef);
                    // Of more rows, or more times as far.
                    assert!(next.nth > before.nth || next.times >= before.times);
                    assert!(next.times >= 1.0);
                    before = next;
                }
            }
        }
    }

    #[test]
    fn by_inner_product_nothing_is_too_far() {
        let narrow = Narrow::new(Metric::Dot, 10, 200);
        assert_eq!((narrow, narrow.narrows()), (Narrow::not(200), false));
    }
}
