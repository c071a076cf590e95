//! Edges as they are written.

use super::{ADD, Blocks, CODES, FACTOR, NONE};
use crate::led_to::LedTo;
use crate::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use half::bf16;
use longbow_kernels::rabitq::{self, GROUP, SLOTS};

/// An edge to be written: where it leads, and the code of the way.
pub(in crate::quantized) struct Edge<'a> {
    pub(in crate::quantized) to: u32,
    /// Signs of the residual, 16 dimensions a word.
    pub(in crate::quantized) bits: &'a [u16],
    pub(in crate::quantized) add: f32,
    pub(in crate::quantized) factor: f32,
}

impl Blocks {
    /// How many edges lead to a node, of nodes that stay.
    ///
    /// # Safety
    /// As [`Blocks::ids`].
    #[inline(always)]
    pub(in crate::quantized) unsafe fn led_to(&self, node: u32) -> &LedTo {
        // SAFETY: the caller vouches for the node.
        unsafe { &self.of_code(node).led_to }
    }

    /// Whether an edge to a node can go: the node leaves, or enough others lead there. It is counted no more then.
    ///
    /// # Safety
    /// As [`Blocks::ids`], and the edge was counted.
    #[inline(always)]
    pub(in crate::quantized) unsafe fn let_go(&self, to: u32) -> bool {
        // SAFETY: the caller vouches for the node.
        unsafe { self.is_leaving(to) || self.led_to(to).let_go() }
    }

    /// The nearest neighbour of a node, or [`NONE`]: its edge has the first slot. Whoever reads it sees all that was written of that
    /// node before it was linked.
    ///
    /// # Safety
    /// As [`Blocks::ids`].
    #[inline(always)]
    pub(in crate::quantized) unsafe fn nearest(&self, node: u32) -> u32 {
        // SAFETY: the caller vouches for the node.
        let ids = unsafe { self.ids(node) };
        ids[0].load(Ordering::Acquire)
    }

    /// About the squared lengths of a node's edges, which have codes, without reading the nodes that they lead to: half of a
    /// `factor` is the residual's squared length by its product with its signs, and that is `sqrt(2 / pi)` of both lengths
    /// multiplied, give or take half of `1 / sqrt(dim)` of it. Those of free slots mean nothing.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(in crate::quantized) unsafe fn about_lengths(&self, node: u32) -> [f32; SLOTS] {
        debug_assert!(self.coded(), "edges have codes");
        // SAFETY: they were written by `write`, and are accessed only as atomics or by volatile reads since.
        let factors = unsafe {
            &*self
                .at(node, self.layout.edges + FACTOR)
                .cast::<[AtomicU16; SLOTS]>()
        };
        let unit = self.dim as f32 / std::f32::consts::TAU;
        std::array::from_fn(|slot| {
            let factor = bf16::from_bits(factors[slot].load(Ordering::Relaxed)).to_f32();
            factor * factor * unit
        })
    }

    /// Writes an edge of a node that has no code into a slot.
    ///
    /// # Safety
    /// As [`Blocks::set_edge`].
    pub(in crate::quantized) unsafe fn set_id(&self, node: u32, slot: usize, to: u32) {
        debug_assert!(!self.coded(), "edges have no codes");
        // SAFETY: the caller vouches for the node.
        let ids = unsafe { self.ids(node) };
        ids[slot].store(to, Ordering::Release);
    }

    /// Writes an edge of a node, with its code, into a slot. Whoever reads the slot meanwhile may see a wrong estimate for the old or
    /// the new neighbour, which costs a detour at most.
    ///
    /// # Safety
    /// As [`Blocks::head`] for the node and the one that the edge leads to; no other thread writes the node's edges.
    pub(in crate::quantized) unsafe fn set_edge(&self, node: u32, slot: usize, edge: &Edge<'_>) {
        assert!(
            self.coded() && slot < SLOTS && edge.bits.len() * 16 == self.dim,
            "slot {slot}"
        );
        // SAFETY: all these were written by `write`, lie in the block, and are accessed only as atomics or by volatile
        // reads since.
        let (add, factor, codes) = unsafe {
            (
                &*self
                    .at(node, self.layout.edges + ADD + 2 * slot)
                    .cast::<AtomicU16>(),
                &*self
                    .at(node, self.layout.edges + FACTOR + 2 * slot)
                    .cast::<AtomicU16>(),
                std::slice::from_raw_parts(
                    self.at(node, self.layout.edges + CODES).cast::<AtomicU8>(),
                    rabitq::code_bytes(self.dim),
                ),
            )
        };
        add.store(bf16::from_f32(edge.add).to_bits(), Ordering::Relaxed);
        factor.store(bf16::from_f32(edge.factor).to_bits(), Ordering::Relaxed);
        let (byte, shift) = (slot % 16, slot / 16 * 4);
        for (word, bits) in edge.bits.iter().enumerate() {
            for group in 0..16 / GROUP {
                let place = &codes[(word * 16 / GROUP + group) * 16 + byte];
                let kept = place.load(Ordering::Relaxed) & !(15 << shift);
                let nibble = (bits >> (group * GROUP) & 15) as u8;
                place.store(kept | nibble << shift, Ordering::Relaxed);
            }
        }
        // SAFETY: the caller vouches for the node.
        let ids = unsafe { self.ids(node) };
        ids[slot].store(edge.to, Ordering::Release);
    }

    /// Makes a slot of a node free.
    ///
    /// # Safety
    /// As [`Blocks::head`]; no other thread writes the node's edges.
    pub(in crate::quantized) unsafe fn clear_edge(&self, node: u32, slot: usize) {
        assert!(slot < SLOTS, "slot {slot}");
        if self.coded() {
            // SAFETY: it was written by `write`, and is accessed only as an atomic or by volatile reads since.
            let add = unsafe {
                &*self
                    .at(node, self.layout.edges + ADD + 2 * slot)
                    .cast::<AtomicU16>()
            };
            add.store(bf16::INFINITY.to_bits(), Ordering::Relaxed);
        }
        // SAFETY: the caller vouches for the node.
        let ids = unsafe { self.ids(node) };
        ids[slot].store(NONE, Ordering::Release);
    }
}
