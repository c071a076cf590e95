//! Dead rows out of an index in postings, some postings at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_index::SpFresh;

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::view::View;

/// Rows of an index for each that died, at which it is swept.
const ROWS_FOR_ONE: u64 = 20;
/// So many must have died at least.
const FEWEST: u64 = 64;
/// Postings that are swept in one step: some milliseconds, for which inserts wait.
const STEP: usize = 64;

/// A sweep under way.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// Rows that are dead in it leave.
    view: Arc<View>,
    /// Rows from this one on may not be in the index yet, and stay out of it.
    watermark: u64,
    /// The posting that is swept next.
    next: u64,
}

/// Takes a step of a sweep, if so many rows have died; false if there is nothing to do now.
///
/// # Errors
/// If the file of blocks cannot be written; the next step tries again.
pub(crate) fn step(dataset: &Dataset, index: &ColumnIndex, postings: &SpFresh) -> Result<bool> {
    let Some(_running) = index.run() else {
        return Ok(false);
    };
    let Some(mut sweep) = index.sweep.try_lock() else {
        return Ok(false);
    };
    if sweep.is_none() {
        *sweep = begin(dataset, index, postings);
    }
    let Some(under_way) = sweep.as_mut() else {
        return Ok(false);
    };
    if !postings.is_over() {
        return Ok(false);
    }
    let Sweep {
        view, watermark, ..
    } = under_way;
    let dead = |row: u64| row < *watermark && !view.is_visible(row);
    match postings.sweep(&dead, under_way.next, STEP)?.next {
        Some(next) => under_way.next = next,
        None => *sweep = None,
    }
    Ok(true)
}

/// A sweep, if there is enough to do.
fn begin(dataset: &Dataset, index: &ColumnIndex, postings: &SpFresh) -> Option<Sweep> {
    // In this order: rows below the watermark are in the view, dead or alive.
    let watermark = index.watermark();
    let view = dataset.view();
    let since = view
        .died()
        .saturating_sub(index.died.load(Ordering::Relaxed));
    if since < FEWEST.max(postings.len() as u64 / ROWS_FOR_ONE) {
        return None;
    }
    index.died.store(view.died(), Ordering::Relaxed);
    // Whoever enters from now on takes a later view.
    postings.turn();
    Some(Sweep {
        view,
        watermark,
        next: 0,
    })
}
