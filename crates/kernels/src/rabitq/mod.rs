//! Kernels of a quantised graph: rotation, one-bit codes that are scored 32 at a time, and eight-bit codes.
//!
//! # One-bit codes of edges
//!
//! A node `v` keeps for each neighbour `n` the signs of the rotated residual `r = P n - P v`, one bit a dimension, and
//! two factors. With `s` the signs as +1 and -1, the estimate of RaBitQ (Gao and Long, arXiv 2405.12497), taken relative
//! to the node whose links are followed as in SymphonyQG (Gou et al., arXiv 2411.12229), is
//!
//! ```text
//! |q - n|² ≈ |q - v|² + |r|² - 2 t (<P q, s> - <P v, s>)      t = |r|² / <s, r>
//!          = |q - v|² + add + factor <P q, s>                 factor = -2 t,  add = |r|² + 2 t <P v, s>
//! ```
//!
//! so that only `<P q, s>` depends on the query. It is the sum over groups of four dimensions of one of 16 values, and
//! these are rounded to six bits once a query ([`Lut`]). The codes of 32 neighbours lie side by side, so that one shuffle
//! of a register looks up many at once: FastScan (André et al., arXiv 1704.07355).
//!
//! ```text
//! group 0                                                  group 1            …
//! +--------+--------+--------+     +--------+              +--------+--------+
//! | 16 | 0 | 17 | 1 | 18 | 2 |  …  | 31 | 15|              | 16 | 0 | 17 | 1 |
//! +--------+--------+--------+     +--------+              +--------+--------+
//!  byte 0: high nibble of slot 16, low nibble of slot 0; bit j of a nibble: dimension 4 g + j, 1 for positive
//! ```
//!
//! # Eight-bit codes
//!
//! A node's rotated vector is rounded to bytes. Two of them are compared by [`Rabitq::dot_i8`] while a graph is built,
//! and a query is compared to one by [`Rabitq::dot_query`]: the query is rounded to 16 bits ([`Planes`]), so that both
//! sides are multiplied as integers. The signs of a code may lie apart ([`slice()`]), so that they alone tell about how far it is; it is
//! compared with [`Octets`] then ([`Rabitq::dot_sliced`]).
//!
//! # Races
//!
//! A graph changes an edge while others read it. [`Rabitq::estimate`] therefore takes pointers, and reads each byte
//! once, volatile: what a race can yield is a wrong estimate of one neighbour, never anything unsafe.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod generic;
mod line;
mod lut;
#[cfg(target_arch = "aarch64")]
mod neon;
mod planes;
mod portable;
mod rotation;
mod sliced;
mod table;

pub use lut::Lut;
pub use planes::Planes;
pub use rotation::Rotation;
pub use sliced::{Octets, Sliced, sign_bytes, slice, sliced_bytes};
pub use table::{Add, Base, Block, Rabitq, Residual};

/// Neighbours whose codes lie side by side.
pub const SLOTS: usize = 32;
/// Dimensions that one lookup covers.
pub const GROUP: usize = 4;
/// Codes have a multiple of this many dimensions; the others are zero.
pub const DIM_STEP: usize = 16;

/// Bytes of the one-bit codes of [`SLOTS`] neighbours of `dim` dimensions, a multiple of [`DIM_STEP`].
#[must_use]
pub const fn code_bytes(dim: usize) -> usize {
    dim / GROUP * (SLOTS / 2)
}
