//! A live graph of quantised vectors.
//!
//! A search of a graph is a count of cache lines: each neighbour that is compared costs those of a vector. This graph keeps
//! of each vector a code of eight bits an element, and beside each node's edges a code of one bit an element for the way
//! to each of its 32 neighbours (RaBitQ relative to the node: Gao and Long, arXiv 2405.12497; Gou et al., SymphonyQG,
//! arXiv 2411.12229). One sequential read of a node's edges estimates all neighbours. What differs from SymphonyQG:
//!
//! - It is **live**: rows are inserted one by one, by many threads, while searches run. An edge that changes has its
//!   code made anew from the two eight-bit codes, in `O(d)`.
//! - The estimate does not decide: it only passes over neighbours that are too far even if it errs, and says which others come
//!   first (`later`). They are compared by their eight-bit codes, so the walk goes by good distances and follows few edges (`walk`).
//! - Where edges have no codes, the signs of a neighbour's own code estimate it, if that is long (`by_signs`): for a quarter of the memory, a
//!   line or two for each of the 32, which lie apart from each other.
//! - Vectors are not in the graph as they are. The last candidates are compared by the originals, as far as the error of a code
//!   leaves a doubt (`rerank`): distances returned are exact. They come while the walk goes on (`ahead`). Of originals that
//!   consist of whole numbers, copies of a byte an element are read instead, while there is room for these (`copies`).
//! - A walk goes in steps that end where memory was asked for, so that one thread can have several under way (`search`).
//!
//! A search with a filter goes along the rows that pass (`filtered_walk`), or where most do through all (`through`), or compares just
//! them by their codes (`scan`):
//! which node holds a row is known (`places`).
//!
//! Edges are chosen as in HNSW by relative neighbourhood, and slots that are left get the nearest of the others (`insert`, `link`).
//! Levels above the lowest, each of a 64th of the nodes of the one below and some, find where to begin (`level`, `remote`, `elsewhere`). Nodes of the same code hang on a
//! chain behind the first.
//!
//! Good for: many searches, 96 dimensions and more. Not for: inner products of vectors whose lengths differ much (a
//! walk may miss the longest, see `sphere`), short vectors, least memory: edges with codes take more than a vector
//! (`QuantizedParams::edge_codes` leaves them out). Rows that die leave when the caller says so, and others take their
//! place (`removal`).
//!
//! # Races
//!
//! Searches take no lock. An edge is changed under the lock of its node: factors and code by atomic stores, then the
//! neighbour with release. A search reads codes with volatile loads; one that reads a half-changed code has a wrong
//! estimate of one neighbour, and compares it in vain or passes it over this once.

mod ahead;
pub(crate) mod block;
mod by_signs;
mod copies;
mod elsewhere;
mod filtered;
mod filtered_begin;
mod filtered_walk;
mod front;
mod haste;
mod heirs;
mod insert;
mod later;
pub(crate) mod level;
mod link;
mod load;
mod params;
mod passing;
mod places;
mod remote;
mod removal;
mod repair;
mod rerank;
mod save;
mod scan;
mod scratch;
mod search;
mod share;
#[cfg(test)]
mod tests;
mod through;
mod walk;

pub(crate) use save::NODE as SAVED_NODE;

use crate::sync::atomic::{AtomicU64, Ordering};
use std::fmt;

pub use params::QuantizedParams;
pub use removal::Progress;

use crate::encode::Encoder;
use crate::origin::Origin;
use crate::sync::{Mutex, RwLock};
use copies::{Copies, bytes_of_one, form_of};
use level::{LEVELS, Level};
use places::Places;
use removal::Removal;
use scratch::Scratch;
use search::Asked;

use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::pool::Pool;
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::top_k::Neighbor;
use crate::vector_index::{IsOver, VectorIndex};
use crate::visits::{Visit, Visits};

/// An approximate index that takes inserts from many threads and answers searches meanwhile.
pub struct QuantizedGraph {
    space: Space,
    params: QuantizedParams,
    origin: Origin,
    /// The lowest first.
    levels: Vec<Level>,
    /// Of the lowest.
    places: Places,
    /// Of the same, of vectors that consist of whole numbers.
    copies: Copies,
    pool: Pool<Scratch>,
    /// Those in the graph whose insert has ended.
    rows: AtomicU64,
    /// Nodes on the level above the lowest that were not drawn: see `remote`.
    remote: AtomicU64,
    /// Held shared by each insert, and exclusively by what needs all nodes to be whole.
    still: RwLock<()>,
    visits: Visits,
    /// Levels and nodes for which something was left undone: see `haste`.
    hasty: Mutex<Vec<(usize, u32)>>,
    /// Held while nodes leave.
    removal: Mutex<Option<Removal>>,
}

impl QuantizedGraph {
    /// An empty index.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn new(space: Space, params: QuantizedParams) -> Result<Self> {
        params.check()?;
        Ok(QuantizedGraph {
            space,
            params,
            origin: Origin::new(space, params.seed)?,
            levels: (0..LEVELS)
                .map(|_| Level::new(space.code_dim(), params.edge_codes))
                .collect(),
            places: Places::new(),
            copies: Copies::new(),
            pool: Pool::new(),
            rows: AtomicU64::new(0),
            remote: AtomicU64::new(0),
            still: RwLock::new(()),
            visits: Visits::new(),
            hasty: Mutex::new(Vec::new()),
            removal: Mutex::new(None),
        })
    }

    /// An index of the same kind without rows, with copies of vectors if this one has some, whose codes have the same origin: of the few rows that may come first, none would be chosen as well.
    ///
    /// # Errors
    /// As [`QuantizedGraph::new`], which has not failed for this one.
    pub fn empty_like_it(&self) -> Result<Self> {
        let origin = self.origin.like_it()?;
        let new = QuantizedGraph::new(self.space, self.params)?;
        if let Some(form) = self.copies.form() {
            new.copies.begin(Some(form), self.space.dim);
        }
        Ok(QuantizedGraph { origin, ..new })
    }

    /// Takes the mean of a sample of stored vectors as the origin of the codes, unless the first insert was before. The
    /// nearer it is to the mean of all, the more precise the codes; a thousand vectors are plenty. They also tell whether vectors consist of
    /// whole numbers, of which there are copies then.
    pub fn prepare<'a>(&self, sample: impl Iterator<Item = &'a [u8]>) {
        let sample: Vec<&[u8]> = sample.collect();
        // No insert may come between: who finds copies finds one of each vector, or its mark.
        let _still = self.still.write();
        if self.origin.is_chosen() {
            return;
        }
        if self.params.edge_codes {
            let form = form_of(self.space, sample.iter().copied());
            self.copies.begin(form, self.space.dim);
        }
        self.origin.prepare(sample.into_iter());
    }

    /// Whether the origin of the codes was chosen.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.origin.is_chosen()
    }

    #[inline(always)]
    fn encoder(&self) -> &Encoder {
        self.origin.encoder()
    }

    /// Elements of a code.
    fn dim(&self) -> usize {
        self.space.code_dim()
    }

    /// How the graph is built.
    #[must_use]
    pub fn params(&self) -> QuantizedParams {
        self.params
    }

    /// What the vectors are.
    #[must_use]
    pub fn space(&self) -> Space {
        self.space
    }

    /// Rows in the graph whose insert has ended.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.rows.load(Ordering::Acquire)).unwrap_or(usize::MAX)
    }

    /// Whether no such row is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`VectorIndex::search_batch`] for `(k, ef)`, with what each query cost in its place of `stats`; `is_over` is asked
    /// from time to time whether the walks are to end with what they have found.
    ///
    /// # Panics
    /// If a query was prepared for another space, or there are fewer `stats` than queries.
    #[must_use]
    pub fn search_each(
        &self,
        queries: &[Query],
        (k, ef): (usize, usize),
        (visible, is_over): (&(dyn Fn(u64) -> bool + Sync), Option<IsOver<'_>>),
        originals: &dyn VectorSource,
        stats: &mut [SearchStats],
    ) -> Vec<Vec<Neighbor>> {
        let asked = Asked {
            k,
            ef,
            visible,
            is_over,
            originals,
        };
        self.answer_all(queries, asked, stats)
    }

    /// Bytes that are allocated: blocks, directories, and room that searches left to work in.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(Level::bytes).sum();
        size_of::<Self>() + levels + self.places.bytes() + self.pool.bytes()
    }

    /// Bytes of copies of vectors that consist of whole numbers, beside [`QuantizedGraph::memory_bytes`]: searches go without
    /// them, too, but slower.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.copies.bytes()
    }

    /// Gives up these copies, and tells how many bytes that were.
    pub fn let_go(&self) -> usize {
        self.copies.end()
    }

    /// Bytes of a row that comes in them, while there are any.
    #[must_use]
    pub fn copied_bytes_per_row(&self) -> usize {
        self.copies
            .form()
            .map_or(0, |_| bytes_of_one(self.space.dim))
    }

    /// Those of [`QuantizedGraph::memory_bytes`] that the next inserts take before others.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.levels
            .iter()
            .map(|level| level.blocks.free_bytes())
            .sum()
    }

    /// Begins a visit: rows that it may see stay in the graph until it ends. Whoever says by a moment of its own which rows
    /// are visible begins one before that moment, and ends it after the search.
    pub fn enter(&self) -> Visit {
        self.visits.enter()
    }

    /// The level of all rows.
    #[inline(always)]
    fn ground(&self) -> &Level {
        &self.levels[0]
    }
}

impl fmt::Debug for QuantizedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuantizedGraph")
            .field("space", &self.space)
            .field("params", &self.params)
            .field("len", &self.len())
            .finish()
    }
}

impl VectorIndex for QuantizedGraph {
    fn space(&self) -> Space {
        self.space
    }

    fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        QuantizedGraph::insert(self, row, vector)
    }

    fn search(
        &self,
        query: &Query,
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let asked = Asked {
            k,
            ef,
            visible,
            is_over: None,
            originals,
        };
        self.answer(query, asked, stats)
    }

    fn search_batch(
        &self,
        queries: &[Query],
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Vec<Neighbor>> {
        let mut each = vec![SearchStats::default(); queries.len()];
        let answers = self.search_each(queries, (k, ef), (visible, None), originals, &mut each);
        each.into_iter().for_each(|one| *stats += one);
        answers
    }

    fn len(&self) -> usize {
        QuantizedGraph::len(self)
    }

    fn memory_bytes(&self) -> usize {
        QuantizedGraph::memory_bytes(self)
    }
}
