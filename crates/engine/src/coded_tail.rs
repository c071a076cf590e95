//! Codes of the rows that wait for their turn to come into a graph, so that searches meanwhile need not read all their vectors.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use longbow_index::{CodedRun, Frame};
use parking_lot::Mutex;

use crate::column_index::Reached;
use crate::dice::Dice;
use crate::error::Result;
use crate::originals::Originals;
use crate::schema::VectorColumn;
use crate::turn::Turn;
use crate::vectors::Vectors;
use crate::view::View;

/// Bytes of vectors that are read as fast as it takes to turn a query for their codes: fewer get none.
pub(crate) const LEAST_BYTES: usize = 512 << 10;
/// Most rows of a run: some ten milliseconds of work, or fifty, for which other work of the thread waits; where a writer does it, other
/// writes.
const MOST: u64 = 8_192;
/// Rows that are put into clusters, at least: fewer are compared as fast as centroids.
const CLUSTERED: usize = 1_024;
/// Runs that are in no clusters yet from which on these come first.
const PLAIN_RUNS: usize = 8;
/// Rows of a run in whose frame others may be.
const FRAMED: usize = 128;
/// Rows that come at once, from which on their writer waits until they are in clusters, of which searches read a part.
const BURST: u64 = 2_048;
/// Rows that stand for queries.
const SAMPLE: usize = 128;
/// The same for a writer, who waits.
const FEW_SAMPLES: usize = 64;
/// Most waiting rows that are expected in an answer for which a part of the clusters is read.
const NEAREST: usize = 10;
/// Of the rotation.
const SEED: u64 = 0x7461_696c;

/// Runs of rows with codes: ascending, each beginning where the one before ends.
#[derive(Debug, Default)]
pub(crate) struct CodedTail {
    runs: ArcSwapOption<Vec<Coded>>,
    /// Held to change them.
    changing: Mutex<()>,
    /// Held by who makes another. One in haste does not wait for it; if it gets it, others do not do its work a second time.
    making: Mutex<()>,
}

/// Who makes codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// One of the threads that take what processor time is left: it may hold up what it has begun for long.
    StandsBack,
    /// One that searches wait for, and that waits for nobody.
    InHaste,
}

/// The rows `first..end`: those with codes, and others that are dead or have no vector.
#[derive(Debug, Clone)]
pub(crate) struct Coded {
    pub first: u64,
    pub end: u64,
    pub codes: Arc<CodedRun>,
    kind: Kind,
}

/// How codes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Clustered,
}

impl Coded {
    fn rows(&self) -> u64 {
        self.end - self.first
    }

    fn is_clustered(&self) -> bool {
        self.kind == Kind::Clustered
    }
}

impl CodedTail {
    /// The runs at this moment. Load the watermark after them: no row between it and the end of the last run is missing then.
    pub fn runs(&self) -> Option<Arc<Vec<Coded>>> {
        self.runs.load_full()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let runs = self.runs();
        let runs = runs.iter().flat_map(|runs| runs.iter());
        runs.map(|run| run.codes.memory_bytes()).sum()
    }

    /// Forgets runs below the watermark.
    pub fn forget(&self, watermark: u64) {
        let is_over = |run: &Coded| run.end <= watermark;
        if self.runs().is_some_and(|runs| runs.iter().any(is_over)) {
            let _changing = self.changing.lock();
            self.set(self.runs_from(watermark));
        }
    }

    /// Makes codes of the next rows of a view, if there are enough without; or else puts runs into clusters, of which a search reads
    /// a part, which takes some times as long. False if there is nothing to do.
    ///
    /// # Errors
    /// If a batch cannot be read.
    pub fn step(
        &self,
        view: &View,
        column: &VectorColumn,
        watermark: u64,
        maker: Maker,
    ) -> Result<bool> {
        let making = self.making.try_lock();
        if making.is_none() && maker == Maker::StandsBack {
            return Ok(false);
        }
        let runs = self.runs_from(watermark);
        let from = runs.last().map_or(watermark, |run| run.end);
        let waiting = view.next_row.saturating_sub(from);
        // Of rows that the view does not show yet, which others had codes of by a later one, it would lack the vectors.
        let to_cluster = to_cluster(&runs, watermark).filter(|(_, end)| *end <= view.next_row);
        let plain = runs.iter().filter(|run| !run.is_clustered()).count();
        let is_urgent =
            waiting >= least_rows(column) && (plain < PLAIN_RUNS || to_cluster.is_none());
        let rows = match is_urgent {
            true => {
                let first = absorb(&runs, waiting, CLUSTERED as u64).unwrap_or(from);
                Some((first, view.next_row.min(from + MOST)))
            }
            false => to_cluster,
        };
        let Some((first, end)) = rows else {
            return Ok(false);
        };
        let kind = match is_urgent {
            true => Kind::Plain,
            false => Kind::Clustered,
        };
        let how = (frame_before(&runs, first), kind, SAMPLE);
        self.put(code(view, column, (first, end), how)?, watermark);
        Ok(true)
    }

    /// Makes codes of the last rows of a view that nobody sees yet, at most of so many, and tells of how many: for their writer,
    /// who waits, so that no search has to read their vectors. If many before them are without, others are at those, and do
    /// these too.
    ///
    /// # Errors
    /// If a batch cannot be read.
    pub fn code_unseen(
        &self,
        view: &View,
        column: &VectorColumn,
        watermark: u64,
        (rows, most): (u64, u64),
    ) -> Result<u64> {
        let (least, unseen) = (least_rows(column), view.next_row - rows);
        let mut done = 0;
        while done < most {
            let runs = self.runs_from(watermark);
            let from = runs.last().map_or(watermark, |run| run.end);
            if from + least <= unseen || from + least > view.next_row {
                break;
            }
            let end = view.next_row.min(from + MOST.min(most - done));
            let rows = end - from;
            // As the coder does it, so that runs stay few.
            let (kind, first) = match rows < BURST {
                true => (Kind::Plain, None),
                false => (Kind::Clustered, absorb(&runs, rows, MOST)),
            };
            let first = first.unwrap_or(from);
            let how = (frame_before(&runs, first), kind, FEW_SAMPLES);
            self.put(code(view, column, (first, end), how)?, watermark);
            done += rows;
        }
        Ok(done)
    }

    /// Takes a run in the place of those that it absorbed, unless somebody else has changed them.
    fn put(&self, run: Coded, watermark: u64) {
        let _changing = self.changing.lock();
        let mut runs = self.runs_from(watermark);
        runs.retain(|of| of.first < run.first || of.end > run.end);
        let at = runs.partition_point(|of| of.first < run.first);
        let (before, behind) = runs.split_at(at);
        if before.last().is_none_or(|of| of.end == run.first)
            && behind.first().is_none_or(|of| of.first == run.end)
        {
            runs.insert(at, run);
            self.set(runs);
        }
    }

    fn runs_from(&self, watermark: u64) -> Vec<Coded> {
        let runs = self.runs();
        let runs = runs.iter().flat_map(|runs| runs.iter());
        runs.filter(|run| run.end > watermark).cloned().collect()
    }

    /// Only who holds `changing` may.
    fn set(&self, runs: Vec<Coded>) {
        self.runs.store((!runs.is_empty()).then(|| Arc::new(runs)));
    }
}

/// So many rows without codes are left to be read.
fn least_rows(column: &VectorColumn) -> u64 {
    LEAST_BYTES.div_ceil(column.space.row_bytes()) as u64
}

/// The first rows that are to be put into clusters: those of runs that follow each other and are in none yet, and of others before that
/// are no longer than these; if enough of them are not below the watermark.
fn to_cluster(runs: &[Coded], watermark: u64) -> Option<(u64, u64)> {
    let mut begin = 0;
    while begin < runs.len() {
        let (mut end, mut rows, mut living) = (begin, 0, 0);
        while let Some(run) = runs.get(end)
            && !run.is_clustered()
            && (end == begin || rows + run.rows() <= MOST)
        {
            rows += run.rows();
            living += run.codes.len();
            end += 1;
        }
        let last = runs[end.max(begin + 1) - 1].end;
        if living >= CLUSTERED && last.saturating_sub(watermark) >= CLUSTERED as u64 {
            let first = absorb(&runs[..begin], rows, MOST);
            return Some((first.unwrap_or(runs[begin].first), last));
        }
        begin = end.max(begin + 1);
    }
    None
}

/// The frame of the runs before a row: of runs in one a search turns its query once. What all are absorbed by may be unlike them; and
/// few rows are no good frame for others.
fn frame_before(runs: &[Coded], first: u64) -> Option<Frame> {
    let mut kept = runs.iter().filter(|run| run.end <= first);
    let framed = kept.find(|run| run.codes.len() >= FRAMED);
    framed.map(|run| run.codes.frame())
}

/// Where the last of some runs begin that are no longer than what comes, up to so many rows with it: so runs are few, and each row is
/// coded a few times at most.
fn absorb(runs: &[Coded], mut coming: u64, most: u64) -> Option<u64> {
    let last = runs.iter().rev().take_while(|run| {
        let is_absorbed = run.rows() <= coming && run.rows() + coming <= most;
        coming += run.rows();
        is_absorbed
    });
    last.last().map(|run| run.first)
}

/// Whether a search that found an index like this has to read so many vectors of waiting rows that somebody should make haste with
/// their codes.
pub(crate) fn is_missed(index: &Reached, view: &View, column: &VectorColumn) -> bool {
    let coded = index.coded.as_ref().and_then(|runs| runs.last());
    let from = coded.map_or(index.watermark, |run| run.end.max(index.watermark));
    view.next_row.saturating_sub(from) >= least_rows(column)
}

/// Codes of the living rows from a first one to an end.
fn code(
    view: &View,
    column: &VectorColumn,
    (first, end): (u64, u64),
    (frame, kind, sample): (Option<Frame>, Kind, usize),
) -> Result<Coded> {
    debug_assert!(end <= view.next_row, "the view shows all");
    let turn = Turn::begin();
    let parts: Vec<_> = view
        .parts(first)
        .take_while(|part| part.runs.first().is_some_and(|run| run.first_row < end))
        .map(|part| Ok((Vectors::of(part.batch, column)?, part.runs)))
        .collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for (vectors, runs) in &parts {
        let Some(vectors) = vectors else { continue };
        for run in runs {
            let offsets = (0..run.len).take_while(|offset| run.first_row + (*offset as u64) < end);
            rows.extend(offsets.filter_map(|offset| {
                let row = run.first_row + offset as u64;
                let vector = vectors.row(run.start + offset)?;
                view.is_visible(row).then_some((row, vector))
            }));
        }
    }
    let between = || turn.give_way();
    let frame = match frame {
        Some(frame) => frame,
        None => Frame::around(column.space, SEED, &rows)?,
    };
    // Some may have died since.
    let kind = match rows.len() < CLUSTERED {
        true => Kind::Plain,
        false => kind,
    };
    let codes = match kind {
        Kind::Clustered => {
            let mut codes = CodedRun::clustered_in_haste(&frame, &rows, &between);
            let originals = Originals::new(view, column);
            // Not each so many-th: rows may come in an order that repeats.
            let mut dice = Dice::new(first);
            let sample = (0..sample).map(|_| rows[dice.below(rows.len())]).collect();
            codes.measure(&[sample], NEAREST, &originals, &between)?;
            originals.check()?;
            codes
        }
        Kind::Plain => CodedRun::new(&frame, &rows, &between),
    };
    let codes = Arc::new(codes);
    Ok(Coded {
        first,
        end,
        codes,
        kind,
    })
}

#[cfg(test)]
mod tests;
