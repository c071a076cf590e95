//! Conditions of a WHERE that the engine evaluates itself, while it scans or searches.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use longbow_engine::{Class, Filter, FilterError, Predicate};

use super::refuse::refuse;
use crate::evaluation::Evaluation;
use crate::filter::STATE;
use crate::refusal::Refusal;

/// Whether the engine can evaluate a condition: one on columns of the dataset alone, that says the same of a row whenever it
/// is asked.
pub(super) fn can_push(condition: &Expr) -> bool {
    let hinders = condition.exists(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Immutable,
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => false,
            _ => true,
        })
    });
    hinders.is_ok_and(|hinders| !hinders)
}

/// Conditions of a WHERE, all of which must hold.
#[derive(Debug)]
pub(super) struct Where {
    condition: Expr,
    /// The columns of the table, with the metrics of its vectors.
    schema: SchemaRef,
    key: Option<String>,
}

impl Where {
    /// The filter that these conditions are together; nothing if there are none.
    pub fn all(conditions: &[Expr], schema: &SchemaRef) -> Option<Arc<dyn Filter>> {
        let condition = conjunction(conditions.iter().cloned())?;
        Some(Arc::new(Where {
            key: key(&condition),
            condition,
            schema: Arc::clone(schema),
        }))
    }

    fn bound(&self, schema: &Schema) -> Result<Bound> {
        let known = DFSchema::try_from(Arc::clone(&self.schema))?;
        let expression = STATE.create_physical_expr(self.condition.clone(), &known)?;
        let mut columns: Vec<Column> = collect_columns(&expression).into_iter().collect();
        columns.sort_by_key(Column::index);
        let place = |column: &Column| {
            columns
                .iter()
                .position(|known| known.name() == column.name())
        };
        let expression = expression.transform_up(|expr| {
            let column = expr.downcast_ref::<Column>();
            Ok(
                match column.and_then(|column| Some((column, place(column)?))) {
                    Some((column, at)) => Transformed::yes(
                        Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>,
                    ),
                    None => Transformed::no(expr),
                },
            )
        });
        let fields = columns
            .iter()
            .map(|column| Arc::clone(&self.schema.fields()[column.index()]));
        let at = columns
            .iter()
            .map(|column| Ok(schema.index_of(column.name())?));
        let schema_of_columns = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Bound {
            evaluation: Evaluation::new(expression.data()?, &schema_of_columns)?,
            schema: schema_of_columns,
            columns: at.collect::<Result<_>>()?,
        })
    }
}

/// The condition as text, if that tells it from any other: long lists are not written out in full.
fn key(condition: &Expr) -> Option<String> {
    let nested = condition.exists(|expr| {
        Ok(matches!(expr, Expr::Literal(value, _) if value.data_type().is_nested()))
    });
    nested
        .is_ok_and(|nested| !nested)
        .then(|| format!("sql {condition:?}"))
}

/// Characters of a condition that a plan shows.
const SHOWN: usize = 500;

/// A filter, in a plan.
pub(super) fn shown(filter: &dyn Filter) -> String {
    let told = filter.told();
    match told.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &told[..end]),
        None => told,
    }
}

impl Filter for Where {
    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn told(&self) -> String {
        self.condition.to_string()
    }

    fn bind(
        &self,
        _: &str,
        schema: &SchemaRef,
    ) -> std::result::Result<Box<dyn Predicate>, Box<dyn FilterError>> {
        let bound = self.bound(schema).map_err(Failed::boxed)?;
        Ok(Box::new(bound))
    }
}

/// A condition bound to a dataset.
#[derive(Debug)]
struct Bound {
    /// Over the columns alone that it reads.
    evaluation: Evaluation,
    columns: Vec<usize>,
    /// Of the columns.
    schema: SchemaRef,
}

impl Bound {
    fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        let count = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            rows.columns().to_vec(),
            &count,
        )?;
        self.evaluation.mask(&rows)
    }
}

impl Predicate for Bound {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn mask(&self, rows: &RecordBatch) -> std::result::Result<BooleanArray, Box<dyn FilterError>> {
        self.evaluate(rows).map_err(Failed::boxed)
    }
}

/// Why a condition cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.text)]
struct Failed(Refusal);

impl Failed {
    fn boxed(error: DataFusionError) -> Box<dyn FilterError> {
        Box::new(Failed(refuse(&error)))
    }
}

impl FilterError for Failed {
    fn code(&self) -> &'static str {
        self.0.code
    }

    fn class(&self) -> Class {
        self.0.class
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions::expr_fn::random;
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn what_changes_from_call_to_call_stays_where_it_is() {
        assert!(can_push(
            &col("id").gt(lit(3)).and(col("title").like(lit("a%")))
        ));
        assert!(!can_push(&col("price").lt(random())));
    }

    #[test]
    fn conditions_that_differ_have_keys_that_differ() {
        let one = key(&col("title").eq(lit("a\") b"))).expect("a key");
        let other = key(&col("title").eq(lit("a"))).expect("a key");
        assert_ne!(one, other);
    }
}
