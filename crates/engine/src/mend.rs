//! Rows back into an index that lost some of its postings.

use longbow_index::{Lost, SpFresh};

use crate::error::Result;
use crate::graph::Graph;
use crate::indexer::insert_those;
use crate::schema::VectorColumn;
use crate::view::View;

/// Inserts the rows below `end` that are alive in a view, and are not in an index that was read without its damaged postings.
///
/// # Errors
/// If a batch cannot be read, or the index cannot be written.
pub(crate) fn mend(
    graph: &Graph,
    lost: &Lost,
    (view, column): (&View, &VectorColumn),
    end: u64,
) -> Result<()> {
    let Graph::SpFresh { index, .. } = graph else {
        return Ok(());
    };
    let before = index.len();
    let there = rows_of(index);
    let is_missing = |row: u64| there.binary_search(&row).is_err();
    insert_those(graph, view, column, (0, end), &is_missing)?;
    let (postings, rows, error) = (lost.postings, index.len() - before, &lost.first);
    tracing::warn!(postings, rows, %error, column = column.name, "postings are made again");
    Ok(())
}

/// The rows in an index, in order.
fn rows_of(index: &SpFresh) -> Vec<u64> {
    let mut rows = Vec::with_capacity(index.len());
    index.each_row(&mut |row| rows.push(row));
    rows.sort_unstable();
    rows
}
