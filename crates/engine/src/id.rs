//! The id of a row as clients write it: an integer or a string.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// An id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "an id is an integer or a text")]
pub enum Id {
    /// A negative or small integer.
    Int(i64),
    /// An integer beyond `i64`.
    Large(u64),
    /// A string.
    Text(String),
}

impl Id {
    /// What is wrong with an id that a dataset of this schema does not hold.
    pub(crate) fn unknown_in(&self, dataset: &str, schema: &Schema) -> Error {
        let kind = schema.field_with_name("id").map(|id| id.data_type());
        let kinds = match (self, kind) {
            (Id::Text(_), Ok(kind)) if kind.is_integer() => ", whose ids are integers",
            (Id::Int(_) | Id::Large(_), Ok(kind)) if !kind.is_integer() => ", whose ids are texts",
            _ => "",
        };
        Error::IdNotFound {
            dataset: dataset.to_owned(),
            id: self.to_string(),
            kinds,
        }
    }

    /// The id at a position of a column.
    ///
    /// # Errors
    /// If the column is of no type that ids have.
    pub fn of(column: &ArrayRef, at: usize) -> Result<Self> {
        let bad = || Error::BadIdType {
            got: column.data_type().to_string(),
        };
        if column.data_type().is_unsigned_integer() {
            let wide = arrow_cast::cast(&column.slice(at, 1), &DataType::UInt64)?;
            return Ok(Id::Large(
                wide.as_primitive_opt::<UInt64Type>()
                    .ok_or_else(bad)?
                    .value(0),
            ));
        }
        if column.data_type().is_signed_integer() {
            let wide = arrow_cast::cast(&column.slice(at, 1), &DataType::Int64)?;
            return Ok(Id::Int(
                wide.as_primitive_opt::<Int64Type>()
                    .ok_or_else(bad)?
                    .value(0),
            ));
        }
        let text = arrow_cast::cast(&column.slice(at, 1), &DataType::Utf8)?;
        Ok(Id::Text(
            text.as_string_opt::<i32>()
                .ok_or_else(bad)?
                .value(0)
                .to_owned(),
        ))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Int(value) => value.fmt(f),
            Id::Large(value) => value.fmt(f),
            Id::Text(value) => write!(f, "'{value}'"),
        }
    }
}

impl From<i64> for Id {
    fn from(value: i64) -> Self {
        Id::Int(value)
    }
}

impl From<&str> for Id {
    fn from(value: &str) -> Self {
        Id::Text(value.to_owned())
    }
}
