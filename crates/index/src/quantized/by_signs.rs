//! The steps of walks along edges that have no codes: neighbours are estimated by the signs of their own codes, or, where a code is short, all
//! compared.

use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::SLOTS;

use super::block::{Gathered, NONE};
use super::filtered_walk::FilteredWalk;
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
        let mut new = Gathered::new();
        // SAFETY: the caller vouches for the node.
        for id in unsafe { blocks.ids(node) } {
            let id = id.load(Ordering::Acquire);
            // Whoever was too far once is too far from then on.
            if id != NONE && visited.notice(id) {
                new.ask(blocks, id);
            }
        }
        scratch.stats.bytes_touched += (new.len() * blocks.estimated_bytes()) as u64;
        let (limit, query) = (scratch.front.limit(), &scratch.query);
        let query = (&query.octets, query.rounded);
        // SAFETY: neighbours were written before they were linked.
        for (id, estimate) in unsafe { new.estimates(self.graph.encoder(), query, limit) } {
            if estimate < limit {
                fresh.push(Candidate::new(estimate, id));
            }
        }
        if fresh.len() > FEW {
            fresh.sort_unstable();
        }
    }
}

impl FilteredWalk<'_> {
    /// Takes note of the neighbours of `node` that may be near enough: [`FilteredWalk::note`].
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    pub(super) unsafe fn follow_without_codes(&mut self, node: u32) {
        let blocks = self.blocks();
        // SAFETY: the caller vouches for the node, and neighbours were written before they were linked.
        unsafe {
            let ids = blocks.ids(node).iter();
            let ids = ids.map(|id| id.load(Ordering::Acquire));
            if !blocks.cut() {
                // Nothing is known of them.
                for id in ids.filter(|id| *id != NONE) {
                    self.note(Candidate::new(0.0, id));
                }
                return;
            }
            let mut open = Gathered::new();
            for id in ids {
                if id != NONE && !self.scratch.visited.has_met(id) {
                    open.ask(blocks, id);
                }
            }
            let is_settled = self.is_settled();
            let scratch = &mut *self.scratch;
            scratch.stats.bytes_touched += (open.len() * blocks.estimated_bytes()) as u64;
            let limit = scratch.front.limit();
            let encoder = self.passing.graph.encoder();
            let query = (&scratch.query.octets, scratch.query.rounded);
            let mut near = [Candidate::new(0.0, NONE); SLOTS];
            let mut count = 0;
            for (id, estimate) in open.estimates(encoder, query, limit) {
                if estimate < limit {
                    near[count] = Candidate::new(estimate, id);
                    count += 1;
                } else if is_settled {
                    // Too far from now on, whether it passes or not.
                    scratch.visited.meet(id);
                }
            }
            for neighbor in &near[..count] {
                self.note(*neighbor);
            }
        }
    }

    /// Estimates what passes behind neighbours that do not, and keeps what may be near enough in `scratch.fresh`.
    ///
    /// # Safety
    /// The nodes there were written, and the writes happened before.
    pub(super) unsafe fn estimate_fresh(&mut self) {
        let (blocks, is_settled) = (self.blocks(), self.is_settled());
        let encoder = self.passing.graph.encoder();
        let Scratch {
            query,
            front,
            fresh,
            stats,
            ..
        } = &mut *self.scratch;
        let limit = front.limit();
        stats.bytes_touched += (fresh.len() * blocks.estimated_bytes()) as u64;
        for some in fresh.chunks_mut(SLOTS) {
            let mut gathered = Gathered::new();
            some.iter().for_each(|of| gathered.ask(blocks, of.node()));
            let query = (&query.octets, query.rounded);
            // SAFETY: the caller vouches for the nodes.
            let estimates = unsafe { gathered.estimates(encoder, query, limit) };
            for (place, (node, estimate)) in some.iter_mut().zip(estimates) {
                *place = Candidate::new(estimate, node);
            }
        }
        if is_settled {
            fresh.retain(|of| of.distance() < limit);
        }
        fresh.sort_unstable();
    }
}
