//! From conditions to one expression, typed and bound to a schema.

use std::ops::Not;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::functions::string::expr_fn::contains;
use datafusion::functions_nested::expr_fn::array_has;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};

use super::error::{Error, unknown_column};
use super::object::Node;
use super::operator::Operator;
use super::ranges::ranges;
use super::value::constants;
use super::{Bound, STATE};
use crate::evaluation::Evaluation;
use crate::parser;

type Result<T> = std::result::Result<T, Error>;

/// All conditions as one expression over a dataset's columns.
///
/// # Errors
/// If a column is unknown, a value or operator does not suit its type, or the predicate is no condition on a row.
pub(super) fn bind(
    nodes: &[Node],
    predicate: Option<&str>,
    dataset: &str,
    schema: &SchemaRef,
) -> Result<Bound> {
    let df_schema = DFSchema::try_from(Arc::clone(schema))?;
    let scope = Scope { dataset, schema };
    let mut all = nodes
        .iter()
        .map(|node| scope.expression(node))
        .collect::<Result<Vec<_>>>()?;
    if let Some(predicate) = predicate {
        all.push(parse(predicate, dataset, &df_schema)?);
    }
    let whole = join(all, Expr::and).unwrap_or_else(|| lit(true));
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(df_schema.clone()))
        .with_config_options(Arc::clone(STATE.config_options()))
        .with_current_time()
        .build();
    let simplifier = ExprSimplifier::new(context);
    let typed = simplifier.coerce(whole, &df_schema)?;
    let data_type = typed.get_type(&df_schema)?;
    if !matches!(data_type, DataType::Boolean) {
        return Err(Error::NotBoolean(data_type.to_string()));
    }
    let simple = simplifier.simplify(typed)?;
    let physical = STATE.create_physical_expr(simple, &df_schema)?;
    let mut columns: Vec<usize> = collect_columns(&physical)
        .iter()
        .map(|column| column.index())
        .collect();
    columns.sort_unstable();
    let narrow = Arc::new(schema.project(&columns)?);
    let physical = reassign_expr_columns(physical, &narrow)?;
    Ok(Bound {
        ranges: ranges(&physical, &narrow),
        evaluation: Evaluation::new(physical, &narrow)?,
        columns,
    })
}

/// Reads a predicate of SQL.
fn parse(predicate: &str, dataset: &str, schema: &DFSchema) -> Result<Expr> {
    let read = parser::expression(predicate)
        .and_then(|read| STATE.create_logical_expr_from_sql_expr(read, schema));
    let expression = read.map_err(|error| match Error::from(error) {
        Error::UnknownColumn { column, .. } => {
            let have = schema.fields().iter().map(|field| field.name().as_str());
            unknown_column(dataset, &column, have)
        }
        other => other,
    })?;
    let mut refused = None;
    expression.apply(|part| {
        refused = match part {
            Expr::AggregateFunction(_) => Some("an aggregate"),
            Expr::WindowFunction(_) => Some("a window function"),
            Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
            | Expr::OuterReferenceColumn(..) => Some("a query of its own"),
            Expr::Placeholder(_) => Some("a parameter"),
            Expr::Unnest(_) => Some("unnest"),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    })?;
    match refused {
        Some(what) => Err(Error::NotOfRows(what)),
        None => Ok(expression),
    }
}

/// The columns that conditions are about.
struct Scope<'a> {
    dataset: &'a str,
    schema: &'a Schema,
}

impl Scope<'_> {
    fn expression(&self, node: &Node) -> Result<Expr> {
        let each = |nodes: &[Node]| {
            let nodes = nodes.iter().map(|node| self.expression(node));
            nodes.collect::<Result<Vec<_>>>()
        };
        Ok(match node {
            Node::All(nodes) => join(each(nodes)?, Expr::and).unwrap_or_else(|| lit(true)),
            Node::Any(nodes) => join(each(nodes)?, Expr::or).unwrap_or_else(|| lit(false)),
            Node::Not(nodes) => join(each(nodes)?, Expr::and)
                .unwrap_or_else(|| lit(true))
                .not(),
            Node::Compare {
                field,
                operator,
                values,
                negated,
            } => {
                let compared = self.compare(field, *operator, values)?;
                if *negated { compared.not() } else { compared }
            }
        })
    }

    fn compare(
        &self,
        name: &str,
        operator: Operator,
        values: &[serde_json::Value],
    ) -> Result<Expr> {
        let (column, data_type) = self.column(name)?;
        match operator {
            Operator::IsNull => return Ok(column.is_null()),
            Operator::NotNull => return Ok(column.is_not_null()),
            Operator::Contains => return hold(column, name, &data_type, values),
            Operator::Like if !is_text(&data_type) => {
                return Err(Error::Operator {
                    operator: operator.name(),
                    field: name.to_owned(),
                    data_type: data_type.to_string(),
                    remedy: "it compares strings",
                });
            }
            _ => {}
        }
        let mut constants = constants(name, &data_type, values)?;
        if matches!(operator, Operator::In | Operator::NotIn) {
            // Of an empty list nothing is one.
            return Ok(column.in_list(constants, operator == Operator::NotIn));
        }
        let constant = constants
            .pop()
            .unwrap_or_else(|| lit(datafusion::common::ScalarValue::Null));
        Ok(match operator {
            Operator::Eq => column.eq(constant),
            Operator::Ne => column.not_eq(constant),
            Operator::Gt => column.gt(constant),
            Operator::Ge => column.gt_eq(constant),
            Operator::Lt => column.lt(constant),
            Operator::Le => column.lt_eq(constant),
            _ => column.like(constant),
        })
    }

    /// A column by its name, or a part of a struct by the names on the way to it, with points between them.
    fn column(&self, name: &str) -> Result<(Expr, DataType)> {
        if let Ok(field) = self.schema.field_with_name(name) {
            return Ok((
                Expr::from(Column::new_unqualified(name)),
                field.data_type().clone(),
            ));
        }
        let have = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let unknown = || unknown_column(self.dataset, name, have.clone());
        let mut parts = name.split('.');
        let first = parts.next().unwrap_or(name);
        let field = self.schema.field_with_name(first).map_err(|_| unknown())?;
        let mut expression = Expr::from(Column::new_unqualified(first));
        let mut data_type = field.data_type();
        for part in parts {
            let DataType::Struct(fields) = data_type else {
                return Err(unknown());
            };
            let (_, field) = fields.find(part).ok_or_else(unknown)?;
            expression = expression.field(part);
            data_type = field.data_type();
        }
        Ok((expression, data_type.clone()))
    }
}

/// Whether a text holds a text, or a list an element.
fn hold(
    column: Expr,
    name: &str,
    data_type: &DataType,
    values: &[serde_json::Value],
) -> Result<Expr> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let element = constants(name, item.data_type(), values)?.pop();
            Ok(array_has(column, element.unwrap_or_else(|| lit(false))))
        }
        text if is_text(text) => {
            let part = constants(name, text, values)?.pop();
            Ok(contains(column, part.unwrap_or_else(|| lit(""))))
        }
        other => Err(Error::Operator {
            operator: Operator::Contains.name(),
            field: name.to_owned(),
            data_type: other.to_string(),
            remedy: "it looks into strings and lists",
        }),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Joins expressions into a tree whose depth is the logarithm of their number.
fn join(mut all: Vec<Expr>, how: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while all.len() > 1 {
        let mut pairs = all.into_iter();
        let mut joined = Vec::new();
        while let Some(one) = pairs.next() {
            joined.push(match pairs.next() {
                Some(other) => how(one, other),
                None => one,
            });
        }
        all = joined;
    }
    all.pop()
}
