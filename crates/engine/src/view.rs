//! What a reader sees: one moment of a shard, unchanged for as long as it is held.

use std::sync::Arc;

use longbow_storage::{Batch, Segment};

use crate::dead::{DeadRows, Living};
use crate::schema::DatasetSchema;
use crate::tail::Tail;

/// The state of a shard after one log entry. Everything in it is shared and immutable, so taking one is cheap and
/// holding one blocks nobody; files that a view maps stay readable after they were removed.
///
/// Row numbers are given once to each row version and never change: not by sealing, not by compaction. Segments
/// hold disjoint, ascending ranges of rows, the tail those after them.
#[derive(Debug, Clone)]
pub struct View {
    /// Index of the last log entry that this view includes.
    pub index: u64,
    /// The row number that the next row will get.
    pub next_row: u64,
    /// Rows that are alive.
    pub live: u64,
    /// The schema as of this moment.
    pub schema: Arc<DatasetSchema>,
    /// Sealed rows, in order.
    pub segments: Arc<Vec<Arc<Segment>>>,
    /// Rows not yet sealed.
    pub tail: Tail,
    /// Which rows are dead since when.
    pub dead: DeadRows,
}

/// Rows of one batch that have consecutive row numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Row number of the first row.
    pub first_row: u64,
    /// Its position in the batch.
    pub start: usize,
    /// How many rows.
    pub len: usize,
}

/// A batch with the row numbers of its rows.
#[derive(Debug)]
pub struct Part<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// Its rows as runs, ascending, covering the batch or the end of it that was asked for.
    pub runs: Vec<Run>,
}

impl View {
    /// Whether this view holds `row` alive. The row must have been numbered before this view's end.
    #[inline]
    pub fn is_visible(&self, row: u64) -> bool {
        row < self.next_row && !self.dead.is_dead(row, self.index)
    }

    /// Rows that have died by this moment: rows are numbered in order, each once.
    pub(crate) fn died(&self) -> u64 {
        self.next_row.saturating_sub(self.live)
    }

    /// Where `row` lies: its batch and the position in it. `None` if compaction dropped it or it is younger than this view.
    pub fn locate(&self, row: u64) -> Option<(&Batch, usize)> {
        if row >= self.next_row {
            return None;
        }
        if let Some(found) = self.tail.find(row) {
            return Some((&found.batch, (row - found.first_row) as usize));
        }
        let at = self
            .segments
            .partition_point(|segment| segment.last_row() < row);
        let segment = self.segments.get(at)?;
        let (batch, index) = segment.locate(row)?;
        Some((&segment.batches()[batch], index))
    }

    /// All batches that hold rows from `from` on, in order of rows; of the first one, only the rows from `from` on.
    pub fn parts(&self, from: u64) -> impl Iterator<Item = Part<'_>> {
        let first = self
            .segments
            .partition_point(|segment| segment.last_row() < from);
        let sealed = self.segments[first..].iter();
        let sealed = sealed.flat_map(move |segment| sealed_parts(segment, from));
        sealed.chain(self.fresh_parts(from))
    }

    /// The rows below `end` that live, ascending.
    pub(crate) fn living(&self, end: u64) -> impl Iterator<Item = u64> {
        let runs = self.parts(0).flat_map(|part| part.runs);
        let runs = runs.map(|run| run.first_row..run.first_row + run.len as u64);
        let runs = runs.take_while(move |rows| rows.start < end);
        runs.flat_map(move |rows| {
            let below = rows.start..rows.end.min(end);
            let living = self.dead.living(below, self.index);
            living.flat_map(Living::rows)
        })
    }

    /// How many rows below `end` live.
    pub(crate) fn living_below(&self, end: u64) -> u64 {
        let others = end.min(self.next_row)..self.next_row;
        let others = self.dead.living(others, self.index);
        self.live
            .saturating_sub(others.map(Living::count).sum::<u64>())
    }

    /// As [`View::parts`], of the tail alone.
    pub fn fresh_parts(&self, from: u64) -> impl Iterator<Item = Part<'_>> {
        let fresh = self.tail.starting_at(from).map(move |held| {
            let run = Run {
                first_row: held.first_row,
                start: 0,
                len: held.batch.rows(),
            };
            Part {
                batch: &held.batch,
                runs: run.starting_at(from).into_iter().collect(),
            }
        });
        fresh.filter(|part| !part.runs.is_empty())
    }

    /// Bytes of all batches, dead rows included.
    pub fn bytes(&self) -> u64 {
        let sealed: u64 = self
            .segments
            .iter()
            .flat_map(|s| s.batches())
            .map(Batch::bytes)
            .sum();
        sealed + self.tail.bytes()
    }
}

/// The batches of a segment that hold rows from `from` on; of the first one, only the rows from `from` on.
pub(crate) fn sealed_parts(segment: &Segment, from: u64) -> impl Iterator<Item = Part<'_>> {
    let parts = segment.batches().iter().enumerate();
    let parts = parts.map(move |(index, batch)| {
        let runs = segment.row_ranges(index);
        let run = |(first_row, start, len)| Run {
            first_row,
            start,
            len,
        };
        Part {
            batch,
            runs: runs
                .filter_map(|range| run(range).starting_at(from))
                .collect(),
        }
    });
    parts.filter(|part| !part.runs.is_empty())
}

impl Run {
    /// The part of the run with row numbers from `from` on.
    fn starting_at(self, from: u64) -> Option<Run> {
        let skip = usize::try_from(from.saturating_sub(self.first_row)).unwrap_or(usize::MAX);
        (skip < self.len).then(|| Run {
            first_row: self.first_row + skip as u64,
            start: self.start + skip,
            len: self.len - skip,
        })
    }
}
