//! Values of filters, as constants of a column's type.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_cast::CastOptions;
use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, lit};
use serde_json::Value;

use super::error::Error;

/// The values as constants that a column of the type is compared with.
///
/// # Errors
/// If one cannot be read as that type.
pub(super) fn constants(
    field: &str,
    data_type: &DataType,
    values: &[Value],
) -> Result<Vec<Expr>, Error> {
    let data_type = match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let refused = |value: &Value| Error::Value {
        field: field.to_owned(),
        value: match value {
            Value::String(text) => format!("'{}'", text.chars().take(80).collect::<String>()),
            other => other.to_string(),
        },
        data_type: data_type.to_string(),
    };
    let texts: StringArray = values.iter().map(|value| Some(text(value))).collect();
    // All at once, if all can be: lists may be long.
    if !data_type.is_nested()
        && let Some(all) = cast(&texts, data_type)
    {
        let scalar = |at| Ok(lit(ScalarValue::try_from_array(&all, at)?));
        return (0..all.len()).map(scalar).collect();
    }
    values
        .iter()
        .map(|value| constant(value, data_type).ok_or_else(|| refused(value)))
        .collect()
}

fn constant(value: &Value, data_type: &DataType) -> Option<Expr> {
    if data_type.is_nested() {
        return None;
    }
    let scalar = |array: ArrayRef| Some(lit(ScalarValue::try_from_array(&array, 0).ok()?));
    let as_text = StringArray::from(vec![text(value)]);
    if let Some(array) = cast(&as_text, data_type) {
        return scalar(array);
    }
    let Value::Number(number) = value else {
        return None;
    };
    if data_type.is_temporal() {
        // In the unit of the column.
        return scalar(cast(&Int64Array::from(vec![number.as_i64()?]), data_type)?);
    }
    // Beyond the range of the column, or between two of its numbers: compared as numbers all the same.
    let wider: ArrayRef = match number.as_i64() {
        Some(whole) => Arc::new(Int64Array::from(vec![whole])),
        None => Arc::new(Float64Array::from(vec![number.as_f64()?])),
    };
    if data_type.is_numeric() {
        scalar(wider)
    } else {
        None
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The values as the type; `None` if one of them is none of it.
fn cast(values: &dyn Array, data_type: &DataType) -> Option<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = arrow_cast::cast_with_options(values, data_type, &options).ok()?;
    (cast.null_count() == 0).then_some(cast)
}
