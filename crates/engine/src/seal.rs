//! Tails become segments: batches in memory are written to a file and mapped.

use std::path::PathBuf;
use std::sync::Arc;

use longbow_storage::{Batch, RowRuns, Segment, coalesce, write_segment};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::shared::Shared;
use crate::tail::TailBatch;
use crate::view::View;

/// Most bytes of one segment file.
pub(crate) const SEGMENT_BYTES: u64 = 256 << 20;
/// Batches smaller than this are joined before they are written, so that reads don't pay for small puts for ever.
const SMALL_BATCH: u64 = 1 << 20;
/// Size up to which small batches are joined.
const JOINED_BATCH: u64 = 8 << 20;

/// The folder of a dataset's files.
pub(crate) fn folder(shared: &Shared, number: u64) -> PathBuf {
    shared.options.path.join("datasets").join(number.to_string())
}

/// Writes all of a dataset's tail into segments and drops it from memory. The files are not synced: the log still
/// holds the rows until a checkpoint, which syncs them. Returns whether there was anything to seal.
///
/// # Errors
/// If the disk refuses; the tail stays then.
pub(crate) fn seal(shared: &Shared, dataset: &Dataset) -> Result<bool> {
    let _files = shared.files.lock();
    seal_locked(shared, dataset, false)
}

/// [`seal`] for a caller that holds the lock on files; `sync` makes the files durable at once.
pub(crate) fn seal_locked(shared: &Shared, dataset: &Dataset, sync: bool) -> Result<bool> {
    let view = dataset.view();
    let Some(last) = view.tail.last() else { return Ok(false) };
    let sealed_to = last.end();
    let dir = folder(shared, dataset.number);
    shared.disk.create_dir_all(&dir)?;
    let mut segments = Vec::new();
    let mut group: Vec<&TailBatch> = Vec::new();
    let mut bytes = 0;
    for held in view.tail.iter() {
        if bytes + held.batch.bytes() > SEGMENT_BYTES && !group.is_empty() {
            segments.push(write_group(shared, dataset, &view, &group, sync)?);
            group.clear();
            bytes = 0;
        }
        bytes += held.batch.bytes();
        group.push(held);
    }
    segments.push(write_group(shared, dataset, &view, &group, sync)?);
    dataset.swap_tail(segments, sealed_to);
    Ok(true)
}

fn write_group(
    shared: &Shared,
    dataset: &Dataset,
    view: &View,
    group: &[&TailBatch],
    sync: bool,
) -> Result<Arc<Segment>> {
    let schema = &view.schema.arrow;
    let first_row = group[0].first_row;
    let rows = group[group.len() - 1].end() - first_row;
    let mut batches: Vec<Batch> = Vec::with_capacity(group.len());
    let mut small: Vec<Batch> = Vec::new();
    let mut small_bytes = 0;
    for held in group {
        let batch = held.batch.with_schema(schema)?;
        if small_bytes + batch.bytes() > JOINED_BATCH || batch.bytes() >= SMALL_BATCH {
            flush(&mut small, &mut batches, view)?;
            small_bytes = 0;
        }
        if batch.bytes() >= SMALL_BATCH {
            batches.push(batch);
        } else {
            small_bytes += batch.bytes();
            small.push(batch);
        }
    }
    flush(&mut small, &mut batches, view)?;
    let mut runs = RowRuns::default();
    runs.push(first_row..first_row + rows)?;
    let path = shared.new_file(dataset.number, "rows", "arrow");
    let meta = write_segment(shared.disk.as_ref(), &path, schema, &batches, &runs, sync)?;
    Ok(Arc::new(Segment::open(shared.disk.as_ref(), &path, &meta)?))
}

fn flush(small: &mut Vec<Batch>, batches: &mut Vec<Batch>, view: &View) -> Result<()> {
    if !small.is_empty() {
        batches.push(coalesce(&view.schema.arrow, small)?);
        small.clear();
    }
    Ok(())
}
