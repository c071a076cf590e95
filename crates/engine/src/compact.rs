//! Compaction: segments with too many dead rows, or many small ones, become fewer without the dead.

use std::sync::Arc;

use longbow_storage::{Segment, merge};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::seal::{folder, write_segments};
use crate::shared::Shared;
use crate::view::View;

/// Share of dead rows at which a segment is written anew.
const DEAD_SHARE: f64 = 0.25;
/// Segments below this share of the full size are small.
const SMALL_SHARE: u64 = 4;
/// Adjacent small segments that are worth joining.
const SMALL_RUN: usize = 4;

/// Compacts the first group of segments that is worth it. Reads go on: they hold their view, and rows keep their
/// numbers, so ids, graphs and tombstones stay as they are. The old files go with the next checkpoint.
/// Returns whether there was such a group.
///
/// # Errors
/// If the disk refuses, or an old segment is damaged; the old segments stay then.
pub(crate) fn compact(shared: &Shared, dataset: &Dataset) -> Result<bool> {
    let view = dataset.view();
    let Some((first, count)) = choose(&view, shared.options.seal_bytes) else {
        return Ok(false);
    };
    let old = &view.segments[first..first + count];
    for segment in old {
        check(shared, dataset, &view, segment)?;
    }
    let _files = shared.files.lock();
    let written = write_segments(shared, dataset, &view, false, |compactor| {
        merge(compactor, old, &|row| view.is_visible(row))
    })?;
    Ok(dataset.swap_segments(old, written))
}

/// Reads a segment whose rows are to be written anew, and compares its checksum: a wrong byte that came since it was opened would have a
/// right one from then on.
fn check(shared: &Shared, dataset: &Dataset, view: &View, segment: &Arc<Segment>) -> Result<()> {
    if dead_in(view, segment) < segment.rows() {
        let path = folder(shared, dataset.number).join(&segment.meta().file);
        Segment::open(shared.disk.as_ref(), &path, segment.meta())?;
    }
    Ok(())
}

/// Position and number of segments to compact together. Those in which nothing lives go together however many they are: nothing is written for
/// them.
fn choose(view: &View, full: u64) -> Option<(usize, usize)> {
    let is_dead = |segment: &&Arc<Segment>| dead_in(view, segment) == segment.rows();
    let mut small = 0;
    for (at, segment) in view.segments.iter().enumerate() {
        let dead = dead_in(view, segment);
        if is_worth_it(dead, segment.rows()) {
            let others = view.segments[at + 1..].iter().take_while(is_dead);
            let go_along = if dead == segment.rows() {
                others.count()
            } else {
                0
            };
            return Some((at, 1 + go_along));
        }
        small = if segment.meta().bytes < full / SMALL_SHARE {
            small + 1
        } else {
            0
        };
        if small == SMALL_RUN {
            return Some((at + 1 - SMALL_RUN, SMALL_RUN));
        }
    }
    None
}

/// Whether so many of some rows are dead that they are to be left out.
pub(crate) fn is_worth_it(dead: u64, rows: u64) -> bool {
    dead as f64 > rows as f64 * DEAD_SHARE
}

fn dead_in(view: &View, segment: &Arc<Segment>) -> u64 {
    let mut dead = 0;
    for range in segment.runs().iter() {
        if view.dead.may_hold(range.start, range.end - range.start) {
            dead += range
                .filter(|row| view.dead.is_dead(*row, view.index))
                .count() as u64;
        }
    }
    dead
}
