//! Indexes without their dead.
//!
//! From a graph of codes dead rows are taken out, piece by piece, by the threads that insert rows. A graph of whole
//! vectors is built anew beside the old one when too many rows in it are dead, and so is one of codes of which next to nothing lives.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use longbow_index::Progress;

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph_options::GraphOptions;
use crate::indexer::insert_rows;
use crate::sweep;
use crate::view::View;

/// Dead rows for each living one at which a graph is rebuilt: walking them costs as much as walking the living.
const DEAD_SHARE: f64 = 0.5;
/// Graphs with fewer dead rows than this are left alone.
const DEAD_ROWS: u64 = 10_000;

/// Rows of a graph of codes for each that died, at which dead rows leave it. To find those that lead to them costs
/// three cache lines a row of the graph, so a hundred and fifty for each that leaves: less than to insert one.
const ROWS_FOR_ONE: u64 = 50;
/// So many must have died at least.
const FEWEST: u64 = 64;
/// Nodes that are led elsewhere in one step: some milliseconds, for which a checkpoint may have to wait.
const STEP: usize = 256;
/// How long no row comes into a graph while searches hold the dead ones that are most of it.
const HELD: Duration = Duration::from_secs(2);
/// As [`STEP`], where few stay: to find others that do, each may walk through all that leave.
const STEP_IF_CROWDED: usize = 8;

/// Rows of a graph of codes for each that lives, from which on it is built anew: a node has no more neighbours, so most that stay have none
/// that does, and each would be looked for among all that leave.
const ROWS_FOR_LIVING: u64 = 32;
/// Living rows up to which it is: a tenth of a second's work. To take the dead out of a larger graph costs no more than to insert half of its rows.
const FEW: u64 = 1_024;
/// How long who has built a graph anew waits for jobs to end before it takes its place: a step may take some tenths of a second.
const JOBS_END: Duration = Duration::from_secs(1);
/// The same of a graph of whole vectors, which took long.
const ALL_JOBS_END: Duration = Duration::from_secs(60);

/// Takes a step to remove dead rows from a graph of codes, if so many have died; false if there is nothing to do now.
pub(crate) fn step(dataset: &Dataset, index: &ColumnIndex) -> bool {
    let graph = index.graph();
    let codes = match graph.as_ref() {
        Graph::Flat | Graph::Hnsw(_) => return false,
        Graph::Quantized(codes) => codes,
        Graph::SpFresh {
            index: postings, ..
        } => {
            return sweep::step(dataset, index, postings).unwrap_or_else(|error| {
                // They stay where they are, which no search sees; say so loudly.
                let (dataset, column) = (&dataset.name, &index.column);
                tracing::error!(dataset, column, %error, "an index is not rid of what is dead in it, or in its file");
                false
            });
        }
    };
    if let Some(progress) = renew(dataset, index) {
        return progress == Progress::Working;
    }
    let Some(running) = index.run() else {
        return false;
    };
    match codes.remove(STEP) {
        Progress::Working => return true,
        Progress::Waiting => return false,
        Progress::Ended => {}
    }
    drop(running);
    let fewest = FEWEST.max(codes.len() as u64 / ROWS_FOR_ONE);
    // Jobs are short; there will be a moment without any.
    begin((dataset, index), &graph, fewest, Duration::ZERO) == Progress::Working
}

/// About how many dead rows a graph holds that are to leave it.
pub(crate) fn leaving(view: &View, index: &ColumnIndex) -> u64 {
    let watermark = index.watermark();
    match &*index.graph() {
        Graph::Quantized(codes) => {
            (codes.len() as u64).saturating_sub(view.living_below(watermark))
        }
        Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => 0,
    }
}

/// Whether most rows of a graph of codes are to leave it.
pub(crate) fn is_crowded(dataset: &Dataset, index: &ColumnIndex) -> bool {
    match &*index.graph() {
        // Those that are being inserted are there or not.
        Graph::Quantized(codes) => {
            codes.len() as u64 > 2 * dataset.view().living_below(index.claimed())
        }
        Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => false,
    }
}

/// Goes on with ridding a graph of its dead rows, or begins, if these are most of it; else nothing is to be done first. A row that comes
/// looks for others that stay among all of those.
pub(crate) fn clear(dataset: &Dataset, index: &ColumnIndex) -> Progress {
    let progress = match is_crowded(dataset, index) {
        true => hasten(dataset, index, Duration::ZERO),
        false => Progress::Ended,
    };
    let mut held = index.held_back.lock();
    match progress {
        Progress::Waiting if held.get_or_insert_with(Instant::now).elapsed() < HELD => progress,
        // A search that sees the dead may last, and others are not to wait for that.
        Progress::Waiting => Progress::Ended,
        Progress::Working | Progress::Ended => {
            *held = None;
            progress
        }
    }
}

/// As [`step`], even if few have died. A writer who waits for their places waits so long for jobs to end.
pub(crate) fn hasten(dataset: &Dataset, index: &ColumnIndex, pause: Duration) -> Progress {
    let graph = index.graph();
    let Graph::Quantized(codes) = graph.as_ref() else {
        return Progress::Ended;
    };
    if let Some(progress) = renew(dataset, index) {
        return progress;
    }
    let Some(running) = index.run() else {
        return Progress::Waiting;
    };
    let most = match is_crowded(dataset, index) {
        true => STEP_IF_CROWDED,
        false => STEP,
    };
    let progress = codes.remove(most);
    drop(running);
    match progress {
        Progress::Working | Progress::Waiting => progress,
        Progress::Ended => begin((dataset, index), &graph, 1, pause),
    }
}

/// Whether next to nothing in a graph of codes lives.
fn is_bare(dataset: &Dataset, index: &ColumnIndex) -> bool {
    let Graph::Quantized(codes) = &*index.graph() else {
        return false;
    };
    let most = (codes.len() as u64 / ROWS_FOR_LIVING).min(FEW);
    let claimed = index.claimed();
    // While rows come, or behind a gap, it cannot take its place.
    let is_at_rest = claimed == index.watermark();
    is_at_rest && most >= FEWEST && most >= dataset.view().living_below(claimed)
}

/// Replaces a graph of codes, if next to nothing of it lives, by a new one with what does. The old one gives its memory back, once searches have ended that
/// use it. `None` if the dead are to be taken out as ever.
fn renew(dataset: &Dataset, index: &ColumnIndex) -> Option<Progress> {
    if !is_bare(dataset, index) {
        return None;
    }
    let Some(mut has_failed) = index.renewing.try_lock() else {
        return Some(Progress::Waiting);
    };
    let old = index.graph();
    let Graph::Quantized(codes) = &*old else {
        return None;
    };
    if *has_failed {
        return None;
    }
    // Another thread may have done it.
    if !is_bare(dataset, index) {
        return Some(Progress::Working);
    }
    let new = codes.empty_like_it().map_err(Error::from);
    let replaced = new.and_then(|new| replace_by(Graph::Quantized(new), dataset, index, JOBS_END));
    match replaced {
        Ok(true) => {
            tracing::debug!(
                dataset = dataset.name,
                column = index.column,
                nodes = codes.len(),
                "a graph of dead rows was built anew"
            );
            Some(Progress::Working)
        }
        Ok(false) => None,
        Err(error) => {
            tracing::error!(dataset = dataset.name, column = index.column, %error, "a graph of dead rows is not built anew");
            *has_failed = true;
            None
        }
    }
}

/// Begins to remove the dead rows of a graph, if at least so many have died since the last time.
fn begin(
    (dataset, index): (&Dataset, &ColumnIndex),
    graph: &Arc<Graph>,
    fewest: u64,
    pause: Duration,
) -> Progress {
    let Graph::Quantized(codes) = graph.as_ref() else {
        return Progress::Ended;
    };
    // Rows are numbered in order, each once.
    let died = View::died;
    let since = died(&dataset.view()).saturating_sub(index.died.load(Ordering::Relaxed));
    if since < fewest {
        return Progress::Ended;
    }
    let Some(still) = index.try_hold_still(pause) else {
        return Progress::Waiting;
    };
    if !Arc::ptr_eq(graph, &index.graph()) {
        // Another has come into its place.
        return Progress::Working;
    }
    // Rows that are inserted later are dead or alive in a later view.
    let watermark = index.watermark();
    let view = dataset.view();
    let retired = codes.retire(&|row| row < watermark && !view.is_visible(row));
    if retired.is_ok() {
        index.died.store(died(&view), Ordering::Relaxed);
    }
    drop(still);
    match retired {
        Ok(nodes) => {
            tracing::debug!(
                dataset = dataset.name,
                column = index.column,
                nodes,
                "dead rows leave the graph"
            );
            match nodes {
                0 => Progress::Ended,
                _ => Progress::Working,
            }
        }
        // Another thread was quicker.
        Err(longbow_index::Error::Busy) => Progress::Waiting,
        Err(error) => {
            tracing::error!(dataset = dataset.name, column = index.column, %error, "dead rows stay in the graph");
            Progress::Ended
        }
    }
}

/// Does a job of the text index of a dataset: rows are taken in, pieces merged, dead rows left out. False if there was none.
pub(crate) fn text_step(dataset: &Dataset) -> bool {
    let text = dataset.text();
    let worked = text.advance(dataset).and_then(|advanced| {
        // Both, so that pieces do not become many while rows come.
        Ok(text.tend(dataset)? || advanced)
    });
    worked.unwrap_or_else(|error| {
        // The rows are read by each search, and what was there stays; say so loudly.
        tracing::error!(dataset = dataset.name, %error, "indexing text failed");
        false
    })
}

/// Takes the dead rows out of the indexes of a dataset; begins at least, where searches are under way that see them.
///
/// # Errors
/// As [`rebuild`], or if the text index cannot be written anew; it stays then.
pub(crate) fn vacuum(dataset: &Dataset, options: &GraphOptions) -> Result<()> {
    for index in dataset.indexes().iter() {
        while step(dataset, index) {}
    }
    dataset.text().tend_all(dataset)?;
    rebuild(dataset, options)
}

/// Rebuilds the graphs of whole vectors in which too many rows are dead. Searches use the old graph until the new one
/// holds everything that it holds; inserts into the old one go on meanwhile, except at the very end.
///
/// # Errors
/// If a batch cannot be read or the graph is full; the old graph stays then.
pub(crate) fn rebuild(dataset: &Dataset, options: &GraphOptions) -> Result<()> {
    for index in dataset.indexes().iter() {
        let graph = index.graph();
        let live = dataset.view().live;
        let dead = (graph.len() as u64).saturating_sub(live);
        let many = dead > DEAD_ROWS && dead as f64 > live as f64 * DEAD_SHARE;
        // One that is moved is built anew anyway.
        let moving = index.successor().is_some();
        if many && !moving && matches!(graph.as_ref(), Graph::Hnsw(_)) {
            let view = dataset.view();
            let column = view.schema.vector(&dataset.name, Some(&index.column))?;
            let new = Graph::new(column, index.kind(), options)?;
            if replace_by(new, dataset, index, ALL_JOBS_END)? {
                tracing::info!(
                    dataset = dataset.name,
                    column = index.column,
                    dead,
                    live,
                    "graph rebuilt"
                );
            }
        }
    }
    Ok(())
}

/// Inserts the living rows of a dataset into a new graph, and replaces that of an index by it; false if jobs do not end within a time, or rows are missing
/// in the old one, which stays then. Inserts into that go on meanwhile, except at the very end.
fn replace_by(
    graph: Graph,
    dataset: &Dataset,
    index: &ColumnIndex,
    within: Duration,
) -> Result<bool> {
    // In this order: the view has all rows below the watermark.
    let reached = index.watermark();
    let view = dataset.view();
    let died = view.died();
    let column = view.schema.vector(&dataset.name, Some(&index.column))?;
    insert_rows(&graph, &view, column, 0, reached)?;
    let Some(still) = index.try_hold_still(within) else {
        return Ok(false);
    };
    // Rows behind a gap are above the watermark, and in the old graph only.
    if index.has_gaps(&still) {
        return Ok(false);
    }
    let view = dataset.view();
    insert_rows(&graph, &view, column, reached, index.watermark())?;
    index.replace(graph, &still);
    index.died.store(died, Ordering::Relaxed);
    Ok(true)
}
