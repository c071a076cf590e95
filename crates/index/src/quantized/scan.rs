//! Exact search among rows that are given one by one.

use super::QuantizedGraph;
use super::scratch::Scratch;
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::encode::Encoded;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};

/// Rows whose codes are asked for ahead of the one that is compared.
const AHEAD: usize = 8;
/// Vectors that are asked for before the first is compared, at most.
const ASKED: usize = 16;

impl QuantizedGraph {
    /// The `k` nearest of some rows, each given once, nearest first: exactly, in less time than by their vectors, since
    /// all are compared by their eight-bit codes, and by their vectors only those whose codes leave it open whether they
    /// are among the nearest. How far a code can be from its vector is known, so none is missed.
    ///
    /// Rows that are not in the graph are added to `missing`, and are for the caller to compare. One that was retired may
    /// be there still, so the caller asks for such only as it would see.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    #[must_use]
    pub fn scan_rows(
        &self,
        query: &Query,
        k: usize,
        rows: impl Iterator<Item = u64>,
        originals: &dyn VectorSource,
        (missing, stats): (&mut Vec<u64>, &mut SearchStats),
    ) -> Vec<Neighbor> {
        let _visit = self.enter();
        let Some(mut scratch) = self.prepare_query(query) else {
            missing.extend(rows);
            return Vec::new();
        };
        scratch.found.clear();
        let nodes = &mut scratch.found;
        self.places.find(rows, |row, node| match node {
            Some(node) => nodes.push(Candidate::new(0.0, node)),
            None => missing.push(row),
        });
        let Scratch {
            query: encoded,
            found,
            stats: counts,
            ..
        } = &mut *scratch;
        let radius = self.compare_codes(encoded, found, counts);
        let found = self.verify(query, (k, radius), originals, &mut scratch);
        *stats += scratch.stats;
        self.pool.give(scratch);
        found
    }

    /// Compares nodes of the lowest level, which were remembered, and returns how far a code of theirs is at most from its
    /// vector.
    pub(super) fn compare_codes(
        &self,
        query: &Encoded,
        found: &mut [Candidate],
        stats: &mut SearchStats,
    ) -> f32 {
        let blocks = &self.ground().blocks;
        let encoder = self.encoder();
        let mut scale = 0f32;
        for candidate in found.iter().take(AHEAD) {
            blocks.prefetch_vector(candidate.node());
        }
        for place in 0..found.len() {
            if let Some(next) = found.get(place + AHEAD) {
                blocks.prefetch_vector(next.node());
            }
            let node = found[place].node();
            // SAFETY: nodes that were remembered were written.
            let distance = unsafe {
                scale = scale.max(blocks.scale(node));
                blocks.distance(encoder, query, node)
            };
            found[place] = Candidate::new(distance, node);
        }
        stats.distance_computations += found.len() as u64;
        stats.bytes_touched += (found.len() * blocks.vector_bytes()) as u64;
        // Each element is rounded to the nearest step, and maybe that of the query, too.
        0.5 * (scale + query.own_scale()) * (encoder.dim() as f32).sqrt()
    }

    /// The nearest `k` of `scratch.found`, none of whose codes is farther than `radius` from its vector.
    fn verify(
        &self,
        query: &Query,
        (k, radius): (usize, f32),
        originals: &dyn VectorSource,
        scratch: &mut Scratch,
    ) -> Vec<Neighbor> {
        let Scratch {
            query: encoded,
            found,
            stats,
            ..
        } = scratch;
        let mut top = TopK::new(k);
        // The nodes were found: they have copies or marks, or there are none.
        let copies = self.copies.load();
        let copies = Option::as_ref(&copies);
        let mut compare = |candidate: &Candidate, top: &mut TopK| {
            self.compare_exactly(query, *candidate, (copies, originals), (top, stats));
        };
        if found.len() > k {
            found.select_nth_unstable(k);
        }
        let (first, rest) = found.split_at(k.min(found.len()));
        for candidate in first.iter().take(ASKED) {
            self.ask_original(*candidate, copies, originals);
        }
        first
            .iter()
            .for_each(|candidate| compare(candidate, &mut top));
        // Their distances bound those of the others.
        let mut rest: Vec<Candidate> = {
            let bound = self.encoder().farthest(encoded, radius, top.bound());
            let open = rest
                .iter()
                .filter(|c| top.len() < k || c.distance() <= bound);
            open.copied().collect()
        };
        rest.sort_unstable();
        for candidate in &rest {
            if top.len() == k
                && candidate.distance() > self.encoder().farthest(encoded, radius, top.bound())
            {
                break;
            }
            compare(candidate, &mut top);
        }
        top.into_sorted()
    }
}
