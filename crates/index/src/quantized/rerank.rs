//! The end of a search: exact distances.

use longbow_kernels::prefetch_all;

use super::QuantizedGraph;
use super::scratch::Scratch;
use crate::checkpoint::VectorSource;
use crate::space::Query;
use crate::top_k::{Neighbor, TopK};

/// Errors of a squared distance to an eight-bit code, in units of its scale times the distance, that are reckoned with.
/// Each element's rounding error is even over one step, 0.29 steps in standard deviation, and counts twice: this is
/// three and a half standard deviations.
const ERRORS: f32 = 2.0;

impl QuantizedGraph {
    /// Sorts what a walk found, and asks for the vectors of the nearest `k`.
    pub(super) fn ask_originals(
        &self,
        k: usize,
        originals: &dyn VectorSource,
        scratch: &mut Scratch,
    ) {
        scratch.found.sort_unstable();
        for candidate in scratch.found.iter().take(k) {
            // SAFETY: walks find nodes that were written.
            let row = unsafe { self.ground().blocks.row(candidate.node()) };
            if let Some(vector) = originals.vector(row) {
                prefetch_all(vector.as_ptr(), vector.len());
            }
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
        for candidate in found.iter() {
            // SAFETY: walks find nodes that were written.
            let (row, scale) = unsafe {
                let node = candidate.node();
                (blocks.row(node), blocks.vector(node).scale)
            };
            if top.len() == k {
                let distance = candidate.distance();
                // Rounding moves what a code stands for across and along the way to the query: across, it lengthens
                // the way by a twelfth of a squared step a dimension; along, it is as likely to shorten it.
                let across = scale * scale * self.encoder().dim() as f32 / 12.0;
                let error = across + ERRORS * scale * distance.sqrt();
                if distance - error > encoded.squared(top.bound()) {
                    // The errors of those behind it are much alike.
                    break;
                }
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
