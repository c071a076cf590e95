//! [`Batch`]: rows as the client sent them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::Bytes;

use crate::decode::{Values, decode};
use crate::error::{Error, Result};
use crate::layout::{ColumnLayout, check_schema, same_layout};
use crate::message::Parts;

/// One Arrow IPC `RecordBatch` message and a view on it.
///
/// The bytes are those that came: they go to the log, into the segment file and out to readers unchanged. The
/// columns are checked once, here, and point into the body; cloning shares everything.
#[derive(Debug, Clone)]
pub struct Batch {
    header: Bytes,
    body: Bytes,
    columns: Arc<[ColumnLayout]>,
    view: RecordBatch,
}

impl Batch {
    /// Checks a message and keeps it.
    ///
    /// `header` is the flatbuffer without length prefix, as in `FlightData.data_header`; `body` the buffers. A
    /// body whose buffers lie aligned for their types is kept without copying. A misaligned body is copied
    /// once; a compressed, unpadded or V4 message is laid out anew.
    ///
    /// # Errors
    /// If the header is not a `RecordBatch` message, does not fit the schema or its body, or if a value is not
    /// valid (UTF-8, offsets, a null where none may be). Never panics, whatever the bytes.
    pub fn from_message(schema: &SchemaRef, header: Bytes, body: Bytes) -> Result<Self> {
        check_schema(schema)?;
        let parts = Parts::read(&header, body.len())?;
        let decoded = decode(schema, parts, header, body, &Values::new())?;
        Ok(Batch {
            header: decoded.header,
            body: decoded.body,
            columns: decoded.columns.into(),
            view: decoded.view,
        })
    }

    /// Encodes a record batch; one copy of its buffers.
    ///
    /// # Errors
    /// If a column's type is not stored (see [`check_schema`]).
    pub fn from_record_batch(batch: &RecordBatch) -> Result<Self> {
        let schema = batch.schema();
        check_schema(&schema)?;
        let (_, encoded) = IpcDataGenerator::default().encode(
            batch,
            &mut DictionaryTracker::new(true),
            &IpcWriteOptions::default(),
            &mut IpcWriteContext::default(),
        )?;
        Self::from_message(
            &schema,
            encoded.ipc_message.into(),
            encoded.arrow_data.into(),
        )
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.view.num_rows()
    }

    /// Bytes of header and body together.
    pub fn bytes(&self) -> u64 {
        (self.header.len() + self.body.len()) as u64
    }

    /// The schema it was checked against.
    pub fn schema(&self) -> SchemaRef {
        self.view.schema()
    }

    /// The flatbuffer of the message, without length prefix.
    pub fn header(&self) -> &Bytes {
        &self.header
    }

    /// The buffers of the message.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// All columns as Arrow sees them, pointing into [`Batch::body`].
    pub fn view(&self) -> &RecordBatch {
        &self.view
    }

    /// Column `i`, pointing into the body.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn column(&self, i: usize) -> Result<ArrayRef> {
        self.check_column(i)?;
        Ok(Arc::clone(self.view.column(i)))
    }

    /// The columns asked for, or all; nothing is copied.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn record_batch(&self, projection: Option<&[usize]>) -> Result<RecordBatch> {
        match projection {
            None => Ok(self.view.clone()),
            Some(columns) => Ok(self.view.project(columns)?),
        }
    }

    /// Values of column `i` as they lie in the body, little-endian: of a fixed-width column one for each row,
    /// of a fixed-size list of them `dim` for each row, so row `r` of a vector is at `r * dim * width`. Null
    /// rows have bytes too, of no meaning.
    ///
    /// # Errors
    /// If there is no such column, or if it is of another type.
    pub fn values(&self, i: usize) -> Result<&[u8]> {
        self.check_column(i)?;
        match &self.columns[i].values {
            Some(range) => Ok(&self.body[range.clone()]),
            None => Err(Error::NoValues {
                column: self.view.schema_ref().field(i).name().clone(),
                data_type: Box::new(self.view.column(i).data_type().clone()),
            }),
        }
    }

    /// Null rows of column `i`; 0 where there is no such column.
    pub fn null_count(&self, i: usize) -> usize {
        self.columns.get(i).map_or(0, |column| column.nulls)
    }

    /// Null elements inside the lists of column `i`, for a fixed-size list; else 0.
    pub fn child_null_count(&self, i: usize) -> usize {
        self.columns.get(i).map_or(0, |column| column.child_nulls)
    }

    /// Rows `offset .. offset + len`, pointing into the body.
    ///
    /// # Errors
    /// If they are not all in the batch.
    pub fn slice(&self, offset: usize, len: usize) -> Result<RecordBatch> {
        let end = offset.saturating_add(len);
        if end > self.rows() {
            return Err(Error::RowRange {
                start: offset,
                end,
                rows: self.rows(),
            });
        }
        Ok(self.view.slice(offset, len))
    }

    /// The same rows under a schema with more columns: those that the batch lacks are null. Shares all bytes if
    /// no column is added or moved: names of nested fields, nullability and metadata are in the schema alone.
    ///
    /// # Errors
    /// If a column has another type or is gone, if one that is missing may not be null, or if one that has nulls
    /// may no longer.
    pub fn with_schema(&self, newer: &SchemaRef) -> Result<Self> {
        let old = self.view.schema_ref();
        if Arc::ptr_eq(old, newer) || old == newer {
            return Ok(self.clone());
        }
        check_schema(newer)?;
        let retyped = self.retyped(newer)?;
        if retyped.view.schema_ref().fields() == newer.fields() {
            let view = retyped.view.clone().with_schema(Arc::clone(newer))?;
            return Ok(Batch { view, ..retyped });
        }
        let rows = self.rows();
        let column = |field: &Arc<Field>| match retyped.view.column_by_name(field.name()) {
            Some(column) => Ok(Arc::clone(column)),
            None if field.is_nullable() => Ok(new_null_array(field.data_type(), rows)),
            None => Err(Error::ColumnMissing {
                column: field.name().clone(),
            }),
        };
        let columns = newer.fields().iter().map(column);
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let view = RecordBatch::try_new_with_options(Arc::clone(newer), columns, &options)?;
        Self::from_record_batch(&view)
    }

    /// The same bytes under the fields of `newer`, where they are other ones of the same layout.
    fn retyped(&self, newer: &SchemaRef) -> Result<Self> {
        let old = self.view.schema_ref();
        let mut fields = Vec::with_capacity(old.fields().len());
        for field in old.fields() {
            let Some((_, other)) = newer.column_with_name(field.name()) else {
                return Err(Error::ColumnGone {
                    column: field.name().clone(),
                });
            };
            if !same_layout(field.data_type(), other.data_type()) {
                return Err(Error::ColumnType {
                    column: field.name().clone(),
                    expected: Box::new(other.data_type().clone()),
                    got: Box::new(field.data_type().clone()),
                });
            }
            fields.push(Arc::new(other.clone()));
        }
        if fields[..] == old.fields()[..] {
            return Ok(self.clone());
        }
        let schema = Arc::new(Schema::new(fields));
        Self::from_message(&schema, self.header.clone(), self.body.clone())
    }

    /// The rows where `keep` is true, in order, as a batch of their own.
    ///
    /// # Errors
    /// If `keep` has another length than the batch.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        Self::from_record_batch(&arrow_select::filter::filter_record_batch(
            &self.view, keep,
        )?)
    }

    /// The rows of `ranges`, in the order given, as a batch of their own.
    ///
    /// # Errors
    /// If a range is not in the batch.
    pub fn take(&self, ranges: &[Range<usize>]) -> Result<Self> {
        let parts = ranges
            .iter()
            .map(|range| self.slice(range.start, range.len()))
            .collect::<Result<Vec<_>>>()?;
        concat(&self.schema(), &parts)
    }

    fn check_column(&self, i: usize) -> Result<()> {
        let have = self.view.num_columns();
        if i >= have {
            return Err(Error::NoColumn { asked: i, have });
        }
        Ok(())
    }
}

/// Many small batches of one schema as one, in order; one copy.
///
/// # Errors
/// If a batch has another schema.
pub fn coalesce(schema: &SchemaRef, batches: &[Batch]) -> Result<Batch> {
    if let [only] = batches {
        return only.with_schema(schema);
    }
    let views = batches
        .iter()
        .map(|batch| batch.with_schema(schema).map(|batch| batch.view))
        .collect::<Result<Vec<_>>>()?;
    concat(schema, &views)
}

pub(crate) fn concat(schema: &SchemaRef, parts: &[RecordBatch]) -> Result<Batch> {
    Batch::from_record_batch(&arrow_select::concat::concat_batches(schema, parts)?)
}
