use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::top_k::Neighbor;

/// Whether a walk is to end with what it has found; it asks from time to time.
pub type IsOver<'a> = &'a (dyn Fn() -> bool + Sync);

/// What every index can do: take rows, and find the nearest.
pub trait VectorIndex: Send + Sync {
    /// What the vectors are.
    fn space(&self) -> Space;

    /// Adds a row with its vector of `space().row_bytes()` bytes. May be called from many threads at once; each
    /// row is given once.
    ///
    /// # Errors
    /// If the vector has another length, or the index is full.
    fn insert(&self, row: u64, vector: &[u8]) -> Result<()>;

    /// The `k` nearest rows for which `visible` holds, nearest first, by a search of breadth `ef` where the index
    /// is approximate. Distances are exact; an index that keeps no vectors of its own takes them from `originals`, which
    /// has those of all visible rows. Adds what it cost to `stats`.
    ///
    /// # Panics
    /// If `query` was prepared for another space.
    fn search(
        &self,
        query: &Query,
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor>;

    /// As [`VectorIndex::search`] for each of many queries; an index may do it in less time than one by one.
    ///
    /// # Panics
    /// If a query was prepared for another space.
    fn search_batch(
        &self,
        queries: &[Query],
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Vec<Neighbor>> {
        let mut answer = |query: &Query| self.search(query, k, ef, visible, originals, stats);
        queries.iter().map(&mut answer).collect()
    }

    /// Rows whose insert has ended.
    fn len(&self) -> usize;

    /// Whether no insert has ended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are allocated.
    fn memory_bytes(&self) -> usize;
}
