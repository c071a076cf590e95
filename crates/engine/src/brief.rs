//! Which searches end within about a millisecond.

use crate::engine::Engine;
use crate::search_request::SearchRequest;

/// Greatest effort of a brief search.
const EFFORT: usize = 256;
/// Most bytes of rows outside of the index that a brief search scans.
const SCANNED: u64 = 1 << 20;

impl Engine {
    /// How many rows that wait for their index a search scans, if it walks the graph for a single vector, with little effort and few such rows, or
    /// there are few rows at all: to hand it to another thread would cost more than the search. An estimate; none for what takes longer
    /// or would be refused.
    pub fn brief(&self, dataset: &str, request: &SearchRequest) -> Option<u64> {
        let effort = request.effort().unwrap_or(self.options().ef_search);
        let small = request.vectors.len() == 1 && effort.max(request.k) <= EFFORT;
        if !small
            || request.exact
            || request.filter.is_some()
            || !request.shape.is_plain()
            || !request.beside.is_empty()
            || request.text.is_some()
        {
            return None;
        }
        let dataset = self.catalog().find(dataset)?;
        let view = dataset.view();
        if view.live <= 2 * request.k as u64 {
            // A walk that does not find as many is followed by a scan.
            return None;
        }
        let column = view
            .schema
            .vector(&dataset.name, request.column.as_deref())
            .ok()?;
        let target = request.recall_target.or(column.recall_target);
        if request.effort().is_none() && target.is_some() {
            // Which may take any effort.
            return None;
        }
        let indexes = dataset.indexes();
        let index = indexes.iter().find(|index| index.column == column.name);
        let scanned = index.map_or(view.next_row, |index| {
            view.next_row.saturating_sub(index.watermark())
        });
        let is_little = scanned.saturating_mul(column.space.row_bytes() as u64) <= SCANNED;
        is_little.then_some(scanned)
    }
}
