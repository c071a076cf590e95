//! A graph as bytes: rows and links, without the vectors, which the caller keeps anyway.
//!
//! All numbers are little-endian; there is no padding.
//!
//! ```text
//! offset  bytes      what
//!      0  8          magic: "LBWHNSW\0"
//!      8  4          version: 1
//!     12  1          element type: 0 float32, 1 float16, 2 int8, 3 uint8
//!     13  1          metric: 0 euclidean, 1 cosine, 2 dot product
//!     14  2          m
//!     16  4          dimension
//!     20  8          seed of the levels
//!     28  4          n, number of nodes
//!     32  4          entry: node where walks begin; ff ff ff ff if n is 0
//!     36  8 n        row of each node
//!     36+ 8 n  4 n   next twin of each node; ff ff ff ff: none
//!     36+12 n  n     level of each node, 0 to 15
//!     36+13 n  …     for each node, for each of its lists, one a level from 0 up:
//!                      2      number of links: at most 2 m on level 0, m above
//!                      4 each node linked to
//!                    if the metric is the inner product, level 0 has two lists of at most m links
//!     end - 4  4     CRC-32C (Castagnoli) of all bytes before
//! ```
//!
//! A node is either linked or a twin: nodes that follow another in a chain of twins have level 0, no links, and no
//! links to them. Each follows one other at most.

mod prune;
mod read;
mod reader;
mod write;

pub(crate) use read::same;
pub(crate) use reader::{Reader, checked};
pub use write::Saved;
pub(crate) use write::Sink;

use read::Decoded;

use crate::error::Result;
use crate::hnsw::{Hnsw, HnswParams};
use crate::space::Space;

pub(crate) const MAGIC: [u8; 8] = *b"LBWHNSW\0";
pub(crate) const VERSION: u32 = 1;
/// Bytes before the rows.
pub(crate) const HEADER: usize = 36;
/// Bytes after the links.
pub(crate) const TRAILER: usize = 4;

/// Where the vectors of a checkpoint's rows come from.
pub trait VectorSource {
    /// The vector of a row, or `None` if the row no longer exists.
    fn vector(&self, row: u64) -> Option<&[u8]>;

    /// Has what a search reads of a row that it is about to find be read from the disk soon, without waiting for it.
    fn will_need(&self, row: u64) {
        let _ = row;
    }
}

impl Hnsw {
    /// Reads what [`Hnsw::save`] wrote, and takes the vectors from `vectors`.
    ///
    /// Rows that `vectors` no longer has are left out, and their neighbours are linked to each other instead.
    /// `params.ef_construction` may differ from what it was, and counts for inserts from now on.
    ///
    /// # Errors
    /// If the bytes are not a whole checkpoint of an index of this space, `m` and `seed`; if a vector has a wrong
    /// length; or [`crate::Error::Rebuild`] if more than one row in twenty is gone. Whatever the bytes are, it
    /// does not panic, and allocates no more than an index of so many rows may take.
    pub fn load(
        space: Space,
        params: HnswParams,
        input: &[u8],
        vectors: &dyn VectorSource,
    ) -> Result<Hnsw> {
        Decoded::new(space, params, input)?.build(space, params, vectors)
    }
}
