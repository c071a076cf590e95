//! Writing segments from batches that are too small or hold dead rows.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use longbow_disk::Disk;

use crate::batch::{Batch, concat};
use crate::error::{Error, Result};
use crate::segment::{Segment, SegmentMeta};
use crate::segment_writer::SegmentWriter;

/// Ranges of a batch that are held as views of it.
const MAX_VIEWS: usize = 8;

/// How large compaction makes things, in bytes. Each is passed by at most one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Of a batch that is put together from smaller ones.
    pub batch: u64,
    /// Of a segment file.
    pub segment: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes {
            batch: 8 << 20,
            segment: 128 << 20,
        }
    }
}

/// Takes batches with their row numbers, in order, and writes segments of good size.
///
/// Small batches and what is left of batches with dead rows are put together, with one copy; large ones go out as
/// they are, without. Rows keep their numbers and their order. At most one batch of [`Sizes::batch`] is held, so
/// memory does not grow with the input.
///
/// If it is dropped before [`Compactor::finish`], or fails, the files that it began stay; no manifest names them.
pub struct Compactor<'a> {
    disk: &'a dyn Disk,
    schema: SchemaRef,
    next_path: &'a mut dyn FnMut() -> PathBuf,
    sizes: Sizes,
    sync: bool,
    writer: Option<SegmentWriter>,
    done: Vec<SegmentMeta>,
    pending: Vec<RecordBatch>,
    pending_rows: Vec<Range<u64>>,
    pending_bytes: u64,
}

impl<'a> Compactor<'a> {
    /// Begins; `next_path` names each segment file, `sync` makes each durable when it is complete (its name once
    /// the caller has synced the folder).
    pub fn new(
        disk: &'a dyn Disk,
        schema: &SchemaRef,
        sizes: Sizes,
        sync: bool,
        next_path: &'a mut dyn FnMut() -> PathBuf,
    ) -> Self {
        Compactor {
            disk,
            schema: Arc::clone(schema),
            next_path,
            sizes,
            sync,
            writer: None,
            done: Vec::new(),
            pending: Vec::new(),
            pending_rows: Vec::new(),
            pending_bytes: 0,
        }
    }

    /// Takes rows of a batch by runs: first row number, its position in the batch, number of rows. Runs are in
    /// order of both.
    ///
    /// # Errors
    /// If a run is not in the batch or not after the rows before; if the batch does not fit the schema; if the
    /// disk refuses.
    pub fn push(
        &mut self,
        batch: &Batch,
        runs: impl IntoIterator<Item = (u64, usize, usize)>,
    ) -> Result<()> {
        let rows = batch.rows();
        let runs: Vec<_> = runs.into_iter().filter(|run| run.2 > 0).collect();
        let taken: usize = runs.iter().map(|run| run.2).sum();
        if taken == rows && batch.bytes() >= self.sizes.batch / 2 {
            self.flush()?;
            let numbers = runs
                .iter()
                .map(|(first, _, len)| *first..first + *len as u64);
            return self.write(batch, numbers.collect());
        }
        if taken == 0 {
            return Ok(());
        }
        let batch = batch.with_schema(&self.schema)?;
        let row_bytes = batch.bytes().div_ceil(rows as u64).max(1);
        let mut piece = Vec::new();
        let mut piece_rows = 0;
        for (mut first, mut start, mut len) in runs {
            while len > 0 {
                let room = self.sizes.batch.saturating_sub(self.pending_bytes) / row_bytes;
                let left = (room.max(1) as usize).saturating_sub(piece_rows);
                let taken = left.min(len);
                piece.push(start..start + taken);
                piece_rows += taken;
                self.pending_rows.push(first..first + taken as u64);
                (first, start, len) = (first + taken as u64, start + taken, len - taken);
                if taken == left {
                    self.pend(&batch, &mut piece, row_bytes * piece_rows as u64)?;
                    piece_rows = 0;
                    self.flush()?;
                }
            }
        }
        self.pend(&batch, &mut piece, row_bytes * piece_rows as u64)
    }

    /// Adds the rows of `piece` to what is pending: a few ranges as views, many as a copy, because a view costs
    /// more than a row.
    fn pend(&mut self, batch: &Batch, piece: &mut Vec<Range<usize>>, bytes: u64) -> Result<()> {
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else {
            return Ok(());
        };
        if piece.len() <= MAX_VIEWS {
            for range in piece.iter() {
                self.pending.push(batch.slice(range.start, range.len())?);
            }
        } else {
            let (start, end) = (first.start, last.end);
            let mut keep = BooleanBufferBuilder::new(end - start);
            for range in piece.iter() {
                keep.append_n(range.start - start - keep.len(), false);
                keep.append_n(range.len(), true);
            }
            let keep = BooleanArray::new(keep.finish(), None);
            let window = batch.slice(start, end - start)?;
            self.pending.push(filter_record_batch(&window, &keep)?);
        }
        self.pending_bytes += bytes;
        piece.clear();
        Ok(())
    }

    /// Writes what is pending and completes the last file. No rows, no file.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn finish(mut self) -> Result<Vec<SegmentMeta>> {
        self.flush()?;
        self.complete()?;
        Ok(self.done)
    }

    fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let batch = concat(&self.schema, &self.pending)?;
        self.pending.clear();
        self.pending_bytes = 0;
        let rows = std::mem::take(&mut self.pending_rows);
        self.write(&batch, rows)
    }

    fn write(&mut self, batch: &Batch, rows: Vec<Range<u64>>) -> Result<()> {
        let fits = |writer: &SegmentWriter| {
            writer.rows() == 0 || writer.bytes() + batch.bytes() <= self.sizes.segment
        };
        if self.writer.as_ref().is_some_and(|writer| !fits(writer)) {
            self.complete()?;
        }
        let after = self.done.last().map(|meta| meta.last_row);
        if let (Some(last), Some(first)) = (after, rows.first())
            && first.start <= last
        {
            return Err(Error::RowOrder {
                row: first.start,
                last,
            });
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let path = (self.next_path)();
                none.insert(SegmentWriter::create(self.disk, &path, &self.schema)?)
            }
        };
        writer.write(batch, rows)
    }

    fn complete(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.done.push(writer.finish(self.sync)?);
        }
        Ok(())
    }
}

/// Writes the rows of `inputs` that `alive` agrees to into new segments. The inputs are in order of rows.
///
/// # Errors
/// As [`Compactor::push`].
pub fn merge(
    compactor: &mut Compactor<'_>,
    inputs: &[Arc<Segment>],
    alive: &dyn Fn(u64) -> bool,
) -> Result<()> {
    for segment in inputs {
        for (at, batch) in segment.batches().iter().enumerate() {
            compactor.push(batch, living(segment.row_ranges(at), alive))?;
        }
    }
    Ok(())
}

/// The parts of runs, as [`Compactor::push`] takes them, whose rows are alive.
pub fn living<'a>(
    runs: impl Iterator<Item = (u64, usize, usize)> + 'a,
    alive: &'a dyn Fn(u64) -> bool,
) -> impl Iterator<Item = (u64, usize, usize)> + 'a {
    runs.flat_map(move |(first, start, len)| {
        let mut at = 0;
        std::iter::from_fn(move || {
            let begin = (at..len).find(|i| alive(first + *i as u64))?;
            let end = (begin..len)
                .find(|i| !alive(first + *i as u64))
                .unwrap_or(len);
            at = end;
            Some((first + begin as u64, start + begin, end - begin))
        })
    })
}
