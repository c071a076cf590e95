//! Rows by number become columns: the last step of a search.

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::Field;
use arrow_select::interleave::interleave;
use longbow_storage::Batch;

use crate::error::Result;
use crate::view::View;

/// Where each of some rows lies in a view.
pub(crate) struct Located<'a> {
    batches: Vec<&'a Batch>,
    /// For each row: which of the batches, and the position in it.
    places: Vec<(usize, usize)>,
}

impl<'a> Located<'a> {
    /// Finds rows that the view holds.
    pub fn new(view: &'a View, rows: impl Iterator<Item = u64>) -> Self {
        let mut located = Located {
            batches: Vec::new(),
            places: Vec::new(),
        };
        for row in rows {
            let Some((batch, at)) = view.locate(row) else {
                debug_assert!(false, "a visible row lies somewhere");
                continue;
            };
            let known = located
                .batches
                .iter()
                .position(|known| std::ptr::eq(*known, batch));
            let batch_at = known.unwrap_or_else(|| {
                located.batches.push(batch);
                located.batches.len() - 1
            });
            located.places.push((batch_at, at));
        }
        located
    }

    /// The values of one column, row by row; null where a batch is older than the column.
    pub fn column(&self, field: &Field) -> Result<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.batches.len());
        for batch in &self.batches {
            arrays.push(match batch.schema().index_of(field.name()) {
                Ok(at) => batch.column(at)?,
                Err(_) => new_null_array(field.data_type(), batch.rows()),
            });
        }
        if arrays.is_empty() {
            return Ok(new_null_array(field.data_type(), 0));
        }
        let arrays: Vec<&dyn arrow_array::Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&arrays, &self.places)?)
    }
}
