//! What a walk reads of nodes at a time, and asks for before.

use longbow_kernels::prefetch_all;

use super::layout::ADD;
use super::{Blocks, OfCode};

impl Blocks {
    /// Asks for the cache lines of a node's edges.
    #[inline(always)]
    pub(in crate::quantized) fn prefetch_edges(&self, node: u32) {
        prefetch_all(self.at(node, self.layout.edges), self.edge_bytes());
    }

    /// Asks for the cache lines of the numbers of a node's neighbours.
    #[inline(always)]
    pub(in crate::quantized) fn prefetch_ids(&self, node: u32) {
        prefetch_all(self.at(node, self.layout.edges), ADD);
    }

    /// Asks for the cache lines of a node's eight-bit code and what belongs to it.
    #[inline(always)]
    pub(in crate::quantized) fn prefetch_vector(&self, node: u32) {
        if let Some(near) = &self.near {
            prefetch_all(near.at(node).as_ptr(), self.layout.estimated);
        }
        prefetch_all(self.at(node, 0), self.layout.read);
    }

    /// Asks for the cache line that tells how many edges lead to a node.
    #[inline(always)]
    pub(in crate::quantized) fn prefetch_led_to(&self, node: u32) {
        prefetch_all(self.of_code_at(node).cast(), size_of::<OfCode>());
    }

    /// Nodes that a walk compares at once.
    #[inline(always)]
    pub(in crate::quantized) fn batch(&self) -> usize {
        self.batch
    }

    /// The same of neighbours that were just estimated, or taken up.
    #[inline(always)]
    pub(in crate::quantized) fn first(&self) -> usize {
        self.first
    }

    /// Bytes that a distance to a node reads.
    pub(in crate::quantized) fn vector_bytes(&self) -> usize {
        self.layout.compared()
    }

    /// Bytes that following a node's edges reads.
    pub(in crate::quantized) fn edge_bytes(&self) -> usize {
        self.layout.stride - self.layout.edges
    }
}
