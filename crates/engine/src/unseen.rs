//! Rows of a put come into indexes that are searched, before anybody sees them.
//!
//! A row that waits for an index costs each search more than one that is in it: by its vector thirty times as much as by a code, and by
//! a code some times as much. So the writer of many rows, who applies them here, sees to it first: where they are few beside those
//! in an index, with others that wait or for which something was left undone, he and some helpers insert them in haste. Else he makes
//! their codes (`coded_tail`), which takes a fifth of the time, and so a stream of writes is not held up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use longbow_index::QuantizedGraph;
use parking_lot::{Mutex, RwLockReadGuard};

use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::graph::Graph;
use crate::indexer::{self, Stopped};
use crate::schema::VectorColumn;
use crate::view::View;

/// Most rows for which something is left undone, these included.
const MOST: u64 = 16_384;
/// Most bytes of vectors of a put, in all indexes together: some tenths of a second, for which all other writers wait.
const MOST_BYTES: u64 = 12 << 20;
/// Rows in the graph for each, at least: walks go through what nobody sees yet, too.
const BESIDE: u64 = 8;
/// Living rows for each dead one that is in the graph, at least: who comes faster than these are taken out makes walks longer and longer.
/// Among so many a search still takes less than one beside rows that wait by their codes: `bench/databases/run.py --changes 5`.
const LIVING: u64 = 2;
/// Most threads that insert.
const THREADS: usize = 4;
/// Rows that one of them takes at a time: the writer waits for the slowest.
const PIECE: u64 = 16;

/// Rows that were put into an index, or are still to be, and are told of when they are seen. Until then the index is not saved.
#[derive(Debug)]
#[must_use = "the index waits for it"]
pub(crate) struct Unseen<'a> {
    index: &'a ColumnIndex,
    parts: Vec<Part>,
    _running: RwLockReadGuard<'a, ()>,
}

/// Rows `first..end`, of which those below `done` were inserted.
#[derive(Debug)]
struct Part {
    first: u64,
    done: u64,
    end: u64,
}

impl Unseen<'_> {
    pub fn are_seen(self) {
        for Part { first, done, end } in self.parts {
            if done > first {
                self.index.finish(first, done);
            }
            if done < end {
                self.index.give_back(done, end);
            }
        }
    }
}

/// Puts the last `rows` rows of a view that nobody sees yet into those of some indexes that are searched, where they are few; for
/// others that are searched makes their codes. The rows must come to be seen next, whatever happens.
pub(crate) fn prepare<'a>(
    dataset: &Dataset,
    view: &View,
    rows: u64,
    indexes: &'a [Arc<ColumnIndex>],
) -> Vec<Unseen<'a>> {
    let (mut inserted, mut others, mut left) = (Vec::new(), Vec::new(), MOST_BYTES);
    for index in indexes.iter().filter(|index| index.searched.is_of_late()) {
        match insert(dataset, view, index, &mut left) {
            Some(unseen) => inserted.push(unseen),
            None => others.push(&**index),
        }
    }
    indexer::code_unseen(dataset, view, rows, others.into_iter());
    inserted
}

/// Puts rows into an index, with those that wait for it, unless these are too many.
fn insert<'a>(
    dataset: &Dataset,
    view: &View,
    index: &'a ColumnIndex,
    left: &mut u64,
) -> Option<Unseen<'a>> {
    let column = view.schema.vector(&dataset.name, Some(&index.column));
    let (graph, column) = (index.graph(), column.ok()?);
    let Graph::Quantized(codes) = &*graph else {
        return None;
    };
    let (end, bytes) = (view.next_row, column.space.row_bytes() as u64);
    let most = room(index, codes, view).min(*left / bytes);
    let (first, running) = index.claim_unseen(end, most)?;
    *left -= (end - first) * bytes;
    let parts = match Arc::ptr_eq(&graph, &index.graph()) {
        true => insert_all(&graph, (view, column), (first, end), &dataset.name),
        // Another has come into its place: indexers take them.
        false => vec![Part {
            first,
            done: first,
            end,
        }],
    };
    Some(Unseen {
        index,
        parts,
        _running: running,
    })
}

/// So many rows may be inserted in haste.
fn room(index: &ColumnIndex, codes: &QuantizedGraph, view: &View) -> u64 {
    let is_moved = index.is_auto() || index.successor().is_some();
    // Of what waits, searches look at the living alone.
    let many_dead = codes.len() as u64 > view.live + view.live / LIVING;
    if is_moved || many_dead || !codes.is_prepared() {
        return 0;
    }
    let most = MOST.min(codes.len() as u64 / BESIDE);
    most.saturating_sub(codes.hasty() as u64)
}

/// Inserts rows, each few by one of some threads.
fn insert_all(
    graph: &Graph,
    (view, column): (&View, &VectorColumn),
    (first, end): (u64, u64),
    dataset: &str,
) -> Vec<Part> {
    let (next, parts) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let first = next.fetch_add(PIECE, Ordering::Relaxed);
            if first >= end {
                break;
            }
            let end = end.min(first + PIECE);
            let insert = |row: u64, vector: &[u8]| graph.insert_in_haste(row, vector);
            let piece = || indexer::each(view, column, (first, end), &insert);
            let done = match catch_unwind(AssertUnwindSafe(piece)) {
                Ok(Ok(())) => end,
                Ok(Err(Stopped { row, error })) => {
                    // Indexers try it again; until then the rows are found by scanning.
                    tracing::error!(dataset, column = column.name, first = row, end, %error, "indexing failed, and is tried again");
                    row
                }
                Err(_) => {
                    // Which of them are in it is not known, so none is tried again, and all from here on are scanned.
                    tracing::error!(
                        dataset,
                        column = column.name,
                        first,
                        end,
                        "indexing panicked"
                    );
                    continue;
                }
            };
            parts.lock().push(Part { first, done, end });
        }
    };
    let jobs = (end - first).div_ceil(PIECE) as usize;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let help = || {
            indexer::stand_back_a_little();
            work();
        };
        for _ in 1..cores.min(THREADS).min(jobs) {
            // Without a helper it takes longer.
            let _ = thread::Builder::new().spawn_scoped(scope, help);
        }
        work();
    });
    parts.into_inner()
}

#[cfg(test)]
mod tests;
