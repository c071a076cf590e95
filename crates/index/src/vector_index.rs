use crate::error::Result;
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::top_k::Neighbor;

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
    /// is approximate. Adds what it cost to `stats`.
    ///
    /// # Panics
    /// If `query` was prepared for another space.
    fn search(
        &self,
        query: &Query,
        k: usize,
        ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        stats: &mut SearchStats,
    ) -> Vec<Neighbor>;

    /// Rows whose insert has ended.
    fn len(&self) -> usize;

    /// Whether no insert has ended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are allocated.
    fn memory_bytes(&self) -> usize;
}
