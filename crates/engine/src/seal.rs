//! Tails become segments: batches in memory are written to a file and mapped.

use std::path::PathBuf;
use std::sync::Arc;

use longbow_storage::{Compactor, Segment, SegmentMeta, Sizes, living};

use crate::compact;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::shared::Shared;
use crate::tail::{Tail, TailBatch};
use crate::view::View;

/// The folder of a dataset's files.
pub(crate) fn folder(shared: &Shared, number: u64) -> PathBuf {
    shared
        .options
        .path
        .join("datasets")
        .join(number.to_string())
}

/// Writes all of a dataset's tail into segments and drops it from memory. The files are not synced: the log still
/// holds the rows until a checkpoint, which syncs them.
///
/// # Errors
/// If the disk refuses; the tail stays then.
pub(crate) fn seal(shared: &Shared, dataset: &Dataset) -> Result<()> {
    let _files = shared.files.lock();
    seal_locked(shared, dataset, false).map(drop)
}

/// [`seal`] for a caller that holds the lock on files; `sync` makes the files durable at once. Returns the moment that
/// was sealed, all of its rows in segments: the dataset itself may have a new tail already.
pub(crate) fn seal_locked(shared: &Shared, dataset: &Dataset, sync: bool) -> Result<View> {
    let mut view = View::clone(&dataset.view());
    let Some(last) = view.tail.last() else {
        return Ok(view);
    };
    let sealed_to = last.end();
    let segments = write_segments(shared, dataset, &view, sync, |compactor| {
        for held in view.tail.iter() {
            compactor.push(&held.batch, lasting(&view, held))?;
        }
        Ok(())
    })?;
    dataset.swap_tail(segments.clone(), sealed_to);
    Arc::make_mut(&mut view.segments).extend(segments);
    view.tail = Tail::default();
    Ok(view)
}

/// The runs of a batch's rows that are sealed: all of them, whose bytes are then written as they are, unless compaction would leave the dead out
/// soon after. Who replaces the same rows again and again has mostly dead ones in the tail.
fn lasting(view: &View, held: &TailBatch) -> Vec<(u64, usize, usize)> {
    let (first, rows) = (held.first_row, held.batch.rows());
    if !view.dead.may_hold(first, rows as u64) {
        return vec![(first, 0, rows)];
    }
    let whole = (first, 0, rows);
    let is_visible = |row| view.is_visible(row);
    let runs: Vec<_> = living(std::iter::once(whole), &is_visible).collect();
    let left: usize = runs.iter().map(|(_, _, len)| len).sum();
    match compact::is_worth_it((rows - left) as u64, rows as u64) {
        true => runs,
        false => vec![whole],
    }
}

/// Writes what `fill` gives to a [`Compactor`] into new segment files of a dataset and opens them. If that fails, the
/// files that were begun are removed, so that the next attempt has their space.
pub(crate) fn write_segments(
    shared: &Shared,
    dataset: &Dataset,
    view: &View,
    sync: bool,
    fill: impl FnOnce(&mut Compactor<'_>) -> longbow_storage::Result<()>,
) -> Result<Vec<Arc<Segment>>> {
    let disk = shared.disk.as_ref();
    let dir = folder(shared, dataset.number);
    disk.create_dir_all(&dir)?;
    let mut begun = Vec::new();
    let mut next_path = || {
        begun.push(shared.new_file(dataset.number, "rows", "arrow"));
        begun[begun.len() - 1].clone()
    };
    let sizes = Sizes {
        segment: shared.options.seal_bytes,
        ..Sizes::default()
    };
    let mut compactor = Compactor::new(disk, &view.schema.arrow, sizes, sync, &mut next_path);
    let written = fill(&mut compactor).and_then(|()| compactor.finish());
    let opened = written.and_then(|written| {
        let open =
            |meta: &SegmentMeta| Segment::open(disk, &dir.join(&meta.file), meta).map(Arc::new);
        written.iter().map(open).collect()
    });
    opened.map_err(|error: longbow_storage::Error| {
        for path in &begun {
            // A file that stays goes with the next checkpoint.
            let _ = disk.remove(path);
        }
        error.into()
    })
}
