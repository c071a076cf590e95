//! Background threads that move rows from the tail into the graphs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longbow_index::Hnsw;

use crate::dataset::Dataset;
use crate::error::Result;
use crate::schema::VectorColumn;
use crate::shared::Shared;
use crate::vectors::Vectors;
use crate::view::View;

/// How far indexers stand back behind reads and writes: what an acknowledgement promises does not wait for them.
const NICENESS: i32 = 19;

/// The body of one indexing thread.
pub(crate) fn run(shared: &Arc<Shared>, worker: usize) {
    // Failing to be nice only makes the thread compete.
    let _ = rustix::process::nice(NICENESS);
    let mut turn = worker;
    while !shared.stopping.load(Ordering::Acquire) {
        let datasets = shared.catalog.datasets();
        turn = turn.wrapping_add(1);
        let mut worked = false;
        for step in 0..datasets.len() {
            worked |= work(&datasets[(turn + step) % datasets.len()]);
        }
        if !worked {
            shared.indexers.wait(Duration::from_millis(200));
        }
    }
}

/// Does one job of each index of a dataset; false if there was none.
fn work(dataset: &Dataset) -> bool {
    let mut worked = false;
    for index in dataset.indexes().iter() {
        let view = dataset.view();
        let Some((first, end, _running)) = index.claim(view.next_row) else {
            continue;
        };
        let Ok(column) = view.schema.vector(&dataset.name, Some(&index.column)) else {
            continue;
        };
        if let Err(error) = insert_rows(&index.graph(), &view, column, first, end) {
            // The rows stay findable by scanning only below a watermark that does not move; say so loudly.
            tracing::error!(dataset = dataset.name, column = index.column, first, end, %error, "indexing failed");
            continue;
        }
        index.finish(first, end);
        worked = true;
    }
    worked
}

/// Inserts the living rows `first..end` into a graph.
///
/// # Errors
/// If a batch cannot be read or the graph is full.
pub(crate) fn insert_rows(
    graph: &Hnsw,
    view: &View,
    column: &VectorColumn,
    first: u64,
    end: u64,
) -> Result<()> {
    for part in view.parts(first) {
        if part.runs.first().is_none_or(|run| run.first_row >= end) {
            break;
        }
        let Some(vectors) = Vectors::of(part.batch, column)? else {
            continue;
        };
        for run in &part.runs {
            for offset in 0..run.len {
                let row = run.first_row + offset as u64;
                if row >= end {
                    break;
                }
                if let Some(vector) = vectors.row(run.start + offset)
                    && view.is_visible(row)
                {
                    graph.insert(row, vector)?;
                }
            }
        }
    }
    Ok(())
}
