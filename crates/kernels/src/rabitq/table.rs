//! The table of entry points, chosen once for the processor.

use std::fmt;
use std::sync::LazyLock;

use super::sliced::{CHUNK, Parts};
use super::{DIM_STEP, Lut, Octets, Planes, Rotation, SLOTS, Sliced};
use crate::Isa;

/// Where the codes and factors of a node's neighbours lie; see the module for their layout.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// One-bit codes, 64-byte aligned: [`super::code_bytes`] of the table's dimensions.
    pub codes: *const u8,
    /// The terms `add`.
    pub add: Add,
    /// [`SLOTS`] upper halves of `f32`.
    pub factor: *const u16,
}

/// Where the terms `add` of [`SLOTS`] neighbours lie.
#[derive(Debug, Clone, Copy)]
pub enum Add {
    /// `f32`.
    Whole(*const f32),
    /// Upper halves of `f32`: rounding them moves an estimate far less than what one bit a dimension leaves open, unless
    /// `|P v|` is many times the distances that are estimated.
    Upper(*const u16),
}

/// The node from which neighbours are estimated.
#[derive(Debug, Clone, Copy)]
pub struct Base {
    /// Squared distance from the query.
    pub distance: f32,
    /// Added to each `<P q, s>`: lowers an estimate in proportion to the length of the edge, as its error grows. 0 for
    /// estimates without bias.
    pub slack: f32,
}

/// The one-bit code of a residual and what its factors are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// `|r|²`
    pub norm: f32,
    /// `<s, r>`, the sum of absolute values.
    pub total: f32,
    /// `<P v, s>`
    pub origin: f32,
}

type Split = unsafe fn(&[f32], &mut [u8]) -> (f32, [i32; 2]);
type Estimate = unsafe fn(&Lut, Block, Base, f32, &mut [f32; SLOTS]) -> u32;

/// The kernels of one instruction set. Lengths that disagree are a fault of the caller, and panic.
pub struct Rabitq {
    pub(crate) isa: Isa,
    pub(crate) estimate: Estimate,
    pub(crate) fill_lut: unsafe fn(&[f32], &mut [u8]) -> (f32, f32),
    pub(crate) split: Split,
    pub(crate) rotate: unsafe fn(&Rotation, &mut [f32]),
    pub(crate) dot_i8: unsafe fn(*const i8, *const i8, usize, i32) -> i32,
    pub(crate) dot_query: unsafe fn(&Planes, *const i8) -> f32,
    pub(super) sums_where_negative: unsafe fn(&Octets, &[*const u8], &mut [i32]),
    pub(super) join: unsafe fn(Parts<'_>, &mut [[u8; CHUNK]]),
    pub(super) dot_sliced: unsafe fn(&Octets, Sliced<'_>) -> i32,
    pub(crate) residual: unsafe fn(*const i8, f32, *const i8, f32, &mut [u16]) -> Residual,
}

impl Rabitq {
    /// The widest kernels that this processor runs. The choice is made on the first call.
    #[must_use]
    pub fn get() -> &'static Rabitq {
        static CHOSEN: LazyLock<&'static Rabitq> = LazyLock::new(|| {
            Isa::ALL
                .into_iter()
                .find_map(Rabitq::for_isa)
                .unwrap_or(&super::portable::KERNELS)
        });
        *CHOSEN
    }

    /// The kernels of one instruction set, or `None` if this processor cannot run them or there are none.
    #[must_use]
    pub fn for_isa(isa: Isa) -> Option<&'static Rabitq> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.is_available() && is_x86_feature_detected!("avx512vnni") => {
                Some(&super::avx512::KERNELS)
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if isa.is_available() => Some(&super::avx2::KERNELS),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if isa.is_available() => Some(&super::neon::KERNELS),
            Isa::Scalar => Some(&super::portable::KERNELS),
            _ => None,
        }
    }

    /// The instruction set.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Estimates of the squared distances from a query to the [`SLOTS`] neighbours in a block. `base` is the node
    /// itself. Bit `i` of the result tells whether `out[i]` is below `limit`; slots that were never
    /// written yield anything.
    ///
    /// # Safety
    /// The block holds codes of the dimensions of `lut`, aligned as told. Others may write to it meanwhile, each byte
    /// atomically.
    #[inline(always)]
    pub unsafe fn estimate(
        &self,
        lut: &Lut,
        block: Block,
        base: Base,
        limit: f32,
        out: &mut [f32; SLOTS],
    ) -> u32 {
        // SAFETY: the caller vouches for the block; the table was handed out only if the processor has the set.
        unsafe { (self.estimate)(lut, block, base, limit, out) }
    }

    pub(crate) fn fill_lut(&self, rotated: &[f32], bytes: &mut [u8]) -> (f32, f32) {
        assert_eq!(bytes.len(), 4 * rotated.len(), "16 bytes a group");
        // SAFETY: the lengths were checked; the table was handed out only if the processor has the set.
        unsafe { (self.fill_lut)(rotated, bytes) }
    }

    /// Rounds a query to what [`Planes`] tells; its step, and the sum of each plane if it is planes.
    pub(crate) fn split(&self, query: &[f32], bytes: &mut [u8]) -> (f32, [i32; 2]) {
        assert_eq!(bytes.len(), 128 * query.len().div_ceil(64), "whole lines");
        // SAFETY: the table was handed out only if the processor has the set.
        unsafe { (self.split)(query, bytes) }
    }

    pub(crate) fn rotate(&self, rotation: &Rotation, vector: &mut [f32]) {
        // SAFETY: the table was handed out only if the processor has the set.
        unsafe { (self.rotate)(rotation, vector) }
    }

    /// Inner product of two eight-bit codes of `dim` elements, a multiple of [`DIM_STEP`]; `sum` is the sum of the
    /// elements of `b`. Exact up to 100,000 dimensions.
    ///
    /// # Safety
    /// Both have `dim` readable bytes.
    #[inline(always)]
    pub unsafe fn dot_i8(&self, a: *const i8, b: *const i8, dim: usize, sum: i32) -> i32 {
        debug_assert_eq!(dim % DIM_STEP, 0, "{dim} dimensions");
        // SAFETY: the caller vouches for the bytes; the table was handed out only if the processor has the set.
        unsafe { (self.dot_i8)(a, b, dim, sum) }
    }

    /// Inner product of a query, filled by these kernels, and an eight-bit code, up to the rounding of the query's elements and of one `f32`.
    ///
    /// # Safety
    /// The code has as many readable bytes as `query` has dimensions.
    #[inline(always)]
    #[must_use]
    pub unsafe fn dot_query(&self, query: &Planes, code: *const i8) -> f32 {
        // SAFETY: the caller vouches for the bytes; the table was handed out only if the processor has the set.
        unsafe { (self.dot_query)(query, code) }
    }

    /// The one-bit code of the residual `to_scale * to - from_scale * from`, 16 dimensions a word.
    ///
    /// # Safety
    /// Both codes have 16 readable bytes for each word of `bits`.
    pub unsafe fn residual(
        &self,
        from: (*const i8, f32),
        to: (*const i8, f32),
        bits: &mut [u16],
    ) -> Residual {
        // SAFETY: the caller vouches for the bytes; the table was handed out only if the processor has the set.
        unsafe { (self.residual)(from.0, from.1, to.0, to.1, bits) }
    }
}

impl fmt::Debug for Rabitq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rabitq")
            .field("isa", &self.isa)
            .finish_non_exhaustive()
    }
}
