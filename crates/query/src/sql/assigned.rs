//! Numbers that an INSERT takes for integers keep what they say.
//!
//! DataFusion casts what is inserted to the types of the columns, and such a cast drops what is behind the point: `VALUES
//! (2.9, …)` would replace row 2. So casts from numbers with a point to integers that the statement does not write itself
//! refuse what they would cut. Those of the planner stand at two places: in the rows of `VALUES`, where [`mark`] makes those
//! that the statement writes look different, and above the whole source.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, WriteOp,
};
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Query, SetExpr, Statement,
    UnaryOperator, VisitMut, VisitorMut,
};

use super::refuse::ours;
use crate::parser;
use crate::refusal::{self, invalid};

/// Makes the casts that stand in an INSERT's rows of `VALUES` arguments of a function that gives back what it takes.
///
/// # Errors
/// None but the parser's, which read them before.
pub(super) fn mark(statement: &mut Statement) -> refusal::Result<()> {
    let Statement::Insert(insert) = statement else {
        return Ok(());
    };
    let same = parser::expression("coalesce(NULL)");
    let same = same.map_err(|error| invalid("bad_sql", &error.to_string()))?;
    match insert.source.visit(&mut Marks { same: same.expr }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(never) => match never {},
    }
}

struct Marks {
    /// The function, with something else as its argument.
    same: ast::Expr,
}

impl VisitorMut for Marks {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.mark_rows(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl Marks {
    fn mark_rows(&self, body: &mut SetExpr) {
        match body {
            SetExpr::Values(values) => {
                let rows = values.rows.iter_mut().flat_map(|row| &mut row.content);
                rows.filter(|expr| is_cast(expr))
                    .for_each(|expr| self.mark(expr));
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.mark_rows(left);
                self.mark_rows(right);
            }
            _ => {}
        }
    }

    /// The argument moves, for what is written as text and read again may have become another text.
    fn mark(&self, expr: &mut ast::Expr) {
        let cast = std::mem::replace(expr, self.same.clone());
        if let ast::Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &mut function.args
        {
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(cast))];
        }
    }
}

fn is_cast(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Nested(inner) => is_cast(inner),
        // The planner drops the sign.
        ast::Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        } => is_cast(expr),
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
        let source = source.transform_down_with_subqueries(|node| match node {
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

/// Whether a cast may drop what is behind the point of numbers. Times are whole numbers of their unit.
fn cuts(from: &DataType, to: &DataType) -> bool {
    match (item(from), item(to)) {
        (Some(from), Some(to)) => cuts(from, to),
        (None, None) => {
            let is_whole = to.is_integer() || to.is_temporal();
            is_whole && (from.is_floating() || from.is_decimal())
        }
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
    if let Some(at) = first_fraction(&numbers)? {
        let text = format!(
            "{} is inserted into a column of {to}, and is no whole number; round it, or write CAST to cut it",
            array_value_to_string(&numbers, at)?
        );
        return Err(ours(invalid("bad_cast", &text)));
    }
    Ok(cast)
}

fn first_fraction(numbers: &ArrayRef) -> Result<Option<usize>> {
    if numbers.data_type().is_decimal() {
        // They may have more digits than a float64 holds.
        let whole = cast(numbers, &DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0))?;
        // What is rounded is another number; there is none where it is beyond the type.
        let back = cast(&whole, numbers.data_type())?;
        let is_same = eq(&back, numbers)?;
        let is_other =
            |at: &usize| numbers.is_valid(*at) && !(is_same.is_valid(*at) && is_same.value(*at));
        return Ok((0..numbers.len()).find(is_other));
    }
    let floats = cast(numbers, &DataType::Float64)?;
    let mut floats = floats.as_primitive::<Float64Type>().iter();
    Ok(floats.position(|x| x.is_some_and(|x| x.fract() != 0.0)))
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
