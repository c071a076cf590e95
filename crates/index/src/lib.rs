//! Nearest-neighbour search: exact ([`flat`]), by a graph of whole vectors ([`Hnsw`]) or of quantised ones
//! ([`QuantizedGraph`]), all in memory, and by postings of quantised vectors in a file of the caller's ([`SpFresh`]).
//!
//! # What it is
//!
//! An index maps *rows* (numbers that the caller gives out) to vectors, and finds the rows nearest to a query.
//! Vectors come as byte strings of their native type (see `longbow-kernels`) and are compared with `f32` queries.
//! Any row may be *invisible* to a query, because it was deleted or does not pass a filter: the caller says so by
//! a function, and invisible rows are walked through but never returned. Where a filter leaves part of the rows,
//! a [`QuantizedGraph`] goes along those ([`QuantizedGraph::search_filtered`]), or scans them exactly by their codes
//! ([`QuantizedGraph::scan_rows`]); [`FilterCost`] tells which takes less. Rows that wait for their turn to come into an index, and
//! those of filters that are asked for often, are compared by codes of their own ([`CodedRun`]).
//!
//! # What it is not
//!
//! It knows no files, no network, no clock, no async runtime and no Arrow. Rows that are deleted turn
//! invisible at once; a [`QuantizedGraph`] gives up their place when told to ([`QuantizedGraph::retire`]), so does an
//! [`SpFresh`] ([`SpFresh::sweep`]), an [`Hnsw`] never. It does not log: what is in memory is lost, unless saved by
//! [`Hnsw::save`] or [`QuantizedGraph::save`] through a writer of the caller's.
//!
//! # Distances
//!
//! Inside the crate a *distance* is a number of which smaller is nearer, so that all metrics share one code:
//!
//! | metric | distance inside | [`Space::to_distance_and_score`] |
//! |---|---|---|
//! | euclidean | squared L2 | distance = its root, score = 1 / (1 + distance) |
//! | cosine | 1 - cos, 0 ..= 2; a zero vector has cos 0 | distance, score = 1 - distance |
//! | dot | -(inner product) | distance, score = inner product |
//!
//! A distance is never NaN: where the arithmetic has no answer (infinity minus infinity) it is `+inf`, last.
//!
//! # Invariants
//!
//! - The exact scan and the graphs give the same bits for the distance of the same query and row.
//! - Neighbours are ordered by distance, ties by the smaller row.
//! - Searches of graphs take no lock, and see a row only when its vector and links are wholly written.
//! - Bytes of a checkpoint are never trusted: any input gives an index or an [`Error`].
//!
//! # Example
//!
//! ```
//! use longbow_index::{Hnsw, HnswParams, Metric, Query, Scalar, SearchStats, Space};
//!
//! # fn main() -> Result<(), longbow_index::Error> {
//! let space = Space { scalar: Scalar::F32, metric: Metric::Euclidean, dim: 2 };
//! let index = Hnsw::new(space, HnswParams::default())?;
//! for row in 0..100u64 {
//!     let vector: Vec<u8> = [row as f32, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//!     index.insert(row, &vector)?;
//! }
//! let query = Query::new(space, &[41.9, 0.0])?;
//! let even = |row: u64| row % 2 == 0;
//! let found = index.search(&query, 2, 50, &even, &mut SearchStats::default());
//! assert_eq!(found.iter().map(|n| n.row).collect::<Vec<_>>(), [42, 40]);
//! # Ok(())
//! # }
//! ```

mod bytes_per_row;
mod candidate;
mod centre;
mod checkpoint;
mod chunks;
mod coded_run;
mod encode;
mod error;
mod filter_cost;
mod filtered;
pub mod flat;
mod hnsw;
#[cfg(shuttle)]
#[cfg(test)]
mod interleave;
mod led_to;
mod lines;
mod mix;
mod narrow;
mod origin;
mod pages;
mod pool;
mod prefetch_aim;
mod quantized;
mod side_by_side;
mod space;
mod spfresh;
mod sphere;
mod stats;
mod sync;
mod top_k;
mod twins;
mod two_means;
mod vector8;
mod vector_index;
mod visited;
mod visits;

pub use bytes_per_row::RowBytes;
pub use checkpoint::{Saved, VectorSource};
pub use coded_run::{Aim, CodedRun, Frame};
pub use error::{Error, Result};
pub use filter_cost::FilterCost;
pub use filtered::{Entries, Filtered};
pub use hnsw::{Hnsw, HnswParams};
pub use longbow_kernels::{Metric, Scalar};
pub use quantized::{Progress, QuantizedGraph, QuantizedParams};
pub use space::{Query, Space};
pub use spfresh::{BlockFile, Lost, SpFresh, SpFreshParams, Swept};
pub use stats::SearchStats;
pub use top_k::{Neighbor, TopK};
pub use vector_index::{IsOver, VectorIndex};
pub use visits::Visit;
