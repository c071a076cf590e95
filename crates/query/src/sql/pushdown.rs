//! Comparisons of a WHERE that the engine makes itself, while it scans or searches.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use longbow_engine::{Comparison, Condition, DatasetSchema};

/// The comparison that an expression is; nothing if it is another expression, or one whose value might not come out the
/// same as text.
pub(super) fn condition(expr: &Expr, schema: &DatasetSchema) -> Option<Condition> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return None;
    };
    let (column, value, op) = match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(value, _)) => (column, value, *op),
        (Expr::Literal(value, _), Expr::Column(column)) => (column, value, op.swap()?),
        _ => return None,
    };
    let comparison = match op {
        Operator::Eq => Comparison::Eq,
        Operator::NotEq => Comparison::Ne,
        Operator::Gt => Comparison::Gt,
        Operator::GtEq => Comparison::Ge,
        Operator::Lt => Comparison::Lt,
        Operator::LtEq => Comparison::Le,
        _ => return None,
    };
    let field = schema.arrow.field_with_name(column.name()).ok()?;
    if field.data_type() != &value.data_type() {
        return None;
    }
    Some(Condition {
        field: column.name().to_owned(),
        comparison,
        value: text(value)?,
    })
}

/// A value that reads the same from its text.
fn text(value: &ScalarValue) -> Option<String> {
    if value.is_null() {
        return None;
    }
    match value {
        ScalarValue::Boolean(Some(value)) => Some(value.to_string()),
        ScalarValue::Float32(Some(value)) if value.is_finite() => Some(value.to_string()),
        ScalarValue::Float64(Some(value)) if value.is_finite() => Some(value.to_string()),
        value if value.data_type().is_integer() => Some(value.to_string()),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn comparisons_with_values_of_the_columns_own_type_are_pushed_down() {
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("title", DataType::Utf8, true),
            Field::new("price", DataType::Float64, true),
            Field::new("vector", DataType::FixedSizeList(item, 2), true),
        ]);
        let schema = DatasetSchema::new(&Arc::new(schema), 1).expect("a schema");
        let told = |expr: Expr| {
            condition(&expr, &schema).map(|one| (one.field, one.comparison, one.value))
        };
        let of = |field: &str, comparison, value: &str| {
            Some((field.to_owned(), comparison, value.to_owned()))
        };
        assert_eq!(
            told(col("id").gt(lit(-3i64))),
            of("id", Comparison::Gt, "-3")
        );
        assert_eq!(told(lit(3i64).gt(col("id"))), of("id", Comparison::Lt, "3"));
        assert_eq!(
            told(col("title").not_eq(lit("it's"))),
            of("title", Comparison::Ne, "it's")
        );
        assert_eq!(
            told(col("price").lt_eq(lit(0.1))),
            of("price", Comparison::Le, "0.1")
        );
        assert_eq!(told(col("price").lt(lit(f64::NAN))), None);
        assert_eq!(told(col("id").eq(lit(3i32))), None);
        assert_eq!(told(col("id").eq(col("price"))), None);
        assert_eq!(told(col("title").like(lit("a%"))), None);
    }
}
