//! The bytes of a vector column as the kernels read them.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use longbow_kernels::Scalar;
use longbow_storage::Batch;

use crate::error::Result;
use crate::schema::VectorColumn;

/// The vectors of one batch: `rows * stride` bytes, row after row.
#[derive(Debug)]
pub struct Vectors<'a> {
    bytes: Cow<'a, [u8]>,
    nulls: Option<NullBuffer>,
    stride: usize,
}

impl<'a> Vectors<'a> {
    /// The vectors of `column` in `batch`, or `None` if the batch is older than the column or all of it is null.
    /// Borrows the batch's own bytes where the kernels read the element type; otherwise casts to float32.
    ///
    /// # Errors
    /// If the batch's bytes are not what its schema says.
    pub fn of(batch: &'a Batch, column: &VectorColumn) -> Result<Option<Self>> {
        let Some(at) = batch.schema().index_of(&column.name).ok() else {
            return Ok(None);
        };
        let nulls = match batch.null_count(at) {
            0 => None,
            count if count == batch.rows() => return Ok(None),
            _ => batch.column(at)?.nulls().cloned(),
        };
        let bytes = if column.native {
            Cow::Borrowed(batch.values(at)?)
        } else {
            Cow::Owned(cast_to_f32(&batch.column(at)?)?)
        };
        let stride = column.space.dim
            * if column.native {
                column.space.scalar.size()
            } else {
                Scalar::F32.size()
            };
        Ok(Some(Vectors {
            bytes,
            nulls,
            stride,
        }))
    }

    /// The vector of row `index` of a batch alone, as [`Vectors::of`] gives it.
    ///
    /// # Errors
    /// As [`Vectors::of`].
    pub fn one(
        batch: &'a Batch,
        index: usize,
        column: &VectorColumn,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let Some(at) = batch.schema().index_of(&column.name).ok() else {
            return Ok(None);
        };
        let array = batch.column(at)?;
        if array.is_null(index) {
            return Ok(None);
        }
        if !column.native {
            return Ok(Some(Cow::Owned(cast_to_f32(&array.slice(index, 1))?)));
        }
        let stride = column.space.row_bytes();
        let bytes = &batch.values(at)?[index * stride..(index + 1) * stride];
        Ok(Some(Cow::Borrowed(bytes)))
    }

    /// The vector of row `index` of the batch, or `None` if it is null.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        if self
            .nulls
            .as_ref()
            .is_some_and(|nulls| nulls.is_null(index))
        {
            return None;
        }
        Some(&self.bytes[index * self.stride..(index + 1) * self.stride])
    }

    /// Whether no vector is null, so that [`Vectors::rows`] may be used.
    pub fn is_dense(&self) -> bool {
        self.nulls.is_none()
    }

    /// The vectors of `len` rows from `start` on, contiguous.
    pub fn rows(&self, start: usize, len: usize) -> &[u8] {
        &self.bytes[start * self.stride..(start + len) * self.stride]
    }

    /// Bytes of each.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn cast_to_f32(array: &ArrayRef) -> Result<Vec<u8>> {
    let values = array.as_fixed_size_list().values();
    let floats = arrow_cast::cast(values, &DataType::Float32)?;
    let floats = floats.as_primitive::<Float32Type>().values();
    Ok(floats
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect())
}
