//! Columns by which sealed rows are sorted, for filters that let few rows pass.
//!
//! A filter that is new has to be evaluated for all rows, which takes half a millisecond of a million numbers and ten times as
//! long of texts: much more than the search. Where filters ask again and again between which values those of a column
//! are (one of many tenants, a day of a year), the rows of segments are brought into the order of that column, block
//! by block; of new filters only the few rows are evaluated then that the order names.
//!
//! No index is declared: a column is sorted once that has been of use, at the pace of the filters that would profit. A
//! filter for which a segment was compared row by row in vain, as others before it, sorts one block of it and no more, so that
//! none takes much longer than the sort of 65,536 values. What is not sorted is compared.
//!
//! In memory alone: 2 bytes a row, and an eighth of the values. Segments never change, so nothing is ever wrong; when a
//! segment goes, its order does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave_record_batch;
use longbow_storage::Segment;
use parking_lot::{Mutex, RwLock};

use super::bound::Bound;
use super::ranges::ColumnRanges;
use super::row_set::RowSet;
use super::sorted_block::{BLOCK_ROWS, SortedBlock};
use crate::deadline::Deadline;
use crate::error::Result;
use crate::view::{Part, View, sealed_parts};

/// Segments of fewer rows are compared in no time.
const LEAST_ROWS: u64 = 4_096;
/// Filters for which a segment is compared before it is sorted.
const COMPARED: u32 = 4;
/// One row in so many passes at most where an order is of use: what it names lies here and there.
const ONE_IN: u64 = 16;
/// Rows that are gathered from here and there at once.
const PIECE: usize = 65_536;

/// The columns by which segments of a dataset are sorted.
#[derive(Debug, Default)]
pub(super) struct SortedColumns {
    columns: Mutex<HashMap<String, SortedColumn>>,
    /// Memory held, in bytes.
    bytes: AtomicUsize,
    uses: AtomicUsize,
}

/// A column, by the places of the segments in memory, which are theirs for as long as they are known here.
#[derive(Debug, Default)]
struct SortedColumn {
    segments: HashMap<usize, Arc<SortedSegment>>,
    used: usize,
}

/// The rows of a segment by a column, as far as they are sorted.
#[derive(Debug, Default)]
struct SortedSegment {
    segment: Weak<Segment>,
    /// Each of [`BLOCK_ROWS`] rows, in order of rows.
    blocks: RwLock<Vec<SortedBlock>>,
    bytes: AtomicUsize,
    /// Filters for which all rows were compared, and few passed.
    compared: AtomicU32,
    /// Held by whoever sorts.
    sorting: Mutex<()>,
    /// Whether values of the type have no order.
    unordered: AtomicBool,
}

impl SortedColumn {
    fn bytes(&self) -> usize {
        let segments = self.segments.values();
        segments
            .map(|sorted| sorted.bytes.load(Ordering::Relaxed))
            .sum()
    }
}

impl SortedSegment {
    fn is_sorted(&self, segment: &Segment) -> bool {
        self.blocks.read().len() == segment.rows().div_ceil(BLOCK_ROWS as u64) as usize
    }

    /// How many rows of the segment come before each of those among which are all that pass; `None` if that is not known, or
    /// they are not few.
    fn find(&self, segment: &Segment, ranges: &ColumnRanges) -> Option<Vec<u64>> {
        if !self.is_sorted(segment) {
            return None;
        }
        let (mut found, mut places) = (Vec::new(), Vec::new());
        for (block, first) in self.blocks.read().iter().zip((0u64..).step_by(BLOCK_ROWS)) {
            block.find(&ranges.ranges, &mut places).ok()?;
            places.sort_unstable();
            found.extend(places.drain(..).map(|place| first + u64::from(place)));
            if found.len() as u64 * ONE_IN > segment.rows() {
                return None;
            }
        }
        Some(found)
    }

    /// Sorts the next block; false if another thread does, or did.
    fn sort_next(&self, segment: &Segment, column: &str) -> bool {
        let Some(_alone) = self.sorting.try_lock() else {
            return false;
        };
        if self.is_sorted(segment) {
            return false;
        }
        let sorted = self.blocks.read().len();
        let values = values(segment, column, sorted * BLOCK_ROWS);
        match values.and_then(|values| SortedBlock::new(&values).ok()) {
            Some(block) => {
                self.bytes
                    .fetch_add(block.memory_bytes(), Ordering::Relaxed);
                self.blocks.write().push(block);
            }
            None => self.unordered.store(true, Ordering::Relaxed),
        }
        true
    }
}

/// The values of a column from a row of the segment on, of one block; `None` if the segment is older than the column.
fn values(segment: &Segment, column: &str, from: usize) -> Option<ArrayRef> {
    let (at, _) = segment.schema().column_with_name(column)?;
    let (mut parts, mut missing) = (Vec::new(), BLOCK_ROWS);
    let (first, mut start) = segment.place(from as u64)?;
    for batch in &segment.batches()[first..] {
        let len = missing.min(batch.rows() - start);
        parts.push(batch.column(at).ok()?.slice(start, len));
        missing -= len;
        start = 0;
        if missing == 0 {
            break;
        }
    }
    let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
    concat(&parts).ok()
}

/// What a filter says of a column, with what is known of its order in each of the segments.
struct Ranged<'a> {
    column: &'a str,
    ranges: &'a ColumnRanges,
    segments: Vec<Arc<SortedSegment>>,
}

impl SortedColumns {
    /// Adds to `rows` those of a view from a row on that pass; rows that are dead there may be among them. Returns for how
    /// many rows that was evaluated. All orders together take little more than `room` bytes.
    ///
    /// # Errors
    /// As [`Bound::mask`].
    pub fn add_rows(
        &self,
        bound: &Bound,
        (view, from): (&View, u64),
        (deadline, room): (Deadline, usize),
        rows: &mut RowSet,
    ) -> Result<u64> {
        let ranged = self.ranged(bound, view);
        let mut evaluated = 0;
        let mut compare = |part: &Part<'_>, rows: &mut RowSet| -> Result<()> {
            let mask = bound.mask(part, view, deadline)?;
            for run in &part.runs {
                evaluated += run.len as u64;
                rows.insert_bits(run.first_row, &mask.slice(run.start, run.len));
            }
            Ok(())
        };
        let (mut named, mut has_sorted) = (Named::default(), false);
        for (at, segment) in view.segments.iter().enumerate() {
            if segment.last_row() < from {
                continue;
            }
            deadline.check()?;
            if let Some(found) = find(&ranged, at, segment, bound) {
                named.add(segment, found, (view, from), bound)?;
                continue;
            }
            let before = rows.len();
            for part in sealed_parts(segment, from) {
                compare(&part, rows)?;
            }
            let is_whole = from <= segment.first_row();
            if is_whole && !has_sorted && (rows.len() - before) * ONE_IN < segment.rows() {
                has_sorted = self.sort_next(&ranged, at, segment, room);
            }
        }
        for part in view.fresh_parts(from) {
            compare(&part, rows)?;
        }
        named.evaluate(bound, deadline, rows)?;
        Ok(evaluated + named.rows.len() as u64)
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What the filter says of columns, and what is known of their order.
    fn ranged<'a>(&self, bound: &'a Bound, view: &View) -> Vec<Ranged<'a>> {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut columns = self.columns.lock();
        let mut ranged = Vec::new();
        for (name, ranges) in bound.ranges() {
            let column = columns.entry(name.to_owned()).or_default();
            column.used = now;
            if column.segments.len() > 2 * view.segments.len() {
                let segments = &mut column.segments;
                segments.retain(|_, one| one.segment.strong_count() > 0);
            }
            let segments = view.segments.iter().map(|segment| {
                let sorted = column.segments.entry(Arc::as_ptr(segment).addr());
                let new = || SortedSegment {
                    segment: Arc::downgrade(segment),
                    ..SortedSegment::default()
                };
                Arc::clone(sorted.or_insert_with(|| Arc::new(new())))
            });
            ranged.push(Ranged {
                column: name,
                ranges,
                segments: segments.collect(),
            });
        }
        ranged
    }

    /// Sorts a block of a segment by the first column that may be of use, if it is time for that, and says whether it did.
    fn sort_next(&self, ranged: &[Ranged<'_>], at: usize, segment: &Segment, room: usize) -> bool {
        let of_use = |one: &&Ranged<'_>| {
            let sorted = &one.segments[at];
            !sorted.unordered.load(Ordering::Relaxed) && !sorted.is_sorted(segment)
        };
        let Some(one) = ranged.iter().find(of_use) else {
            return false;
        };
        let sorted = &one.segments[at];
        let compared = sorted.compared.fetch_add(1, Ordering::Relaxed);
        let is_time = compared + 1 >= COMPARED && segment.rows() >= LEAST_ROWS;
        let did =
            is_time && self.has_room(one.column, room) && sorted.sort_next(segment, one.column);
        if did {
            self.count(&self.columns.lock());
        }
        did
    }

    /// Whether there is room to sort more by a column. Where there is none, those that were not used for longest go.
    fn has_room(&self, column: &str, room: usize) -> bool {
        while self.memory_bytes() >= room {
            let mut columns = self.columns.lock();
            if columns.get(column).is_some_and(|own| own.bytes() >= room) {
                return false;
            }
            let others = columns.iter().filter(|(name, _)| *name != column);
            let oldest = others.min_by_key(|(_, other)| other.used);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else {
                return false;
            };
            columns.remove(&name);
            self.count(&columns);
        }
        true
    }

    fn count(&self, columns: &HashMap<String, SortedColumn>) {
        let bytes = columns.values().map(SortedColumn::bytes).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// As [`SortedSegment::find`], by the first column that tells.
fn find(ranged: &[Ranged<'_>], at: usize, segment: &Segment, bound: &Bound) -> Option<Vec<u64>> {
    if ranged.is_empty() || !bound.is_plain(segment.schema()) {
        return None;
    }
    ranged.iter().find_map(|one| {
        // A segment that is older than the column has nulls alone, and these don't pass.
        match segment.schema().field_with_name(one.column) {
            Ok(_) => one.segments[at].find(segment, one.ranges),
            Err(_) => Some(Vec::new()),
        }
    })
}

/// Rows that an order names, which may pass.
#[derive(Default)]
struct Named {
    batches: Vec<RecordBatch>,
    /// Of each row, its batch and its place in it.
    places: Vec<(usize, usize)>,
    rows: Vec<u64>,
}

impl Named {
    /// Adds the living rows of a segment before which so many come, in order.
    fn add(
        &mut self,
        segment: &Segment,
        found: Vec<u64>,
        (view, from): (&View, u64),
        bound: &Bound,
    ) -> Result<()> {
        let mut last = None;
        for (batch, place) in found.into_iter().filter_map(|before| segment.place(before)) {
            let row = segment.row_at(batch, place);
            let Some(row) = row.filter(|row| *row >= from && view.is_visible(*row)) else {
                continue;
            };
            if last != Some(batch) {
                last = Some(batch);
                self.batches
                    .push(bound.columns(segment.batches()[batch].view())?);
            }
            self.places.push((self.batches.len() - 1, place));
            self.rows.push(row);
        }
        Ok(())
    }

    /// Adds those that pass to `rows`.
    fn evaluate(&self, bound: &Bound, deadline: Deadline, rows: &mut RowSet) -> Result<()> {
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        for (places, numbers) in self.places.chunks(PIECE).zip(self.rows.chunks(PIECE)) {
            deadline.check()?;
            let mask = bound.passing(&interleave_record_batch(&batches, places)?, deadline)?;
            let passing = mask.set_indices().map(|at| numbers[at]);
            rows.insert_rows(passing);
        }
        Ok(())
    }
}
