//! The step of a walk along edges that have no codes: neighbours are estimated by the signs of their own codes, or, where a code is short, all
//! compared.

use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::SLOTS;

use super::block::{NONE, Signs};
use super::scratch::Scratch;
use super::walk::{Admit, FEW, Walk};
use crate::candidate::Candidate;

impl<A: Admit> Walk<'_, A> {
    /// Leaves in `scratch.fresh` those neighbours of `node` that were not met and may be near enough.
    ///
    /// # Safety
    /// As [`Admit::admit`].
    pub(super) unsafe fn follow_without_codes(&mut self, node: u32) {
        let blocks = &self.level().blocks;
        if blocks.cut() {
            // SAFETY: the caller vouches for the node.
            return unsafe { self.follow_by_signs(node) };
        }
        let Scratch { visited, fresh, .. } = &mut *self.scratch;
        // SAFETY: the caller vouches for the node.
        let ids = unsafe { blocks.ids(node) }.iter();
        let ids = ids.map(|id| id.load(Ordering::Acquire));
        // Nothing is known of them.
        let new = ids.filter(|id| *id != NONE && !visited.has_met(*id));
        fresh.extend(new.map(|id| Candidate::new(0.0, id)));
    }

    /// Estimates those neighbours of `node` that no edge led to before, and leaves those that may be near enough in `scratch.fresh`.
    ///
    /// # Safety
    /// As [`Admit::admit`].
    #[inline(always)]
    unsafe fn follow_by_signs(&mut self, node: u32) {
        let blocks = &self.level().blocks;
        let scratch = &mut *self.scratch;
        let (visited, fresh) = (&mut scratch.visited, &mut scratch.fresh);
        let (mut new, mut signs) = ([0; SLOTS], [std::ptr::null(); SLOTS]);
        let mut count = 0;
        // SAFETY: the caller vouches for the node.
        for id in unsafe { blocks.ids(node) } {
            let id = id.load(Ordering::Acquire);
            // Whoever was too far once is too far from then on.
            if id != NONE && visited.notice(id) {
                (new[count], signs[count]) = (id, blocks.ask_for_signs(id).at());
                count += 1;
            }
        }
        scratch.stats.bytes_touched += (count * blocks.estimated_bytes()) as u64;
        let rabitq = self.graph.encoder().rabitq;
        let (limit, query) = (scratch.front.limit(), scratch.query.rounded);
        let mut sums = [0; SLOTS];
        let (octets, signs) = (&scratch.query.octets, &signs[..count]);
        // SAFETY: neighbours were written before they were linked.
        unsafe { rabitq.sums_where_negative(octets, signs, &mut sums[..count]) };
        for ((id, signs), negative) in new.into_iter().zip(signs).zip(sums) {
            // SAFETY: as above.
            let estimate = unsafe { Signs::of(*signs).estimate(query, negative, limit) };
            if estimate < limit {
                fresh.push(Candidate::new(estimate, id));
            }
        }
        if fresh.len() > FEW {
            fresh.sort_unstable();
        }
    }
}
