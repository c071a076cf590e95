//! Distance kernels: one `f32` query against stored vectors of any element type.
//!
//! # What it is
//!
//! The innermost loops of the database. A query is always `&[f32]`; a stored vector is a *byte string* of
//! `dim * scalar.size()` little-endian bytes, at any alignment, exactly as it came off the wire or lies in a
//! mapped file. Nothing is converted beforehand and nothing is allocated.
//!
//! Each operation has three forms, so that the choice of instruction set is paid once a call and not once a row:
//!
//! | form | rows | used by |
//! |---|---|---|
//! | [`Kernels::dot`], … | one | single distances |
//! | [`Kernels::dot_rows`], … | `n` rows that lie one after the other | exact scans |
//! | [`Kernels::dot_gather`], … | `n` rows anywhere in memory, prefetched ahead | graph walks |
//!
//! Memory that will be read soon is asked for by [`mod@prefetch`], into the level of the cache that was measured to be the better one.
//!
//! # What it is not
//!
//! No metric is turned into a "distance" here (that needs norms and signs, see the index), no threads, no
//! symmetric kernels of two stored vectors. Those of quantised graphs are a table of their own: [`rabitq`].
//!
//! # Invariants
//!
//! - The same query and row give the same bits in all three forms, and [`Kernels::dot_and_norm`] gives the same
//!   dot product as [`Kernels::dot`], so results do not depend on which path found them.
//! - Every instruction set agrees with [`Isa::Scalar`] up to the rounding of a sum of `dim` terms.
//! - No byte outside the slices is read: tails are masked or copied.
//!
//! # Example
//!
//! ```
//! use longbow_kernels::{Kernels, Scalar};
//!
//! let kernels = Kernels::get();
//! let stored: Vec<u8> = [1.0f32, 2.0, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! assert_eq!(kernels.dot_and_norm(Scalar::F32, &[1.0, 0.0, 1.0], &stored), (3.0, 9.0));
//! assert_eq!(kernels.l2_squared(Scalar::F32, &[1.0, 0.0, 0.0], &stored), 8.0);
//! ```

#[cfg(target_endian = "big")]
compile_error!("stored vectors are little-endian byte strings and are loaded as they lie");

mod finite;
mod isa;
mod lanes;
mod metric;
mod ops;
mod portable;
pub mod prefetch;
pub mod rabitq;
mod scalar;
mod table;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub use isa::Isa;
pub use metric::Metric;
pub use prefetch::{prefetch, prefetch_all};
pub use scalar::Scalar;
pub use table::Kernels;
