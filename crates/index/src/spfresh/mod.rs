//! A fresh index on disk: postings of quantised vectors in a file, and their centroids in memory.
//!
//! What is in memory is a centroid for some hundred vectors, with codes by which all centroids are compared with a query
//! ([`centroids`]), and where the blocks of each posting lie. The blocks hold the codes of the vectors: of one bit an element for the way from the
//! centroid, by which 32 are estimated at once ([`block`]), and of eight bits, which are read of those that can be among the
//! nearest by the bounds of all estimates ([`shortlist`]). They are read where the file is mapped, in which the two lie
//! apart ([`places`]); or, where file and rows are larger than memory, of copies ([`kept`]). The vectors themselves are the caller's, and read for the last candidates only.
//!
//! After SPANN (Chen et al., arXiv 2111.08566) and SPFresh (Xu et al., arXiv 2410.14452), whose protocol LIRE keeps the
//! index fresh without a rebuild:
//!
//! - An insert appends to the posting of the nearest centroid, and to others if the vector is on their boundary
//!   (`insert`).
//! - A vector that is far from every centroid begins a posting (`outlying`), which SPFresh has not.
//! - A posting that grows too long is split in two; vectors for which another centroid is now the nearest move there
//!   (`split`). Both necessary conditions of LIRE are checked for those around.
//! - Dead rows are swept out, and what gets too short is merged into its neighbours (`sweep`). What stays long enough while its rows
//!   go and others come elsewhere gets another centroid (`recentre`), which SPFresh has not: it follows what drifts.
//! - Where much of the file is free, blocks move from its end, and it is cut (`shrink`).
//!
//! What differs from SPFresh: a row's vector never changes, so there are no versions to be told apart. Blocks never
//! change either. Each change is a new [`directory::Directory`] that shares all it can with the one before, and appears
//! at once: a search holds one, takes no lock, and never misses a vector that moves. A slot of the file is given out
//! again when no directory that anyone holds has it, and no checkpoint names it ([`store`]).
//!
//! Rows are in shards by their number (`route`), each with postings and a lock of its own ([`shard`]): inserts wait for
//! those into the same shard, and all that moves rows stays within one. They share the file of blocks. A search chooses
//! the nearest postings of all shards together, and does not read more because there are many; but what is near a query
//! is in a posting of each, so more must be read to find as much. Long searches are read by several threads ([`read`]).
//! Each posting knows how far its vectors reach ([`reach`]): an exact search ends where no posting can add anything
//! ([`exact`]).
//!
//! Good for: more vectors than memory, changes all day. Not for: least latency where all fits in memory, where a
//! [`crate::QuantizedGraph`] is faster; exact searches by inner product, which read all: there are no bounds for it.

mod block;
mod centroids;
mod cold;
mod directory;
mod edit;
mod exact;
mod insert;
#[cfg(shuttle)]
#[cfg(test)]
mod interleave;
mod kept;
mod load;
mod merge;
mod merge_sorted;
mod moments;
mod near;
mod outlying;
mod params;
mod places;
mod posting;
mod reach;
mod read;
mod recentre;
mod resettle;
mod route;
mod save;
mod search;
mod shard;
mod shortlist;
mod shrink;
mod sight;
mod split;
mod spread;
mod store;
mod sweep;
#[cfg(test)]
mod tests;

use crate::sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::Arc;

pub(crate) use block::Layout;
pub use load::Lost;
pub use params::SpFreshParams;
pub use store::BlockFile;
pub use sweep::Swept;

use crate::encode::Encoder;
use crate::error::Result;
use crate::origin::Origin;
use crate::pool::Pool;
use crate::space::Space;
use crate::visits::Visits;
use directory::Directory;
use search::Scratch;
use shard::Shard;
use store::Store;

/// An approximate index with its vectors' codes in a file, that takes inserts from many threads and answers searches
/// meanwhile.
pub struct SpFresh {
    space: Space,
    params: SpFreshParams,
    layout: Layout,
    origin: Origin,
    shards: Box<[Shard]>,
    store: Arc<Store>,
    /// Rows in their own postings.
    rows: AtomicU64,
    /// Of first parts of blocks, of which searches read all that they come by.
    cold_first: cold::Cold,
    /// Of the rest of blocks, and of rows, of which they read a few.
    cold: cold::Cold,
    /// That share a long search, at most.
    threads: usize,
    pool: Pool<Scratch>,
    visits: Visits,
}

impl SpFresh {
    /// An empty index that keeps its blocks in an empty file.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn new(space: Space, params: SpFreshParams, file: Box<dyn BlockFile>) -> Result<Self> {
        let layout = Self::layout(space, params)?;
        let origin = Origin::new(space, params.seed)?;
        let empty = (0..params.shards).map(|_| Shard::new(Directory::default(), 0));
        let store = Store::new(file, layout.places);
        let mut index = Self::with(space, params, origin, store)?;
        index.shards = empty.collect();
        Ok(index)
    }

    fn layout(space: Space, params: SpFreshParams) -> Result<Layout> {
        params.check()?;
        Ok(Layout::new(space.code_dim()))
    }

    /// An index without its shards.
    fn with(space: Space, params: SpFreshParams, origin: Origin, store: Store) -> Result<Self> {
        Ok(SpFresh {
            space,
            params,
            layout: Self::layout(space, params)?,
            origin,
            shards: Box::default(),
            store: Arc::new(store),
            rows: AtomicU64::new(0),
            cold_first: cold::Cold::default(),
            cold: cold::Cold::default(),
            threads: crate::side_by_side::threads(),
            pool: Pool::new(),
            visits: Visits::new(),
        })
    }

    /// Takes the mean of a sample of stored vectors as the origin of the codes, unless the first insert was before. The
    /// nearer it is to the mean of all, the more precise the codes; a thousand vectors are plenty.
    pub fn prepare<'a>(&self, sample: impl Iterator<Item = &'a [u8]>) {
        self.origin.prepare(sample);
    }

    /// Whether the origin of the codes was chosen.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.origin.is_chosen()
    }

    fn encoder(&self) -> &Encoder {
        self.origin.encoder()
    }

    /// All shards at this moment, or each at one that is not before.
    fn directories(&self) -> Vec<Arc<Directory>> {
        let shards = self.shards.iter();
        shards.map(|shard| shard.directory.load_full()).collect()
    }

    /// What the vectors are.
    #[must_use]
    pub fn space(&self) -> Space {
        self.space
    }

    /// How postings are kept. The number of shards is that of the index.
    #[must_use]
    pub fn params(&self) -> SpFreshParams {
        self.params
    }

    /// Rows in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.rows.load(Ordering::Acquire)).unwrap_or(usize::MAX)
    }

    /// Whether no row is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Postings, each with a centroid.
    #[must_use]
    pub fn postings(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.directory.load().len()).sum()
    }

    /// Vectors of the longest posting, and of all, each counted as often as it is in one.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        let directories = self.directories();
        let postings = directories.iter().flat_map(|directory| directory.iter());
        let lengths = postings.map(|posting| posting.len());
        lengths.fold((0, 0), |(most, all), len| (most.max(len), all + len))
    }

    /// Bytes of memory: centroids, where the blocks are, and room that searches left to work in; but not what is kept of blocks
    /// as long as there is room, see [`SpFresh::kept_bytes`].
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let directories = self.directories();
        let bytes =
            |directory: &Arc<Directory>| size_of::<Shard>() + directory.memory_bytes(&self.layout);
        size_of::<Self>()
            + directories.iter().map(bytes).sum::<usize>()
            + self.store.memory_bytes()
            + self.pool.bytes()
    }

    /// Bytes of the file of blocks, and those of them that the next blocks take.
    #[must_use]
    pub fn file_bytes(&self) -> (u64, u64) {
        self.store.file_bytes()
    }

    /// Says that the checkpoint which [`SpFresh::save`] wrote last holds: the blocks of those before may be written over,
    /// and the file is cut behind the last one in use.
    ///
    /// # Errors
    /// If the file cannot be cut; it stays longer than it needs to be, and all else is done.
    pub fn hold(&self) -> Result<()> {
        Ok(self.store.hold()?)
    }
}

impl fmt::Debug for SpFresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpFresh")
            .field("space", &self.space)
            .field("params", &self.params)
            .field("len", &self.len())
            .field("postings", &self.postings())
            .finish_non_exhaustive()
    }
}
