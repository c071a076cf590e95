//! A hierarchical navigable small world graph: Malkov and Yashunin, arXiv 1603.09320.
//!
//! Every vector is a node; each node is linked to near nodes on level 0, one in `m` of them on level 1 too, one in
//! `m * m` on level 2, and so on. A search descends from the top level and collects the nearest on level 0.
//!
//! What differs from the paper:
//!
//! - Nodes whose vector equals that of a node that is there already become its *twins*: they hang on a chain behind
//!   it and have no links. Linked like others they would form an island from which no link leads out, because they
//!   are all nearer to each other than to anything else.
//! - For the inner product, half of the links on level 0 are chosen by Euclidean distance, and half by inner product
//!   as Morozov and Babenko do (Non-metric similarity graphs for maximum inner product search, 2018). The first lead
//!   everywhere, but seldom to vectors that are longer than others, since those are far from all. The second lead to
//!   the long ones, which win most queries, but to few others, which win when the long ones are hidden. Upper levels
//!   are by Euclidean distance.
//! - Searches run without locks beside inserts: see `nodes`.

mod filtered;
mod insert;
mod link;
mod nodes;
mod params;
mod parts;
mod scratch;
mod search;
mod select;
#[cfg(test)]
mod tests;
mod vectors;
mod walk;

use crate::sync::atomic::{AtomicU64, Ordering};
use std::fmt;

use crate::sync::Mutex;
use longbow_kernels::Metric;

pub use params::HnswParams;

pub(crate) use nodes::{List, MAX_LEVEL, NONE};
pub(crate) use parts::Assembly;

use nodes::Nodes;
use scratch::Scratch;
use vectors::Vectors;

use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::pool::Pool;
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::top_k::Neighbor;
use crate::vector_index::VectorIndex;

/// Locks over which the nodes are spread; more than there are threads, so that they seldom meet.
const STRIPES: usize = 1024;
/// The entry of an empty graph.
const NO_ENTRY: u64 = u64::MAX;

/// An approximate index that takes inserts from many threads and answers searches meanwhile.
pub struct Hnsw {
    space: Space,
    params: HnswParams,
    vectors: Vectors,
    nodes: Nodes,
    /// The node where searches begin in the lower half, its level in the upper.
    entry: AtomicU64,
    /// Held to change `entry`. Taken with no other lock held.
    entry_change: Mutex<()>,
    /// Held to change links of a node. At most one is held at a time.
    stripes: Box<[Mutex<()>]>,
    pool: Pool<Scratch>,
    /// Inserts that have ended.
    inserted: AtomicU64,
}

impl Hnsw {
    /// An empty index.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn new(space: Space, params: HnswParams) -> Result<Self> {
        params.check()?;
        space.check_dim(MAX_DIM)?;
        Ok(Hnsw {
            space,
            params,
            vectors: Vectors::new(space),
            nodes: Nodes::new(params.m, space.metric == Metric::Dot),
            entry: AtomicU64::new(NO_ENTRY),
            entry_change: Mutex::new(()),
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            pool: Pool::new(),
            inserted: AtomicU64::new(0),
        })
    }

    /// What the vectors are.
    #[must_use]
    pub fn space(&self) -> Space {
        self.space
    }

    /// How the graph is built.
    #[must_use]
    pub fn params(&self) -> HnswParams {
        self.params
    }

    /// Rows whose insert has ended.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.inserted.load(Ordering::Acquire)).unwrap_or(usize::MAX)
    }

    /// Whether no insert has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are allocated: vectors, links, directories, and room that searches left to work in.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let locks = self.stripes.len() * size_of::<Mutex<()>>();
        size_of::<Self>() + self.vectors.bytes() + self.nodes.bytes() + locks + self.pool.bytes()
    }

    /// Most vectors that fit.
    fn limit(&self) -> u32 {
        self.vectors.limit().min(self.nodes.limit())
    }

    /// Node and level where walks begin.
    #[inline]
    fn entry(&self) -> Option<(u32, u32)> {
        let entry = self.entry.load(Ordering::Acquire);
        (entry != NO_ENTRY).then_some((entry as u32, (entry >> 32) as u32))
    }

    /// Makes a node the entry. `entry_change` must be held, and the node be written.
    fn set_entry(&self, node: u32, level: u32) {
        self.entry
            .store(u64::from(level) << 32 | u64::from(node), Ordering::Release);
    }

    /// By what links are chosen, but for those by inner product: a distance, which the inner product is not.
    fn build_metric(&self) -> Metric {
        match self.space.metric {
            Metric::Dot => Metric::Euclidean,
            metric => metric,
        }
    }
}

/// Longest vector, in elements.
const MAX_DIM: usize = 1 << 20;

impl fmt::Debug for Hnsw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hnsw")
            .field("space", &self.space)
            .field("params", &self.params)
            .field("len", &self.len())
            .finish()
    }
}

impl VectorIndex for Hnsw {
    fn space(&self) -> Space {
        self.space
    }

    fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        Hnsw::insert(self, row, vector)
    }

    fn search(
        &self,
        query: &Query,
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        _originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        Hnsw::search(self, query, k, ef, visible, stats)
    }

    fn len(&self) -> usize {
        Hnsw::len(self)
    }

    fn memory_bytes(&self) -> usize {
        Hnsw::memory_bytes(self)
    }
}
