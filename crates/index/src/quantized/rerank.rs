//! The end of a search: exact distances.

use longbow_kernels::prefetch_all;

use super::QuantizedGraph;
use super::ahead::Ahead;
use super::copies::Kept;
use super::scratch::Scratch;
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};

/// Bytes of vectors that are on their way while one is compared, or at least one vector: of more, the first would be driven out of the
/// nearest cache before they are compared.
const ON_THEIR_WAY: usize = 32 << 10;

impl QuantizedGraph {
    /// What asks for the vectors of the `k` nearest while a walk goes on.
    pub(super) fn ahead<'a>(&'a self, originals: &'a dyn VectorSource, k: usize) -> Ahead<'a> {
        let bytes = match k {
            0 => self.space.row_bytes(),
            _ => self.compared_bytes(Option::as_ref(&self.copies.load())),
        };
        Ahead::new((originals, &self.copies), (k, bytes))
    }

    /// Bytes of a vector that is compared at the end.
    fn compared_bytes(&self, copies: Option<&Kept>) -> usize {
        match copies {
            Some(_) => self.space.dim,
            None => self.space.row_bytes(),
        }
    }

    /// Sorts what a walk found, and asks for the vectors of the nearest: of at most `k`, and no more than are compared soon.
    pub(super) fn ask_originals(
        &self,
        k: usize,
        originals: &dyn VectorSource,
        scratch: &mut Scratch,
    ) {
        scratch.found.sort_unstable();
        let copies = self.copies.load();
        let copies = Option::as_ref(&copies);
        let first = scratch.found.iter().take(k.min(self.on_their_way(copies)));
        first.for_each(|candidate| self.ask_original(*candidate, copies, originals));
    }

    /// How many vectors are on their way while one is compared.
    fn on_their_way(&self, copies: Option<&Kept>) -> usize {
        (ON_THEIR_WAY / self.compared_bytes(copies)).max(1)
    }

    #[inline(always)]
    pub(super) fn ask_original(
        &self,
        candidate: Candidate,
        copies: Option<&Kept>,
        originals: &dyn VectorSource,
    ) {
        let node = candidate.node();
        // SAFETY: walks find nodes that were written, and have ended.
        let copy = unsafe { copies.and_then(|copies| copies.place(node)) };
        let place = copy.or_else(|| {
            // SAFETY: as above.
            let vector = originals.vector(unsafe { self.ground().blocks.row(node) })?;
            Some((vector.as_ptr(), vector.len()))
        });
        if let Some((at, bytes)) = place {
            prefetch_all(at, bytes);
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
        let own = encoded.own_scale();
        let mut top = TopK::new(k);
        // The walk has ended: what it found has copies or marks, or there are none.
        let copies = self.copies.load();
        let copies = Option::as_ref(&copies);
        let ahead = self.on_their_way(copies);
        for (place, candidate) in found.iter().enumerate() {
            if let Some(later) = found[..k.min(found.len())].get(place + ahead) {
                self.ask_original(*later, copies, originals);
            }
            // SAFETY: walks find nodes that were written.
            let error = unsafe { blocks.error(*candidate, own) };
            // The errors of those behind it are much alike.
            if top.len() == k && candidate.distance() - error > encoded.squared(top.bound()) {
                break;
            }
            self.compare_exactly(query, *candidate, (copies, originals), (&mut top, stats));
        }
        top.into_sorted()
    }

    /// Compares the vector of a node that was found, which is read where there is no copy.
    #[inline(always)]
    pub(super) fn compare_exactly(
        &self,
        query: &Query,
        candidate: Candidate,
        (copies, originals): (Option<&Kept>, &dyn VectorSource),
        (top, stats): (&mut TopK, &mut SearchStats),
    ) {
        // SAFETY: nodes that were found were written, before copies were looked for.
        let (row, copy) = unsafe {
            let row = self.ground().blocks.row(candidate.node());
            let copy =
                copies.and_then(|copies| Some((copies.form(), copies.vector(candidate.node())?)));
            (row, copy)
        };
        let own = || originals.vector(row).map(|own| (self.space.scalar, own));
        let compared = copy.or_else(own);
        if let Some((scalar, vector)) = compared {
            stats.distance_computations += 1;
            stats.bytes_touched += vector.len() as u64;
            let distance = query.distance_to(scalar, vector);
            top.push(Neighbor { row, distance });
        }
    }
}
