//! Dead rows out of an index in postings, and what is free out of its file, some postings at a time.

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

/// What is under way.
#[derive(Debug, Default)]
pub(crate) enum UnderWay {
    /// Nothing.
    #[default]
    Nothing,
    /// Dead rows leave.
    Sweep(Sweep),
    /// Blocks behind `end` move to the front of the file.
    Shrink {
        /// Where the file could end.
        end: u32,
        /// The posting that comes next.
        next: u64,
    },
}

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

/// Takes a step of a sweep, if so many rows have died, or of a move to the front of the file, if so much of that is free;
/// false if there is nothing to do now.
///
/// # Errors
/// If the file of blocks cannot be written; the next step tries again.
pub(crate) fn step(dataset: &Dataset, index: &ColumnIndex, postings: &SpFresh) -> Result<bool> {
    let Some(_running) = index.run() else {
        return Ok(false);
    };
    let Some(mut under_way) = index.sweep.try_lock() else {
        return Ok(false);
    };
    if let UnderWay::Nothing = *under_way {
        *under_way = begin(dataset, index, postings);
    }
    let next = match &mut *under_way {
        UnderWay::Nothing => return Ok(false),
        UnderWay::Sweep(_) if !postings.is_over() => return Ok(false),
        UnderWay::Sweep(sweep) => {
            let (view, watermark) = (&sweep.view, sweep.watermark);
            let dead = |row: u64| row < watermark && !view.is_visible(row);
            let next = postings.sweep(&dead, sweep.next, STEP)?.next;
            next.map(|next| sweep.next = next)
        }
        UnderWay::Shrink { end, next } => {
            let more = postings.shrink(*end, *next, STEP)?;
            more.map(|more| *next = more)
        }
    };
    if next.is_none() {
        *under_way = UnderWay::Nothing;
    }
    Ok(true)
}

/// What there is enough to do for.
fn begin(dataset: &Dataset, index: &ColumnIndex, postings: &SpFresh) -> UnderWay {
    // In this order: rows below the watermark are in the view, dead or alive.
    let watermark = index.watermark();
    let view = dataset.view();
    let since = view
        .died()
        .saturating_sub(index.died.load(Ordering::Relaxed));
    if since < FEWEST.max(postings.len() as u64 / ROWS_FOR_ONE) {
        return match postings.could_end() {
            Some(end) => UnderWay::Shrink { end, next: 0 },
            None => UnderWay::Nothing,
        };
    }
    index.died.store(view.died(), Ordering::Relaxed);
    // Whoever enters from now on takes a later view.
    postings.turn();
    UnderWay::Sweep(Sweep {
        view,
        watermark,
        next: 0,
    })
}
