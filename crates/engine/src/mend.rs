//! Rows back into an index that lost some of its postings.

use arrow_buffer::bit_util;
use longbow_index::Lost;

use crate::error::Result;
use crate::graph::Graph;
use crate::indexer::insert_those;
use crate::schema::VectorColumn;
use crate::view::View;

/// Postings for each that is lost, at least: if more are, the whole index is built anew, by all threads and behind searches.
const POSTINGS_FOR_ONE: usize = 10;

/// Inserts the rows below `end` that are alive in a view, and are not in an index that was read without its damaged postings;
/// how many they were.
///
/// # Errors
/// If too many postings are lost for that, a batch cannot be read, or the index cannot be written.
pub(crate) fn mend(
    graph: &Graph,
    lost: Lost,
    (view, column): (&View, &VectorColumn),
    end: u64,
) -> Result<usize> {
    let Graph::SpFresh { index, .. } = graph else {
        return Ok(0);
    };
    if lost.postings > 1 && lost.postings * POSTINGS_FOR_ONE > index.postings() {
        return Err(lost.first.into());
    }
    let before = index.len();
    let rows = usize::try_from(end).unwrap_or(usize::MAX);
    let mut there = vec![0u8; rows.div_ceil(8)];
    index.each_row(&mut |row| {
        if row < end {
            bit_util::set_bit(&mut there, row as usize);
        }
    });
    let is_missing = |row: u64| !bit_util::get_bit(&there, row as usize);
    insert_those(graph, view, column, (0, end), &is_missing)?;
    Ok(index.len() - before)
}
