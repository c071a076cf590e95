use longbow_kernels::Metric;

use super::Hnsw;
use crate::candidate::Candidate;

impl Hnsw {
    /// Chooses at most `most` of `candidates`, which are sorted by their distance to some node in `metric`, as its
    /// links.
    ///
    /// A candidate is taken if it is nearer to the node than to all that were taken before it, so that links go
    /// out in different directions. This is SELECT-NEIGHBORS-HEURISTIC of Malkov and Yashunin (arXiv 1603.09320,
    /// algorithm 4) without its extensions: pruned candidates are not taken back.
    ///
    /// # Safety
    /// Each candidate was written, and the write happened before.
    pub(super) unsafe fn select(
        &self,
        metric: Metric,
        candidates: &[Candidate],
        most: usize,
        chosen: &mut Vec<u32>,
        room: &mut Vec<f32>,
    ) {
        chosen.clear();
        for candidate in candidates {
            if chosen.len() == most {
                return;
            }
            // SAFETY: the caller vouches for the candidates, and the chosen are some of them.
            let apart = unsafe {
                let probe = self.vectors.probe(candidate.node(), metric, room);
                chosen
                    .iter()
                    .all(|other| self.vectors.distance(probe, *other) >= candidate.distance())
            };
            if apart {
                chosen.push(candidate.node());
            }
        }
    }
}
