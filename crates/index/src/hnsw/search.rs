use longbow_kernels::Metric;

use super::Hnsw;
use super::nodes::NONE;
use super::scratch::Scratch;
use super::vectors::Probe;
use super::walk::{Admit, Passes, Visible};
use crate::candidate::Candidate;
use crate::narrow::Narrow;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::Neighbor;
use crate::vector_index::IsOver;

impl Hnsw {
    /// The `k` visible rows nearest to `query`, nearest first, as far as a walk of breadth `ef` finds them.
    ///
    /// Larger `ef` finds more of the true nearest and takes longer; below `k` it counts as `k`. Rows for which
    /// `visible` does not hold are walked through and not returned, and the walk goes on until nodes of visible rows
    /// bound it, so they do not shorten the answer; rows of equal vectors are one node. It is shorter than `k` only if fewer visible rows can be
    /// reached: then an exact scan tells whether there are more.
    ///
    /// Takes no lock. Rows whose insert ended before the call are reachable, those of inserts that run may be.
    ///
    /// # Panics
    /// If `query` was prepared for another space.
    #[must_use]
    pub fn search(
        &self,
        query: &Query,
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        self.search_until(query, (k, ef), (visible, None), stats)
    }

    /// As [`Hnsw::search`] for `(k, ef)`; the function beside `visible` is asked from time to time whether the walk is to end
    /// with what it has found.
    ///
    /// # Panics
    /// If `query` was prepared for another space.
    #[must_use]
    pub fn search_until(
        &self,
        query: &Query,
        (k, ef): (usize, usize),
        (visible, is_over): (&(dyn Fn(u64) -> bool + Sync), Option<IsOver<'_>>),
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let row = visible;
        let ef = ef.max(k);
        let narrow = Narrow::new(self.space.metric, k, ef);
        self.search_for(query, (k, ef), narrow, &Visible { row, is_over }, stats)
    }

    /// The `k` nearest of what is admitted, as far as a walk of breadth `ef` finds them that narrows so.
    ///
    /// # Panics
    /// If `query` was prepared for another space.
    pub(super) fn search_for<A: Admit + Passes>(
        &self,
        query: &Query,
        (k, ef): (usize, usize),
        narrow: Narrow,
        admit: &A,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        assert_eq!(
            query.space(),
            self.space,
            "the space of the query is that of the index"
        );
        if k == 0 || self.is_empty() {
            return Vec::new();
        }
        let probe = Probe {
            floats: query.floats(),
            inverse: 1.0,
            metric: self.space.metric,
        };
        let mut scratch = self.pool.take();
        scratch.stats = SearchStats::default();
        let Some(nearest) = self.start(probe, 0, &mut scratch) else {
            return Vec::new();
        };
        // SAFETY: walks go from nodes that were written to others.
        let mut found = unsafe {
            self.walk(probe, nearest, 0, narrow, admit, &mut scratch);
            self.with_twins(probe, ef, admit, &mut scratch)
        };
        stats.distance_computations += scratch.stats.distance_computations;
        stats.nodes_popped += scratch.stats.nodes_popped;
        self.pool.give(scratch);
        if found.len() > k {
            found.select_nth_unstable(k);
            found.truncate(k);
        }
        found.sort_unstable();
        found
    }

    /// What a walk found, the nearest first with their twins that pass, until there are so many rows or more.
    ///
    /// # Safety
    /// The nodes in `scratch.found` were written.
    unsafe fn with_twins(
        &self,
        probe: Probe<'_>,
        most: usize,
        which: &impl Passes,
        scratch: &mut Scratch,
    ) -> Vec<Neighbor> {
        let near = &mut scratch.near;
        near.clear();
        near.extend(&scratch.found);
        near.sort_unstable();
        let mut found = Vec::with_capacity(near.len());
        for node in near.iter() {
            if found.len() >= most {
                break;
            }
            // SAFETY: the caller vouches for the nodes, and a twin that was read was written before it was chained.
            unsafe {
                found.push(Neighbor {
                    row: self.nodes.row(node.node()),
                    distance: node.distance(),
                });
                let mut twin = self.nodes.twin(node.node());
                let mut left = most;
                while twin != NONE && left > 0 {
                    let row = self.nodes.row(twin);
                    if which.passes(row) {
                        scratch.stats.distance_computations += 1;
                        let distance = self.vectors.distance(probe, twin);
                        found.push(Neighbor { row, distance });
                        left -= 1;
                    }
                    twin = self.nodes.twin(twin);
                }
            }
        }
        found
    }

    /// Goes from the entry down to above `level`, and returns the nearest node there; `None` in an empty graph.
    pub(super) fn start(
        &self,
        probe: Probe<'_>,
        level: u32,
        scratch: &mut Scratch,
    ) -> Option<Candidate> {
        let (entry, top) = self.entry()?;
        scratch.stats.distance_computations += 1;
        // SAFETY: an entry was written before it became one, and has its level.
        unsafe {
            let mut nearest = Candidate::new(self.vectors.distance(probe, entry), entry);
            for above in (level + 1..=top).rev() {
                nearest = self.descend(probe, nearest, above, scratch);
            }
            Some(nearest)
        }
    }

    /// Whether a vector that is at `distance` from another counts as equal to it, by the metric of the build.
    pub(super) fn is_twin(&self, distance: f32, vector: &[u8], other: &[u8]) -> bool {
        match self.space.metric {
            Metric::Euclidean => distance == 0.0,
            // A few units in the last place: `f32` cannot tell such directions apart.
            Metric::Cosine => distance <= 4.0 * f32::EPSILON,
            // Built by Euclidean distance, which may be 0 by underflow, where inner products still differ.
            Metric::Dot => vector == other,
        }
    }
}
