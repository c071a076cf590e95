//! [`Dictionaries`]: streams whose columns are dictionary-encoded, read into plain columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{AnyDictionaryArray, Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use bytes::Bytes;

use crate::decode::{Values, decode};
use crate::error::{Error, Result};
use crate::layout::{check_schema, is_plain};
use crate::message::{MAX_INFLATED_BYTES, Parts};

/// The dictionaries of one stream of messages, as they have come so far.
///
/// Storage keeps no dictionaries: they belong to a stream, and a batch must stand for itself. Here the messages of
/// such a stream are checked as a [`crate::Batch`] checks its own, and each dictionary column is replaced by its
/// values. What a small message can become is limited by [`MAX_INFLATED_BYTES`].
#[derive(Debug)]
pub struct Dictionaries {
    incoming: SchemaRef,
    plain: SchemaRef,
    values: Values,
}

impl Dictionaries {
    /// For a stream of this schema.
    ///
    /// # Errors
    /// If a column is of a type that is not stored, or a dictionary of nested values.
    pub fn new(incoming: &SchemaRef) -> Result<Self> {
        let plain = |field: &Arc<Field>| match field.data_type() {
            DataType::Dictionary(keys, values) => {
                if !keys.is_integer() || !is_plain(values) {
                    return Err(Error::UnsupportedType {
                        column: field.name().clone(),
                        data_type: Box::new(field.data_type().clone()),
                    });
                }
                let plain = Field::new(field.name(), values.as_ref().clone(), field.is_nullable());
                Ok(Arc::new(plain.with_metadata(field.metadata().clone())))
            }
            _ => Ok(Arc::clone(field)),
        };
        let fields = incoming.fields().iter().map(plain);
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let plain = Schema::new_with_metadata(fields, incoming.metadata().clone());
        check_schema(&plain)?;
        Ok(Dictionaries {
            incoming: Arc::clone(incoming),
            plain: Arc::new(plain),
            values: Values::new(),
        })
    }

    /// The stream's schema with each dictionary replaced by its values' type.
    pub fn plain_schema(&self) -> &SchemaRef {
        &self.plain
    }

    /// Takes a `DictionaryBatch` message: a new dictionary, another in its place, or more of one.
    ///
    /// # Errors
    /// If it is not such a message, names no dictionary of the schema, does not fit it, or is too large.
    pub fn add(&mut self, header: &Bytes, body: Bytes) -> Result<()> {
        let (id, is_delta, parts) = Parts::read_dictionary(header, body.len())?;
        let field = self.field_of(id).ok_or(Error::UnknownDictionary { id })?;
        let schema = Arc::new(Schema::new(vec![field]));
        let header = parts.header_in_place(body.len());
        let decoded = decode(&schema, parts, header, body, &Values::new())?;
        let mut values = Arc::clone(decoded.view.column(0));
        let mut held = slice_bytes(&values)?;
        for (other, array) in &self.values {
            if *other != id || is_delta {
                held = held.saturating_add(slice_bytes(array)?);
            }
        }
        check_total(held)?;
        if is_delta {
            let before = self
                .values
                .get(&id)
                .ok_or(Error::UnknownDictionary { id })?;
            values = concat(&[before.as_ref(), values.as_ref()])?;
        }
        self.values.insert(id, values);
        Ok(())
    }

    /// Reads a `RecordBatch` message of the stream; its dictionary columns come as values.
    ///
    /// # Errors
    /// As [`crate::Batch::from_message`], or if a key has no value, or if the values are too large together.
    pub fn read(&self, header: Bytes, body: Bytes) -> Result<RecordBatch> {
        let parts = Parts::read(&header, body.len())?;
        let view = decode(&self.incoming, parts, header, body, &self.values)?.view;
        let mut total = 0_u64;
        for column in view.columns() {
            if let Some(column) = column.as_any_dictionary_opt() {
                total = total.saturating_add(plain_bytes(column)?);
            }
        }
        check_total(total)?;
        let columns = view.columns().iter().map(|column| {
            Ok(match column.as_any_dictionary_opt() {
                Some(column) => take(column.values(), column.keys(), None)?,
                None => Arc::clone(column),
            })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(view.num_rows()));
        let plain = Arc::clone(&self.plain);
        Ok(RecordBatch::try_new_with_options(plain, columns, &options)?)
    }

    /// A field of the values of dictionary `id`.
    fn field_of(&self, id: i64) -> Option<Field> {
        #[expect(deprecated, reason = "the id is how a message names its dictionary")]
        let is_it = |field: &&Arc<Field>| field.dict_id() == Some(id);
        let field = self.incoming.fields().iter().find(is_it)?;
        match field.data_type() {
            DataType::Dictionary(_, values) => {
                Some(Field::new(field.name(), values.as_ref().clone(), true))
            }
            _ => None,
        }
    }
}

/// Bytes that the values of a dictionary column take, each written out.
fn plain_bytes(column: &dyn AnyDictionaryArray) -> Result<u64> {
    let values = column.values();
    let rows = column.len() as u64;
    if values.is_empty() {
        return Ok(0);
    }
    let offsets: Box<dyn Fn(usize) -> u64> = match values.data_type() {
        DataType::Utf8 => lengths(values.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => lengths(values.as_string::<i64>().value_offsets()),
        DataType::Binary => lengths(values.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => lengths(values.as_binary::<i64>().value_offsets()),
        // Views are not written out: the rows share the bytes.
        DataType::FixedSizeBinary(width) => return Ok(rows.saturating_mul(*width as u64)),
        _ => return Ok(rows * 32),
    };
    let keys = column.normalized_keys();
    Ok(keys
        .into_iter()
        .fold(rows * 8, |sum, key| sum.saturating_add(offsets(key))))
}

fn lengths<O: Copy + Into<i64>>(offsets: &[O]) -> Box<dyn Fn(usize) -> u64 + '_> {
    Box::new(|key| (offsets[key + 1].into() - offsets[key].into()) as u64)
}

fn slice_bytes(array: &ArrayRef) -> Result<u64> {
    Ok(array.to_data().get_slice_memory_size()? as u64)
}

fn check_total(length: u64) -> Result<()> {
    if length > MAX_INFLATED_BYTES {
        return Err(Error::InflatedTotal {
            length,
            limit: MAX_INFLATED_BYTES,
        });
    }
    Ok(())
}
