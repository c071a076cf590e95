//! Vectors as SQL holds them: lists of numbers, of one length or of any.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Int8Type, UInt8Type,
};
use datafusion::common::{Result, ScalarValue};
use longbow_engine::Scalar;

use super::refuse::ours;
use crate::refusal::invalid;

/// Whether values of a type can be read as vectors.
pub(super) fn is_vector(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item.data_type().is_numeric() || item.data_type().is_null()
        }
        _ => false,
    }
}

/// The vectors of a column, one after the other.
#[derive(Debug)]
pub(super) struct Vectors {
    /// Type of the elements.
    pub scalar: Scalar,
    bytes: Buffer,
    lengths: Lengths,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Lengths {
    /// All of this many elements.
    All(usize),
    Each(OffsetBuffer<i32>),
    /// There is nothing but nulls.
    None,
}

impl Vectors {
    /// Reads a column: the element types of stored vectors as they are, others as float32.
    ///
    /// # Errors
    /// If it holds no vectors.
    pub fn read(column: &ArrayRef) -> Result<Self> {
        match column.data_type() {
            DataType::FixedSizeList(item, size) => {
                let native = matches!(
                    item.data_type(),
                    DataType::Float32 | DataType::Float16 | DataType::Int8 | DataType::UInt8
                );
                let size = *size;
                let column = match native {
                    true => Arc::clone(column),
                    false => cast(column, &fixed(size))?,
                };
                let list = column.as_fixed_size_list();
                let values = list.values();
                let (scalar, bytes) = bytes_of(values);
                let size = usize::try_from(size).unwrap_or(0);
                let holds_null = |row: usize| values.slice(row * size, size).null_count() > 0;
                Ok(Vectors {
                    scalar,
                    bytes,
                    nulls: nulls(&column, values.null_count() > 0, holds_null),
                    lengths: Lengths::All(size),
                })
            }
            DataType::Null => Ok(Vectors {
                scalar: Scalar::F32,
                bytes: Buffer::from(Vec::<u8>::new()),
                lengths: Lengths::None,
                nulls: None,
            }),
            _ => {
                let item = Field::new_list_field(DataType::Float32, true);
                let column = cast(column, &DataType::List(Arc::new(item)))?;
                let list = column.as_list::<i32>();
                let (scalar, bytes) = bytes_of(list.values());
                let holds_null = |row: usize| list.value(row).null_count() > 0;
                Ok(Vectors {
                    scalar,
                    bytes,
                    nulls: nulls(&column, list.values().null_count() > 0, holds_null),
                    lengths: Lengths::Each(list.offsets().clone()),
                })
            }
        }
    }

    /// As [`Vectors::read`], with float32 elements whatever they are stored as.
    ///
    /// # Errors
    /// As [`Vectors::read`].
    pub fn read_floats(column: &ArrayRef) -> Result<Self> {
        match column.data_type() {
            DataType::FixedSizeList(item, size) if item.data_type() != &DataType::Float32 => {
                Self::read(&cast(column, &fixed(*size))?)
            }
            _ => Self::read(column),
        }
    }

    /// The bytes of a row's vector; nothing where it or an element of it is null.
    pub fn row(&self, row: usize) -> Option<&[u8]> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let (start, end) = match &self.lengths {
            Lengths::All(size) => (row * size, (row + 1) * size),
            Lengths::Each(offsets) => (
                usize::try_from(offsets[row]).ok()?,
                usize::try_from(offsets[row + 1]).ok()?,
            ),
            Lengths::None => return None,
        };
        let size = self.scalar.size();
        self.bytes.as_slice().get(start * size..end * size)
    }

    /// The vector of a row as numbers; only of what [`Vectors::read_floats`] read.
    pub fn floats(&self, row: usize) -> Option<Vec<f32>> {
        let (chunks, _) = self.row(row)?.as_chunks();
        Some(
            chunks
                .iter()
                .map(|bytes| f32::from_ne_bytes(*bytes))
                .collect(),
        )
    }
}

/// A constant as a vector; nothing for null.
///
/// # Errors
/// If it is no vector.
pub(super) fn constant(value: &ScalarValue) -> Result<Option<Vec<f32>>> {
    if !is_vector(&value.data_type()) {
        let text = format!(
            "{} is no vector; give a list of numbers like [0.1, 0.2]",
            value.data_type()
        );
        return Err(ours(invalid("not_a_vector", &text)));
    }
    Ok(Vectors::read_floats(&value.to_array()?)?.floats(0))
}

fn fixed(size: i32) -> DataType {
    DataType::FixedSizeList(
        Arc::new(Field::new_list_field(DataType::Float32, true)),
        size,
    )
}

/// The elements of lists as bytes. Types that are none of ours were cast before.
fn bytes_of(values: &ArrayRef) -> (Scalar, Buffer) {
    match values.data_type() {
        DataType::Float16 => (
            Scalar::F16,
            values
                .as_primitive::<Float16Type>()
                .values()
                .inner()
                .clone(),
        ),
        DataType::Int8 => (
            Scalar::I8,
            values.as_primitive::<Int8Type>().values().inner().clone(),
        ),
        DataType::UInt8 => (
            Scalar::U8,
            values.as_primitive::<UInt8Type>().values().inner().clone(),
        ),
        _ => (
            Scalar::F32,
            values
                .as_primitive::<Float32Type>()
                .values()
                .inner()
                .clone(),
        ),
    }
}

/// Which rows count as null: those that are, and those with an element that is.
fn nulls(column: &ArrayRef, look: bool, holds_null: impl Fn(usize) -> bool) -> Option<NullBuffer> {
    if !look {
        return column.nulls().cloned();
    }
    let valid = (0..column.len()).map(|row| column.is_valid(row) && !holds_null(row));
    Some(NullBuffer::from_iter(valid))
}
