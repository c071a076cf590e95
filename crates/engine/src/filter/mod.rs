//! Filters: which rows a request is about.
//!
//! The language that a filter is written in is the caller's. The engine binds it to a dataset's schema, evaluates it batch
//! by batch, and remembers which rows passed ([`cache`]). Where a filter says between which values those of a column must
//! be, and few rows have such, sealed rows are found by their order by that column ([`sorted_columns`]). The rows that pass a
//! filter which is asked for often get codes of their own, by which they are searched ([`codes`]).

mod bound;
mod cache;
mod codes;
mod evaluation;
mod ranges;
mod row_set;
mod sorted_block;
mod sorted_columns;

use std::fmt::Debug;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;

use crate::error::{Class, Error};

pub(crate) use bound::Bound;
pub(crate) use cache::FilterCache;
pub(crate) use codes::{Made, Matching};
pub use evaluation::passing;
pub use ranges::{ColumnRanges, ValueRange};
pub(crate) use row_set::RowSet;

/// A condition on rows, as asked for.
pub trait Filter: Debug + Send + Sync {
    /// The same text for filters that let the same rows pass, whatever is written meanwhile. `None` if a row may pass now
    /// and not later: nothing is remembered of such a filter.
    fn key(&self) -> Option<&str>;

    /// The filter for people who read a plan, at any length.
    fn told(&self) -> String {
        self.key().unwrap_or("…").to_owned()
    }

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

    /// Columns that tell of many rows that they do not pass, those that are likely to tell it of most first. A row passes only
    /// if its value of each is in one of the ranges given for it; a null is in none.
    fn ranges(&self) -> &[ColumnRanges] {
        &[]
    }

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
