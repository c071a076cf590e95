//! Whole datasets, out: batches as they came in where nothing died and nothing was cut, slices or filtered copies elsewhere.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use longbow_storage::Batch;

use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::filter::{Bound, Filter};
use crate::view::{Part, View};

/// What to read of a dataset.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// Columns, in this order; all if empty.
    pub columns: Vec<String>,
    /// Most rows to give.
    pub limit: Option<u64>,
    /// Rows to leave out first.
    pub offset: u64,
    /// Which rows; all if there is none.
    pub filter: Option<Arc<dyn Filter>>,
    /// Until when rows are looked for that pass the filter.
    pub deadline: Deadline,
}

/// A piece of a scan.
#[derive(Debug)]
pub enum Piece {
    /// A message exactly as it was received or as it lies in its file; no byte was copied.
    Kept {
        /// The Arrow IPC message.
        header: Bytes,
        /// Its body.
        body: Bytes,
        /// Rows in it.
        rows: usize,
    },
    /// Consecutive rows of a batch, borrowed from it.
    Slice(RecordBatch),
    /// Rows picked from a batch, copied.
    Picked(RecordBatch),
}

impl Piece {
    /// Rows in the piece.
    pub fn rows(&self) -> usize {
        match self {
            Piece::Kept { rows, .. } => *rows,
            Piece::Slice(batch) | Piece::Picked(batch) => batch.num_rows(),
        }
    }
}

/// A running scan over one moment of a dataset: an iterator of pieces.
#[derive(Debug)]
pub struct Scan {
    view: Arc<View>,
    schema: SchemaRef,
    projection: Option<Vec<usize>>,
    filter: Option<Bound>,
    deadline: Deadline,
    skip: u64,
    left: u64,
    next_row: u64,
}

impl Engine {
    /// Begins a scan. It gives the rows as of now, whatever is written meanwhile.
    ///
    /// # Errors
    /// If the dataset, a column or a filter is unknown or wrong.
    pub fn scan(&self, dataset: &str, request: &ScanRequest) -> Result<Scan> {
        let dataset = self.dataset(dataset)?;
        Scan::new(&dataset.name, dataset.view(), request)
    }
}

impl Scan {
    /// Begins a scan over a view of the dataset of this name.
    ///
    /// # Errors
    /// If a column or a filter is unknown or wrong.
    pub fn new(dataset: &str, view: Arc<View>, request: &ScanRequest) -> Result<Scan> {
        let arrow = &view.schema.arrow;
        let projection = match request.columns.as_slice() {
            [] => None,
            names => Some(
                names
                    .iter()
                    .map(|name| view.schema.column(dataset, name))
                    .collect::<Result<Vec<usize>>>()?,
            ),
        };
        let schema = match &projection {
            None => Arc::clone(arrow),
            Some(columns) => {
                let fields = columns
                    .iter()
                    .map(|at| Arc::clone(&arrow.fields()[*at]))
                    .collect::<Vec<_>>();
                Arc::new(Schema::new_with_metadata(fields, arrow.metadata().clone()))
            }
        };
        let bind = |filter: &Arc<dyn Filter>| Bound::new(&**filter, dataset, arrow);
        let filter = request.filter.as_ref().map(bind).transpose()?;
        let left = request.limit.unwrap_or(u64::MAX);
        Ok(Scan {
            schema,
            projection,
            filter,
            deadline: request.deadline,
            skip: request.offset,
            left,
            next_row: 0,
            view,
        })
    }

    /// Schema of all pieces.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows the dataset holds alive at this moment.
    pub fn live_rows(&self) -> u64 {
        self.view.live
    }

    fn piece(&mut self, part: &Part<'_>) -> Result<Vec<Piece>> {
        let Some(keep) = self.wanted(part)? else {
            let rows = part.batch.rows() as u64;
            if self.skip >= rows {
                self.skip -= rows;
                return Ok(Vec::new());
            }
            if self.skip == 0 && self.left >= rows {
                self.left -= rows;
                return Ok(vec![self.whole(part.batch)?]);
            }
            let start = self.skip as usize;
            let len = self.left.min(rows - self.skip) as usize;
            self.skip = 0;
            self.left -= len as u64;
            return Ok(vec![Piece::Slice(
                self.record_batch(part.batch)?.slice(start, len),
            )]);
        };
        self.some(part.batch, keep)
    }

    /// Which rows of a part are alive and pass the filter; `None` for all.
    fn wanted(&self, part: &Part<'_>) -> Result<Option<BooleanArray>> {
        let view = &self.view;
        let untouched = part
            .runs
            .iter()
            .all(|run| !view.dead.may_hold(run.first_row, run.len as u64));
        let mask = self
            .filter
            .as_ref()
            .map(|filter| filter.mask(part, view, self.deadline))
            .transpose()?;
        if untouched && mask.is_none() {
            return Ok(None);
        }
        let mut keep = BooleanBufferBuilder::new(part.batch.rows());
        for run in &part.runs {
            for offset in 0..run.len {
                let passes = mask
                    .as_ref()
                    .is_none_or(|mask| mask.value(run.start + offset));
                keep.append(passes && view.is_visible(run.first_row + offset as u64));
            }
        }
        let keep = BooleanArray::from(keep.finish());
        Ok((keep.true_count() < part.batch.rows()).then_some(keep))
    }

    fn whole(&self, batch: &Batch) -> Result<Piece> {
        if self.projection.is_none() && self.view.schema.same_columns(&batch.schema()) {
            let (header, body) = (batch.header().clone(), batch.body().clone());
            return Ok(Piece::Kept {
                header,
                body,
                rows: batch.rows(),
            });
        }
        Ok(Piece::Slice(self.record_batch(batch)?))
    }

    /// The kept rows of a batch: as slices where they lie in few runs, else picked into one batch.
    fn some(&mut self, batch: &Batch, keep: BooleanArray) -> Result<Vec<Piece>> {
        let mut runs = Vec::new();
        let mut kept = 0;
        for (start, end) in keep.values().set_slices() {
            let skipped = self.skip.min((end - start) as u64) as usize;
            self.skip -= skipped as u64;
            let len = self.left.min((end - start - skipped) as u64) as usize;
            self.left -= len as u64;
            if len > 0 {
                runs.push((start + skipped, len));
                kept += len;
            }
        }
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let all = self.record_batch(batch)?;
        // A message costs about as much as copying some hundred rows.
        if kept / runs.len() >= 256 {
            return Ok(runs
                .iter()
                .map(|(start, len)| Piece::Slice(all.slice(*start, *len)))
                .collect());
        }
        let mut picked = BooleanBufferBuilder::new(batch.rows());
        picked.append_n(batch.rows(), false);
        for (start, len) in runs {
            (start..start + len).for_each(|at| picked.set_bit(at, true));
        }
        Ok(vec![Piece::Picked(filter_record_batch(
            &all,
            &BooleanArray::from(picked.finish()),
        )?)])
    }

    /// A view of the batch with this scan's columns.
    fn record_batch(&self, batch: &Batch) -> Result<RecordBatch> {
        let full;
        let batch = if self.view.schema.same_columns(&batch.schema()) {
            batch
        } else {
            full = batch.with_schema(&self.view.schema.arrow)?;
            &full
        };
        let narrow = batch.record_batch(self.projection.as_deref())?;
        Ok(RecordBatch::try_new(
            Arc::clone(&self.schema),
            narrow.columns().to_vec(),
        )?)
    }
}

impl Scan {
    /// The rows as record batches, for who has no use for messages. A batch that is whole is borrowed.
    pub fn decoded(self) -> impl Iterator<Item = Result<RecordBatch>> {
        let schema = Arc::clone(&self.schema);
        let mut decode = move |piece| match piece {
            Piece::Slice(batch) | Piece::Picked(batch) => Ok(batch),
            Piece::Kept { header, body, .. } => {
                Ok(Batch::from_message(&schema, header, body)?.view().clone())
            }
        };
        self.flat_map(move |pieces| match pieces {
            Ok(pieces) => pieces.into_iter().map(&mut decode).collect(),
            Err(error) => vec![Err(error)],
        })
    }
}

impl Iterator for Scan {
    type Item = Result<Vec<Piece>>;

    /// The pieces of the next batch; none of them if all its rows are dead or left out.
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let view = Arc::clone(&self.view);
        let part = view.parts(self.next_row).next()?;
        let last = part.runs.last()?;
        self.next_row = last.first_row + last.len as u64;
        Some(self.piece(&part))
    }
}

impl From<Error> for arrow_schema::ArrowError {
    fn from(error: Error) -> Self {
        arrow_schema::ArrowError::ExternalError(Box::new(error))
    }
}
