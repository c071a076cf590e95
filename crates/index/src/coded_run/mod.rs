//! One-bit codes of rows that are compared one after the other.
//!
//! Useful for: rows of which a graph helps little to find the nearest: those that came a moment ago, while their links are still to
//! be made, and those that pass a filter. Codes are a thirtieth of the vectors, and made in a hundredth of the time that links
//! take. Not useful for: few rows, which are read as fast as codes; all rows for good, since a search comes by many of them.
//!
//! Rows are in one cluster, or in many: then a search may leave out those that are far away.
//!
//! ```text
//! bytes  of each 32 rows of a cluster
//!   4 d  one-bit codes of the ways from the cluster's centroid: see `longbow_kernels::rabitq`
//!   128  their `add`, f32
//!    64  their `factor`, the upper halves of f32
//! ```
//!
//! d is the dimension, rounded up to 16; for the dot product one is added before.
//!
//! # What is missed
//!
//! By [`CodedRun::scan`] of all clusters, as good as nothing. The error of an estimate grows with the part of the way to the query that lies
//! across the way to the row, which is at most the distance between the two. So with the distance `b` of the `k`-th nearest of
//! what was found already, a row can only come before it if its estimate is within the error that a row at the distance `b` would
//! have. [`scan::SURE`] standard errors are reckoned with: a row in thirty thousand of those that come before it is farther off by
//! chance. The error of [RaBitQ](https://arxiv.org/abs/2405.12497) is that of a random rotation, whatever the data.
//!
//! Where clusters are left out, by [`CodedRun::nearest`] or a scan of some, [`scan::SURE_OF_SOME`] standard errors are reckoned with. How
//! many clusters are to be read is measured ([`CodedRun::measure`]). Of clusters that were made in haste, a row is
//! in that whose centroid is the nearest to it by the very comparison that a query goes through, so that one like the row finds it (but for
//! the dot product, for which queries are turned otherwise).

mod aim;
mod make;
mod measure;
mod scan;

pub use aim::Aim;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use longbow_kernels::rabitq::{self, SLOTS};

use crate::encode::Encoder;
use crate::lines::Lines;
use crate::space::Space;
use crate::vector8::Vector8;

/// In the place of a row where there is none.
const NONE: u64 = u64::MAX;

/// What codes of runs are relative to: a query is turned once for all that share it ([`Frame::aim`]).
#[derive(Clone)]
pub struct Frame(Arc<Encoder>);

/// The codes of some rows, that stay as they are.
pub struct CodedRun {
    encoder: Arc<Encoder>,
    clusters: Vec<Cluster>,
    /// Eight-bit codes of the centroids.
    centroids: Vec<u8>,
    /// Of each slot of the blocks; those of a cluster ascend.
    rows: Vec<u64>,
    len: usize,
    range: Range<u64>,
    /// How far an eight-bit code, of which the signs are, can be from its vector.
    radius: f32,
    /// The largest factor, without its sign.
    factor: f32,
    lines: Lines,
    /// Recall by the number of clusters that are read, of the nearest few and of more: see [`measure`].
    recall: [Vec<f32>; measure::NEAREST.len()],
}

/// Rows around a centroid.
struct Cluster {
    blocks: Range<u32>,
    rows: u32,
    scale: f32,
    norm: f32,
    sum: i32,
}

impl CodedRun {
    /// From the first row to behind the last one.
    #[must_use]
    pub fn rows(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The space of the vectors.
    #[must_use]
    pub fn space(&self) -> Space {
        self.encoder.space()
    }

    /// What the codes are relative to.
    #[must_use]
    pub fn frame(&self) -> Frame {
        Frame(Arc::clone(&self.encoder))
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many clusters.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.clusters.len()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        // The signs of the rotation, and the mean, which other runs may share.
        let floats = 7 * self.encoder.dim() + self.recall.iter().map(Vec::len).sum::<usize>();
        self.lines.bytes().len()
            + size_of_val(&self.rows[..])
            + self.centroids.len()
            + size_of_val(&self.clusters[..])
            + floats * size_of::<f32>()
    }

    /// The blocks of a cluster.
    fn blocks(&self, cluster: u32) -> Range<usize> {
        let blocks = &self.clusters[cluster as usize].blocks;
        blocks.start as usize..blocks.end as usize
    }

    fn centroid(&self, cluster: usize) -> Vector8 {
        let dim = self.encoder.dim();
        let Cluster {
            scale, norm, sum, ..
        } = self.clusters[cluster];
        Vector8 {
            code: self.centroids[cluster * dim..][..dim].as_ptr().cast(),
            scale,
            norm,
            sum,
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Frame").field(&self.0.space()).finish()
    }
}

/// Bytes of 32 rows.
fn stride(dim: usize) -> usize {
    rabitq::code_bytes(dim) + 6 * SLOTS
}

impl fmt::Debug for CodedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodedRun")
            .field("rows", &self.rows())
            .field("clusters", &self.clusters())
            .finish_non_exhaustive()
    }
}
