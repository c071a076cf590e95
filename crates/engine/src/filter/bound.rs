//! A filter bound to a dataset, and its evaluation over the batches there.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use super::evaluation::{guarded, passing};
use super::{ColumnRanges, Filter, Predicate};
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::view::{Part, View};

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
    pub fn columns(&self, batch: &RecordBatch) -> Result<RecordBatch> {
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

    /// What it says of the values of columns.
    pub fn ranges(&self) -> impl Iterator<Item = (&str, &ColumnRanges)> {
        let ranges = self.predicate.ranges().iter();
        ranges.map(|ranges| (self.fields[ranges.column].name().as_str(), ranges))
    }

    /// Whether rows of this schema and of any other that suits can be put into one batch of those that the predicate reads.
    pub fn is_plain(&self, schema: &Schema) -> bool {
        self.fields.iter().all(|field| {
            let own = schema.field_with_name(field.name());
            own.map_or(true, |own| own.data_type() == field.data_type())
        })
    }

    /// Whether each row passes; `rows` has what [`Bound::columns`] gives, and living rows alone.
    ///
    /// # Errors
    /// As [`Bound::mask`].
    pub fn passing(&self, rows: &RecordBatch, deadline: Deadline) -> Result<BooleanBuffer> {
        passing(&*self.predicate, rows, &|| deadline.check())
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
