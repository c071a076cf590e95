//! Nodes whose edges have no codes, and whose own are cut.
//!
//! The way to a neighbour has no code of its own then, but each node has the signs of its rotated vector: the one-bit code of RaBitQ (Gao
//! and Long, arXiv 2405.12497) relative to the centre of all. They are those of its eight-bit code, which is cut so that they lie first,
//! and take no memory of their own. A walk estimates each neighbour by them, from a line or two, and reads the rest of
//! few.
//!
//! With `x` the vector, `s` its signs as +1 and -1, and `q` the query, all relative to the centre:
//!
//! ```text
//! |q - x|² ≈ |q|² + |x|² - 2 factor <q, s>       factor = |x|² / <s, x>
//! ```
//!
//! Good for the least memory: half a kilobyte a node at 384 dimensions. Not for the fastest walk: lines of 32 neighbours lie apart from each other,
//! and an estimate errs by the distances from the centre, not by those between neighbours.

use std::sync::atomic::Ordering;

use longbow_kernels::prefetch_all;
use longbow_kernels::rabitq::{Octets, Rabitq, Sliced, sign_bytes, slice};

use super::signs::{Gathered, Signs};
use super::{Blocks, NONE};
use crate::encode::{Encoded, Encoder};
use crate::vector8::{Here, Rounded, Vector8};

impl Blocks {
    /// Writes the code of a node, cut, and returns the factor of its estimate.
    ///
    /// # Safety
    /// As [`Blocks::write`].
    pub(super) unsafe fn write_sliced(&self, node: u32, vector: Vector8) -> f32 {
        let (signs, rest) = (sign_bytes(self.dim), self.rest_bytes());
        // SAFETY: the caller vouches for both.
        let code = unsafe {
            let (near, far) = (self.signs_at(node), self.at(node, self.layout.code));
            near.write_bytes(0, signs);
            far.write_bytes(0, rest);
            let code = std::slice::from_raw_parts(vector.code.cast::<u8>(), self.dim);
            let signs = std::slice::from_raw_parts_mut(near, signs);
            slice(code, signs, std::slice::from_raw_parts_mut(far, rest));
            code
        };
        let sizes = code.iter().map(|x| u32::from((*x as i8).unsigned_abs()));
        let product = vector.scale * sizes.fold(0, u32::wrapping_add) as f32;
        let factor = vector.norm / product;
        // A vector at the centre has no signs.
        if factor.is_finite() { factor } else { 0.0 }
    }

    /// Bytes of a code without the signs.
    #[inline(always)]
    fn rest_bytes(&self) -> usize {
        self.layout.edges - self.layout.code
    }

    /// Where the signs of a node are.
    #[inline(always)]
    fn signs_at(&self, node: u32) -> *mut u8 {
        self.of_code_at(node).wrapping_add(1).cast()
    }

    /// A node's code.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    unsafe fn sliced(&self, node: u32) -> Sliced<'_> {
        // SAFETY: the caller vouches for the node; its code is not written again before nobody reads the node any more.
        unsafe {
            Sliced {
                signs: std::slice::from_raw_parts(self.signs_at(node), sign_bytes(self.dim)),
                rest: std::slice::from_raw_parts(
                    self.at(node, self.layout.code),
                    self.rest_bytes(),
                ),
            }
        }
    }

    /// The code of a node, with which others are to be compared. `room` is for codes that do not lie as such.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(in crate::quantized) unsafe fn here<'a>(
        &self,
        node: u32,
        room: &'a mut Octets,
    ) -> Here<'a> {
        // SAFETY: the caller vouches for the node.
        unsafe {
            if !self.cut() {
                let vector = self.vector(node);
                return Here {
                    vector,
                    octets: room,
                };
            }
            room.join(Rabitq::get(), self.dim, self.sliced(node));
            let of_code = self.of_code(node);
            Here {
                vector: Vector8 {
                    code: room.code().as_ptr().cast(),
                    scale: of_code.scale,
                    norm: of_code.norm,
                    // For what codes that are not cut are compared by.
                    sum: 0,
                },
                octets: room,
            }
        }
    }

    /// Squared distance of two codes.
    ///
    /// # Safety
    /// As [`Blocks::head`], and `here` is of the same dimension.
    #[inline(always)]
    pub(in crate::quantized) unsafe fn between(
        &self,
        encoder: &Encoder,
        here: Here<'_>,
        node: u32,
    ) -> f32 {
        // SAFETY: the caller vouches for the node.
        unsafe {
            if !self.cut() {
                return encoder.between(here.vector, self.vector(node));
            }
            let product = encoder.rabitq.dot_sliced(here.octets, self.sliced(node));
            self.squared(here.vector.into(), node, product)
        }
    }

    /// Squared distance of a query to the code of a node.
    ///
    /// # Safety
    /// As [`Blocks::head`], and the query is made for what the blocks are.
    #[inline(always)]
    pub(in crate::quantized) unsafe fn distance(
        &self,
        encoder: &Encoder,
        query: &Encoded,
        node: u32,
    ) -> f32 {
        // SAFETY: the caller vouches for the node.
        unsafe {
            if !self.cut() {
                return encoder.distance(query, self.vector(node));
            }
            let product = encoder.rabitq.dot_sliced(&query.octets, self.sliced(node));
            self.squared(query.rounded, node, product)
        }
    }

    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    unsafe fn squared(&self, from: Rounded, node: u32, product: i32) -> f32 {
        // SAFETY: the caller vouches for the node.
        let to = unsafe { self.of_code(node) };
        (from.norm + to.norm - 2.0 * from.scale * to.scale * product as f32).max(0.0)
    }

    /// About the squared lengths of a node's edges, by the signs of what they lead to; rather too short than too long, if it is asked which are below
    /// a limit. `here` is the code of the node.
    ///
    /// # Safety
    /// As [`Blocks::between`], where codes are cut.
    pub(in crate::quantized) unsafe fn lengths_by_signs(
        &self,
        encoder: &Encoder,
        here: Here<'_>,
        (node, limit): (u32, f32),
    ) -> impl Iterator<Item = f32> {
        let from = Rounded::from(Vector8::new(here.octets.code(), here.vector.scale));
        let mut linked = Gathered::new();
        // SAFETY: the caller vouches for the node, and neighbours were written before they were linked.
        unsafe {
            for id in self.ids(node) {
                let id = id.load(Ordering::Acquire);
                if id != NONE {
                    linked.ask(self, id);
                }
            }
            linked.estimates(encoder, (here.octets, from), limit)
        }
        .map(|(_, length)| length)
    }

    /// What an estimate of a node reads, of which the memory is asked for.
    #[inline(always)]
    pub(in crate::quantized) fn ask_for_signs(&self, node: u32) -> Signs {
        let at = self.of_code_at(node);
        prefetch_all(at.cast(), self.layout.estimated);
        Signs::new(at)
    }

    /// Bytes that an estimate reads.
    #[inline(always)]
    pub(in crate::quantized) fn estimated_bytes(&self) -> usize {
        self.layout.estimated
    }
}
