//! The background thread that calibrates indexes and measures samples.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use longbow_disk::reads;
use longbow_index::{Neighbor, Query};

use super::curve::{Curve, Moment, Origin};
use super::made::{Made, made};
use super::measure::{Climb, MOST, Measured, share, truth};
use super::middle::Middle;
use super::pace::{Pace, ROUND};
use super::{LEAST_ROWS, Recall};
use crate::column_index::{ColumnIndex, Reached};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::indexer::stand_back_for_all;
use crate::schema::VectorColumn;
use crate::shared::Shared;
use crate::vacuum;
use crate::view::View;

/// Samples of one view that are measured together: a block of rows is read once for all of them.
const TOGETHER: usize = 8;
/// Samples until which a gauge is new, and worth more time.
const NEW: usize = 200;
/// One query in so many is measured by a calibration there, beyond the first ones.
const FEWER_WHERE_COLD: usize = 8;
/// Real queries that are measured anew by a calibration.
const REAL: usize = 128;
/// How many times as much as a query made to be like the rows a real one misses. On the three sets of `bench/ann` it is
/// between 1.2 and 2.2 for k = 10 and efforts of 10 to 40.
const MADE_MISS: f32 = 2.0;
/// The same of one made to be unlike them: up to 3 on these sets, for queries that are unlike the rows in other ways.
const FAR_MISS: f32 = 3.0;
/// How often a piece of a calibration is measured again, since dead rows waited for it.
const AGAIN: usize = 8;
/// The part of an index that may be missing, or come in the meantime, when it is measured: a hundredth.
const GROWN: u64 = 100;

/// Queries with where they are from.
type Origins = Vec<(Origin, Vec<f32>)>;
/// And what was measured of them.
type Answered = Vec<(Origin, Arc<Measured>)>;

/// The body of the thread. It takes what processor time nobody else wants, and of one core no more than its share.
pub(crate) fn run(shared: &Arc<Shared>) {
    let part = shared.options.recall_share;
    if part <= 0.0 {
        return;
    }
    stand_back_for_all();
    let mut due = Due {
        calibration: Instant::now(),
        samples: Instant::now(),
    };
    let mut turn = 0;
    while !shared.stopping.load(Ordering::Acquire) {
        let left = due.samples.saturating_duration_since(Instant::now());
        shared
            .recall
            .wait(left.clamp(Duration::from_millis(1), ROUND));
        turn += 1;
        round(shared, turn, &mut due, part);
    }
}

/// When each kind of work may go on.
struct Due {
    calibration: Instant,
    samples: Instant,
}

/// Does what is due, beginning with one index or another, so that none waits for a busier one.
fn round(shared: &Shared, turn: usize, due: &mut Due, part: f64) {
    let mut all = Vec::new();
    for dataset in shared.catalog.datasets() {
        let indexes = dataset.indexes();
        all.extend(
            indexes
                .iter()
                .map(|index| (Arc::clone(&dataset), Arc::clone(index))),
        );
    }
    let first = turn % all.len().max(1);
    all.rotate_left(first);
    let mut idle = true;
    for (dataset, index) in &all {
        if vacuum::is_crowded(dataset, index) {
            // What walks find among the dead says nothing of later ones, and whoever sees the dead keeps them.
            while !index.recall.samples.take(TOGETHER).is_empty() {}
            continue;
        }
        if Instant::now() >= due.calibration && is_due(dataset, index) {
            let pace = Pace::new(shared, (dataset, index), Some(part))
                .hasty()
                .long();
            say(dataset, index, calibrate(&pace));
            due.calibration = pace.due();
        }
        if Instant::now() < due.samples || shared.stopping.load(Ordering::Acquire) {
            continue;
        }
        let is_new = index.recall.gauge.lock().len() < NEW;
        let mut pace = Pace::new(shared, (dataset, index), Some(part));
        if is_new {
            pace = pace.hasty();
        }
        let measured = measure_samples(&pace);
        if !matches!(measured, Ok(0)) {
            idle = false;
            due.samples = pace.due();
        }
        say(dataset, index, measured.map(drop));
    }
    if idle {
        due.samples = due.samples.max(Instant::now() + ROUND / 4);
    }
}

/// The curve stays as it was; nothing depends on it but efforts.
fn say(dataset: &Dataset, index: &ColumnIndex, done: Result<()>) {
    if let Err(error) = done {
        tracing::warn!(dataset = dataset.name, column = index.column, %error, "recall was not measured");
    }
}

/// Whether an index is to be calibrated now. One that still grows will be when most of it is there.
fn is_due(dataset: &Dataset, index: &ColumnIndex) -> bool {
    let (rows, view) = (index.graph().len() as u64, dataset.view());
    let grows = index.waiting(view.next_row) > rows / GROWN;
    let stale = |curve: Arc<Curve>| curve.is_stale(index.moment(view.live));
    rows >= LEAST_ROWS && !grows && index.recall.curve().is_none_or(stale)
}

/// Measures queries, the last real ones and made ones, and makes the curve of them; fewer where rows are not in memory, if the pace
/// says how much of the time it may take.
///
/// # Errors
/// If a batch cannot be read; the curve stays as it was.
pub(crate) fn calibrate(pace: &Pace<'_>) -> Result<()> {
    let (dataset, index) = (pace.dataset, pace.index);
    let _alone = index.recall.measuring.lock();
    let began = Instant::now();
    if pace.wait_for_dead().is_break() {
        return Ok(());
    }
    let (moment, middle, queries) = asked(pace)?;
    let mut measured = Answered::with_capacity(queries.len());
    let (mut left, mut again) = (queries, AGAIN);
    while !left.is_empty() {
        if pace.wait_for_dead().is_break() {
            return Ok(());
        }
        let most = if pace.was_searched() {
            TOGETHER
        } else {
            TOGETHER * 4
        };
        let mut later = left.split_off(left.len().min(most));
        let (before, piece) = (reads(), left);
        // Otherwise it is due again as soon as the index has caught up.
        let Some(all) = measure_piece(pace, &piece, &middle)? else {
            return Ok(());
        };
        if all.len() < piece.len() {
            // It was in the way of dead rows: once these have gone on.
            if again == 0 || vacuum::is_crowded(dataset, index) {
                tracing::debug!(
                    dataset = dataset.name,
                    column = index.column,
                    "calibration gives way to dead rows, and begins anew later"
                );
                return Ok(());
            }
            again -= 1;
            left = piece;
            left.append(&mut later);
            continue;
        }
        again = AGAIN;
        measured.extend(all);
        if pace.is_kept() && reads() > before && measured.len() >= TOGETHER * 4 {
            // Some of each kind.
            later = later.into_iter().step_by(FEWER_WHERE_COLD).collect();
        }
        left = later;
    }
    tracing::debug!(
        dataset = dataset.name, column = index.column, rows = moment.rows, queries = measured.len(), took = ?began.elapsed(),
        "index calibrated"
    );
    if !measured.is_empty() {
        let curve = Curve::new(measured, middle, moment);
        index.recall.curve.store(Some(Arc::new(curve)));
    }
    Ok(())
}

/// What is measured by a calibration, with the moment that it tells of and the middle of the rows.
fn asked(pace: &Pace<'_>) -> Result<(Moment, Arc<Middle>, Origins)> {
    let (dataset, index) = (pace.dataset, pace.index);
    let moment = index.moment(dataset.view().live);
    let Made {
        mut queries,
        middle,
    } = made(dataset, index)?;
    let real = index
        .recall
        .curve()
        .map_or(Vec::new(), |curve| curve.real(REAL));
    queries.extend(real.into_iter().map(|vector| (Origin::Real, vector)));
    Ok((moment, Arc::new(middle), queries))
}

/// Measures a piece of what is asked, or of fewer queries if the pace says to end; nothing if the index has grown meanwhile.
fn measure_piece(
    pace: &Pace<'_>,
    piece: &[(Origin, Vec<f32>)],
    middle: &Middle,
) -> Result<Option<Answered>> {
    let (dataset, index) = (pace.dataset, pace.index);
    // Anew for each: dead rows stay in the graph for whom an older view shows them.
    let (reached, view) = (index.reached(), dataset.view());
    let column = view.schema.vector(&dataset.name, Some(&index.column))?;
    let vectors = piece.iter().map(|(_, vector)| vector.clone());
    let rows = reached.graph.len() as u64;
    let at = (&*view, column);
    let asked = with_truth(vectors, MOST, at, pace)?;
    let all = climb_all(asked, middle, &reached, at, pace)?;
    if has_grown(&reached, rows) {
        return Ok(None);
    }
    let told = piece.iter().zip(all).map(|((of, _), one)| {
        let one = match of {
            Origin::Ordinary => one.missing(MADE_MISS).nameless(),
            Origin::Far => one.missing(FAR_MISS).nameless(),
            Origin::Real => one,
        };
        (*of, Arc::new(one))
    });
    Ok(Some(told.collect()))
}

/// Measures samples that wait, as many as go together; returns how many.
///
/// # Errors
/// If a batch cannot be read.
pub(crate) fn measure_samples(pace: &Pace<'_>) -> Result<usize> {
    let (shared, dataset, index) = (pace.shared, pace.dataset, pace.index);
    let _alone = index.recall.measuring.lock();
    let samples = index.recall.samples.take(TOGETHER);
    let Some(first) = samples.first() else {
        return Ok(0);
    };
    let schema = &first.view.schema;
    let column = schema.vector(&dataset.name, Some(&index.column))?;
    let at = (&*first.view, column);
    let most = samples.iter().map(|sample| sample.k).max().unwrap_or(0);
    let vectors = samples.iter().map(|sample| sample.vector.clone());
    let asked = with_truth(vectors, most.max(MOST), at, pace)?;
    if shared.stopping.load(Ordering::Acquire) {
        return Ok(0);
    }
    let mut gauge = index.recall.gauge.lock();
    for (sample, one) in samples.iter().zip(&asked) {
        let answered = sample.answered.iter().copied();
        if let Some(recall) = share(&one.truth, sample.k, answered) {
            gauge.push(recall);
        }
    }
    drop(gauge);
    // What was answered is measured, but walks now may say nothing of others.
    let has_changed = || {
        let died = index.reached().died;
        first.reached.died != died || has_grown(&first.reached, first.rows)
    };
    if let Some(curve) = index.recall.curve()
        && !has_changed()
    {
        let real = climb_all(asked, curve.middle(), &first.reached, at, pace)?;
        if !has_changed() {
            index.recall.learn(real);
        }
    }
    Ok(samples.len())
}

/// Whether the graph holds more than these rows by so much that walks cannot be measured any more on a view of then: rows
/// that came since are not visible in it, and a walk goes on for each that it meets.
fn has_grown(reached: &Reached, rows: u64) -> bool {
    reached.graph.len() as u64 > rows + rows / GROWN
}

/// A query that is measured.
struct Asked {
    vector: Vec<f32>,
    query: Query,
    /// Its nearest rows.
    truth: Vec<Neighbor>,
}

/// Queries with their true neighbours; none if the pace says to end.
fn with_truth(
    vectors: impl Iterator<Item = Vec<f32>>,
    k: usize,
    (view, column): (&View, &VectorColumn),
    pace: &Pace<'_>,
) -> Result<Vec<Asked>> {
    let vectors: Vec<Vec<f32>> = vectors.collect();
    let prepare = |vector: &Vec<f32>| Ok(Query::new(column.space, vector)?);
    let queries = vectors.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    let pause = |since, before| pace.pause(since, before);
    let truths = truth(&queries, k, (view, column), &pause)?;
    let all = vectors.into_iter().zip(queries);
    let all = all.zip(truths.unwrap_or_default());
    let all = all.map(|((vector, query), truth)| Asked {
        vector,
        query,
        truth,
    });
    Ok(all.collect())
}

/// What each effort finds for each query; of fewer if the pace says to end, or dead rows wait for a walk.
fn climb_all(
    asked: Vec<Asked>,
    middle: &Middle,
    reached: &Reached,
    (view, column): (&View, &VectorColumn),
    pace: &Pace<'_>,
) -> Result<Vec<Measured>> {
    let mut all = Vec::with_capacity(asked.len());
    for one in asked {
        let (began, before) = (Instant::now(), reads());
        let climb = Climb {
            query: &one.query,
            middle,
            truth: &one.truth,
            reached,
            view,
            column,
            is_over: &pace.dead_wait(),
        };
        let Some(measured) = climb.measure(one.vector)? else {
            break;
        };
        all.push(measured);
        if pace.pause(began, before).is_break() {
            break;
        }
    }
    Ok(all)
}

impl Recall {
    /// Takes real queries into the curve, if there is one.
    fn learn(&self, real: Vec<Measured>) {
        if let Some(curve) = self.curve() {
            self.curve
                .store(Some(Arc::new(curve.with(real.into_iter()))));
        }
    }
}
