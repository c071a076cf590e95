//! A filter as plain as can be: one column compared with one value.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar, StringArray};
use arrow_ord::cmp;
use arrow_schema::SchemaRef;
use longbow_engine::{Filter, FilterError, Predicate};

/// How a column is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

/// A column compared with a value that is cast to its type.
#[derive(Debug, Clone)]
pub struct Condition {
    pub field: String,
    pub comparison: Comparison,
    pub value: String,
    key: Option<String>,
}

#[derive(Debug)]
struct Bound {
    column: [usize; 1],
    comparison: Comparison,
    value: Scalar<ArrayRef>,
}

/// There is no such column.
#[derive(Debug, thiserror::Error)]
#[error("no column '{0}'")]
struct Unknown(String);

impl FilterError for Unknown {
    fn code(&self) -> &'static str {
        "column_not_found"
    }
}

impl Condition {
    /// One that is remembered.
    pub fn new(field: &str, comparison: Comparison, value: impl ToString) -> Self {
        let value = value.to_string();
        Condition {
            field: field.to_owned(),
            comparison,
            key: Some(format!("{field} {comparison:?} {value}")),
            value,
        }
    }

    /// The same, of which nothing is remembered.
    pub fn forgotten(self) -> Self {
        Condition { key: None, ..self }
    }

    pub fn shared(self) -> Arc<dyn Filter> {
        Arc::new(self)
    }
}

impl Filter for Condition {
    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn bind(
        &self,
        _dataset: &str,
        schema: &SchemaRef,
    ) -> Result<Box<dyn Predicate>, Box<dyn FilterError>> {
        let Ok(at) = schema.index_of(&self.field) else {
            return Err(Box::new(Unknown(self.field.clone())));
        };
        let text = StringArray::from(vec![self.value.as_str()]);
        let value = arrow_cast::cast(&text, schema.field(at).data_type()).expect("a value");
        assert!(value.is_valid(0), "{self:?}");
        Ok(Box::new(Bound {
            column: [at],
            comparison: self.comparison,
            value: Scalar::new(value),
        }))
    }
}

impl Predicate for Bound {
    fn columns(&self) -> &[usize] {
        &self.column
    }

    fn mask(&self, rows: &RecordBatch) -> Result<BooleanArray, Box<dyn FilterError>> {
        let compare = match self.comparison {
            Comparison::Eq => cmp::eq,
            Comparison::Ne => cmp::neq,
            Comparison::Gt => cmp::gt,
            Comparison::Ge => cmp::gt_eq,
            Comparison::Lt => cmp::lt,
            Comparison::Le => cmp::lt_eq,
        };
        Ok(compare(rows.column(0), &self.value).expect("comparable"))
    }
}
