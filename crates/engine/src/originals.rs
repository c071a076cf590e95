//! The stored vectors of a column by row, for a graph that holds none.

use std::sync::{Arc, OnceLock};

use arrow_array::Array;
use arrow_schema::FieldRef;
use longbow_disk::will_need;
use longbow_index::VectorSource;
use longbow_storage::Batch;

use crate::error::{Error, Result};
use crate::schema::VectorColumn;
use crate::view::View;

/// The vectors of a view, read where they lie. For columns whose bytes the kernels read.
pub(crate) struct Originals<'a> {
    view: &'a View,
    column: &'a VectorColumn,
    /// The columns that will be read of rows that are found.
    reply: &'a [FieldRef],
    /// The first batch that could not be read.
    fault: OnceLock<Error>,
}

impl<'a> Originals<'a> {
    pub(crate) fn new(view: &'a View, column: &'a VectorColumn) -> Self {
        debug_assert!(column.native, "the kernels read the column's own bytes");
        Originals {
            view,
            column,
            reply: &[],
            fault: OnceLock::new(),
        }
    }

    /// For a search whose reply has these columns.
    pub(crate) fn replying(self, reply: &'a [FieldRef]) -> Self {
        Originals { reply, ..self }
    }

    /// Whether all vectors that were asked for could be read.
    ///
    /// # Errors
    /// If a batch could not: a search may then have left out rows.
    pub(crate) fn check(self) -> Result<()> {
        self.fault.into_inner().map_or(Ok(()), Err)
    }

    /// Where the column stands in a batch, which may be older than other columns.
    pub(crate) fn position(&self, batch: &Batch) -> Option<usize> {
        let schema = batch.view().schema_ref();
        if Arc::ptr_eq(schema, &self.view.schema.arrow) {
            return Some(self.column.index);
        }
        schema.index_of(&self.column.name).ok()
    }

    /// Where a row lies.
    pub(crate) fn locate(&self, row: u64) -> Option<(&'a Batch, usize)> {
        self.view.locate(row)
    }

    /// The vector of any row; `None` if it is null.
    pub(crate) fn of(&self, row: u64) -> Option<&[u8]> {
        let (batch, at) = self.locate(row)?;
        let position = self.position(batch)?;
        if batch.null_count(position) > 0 && batch.view().column(position).is_null(at) {
            return None;
        }
        self.read(batch, position, at)
    }

    /// The vector at a place of a batch in which the column stands there.
    pub(crate) fn read<'b>(
        &self,
        batch: &'b Batch,
        position: usize,
        at: usize,
    ) -> Option<&'b [u8]> {
        let bytes = match batch.values(position) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.fault.get_or_init(|| error.into());
                return None;
            }
        };
        let stride = self.column.space.row_bytes();
        bytes.get(at * stride..(at + 1) * stride)
    }
}

impl VectorSource for Originals<'_> {
    /// The vector of a row that is in the graph, and so not null.
    fn vector(&self, row: u64) -> Option<&[u8]> {
        let (batch, at) = self.locate(row)?;
        self.read(batch, self.position(batch)?, at)
    }

    /// Its vector, and what the reply has of it, as far as the values are of one width.
    fn will_need(&self, row: u64) {
        let Some((batch, at)) = self.view.locate(row) else {
            return;
        };
        let named = |field: &FieldRef| batch.schema().index_of(field.name()).ok();
        let replied = self.reply.iter().filter_map(named);
        for position in self.position(batch).into_iter().chain(replied) {
            let values = batch.values(position).unwrap_or_default();
            let width = values.len() / batch.rows().max(1);
            let value = values.get(at * width..(at + 1) * width);
            value.into_iter().for_each(will_need);
        }
    }
}
