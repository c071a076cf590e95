//! Background threads that move rows from the tail into the graphs and the text index.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longbow_index::Progress;
use longbow_types::cpu_time;
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::coded_tail::Maker;
use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::moving;
use crate::schema::VectorColumn;
use crate::shared::Shared;
use crate::turn::{self, Turn};
use crate::vacuum;
use crate::vectors::Vectors;
use crate::view::View;

/// How far the steady indexer stands back where the others don't get a turn at all.
const NICENESS: i32 = 10;
/// How long a thread that has just had work sleeps before it waits to be woken: rows that come one by one are taken some at a time, and
/// whoever writes them does not wake threads for each, which takes as long as the write.
const NAP: Duration = Duration::from_millis(1);
/// Time without a finished job after which the steady indexer steps in.
const STARVED: Duration = Duration::from_millis(500);

/// Bytes of vectors for whose codes a writer waits at most, and other writers behind him: some fifty milliseconds. More are
/// left to the coder.
const UNSEEN_BYTES: u64 = 32 << 20;
/// The same of short vectors, whose codes take as long as those of longer ones.
const UNSEEN_ROWS: u64 = 16_384;

/// Rows for which a job does what was left undone: some milliseconds, for which a checkpoint may have to wait.
const REFINED: u64 = 16;

/// Jobs of an index between two steps that rid it of dead rows: those cost searches less than rows that wait.
const JOBS: usize = 4;

/// Which processor time an indexing thread takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// What nobody else wants. A woken reader or writer displaces such a thread at once, so what an
    /// acknowledgement promises does not wait for the index.
    Idle,
    /// A small but certain share, taken only while the idle ones are starved: on a node that is always busy the index
    /// must still come on, or searches would scan more and more.
    Steady,
}

/// The body of one indexing thread.
pub(crate) fn run(shared: &Arc<Shared>, worker: usize, share: Share) {
    stand_back(share);
    match share {
        Share::Idle => idle(shared, worker),
        Share::Steady => steady(shared),
    }
}

fn idle(shared: &Shared, worker: usize) {
    let (mut turn, mut is_busy) = (worker, false);
    while !shared.stopping.load(Ordering::Acquire) {
        turn = turn.wrapping_add(1);
        if round(shared, turn) | code_filters(shared) {
            shared.jobs_done.fetch_add(1, Ordering::Relaxed);
            is_busy = true;
        } else if is_busy {
            is_busy = false;
            shared.indexers.nap(NAP);
            // If there is more than this thread's part, the others are to know.
            if round(shared, turn) {
                shared.jobs_done.fetch_add(1, Ordering::Relaxed);
                is_busy = true;
                shared.indexers.ring();
            }
        } else {
            shared.indexers.wait(Duration::from_millis(200));
        }
    }
}

fn steady(shared: &Shared) {
    let mut before = 0;
    while !shared.stopping.load(Ordering::Acquire) {
        shared.starved.wait(STARVED);
        // Job after job for as long as the idle ones get nothing done.
        while shared.jobs_done.load(Ordering::Relaxed) == before
            && !shared.stopping.load(Ordering::Acquire)
            && round(shared, 0)
        {}
        before = shared.jobs_done.load(Ordering::Relaxed);
    }
}

/// Does a job of each dataset, beginning with one or another; false if there was none.
fn round(shared: &Shared, turn: usize) -> bool {
    moving::review(shared);
    let datasets = shared.catalog.datasets();
    let mut worked = false;
    // Time of a processor: who waits for others, who have precedence, does no more for it.
    let began = cpu_time::of_thread();
    for step in 0..datasets.len() {
        worked |= work(shared, &datasets[(turn + step) % datasets.len()]);
    }
    if worked {
        shared
            .unsaved
            .add(cpu_time::of_thread().saturating_sub(began));
    }
    worked
}

/// Lets the calling thread take only what processor time nobody else wants.
pub(crate) fn stand_back_for_all() {
    stand_back(Share::Idle);
}

/// Lets the calling thread have the processor before those who stand back for all, and after others.
pub(crate) fn stand_back_a_little() {
    stand_back(Share::Steady);
}

/// Failing to stand back only makes the thread compete.
fn stand_back(share: Share) {
    let stood_back = match share {
        Share::Idle => {
            turn::note_standing_back();
            let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
            set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
        }
        Share::Steady => rustix::process::nice(NICENESS).is_ok(),
    };
    tracing::debug!(?share, stood_back, "background thread");
}

/// Does a job of each index of a dataset, and of those that are built in the place of others; false if there was none.
fn work(shared: &Shared, dataset: &Dataset) -> bool {
    let mut worked = vacuum::text_step(dataset);
    for index in dataset.indexes().iter() {
        // Not before most of a graph has left it that is to: what comes meanwhile walks through all of it, and holds up what
        // leaves.
        let cleared = vacuum::clear(dataset, index);
        let removed = cleared == Progress::Working;
        let may_take = cleared == Progress::Ended && moving::may_take(shared, index);
        let taken = may_take && take_some(dataset, index);
        worked |= removed | taken;
        worked |= cleared == Progress::Ended && vacuum::step(dataset, index);
        worked |= !taken && refine(index);
        if let Some(successor) = index.successor() {
            worked |= vacuum::step(dataset, &successor);
            worked |= jobs(|| take(dataset, &successor));
        }
    }
    worked
}

/// Takes rows into an index, some jobs of them; false if there were none. Codes come first: a row that waits without costs searches
/// the most. While there are searches, the coder sees to them.
fn take_some(dataset: &Dataset, index: &ColumnIndex) -> bool {
    let (mut coded, mut begun) = (false, false);
    let taken = jobs(|| {
        coded |= !index.searched.is_of_late() && code(dataset, index, Maker::StandsBack);
        // The first in any case: of dead rows some stay, and others must not wait for those.
        let is_over = begun && vacuum::is_crowded(dataset, index);
        begun = true;
        !is_over && take(dataset, index)
    });
    coded || taken
}

/// Does for rows what was left undone when they came in haste, if none waits; false if there was nothing.
fn refine(index: &ColumnIndex) -> bool {
    let graph = index.graph();
    let (Graph::Quantized(codes), Some(_running)) = (&*graph, index.run()) else {
        return false;
    };
    let turn = Turn::begin();
    let one = |_: &u64| {
        let refined = codes.refine(1);
        turn.give_way();
        refined
    };
    (0..REFINED).take_while(one).count() > 0
}

/// Some jobs of one kind, until there is none; false if there was none.
fn jobs(mut job: impl FnMut() -> bool) -> bool {
    (0..JOBS).take_while(|_| job()).count() > 0
}

/// Makes codes of the next rows that wait to be taken into a graph of codes; false if there were none.
pub(crate) fn code(dataset: &Dataset, index: &ColumnIndex, maker: Maker) -> bool {
    let watermark = index.watermark();
    let coded = make_codes(dataset, &dataset.view(), index, |view, column| {
        index.coded.step(view, column, watermark, maker)
    });
    // Others may have taken them all meanwhile.
    index.coded.forget(index.watermark());
    coded
}

/// Makes codes of the last `rows` rows of a view that nobody sees yet, for some indexes. A panic costs no more than the
/// codes.
pub(crate) fn code_unseen<'a>(
    dataset: &Dataset,
    view: &View,
    rows: u64,
    indexes: impl Iterator<Item = &'a ColumnIndex>,
) {
    let mut left = UNSEEN_BYTES;
    for index in indexes {
        let code = |view: &View, column: &VectorColumn| {
            let bytes = column.space.row_bytes() as u64;
            let most = (rows, (left / bytes).min(UNSEEN_ROWS));
            let coded = &index.coded;
            let done = coded.code_unseen(view, column, index.watermark(), most)?;
            left -= done * bytes;
            Ok(done > 0)
        };
        let coded = catch_unwind(AssertUnwindSafe(|| make_codes(dataset, view, index, code)));
        if coded.is_err() {
            tracing::error!(
                dataset = dataset.name,
                column = index.column,
                "codes panicked"
            );
        }
    }
}

/// Makes codes for some filters which are asked for often; false if there is none. No checkpoint holds them.
fn code_filters(shared: &Shared) -> bool {
    let mut worked = false;
    for dataset in shared.catalog.datasets().iter() {
        for index in dataset.indexes().iter() {
            worked |= code_filter(shared, dataset, index);
        }
    }
    worked
}

/// Makes codes of the rows that pass a filter which is asked for often; false if there is none.
fn code_filter(shared: &Shared, dataset: &Dataset, index: &ColumnIndex) -> bool {
    make_codes(dataset, &dataset.view(), index, |view, column| {
        let room = shared.filter_room();
        dataset.filters.make_codes(view, column, room)
    })
}

/// Makes codes beside a graph of codes; false if there is none, or none were made.
fn make_codes(
    dataset: &Dataset,
    view: &View,
    index: &ColumnIndex,
    make: impl FnOnce(&View, &VectorColumn) -> Result<bool>,
) -> bool {
    if index.is_loading() || !index.graph().has_coded_tail() {
        return false;
    }
    let column = view.schema.vector(&dataset.name, Some(&index.column));
    let made = column.and_then(|column| make(view, column));
    made.unwrap_or_else(|error| {
        // Searches go without, and whoever takes waiting rows in says why that cannot be done.
        tracing::debug!(dataset = dataset.name, column = index.column, %error, "no codes");
        false
    })
}

/// Takes the next rows into an index; false if there were none, or they could not be taken.
fn take(dataset: &Dataset, index: &ColumnIndex) -> bool {
    let view = dataset.view();
    let Some((first, end, _running)) = index.claim(view.next_row) else {
        return false;
    };
    let Ok(column) = view.schema.vector(&dataset.name, Some(&index.column)) else {
        return false;
    };
    if let Err(Stopped { row, error }) = insert_rows(&index.graph(), &view, column, first, end) {
        // Until they are taken the rows are found by scanning; say so loudly.
        tracing::error!(dataset = dataset.name, column = index.column, first = row, end, %error, "indexing failed, and is tried again");
        if row > first {
            index.finish(first, row);
        }
        index.give_back(row, end);
        return false;
    }
    index.finish(first, end);
    true
}

/// An insert that failed at a row.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub row: u64,
    pub error: Error,
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        stopped.error
    }
}

/// Inserts the living rows `first..end` into a graph.
///
/// # Errors
/// If a batch cannot be read or the graph is full; the rows before the one that is told are in it.
pub(crate) fn insert_rows(
    graph: &Graph,
    view: &View,
    column: &VectorColumn,
    first: u64,
    end: u64,
) -> std::result::Result<(), Stopped> {
    insert_those(graph, view, column, (first, end), &|_| true)
}

/// As [`insert_rows`], of rows for which `wants` holds.
///
/// # Errors
/// As [`insert_rows`].
pub(crate) fn insert_those(
    graph: &Graph,
    view: &View,
    column: &VectorColumn,
    (first, end): (u64, u64),
    wants: &dyn Fn(u64) -> bool,
) -> std::result::Result<(), Stopped> {
    let stopped = |error| Stopped { row: first, error };
    graph.prepare(view, column).map_err(stopped)?;
    each(
        view,
        column,
        (first, end),
        &|row, vector| match wants(row) {
            true => graph.insert(row, vector),
            false => Ok(()),
        },
    )
}

/// Gives the living rows `first..end` with their vectors to whoever inserts them.
///
/// # Errors
/// If a batch cannot be read or an insert fails; the rows before the one that is told were inserted.
pub(crate) fn each(
    view: &View,
    column: &VectorColumn,
    (first, end): (u64, u64),
    insert: &dyn Fn(u64, &[u8]) -> Result<()>,
) -> std::result::Result<(), Stopped> {
    let stopped = |row| move |error| Stopped { row, error };
    let turn = Turn::begin();
    for part in view.parts(first) {
        if part.runs.first().is_none_or(|run| run.first_row >= end) {
            break;
        }
        let from = part
            .runs
            .first()
            .map_or(first, |run| run.first_row.max(first));
        let Some(vectors) = Vectors::of(part.batch, column).map_err(stopped(from))? else {
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
                    insert(row, vector).map_err(stopped(row))?;
                    turn.give_way();
                }
            }
        }
    }
    Ok(())
}
