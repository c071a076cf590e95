//! Which searches end within about a millisecond.

use crate::engine::Engine;
use crate::search_request::SearchRequest;

/// Greatest effort of a brief search.
const EFFORT: usize = 256;
/// Most bytes of rows outside of the index that a brief search scans.
const SCANNED: u64 = 1 << 20;

impl Engine {
    /// Whether a search walks the graph for a single vector, with little effort and few rows beside it to scan: to hand
    /// it to another thread would cost more than the search. An estimate; false for what would be refused.
    pub fn is_brief(&self, dataset: &str, request: &SearchRequest) -> bool {
        let effort = request.effort().unwrap_or(self.options().ef_search);
        let small = request.vectors.len() == 1 && effort.max(request.k) <= EFFORT;
        if !small
            || request.exact
            || request.filter.is_some()
            || !request.shape.is_plain()
            || !request.beside.is_empty()
            || request.text.is_some()
        {
            return false;
        }
        let Some(dataset) = self.catalog().find(dataset) else {
            return false;
        };
        let view = dataset.view();
        if view.live <= 2 * request.k as u64 {
            // A walk that does not find as many is followed by a scan.
            return false;
        }
        let Ok(column) = view.schema.vector(&dataset.name, request.column.as_deref()) else {
            return false;
        };
        let target = request.recall_target.or(column.recall_target);
        if request.effort().is_none() && target.is_some() {
            // Which may take any effort.
            return false;
        }
        let indexes = dataset.indexes();
        let index = indexes.iter().find(|index| index.column == column.name);
        let scanned = index.map_or(view.next_row, |index| {
            view.next_row.saturating_sub(index.watermark())
        });
        scanned.saturating_mul(column.space.row_bytes() as u64) <= SCANNED
    }
}
