//! Numbers that an INSERT takes for integers keep what they say.
//!
//! DataFusion casts what is inserted to the types of the columns, and such a cast drops what is behind the point: `VALUES
//! (2.9, …)` would replace row 2. So casts from numbers with a point to integers that the statement does not write itself
//! refuse what they would cut. Those of the planner stand at two places: in the rows of `VALUES`, where [`mark`] makes those
//! that the statement writes look different, and above the whole source.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, WriteOp,
};
use datafusion::sql::sqlparser::ast::{self, Query, SetExpr, Statement, VisitMut, VisitorMut};

use super::refuse::ours;
use super::rewrite::written;
use crate::refusal::{self, Refusal, invalid};

/// Makes the casts that stand in an INSERT's rows of `VALUES` arguments of a function that gives back what it takes.
///
/// # Errors
/// None but the parser's, which read them before.
pub(super) fn mark(statement: &mut Statement) -> refusal::Result<()> {
    let Statement::Insert(insert) = statement else {
        return Ok(());
    };
    match insert.source.visit(&mut Marks) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(refusal),
    }
}

struct Marks;

impl VisitorMut for Marks {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        mark_rows(&mut query.body)
    }
}

fn mark_rows(body: &mut SetExpr) -> ControlFlow<Refusal> {
    match body {
        SetExpr::Values(values) => {
            let rows = values.rows.iter_mut().flat_map(|row| &mut row.content);
            for expr in rows.filter(|expr| is_cast(expr)) {
                written(&format!("coalesce({expr})"), expr)?;
            }
            ControlFlow::Continue(())
        }
        SetExpr::SetOperation { left, right, .. } => {
            mark_rows(left)?;
            mark_rows(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn is_cast(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Nested(inner) => is_cast(inner),
        ast::Expr::Cast { .. } => true,
        _ => false,
    }
}

/// An INSERT whose planner's casts refuse what they would cut off; any other plan as it is.
///
/// # Errors
/// If an expression has no type.
pub(super) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(mut statement) = plan else {
        return Ok(plan);
    };
    if matches!(statement.op, WriteOp::Insert(_)) {
        let source = LogicalPlan::clone(&statement.input);
        let above = match source.inputs().first() {
            Some(input) => input.schema().as_ref().clone(),
            None => DFSchema::empty(),
        };
        let source = source.map_expressions(|expr| exact(expr, &above))?.data;
        let source = source.transform_down(|node| match node {
            LogicalPlan::Values(_) => node.map_expressions(|expr| exact(expr, &DFSchema::empty())),
            _ => Ok(Transformed::no(node)),
        })?;
        statement.input = source.data.into();
    }
    Ok(LogicalPlan::Dml(statement))
}

/// The expression, if it is a cast that may cut, as one that refuses to.
fn exact(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Alias(mut alias) => {
            let inner = exact(*alias.expr, schema)?;
            alias.expr = Box::new(inner.data);
            Ok(Transformed::new(
                Expr::Alias(alias),
                inner.transformed,
                inner.tnr,
            ))
        }
        Expr::Cast(cast) => {
            let to = cast.field.data_type();
            if !cuts(&cast.expr.get_type(schema)?, to) {
                return Ok(Transformed::no(Expr::Cast(cast)));
            }
            let function = ScalarUDF::new_from_impl(Exact {
                to: to.clone(),
                signature: Signature::any(1, Volatility::Immutable),
            });
            Ok(Transformed::yes(function.call(vec![*cast.expr])))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Whether a cast may drop what is behind the point of numbers.
fn cuts(from: &DataType, to: &DataType) -> bool {
    match (item(from), item(to)) {
        (Some(from), Some(to)) => cuts(from, to),
        (None, None) => to.is_integer() && (from.is_floating() || from.is_decimal()),
        _ => false,
    }
}

/// The type of a list's elements.
fn item(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// A cast that gives an error where it would drop what is behind a point.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Exact {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Exact {
    fn name(&self) -> &'static str {
        "longbow_exact"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&arguments.args)?;
        let mut values = values.iter();
        let given = values.next();
        let given = given.ok_or_else(|| ours(invalid("bad_sql", "nothing to cast")))?;
        Ok(ColumnarValue::Array(cast_exactly(given, &self.to)?))
    }
}

fn cast_exactly(given: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = cast_with_options(given, to, &options)?;
    let numbers = numbers(given);
    // Of a decimal with more digits than a float64 holds this sees what is left of it.
    let floats = cast_with_options(&numbers, &DataType::Float64, &options)?;
    let floats = floats.as_primitive::<Float64Type>();
    if let Some(at) = floats
        .iter()
        .position(|x| x.is_some_and(|x| x.fract() != 0.0))
    {
        let text = format!(
            "{} is inserted into a column of {to}, and is no whole number; round it, or write CAST to cut it",
            array_value_to_string(&numbers, at)?
        );
        return Err(ours(invalid("bad_cast", &text)));
    }
    Ok(cast)
}

/// The numbers of a column, of lists their elements.
fn numbers(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::List(_) => within(column.as_list::<i32>()),
        DataType::LargeList(_) => within(column.as_list::<i64>()),
        DataType::FixedSizeList(..) => numbers(column.as_fixed_size_list().values()),
        _ => Arc::clone(column),
    }
}

fn within<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> ArrayRef {
    let (begin, end) = (
        lists.offsets()[0].as_usize(),
        lists.offsets()[lists.len()].as_usize(),
    );
    numbers(&lists.values().slice(begin, end - begin))
}
