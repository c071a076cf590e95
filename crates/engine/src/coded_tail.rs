//! Codes of the rows that wait for their turn to come into a graph, so that searches meanwhile need not read all their vectors.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use longbow_index::CodedRun;
use parking_lot::Mutex;

use crate::error::Result;
use crate::schema::VectorColumn;
use crate::turn::Turn;
use crate::vectors::Vectors;
use crate::view::View;

/// Bytes of vectors that are read as fast as it takes to turn a query for their codes: fewer get none.
const LEAST_BYTES: usize = 512 << 10;
/// Most rows of a run: some ten milliseconds of work, for which other work of the thread waits.
const MOST: u64 = 8_192;
/// Of the rotation.
const SEED: u64 = 0x7461_696c;

/// Runs of rows with codes: ascending, each beginning where the one before ends.
#[derive(Debug, Default)]
pub(crate) struct CodedTail {
    runs: ArcSwapOption<Vec<Coded>>,
    /// Held to make another.
    making: Mutex<()>,
}

/// The rows `first..end`: those with codes, and others that are dead or have no vector.
#[derive(Debug, Clone)]
pub(crate) struct Coded {
    pub first: u64,
    pub end: u64,
    pub codes: Arc<CodedRun>,
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

    /// Forgets runs below the watermark; later, if codes are being made just now.
    pub fn forget(&self, watermark: u64) {
        let is_over = |run: &Coded| run.end <= watermark;
        if self.runs().is_some_and(|runs| runs.iter().any(is_over))
            && let Some(_making) = self.making.try_lock()
        {
            self.set(self.runs_from(watermark));
        }
    }

    /// Makes codes of the next rows of a view, if there are enough without; false if there are not.
    ///
    /// # Errors
    /// If a batch cannot be read.
    pub fn step(&self, view: &View, column: &VectorColumn, watermark: u64) -> Result<bool> {
        let Some(_making) = self.making.try_lock() else {
            return Ok(false);
        };
        let mut runs = self.runs_from(watermark);
        let from = runs.last().map_or(watermark, |run| run.end);
        let waiting = view.next_row.saturating_sub(from);
        let least = LEAST_BYTES.div_ceil(column.space.row_bytes());
        if waiting < least as u64 {
            return Ok(false);
        }
        let first = absorb(&mut runs, waiting, from);
        runs.push(code(view, column, first)?);
        self.set(runs);
        Ok(true)
    }

    fn runs_from(&self, watermark: u64) -> Vec<Coded> {
        let runs = self.runs();
        let runs = runs.iter().flat_map(|runs| runs.iter());
        runs.filter(|run| run.end > watermark).cloned().collect()
    }

    /// Only who makes another may.
    fn set(&self, runs: Vec<Coded>) {
        self.runs.store((!runs.is_empty()).then(|| Arc::new(runs)));
    }
}

/// Takes away the last runs as long as they are shorter than what comes, and tells where what comes begins then: so runs are
/// few, and each row is coded a few times at most.
fn absorb(runs: &mut Vec<Coded>, mut coming: u64, mut from: u64) -> u64 {
    while let Some(last) = runs.last()
        && let rows = last.end - last.first
        && rows <= coming
        && rows + coming <= MOST
    {
        coming += rows;
        from = last.first;
        runs.pop();
    }
    from
}

/// Codes of the living rows from `first` on, of [`MOST`] or to the end.
fn code(view: &View, column: &VectorColumn, first: u64) -> Result<Coded> {
    let turn = Turn::begin();
    let end = view.next_row.min(first + MOST);
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
    let codes = Arc::new(CodedRun::new(column.space, SEED, &rows, &|| {
        turn.give_way()
    })?);
    Ok(Coded { first, end, codes })
}

#[cfg(test)]
mod tests;
