//! Filters: which rows a request is about.
//!
//! The language that a filter is written in is the caller's. The engine binds it to a dataset's schema, evaluates it batch
//! by batch, and remembers which rows passed (see [`crate::filter_cache`]).

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use crate::deadline::Deadline;
use crate::error::{Class, Error, Result};
use crate::evaluation::{guarded, passing};
use crate::row_set::RowSet;
use crate::view::{Part, View};

/// A condition on rows, as asked for.
pub trait Filter: Debug + Send + Sync {
    /// The same text for filters that let the same rows pass, whatever is written meanwhile. `None` if a row may pass now
    /// and not later: nothing is remembered of such a filter.
    fn key(&self) -> Option<&str>;

    /// Binds the filter to the schema of a dataset.
    ///
    /// # Errors
    /// If it cannot be read, or does not suit the schema.
    fn bind(
        &self,
        dataset: &str,
        schema: &SchemaRef,
    ) -> std::result::Result<Box<dyn Predicate>, Box<dyn FilterError>>;
}

/// A filter bound to a schema.
pub trait Predicate: Debug + Send + Sync {
    /// Positions of the columns that it reads, in the schema that it was bound to.
    fn columns(&self) -> &[usize];

    /// Whether each of the first rows passes; null means no. `rows` has the columns of [`Predicate::columns`], in that
    /// order, and at least one row. As many of them are answered for as are quick to evaluate and take little memory, at
    /// least one: who asks goes on with the rest, and looks at the clock between.
    ///
    /// # Errors
    /// If a value of a row makes the evaluation fail, as a division by zero does.
    fn mask(&self, rows: &RecordBatch) -> std::result::Result<BooleanArray, Box<dyn FilterError>>;
}

/// Why a filter cannot be bound or evaluated.
pub trait FilterError: std::error::Error + Send + Sync {
    /// A stable, machine-readable name of the error.
    fn code(&self) -> &'static str;

    /// What a client may do about it.
    fn class(&self) -> Class {
        Class::InvalidArgument
    }
}

impl From<Box<dyn FilterError>> for Error {
    fn from(error: Box<dyn FilterError>) -> Self {
        Error::Filter(error)
    }
}

/// A predicate on the batches of a dataset, some of which may be older than columns that it reads.
#[derive(Debug)]
pub(crate) struct Bound {
    predicate: Box<dyn Predicate>,
    /// The columns that it reads.
    fields: Vec<Arc<Field>>,
}

impl Bound {
    /// Binds a filter.
    ///
    /// # Errors
    /// As [`Filter::bind`].
    pub fn new(filter: &dyn Filter, dataset: &str, schema: &SchemaRef) -> Result<Self> {
        let predicate = guarded(|| Ok(filter.bind(dataset, schema)?))?;
        let field = |at: &usize| Arc::clone(&schema.fields()[*at]);
        let fields = predicate.columns().iter().map(field).collect();
        Ok(Bound { predicate, fields })
    }

    /// Which rows of a part's batch pass. Of rows that are dead in the view it may say anything.
    ///
    /// # Errors
    /// If a living row makes the evaluation fail, or there is no more time.
    pub fn mask(&self, part: &Part<'_>, view: &View, deadline: Deadline) -> Result<BooleanBuffer> {
        let rows = self.columns(part.batch.view())?;
        match passing(&*self.predicate, &rows, &|| deadline.check()) {
            Err(error @ (Error::Filter(_) | Error::FilterPanicked(_))) => {
                let living = living(part, view, rows.num_rows());
                if living.true_count() == rows.num_rows() {
                    return Err(error);
                }
                self.mask_of_some(&rows, &living, deadline)
            }
            other => other,
        }
    }

    /// Which of some rows pass; of the others none does.
    fn mask_of_some(
        &self,
        rows: &RecordBatch,
        some: &BooleanArray,
        deadline: Deadline,
    ) -> Result<BooleanBuffer> {
        let kept = filter_record_batch(rows, some)?;
        let kept = passing(&*self.predicate, &kept, &|| deadline.check())?;
        let mut mask = BooleanBufferBuilder::new(rows.num_rows());
        mask.append_n(rows.num_rows(), false);
        for (place, at) in some.values().set_indices().enumerate() {
            mask.set_bit(at, kept.value(place));
        }
        Ok(mask.finish())
    }

    /// The columns that the predicate reads; null where the batch is older than one.
    fn columns(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let column = |field: &Arc<Field>| -> ArrayRef {
            match batch.column_by_name(field.name()) {
                Some(column) => Arc::clone(column),
                None => new_null_array(field.data_type(), batch.num_rows()),
            }
        };
        let columns: Vec<ArrayRef> = self.fields.iter().map(column).collect();
        // Names inside nested types may differ between batches.
        let field = |(field, column): (&Arc<Field>, &ArrayRef)| match field.data_type() {
            same if same == column.data_type() => Arc::clone(field),
            _ => {
                let field = Field::clone(field);
                Arc::new(field.with_data_type(column.data_type().clone()))
            }
        };
        let fields: Vec<_> = self.fields.iter().zip(&columns).map(field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    /// Adds to `rows` those from row `from` on that pass; rows that are dead in the view may be among them.
    ///
    /// # Errors
    /// As [`Bound::mask`].
    pub fn add_rows(
        &self,
        view: &View,
        from: u64,
        deadline: Deadline,
        rows: &mut RowSet,
    ) -> Result<()> {
        for part in view.parts(from) {
            let mask = self.mask(&part, view, deadline)?;
            for run in &part.runs {
                rows.insert_bits(run.first_row, &mask.slice(run.start, run.len));
            }
        }
        Ok(())
    }
}

/// Which rows of a part's batch the view shows.
fn living(part: &Part<'_>, view: &View, rows: usize) -> BooleanArray {
    let mut living = BooleanBufferBuilder::new(rows);
    living.append_n(rows, false);
    for run in &part.runs {
        for offset in 0..run.len {
            let is_living = view.is_visible(run.first_row + offset as u64);
            living.set_bit(run.start + offset, is_living);
        }
    }
    BooleanArray::from(living.finish())
}
