//! Copies of vectors that consist of whole numbers, for graphs of codes that have none: after a start, and when there is room again.

use std::sync::Arc;
use std::time::Duration;

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::graph::Graph;
use crate::originals::Originals;

/// How long it is waited for jobs of indexing to end.
const JOBS_END: Duration = Duration::from_millis(10);

/// Bytes that copies of an index would take, if it has none and may have some.
pub(crate) fn missing(index: &ColumnIndex) -> Option<u64> {
    match &*index.graph() {
        Graph::Quantized(codes) if !index.is_loading() && codes.may_copy() => {
            Some((codes.len() * codes.space().dim) as u64)
        }
        _ => None,
    }
}

/// Makes them, and says whether there are some then. No row comes into the index meanwhile.
pub(crate) fn make(dataset: &Dataset, index: &ColumnIndex) -> bool {
    let graph = index.graph();
    let Graph::Quantized(codes) = &*graph else {
        return false;
    };
    let Some(_still) = index.try_hold_still(JOBS_END) else {
        return false;
    };
    if !Arc::ptr_eq(&graph, &index.graph()) {
        return false;
    }
    // It has all rows of the graph, but for those that nobody has seen yet, and some that died: who begins a search now does not see these.
    let view = dataset.view();
    let column = view.schema.vector(&dataset.name, Some(&index.column));
    let Some(column) = column.ok().filter(|column| column.native) else {
        return false;
    };
    let gone = |row: u64| row < view.next_row && !view.is_visible(row);
    let originals = Originals::new(&view, column);
    match codes.make_copies(&originals, &gone) {
        Ok(made) => {
            tracing::debug!(
                dataset = dataset.name,
                column = index.column,
                made,
                bytes = codes.kept_bytes(),
                "copies of vectors of whole numbers"
            );
            made
        }
        // A search goes on that may see rows that are gone.
        Err(_busy) => false,
    }
}
