use super::QuantizedGraph;
use super::block::{FREE, NONE};
use crate::candidate::Candidate;

/// Which nodes a search is about: those of rows that pass, themselves or by a twin.
#[derive(Clone, Copy)]
pub(super) struct Passing<'a> {
    pub(super) graph: &'a QuantizedGraph,
    pub(super) row: &'a (dyn Fn(u64) -> bool + Sync),
    /// Nodes of one chain of twins that are taken.
    pub(super) twins: usize,
}

impl Passing<'_> {
    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    pub(super) unsafe fn node(&self, node: u32) -> bool {
        // SAFETY: the caller vouches for the node.
        match unsafe { self.graph.places.row(node) } {
            Some(row) => (self.row)(row),
            // SAFETY: the caller vouches for the node.
            None => unsafe { self.chain(node) },
        }
    }

    /// # Safety
    /// As [`Passing::node`].
    #[cold]
    unsafe fn chain(&self, mut node: u32) -> bool {
        let blocks = &self.graph.ground().blocks;
        while node != NONE {
            // SAFETY: the caller vouches for the node, and a twin was written before it was chained.
            unsafe {
                if (self.row)(blocks.row(node)) {
                    return true;
                }
                node = blocks.twin(node);
            }
        }
        false
    }

    /// Adds a node that passes to `found`, and its twins that do.
    ///
    /// # Safety
    /// As [`Passing::node`].
    #[inline(always)]
    pub(super) unsafe fn take(&self, node: Candidate, found: &mut Vec<Candidate>) {
        // SAFETY: the caller vouches for the node, and a twin was written before it was chained.
        unsafe {
            if self.graph.places.row(node.node()).is_some() {
                found.push(node);
                return;
            }
            self.take_compared(node, found);
        }
    }

    /// Adds a node and its twins to `found` as far as they pass, by what its block says, which was just read.
    ///
    /// # Safety
    /// As [`Passing::node`].
    #[inline(always)]
    pub(super) unsafe fn take_compared(&self, node: Candidate, found: &mut Vec<Candidate>) {
        let blocks = &self.graph.ground().blocks;
        let (mut at, mut left) = (node.node(), self.twins);
        let mut first = FREE;
        while at != NONE && left > 0 {
            // SAFETY: the caller vouches for the node, and a twin was written before it was chained.
            unsafe {
                let row = blocks.row(at);
                // The row of an heir is in the chain twice.
                if row != first && (self.row)(row) {
                    found.push(Candidate::new(node.distance(), at));
                    left -= 1;
                }
                if at == node.node() {
                    first = row;
                }
                at = blocks.twin(at);
            }
        }
    }
}
