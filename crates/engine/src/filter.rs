//! Filters: comparisons of columns with values, all of which must hold.

use arrow_array::{Array, ArrayRef, BooleanArray, Scalar as ScalarOf, StringArray};
use arrow_cast::CastOptions;
use arrow_ord::cmp;
use arrow_schema::DataType;
use longbow_storage::Batch;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::schema::DatasetSchema;
use crate::view::{Part, View};

/// How a column is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal; null is neither equal nor unequal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Comparison {
    /// Reads an operator as clients write it, in any case.
    ///
    /// # Errors
    /// If it is unknown, or known and not in this version.
    pub fn parse(operator: &str) -> Result<Self> {
        Ok(match operator.trim().to_ascii_lowercase().as_str() {
            "=" | "==" | "eq" => Comparison::Eq,
            "!=" | "<>" | "ne" | "neq" => Comparison::Ne,
            ">" | "gt" => Comparison::Gt,
            ">=" | "ge" | "gte" => Comparison::Ge,
            "<" | "lt" => Comparison::Lt,
            "<=" | "le" | "lte" => Comparison::Le,
            "in" | "not_in" | "contains" | "like" | "is_null" | "not_null" => {
                return Err(Error::Unimplemented(format!(
                    "the filter operator '{operator}'"
                )));
            }
            _ => return Err(Error::UnknownOperator(operator.to_owned())),
        })
    }
}

/// One comparison as asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name of the column.
    pub field: String,
    /// The operator.
    pub comparison: Comparison,
    /// The value as text; it is cast to the column's type.
    pub value: String,
}

/// Conditions bound to a schema: columns found, values cast.
#[derive(Debug)]
pub struct Filter {
    bound: Vec<Bound>,
}

#[derive(Debug)]
struct Bound {
    field: String,
    comparison: Comparison,
    value: ScalarOf<ArrayRef>,
}

impl Filter {
    /// Binds conditions to a dataset's schema; `None` if there are none.
    ///
    /// # Errors
    /// If a column is unknown or a value cannot be cast to its type.
    pub fn bind(
        dataset: &str,
        schema: &DatasetSchema,
        conditions: &[Condition],
    ) -> Result<Option<Self>> {
        if conditions.is_empty() {
            return Ok(None);
        }
        let mut bound = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let column = schema.column(dataset, &condition.field)?;
            let data_type = schema.arrow.field(column).data_type();
            let value = cast_value(condition, data_type)?;
            bound.push(Bound {
                field: condition.field.clone(),
                comparison: condition.comparison,
                value: ScalarOf::new(value),
            });
        }
        Ok(Some(Filter { bound }))
    }

    /// Which rows of a batch pass. A column that the batch does not have is null there, and null passes nothing.
    ///
    /// # Errors
    /// If the batch's bytes are not what its schema says.
    pub fn mask(&self, batch: &Batch) -> Result<BooleanArray> {
        let mut mask: Option<BooleanArray> = None;
        for bound in &self.bound {
            let Ok(at) = batch.schema().index_of(&bound.field) else {
                return Ok(BooleanArray::from(vec![false; batch.rows()]));
            };
            let column = batch.column(at)?;
            let one = match bound.comparison {
                Comparison::Eq => cmp::eq(&column, &bound.value),
                Comparison::Ne => cmp::neq(&column, &bound.value),
                Comparison::Gt => cmp::gt(&column, &bound.value),
                Comparison::Ge => cmp::gt_eq(&column, &bound.value),
                Comparison::Lt => cmp::lt(&column, &bound.value),
                Comparison::Le => cmp::lt_eq(&column, &bound.value),
            }?;
            let one = without_nulls(one);
            mask = Some(match mask {
                None => one,
                Some(so_far) => BooleanArray::from(so_far.values() & one.values()),
            });
        }
        Ok(mask.unwrap_or_else(|| BooleanArray::from(vec![true; batch.rows()])))
    }

    /// The row numbers that a view holds alive and that pass.
    ///
    /// # Errors
    /// As [`Filter::mask`].
    pub fn rows(&self, view: &View) -> Result<RoaringTreemap> {
        let mut rows = RoaringTreemap::new();
        for part in view.parts(0) {
            let mask = self.mask(part.batch)?;
            append_rows(&part, &mask, view, &mut rows);
        }
        Ok(rows)
    }
}

fn append_rows(part: &Part<'_>, mask: &BooleanArray, view: &View, rows: &mut RoaringTreemap) {
    for run in &part.runs {
        for offset in 0..run.len {
            let row = run.first_row + offset as u64;
            if mask.value(run.start + offset) && view.is_visible(row) {
                rows.insert(row);
            }
        }
    }
}

fn without_nulls(mask: BooleanArray) -> BooleanArray {
    match mask.nulls() {
        None => mask,
        Some(nulls) => BooleanArray::from(mask.values() & nulls.inner()),
    }
}

fn cast_value(condition: &Condition, data_type: &DataType) -> Result<ArrayRef> {
    let refused = || Error::FilterValue {
        field: condition.field.clone(),
        value: condition.value.clone(),
        data_type: data_type.to_string(),
    };
    if data_type.is_nested() {
        return Err(refused());
    }
    let text = StringArray::from(vec![condition.value.as_str()]);
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let value = arrow_cast::cast_with_options(&text, data_type, &options).map_err(|_| refused())?;
    if value.is_null(0) {
        Err(refused())
    } else {
        Ok(value)
    }
}
