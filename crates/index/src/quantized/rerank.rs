//! The end of a search: exact distances.

use longbow_kernels::prefetch_all;

use super::QuantizedGraph;
use super::scratch::Scratch;
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::space::Query;
use crate::top_k::{Neighbor, TopK};

/// Bytes of vectors that are on their way while one is compared, or at least one vector: of more, the first would be driven out of the
/// nearest cache before they are compared.
const ON_THEIR_WAY: usize = 32 << 10;

impl QuantizedGraph {
    /// Sorts what a walk found, and asks for the vectors of the nearest: of at most `k`, and no more than are compared soon.
    pub(super) fn ask_originals(
        &self,
        k: usize,
        originals: &dyn VectorSource,
        scratch: &mut Scratch,
    ) {
        scratch.found.sort_unstable();
        let first = scratch.found.iter().take(k.min(self.on_their_way()));
        first.for_each(|candidate| self.ask_original(*candidate, originals));
    }

    /// How many vectors are on their way while one is compared.
    fn on_their_way(&self) -> usize {
        (ON_THEIR_WAY / self.space.row_bytes()).max(1)
    }

    #[inline(always)]
    fn ask_original(&self, candidate: Candidate, originals: &dyn VectorSource) {
        // SAFETY: walks find nodes that were written.
        let row = unsafe { self.ground().blocks.row(candidate.node()) };
        if let Some(vector) = originals.vector(row) {
            prefetch_all(vector.as_ptr(), vector.len());
        }
    }

    /// The nearest `k` of what a walk found, which is sorted, by exact distance. A row is compared as long as the error
    /// of its eight-bit code leaves it a chance.
    pub(super) fn rerank(
        &self,
        query: &Query,
        k: usize,
        originals: &dyn VectorSource,
        scratch: &mut Scratch,
    ) -> Vec<Neighbor> {
        let Scratch {
            query: encoded,
            found,
            stats,
            ..
        } = scratch;
        let blocks = &self.ground().blocks;
        let mut top = TopK::new(k);
        let ahead = self.on_their_way();
        for (place, candidate) in found.iter().enumerate() {
            if let Some(later) = found[..k.min(found.len())].get(place + ahead) {
                self.ask_original(*later, originals);
            }
            // SAFETY: walks find nodes that were written.
            let (row, error) = unsafe { (blocks.row(candidate.node()), blocks.error(*candidate)) };
            // The errors of those behind it are much alike.
            if top.len() == k && candidate.distance() - error > encoded.squared(top.bound()) {
                break;
            }
            if let Some(vector) = originals.vector(row) {
                stats.distance_computations += 1;
                stats.bytes_touched += vector.len() as u64;
                top.push(Neighbor {
                    row,
                    distance: query.distance(vector),
                });
            }
        }
        top.into_sorted()
    }
}
