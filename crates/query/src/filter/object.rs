//! Filters as JSON objects.

use serde::Deserialize;
use serde_json::Value;

use super::operator::Operator;
use crate::json;
use crate::refusal::{Result, invalid};

/// Comparisons and groups of a request.
const MOST_NODES: usize = 1_000;
/// Values of a list.
const MOST_VALUES: usize = 100_000;

const KEYS: &[&str] = &["field", "operator", "op", "value", "logic", "filters"];

/// A filter that was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// A column compared with a value.
    Compare {
        field: String,
        operator: Operator,
        /// One for most operators, any number for lists, none where the operator needs none. Strings, numbers and booleans.
        values: Vec<Value>,
        /// Whether the comparison must fail: with null it does neither.
        negated: bool,
    },
    /// All of them pass.
    All(Vec<Node>),
    /// One of them passes.
    Any(Vec<Node>),
    /// Not all of them pass.
    Not(Vec<Node>),
}

/// A filter as clients write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterObject {
    field: Option<String>,
    operator: Option<String>,
    op: Option<String>,
    value: Option<Value>,
    logic: Option<String>,
    filters: Option<Vec<Value>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Logic {
    And,
    Or,
    Not,
}

/// Reads the filters of a request, all of which must pass.
pub(super) fn read_all(filters: &[Value]) -> Result<Vec<Node>> {
    let mut left = MOST_NODES;
    filters
        .iter()
        .map(|filter| read(filter, &mut left))
        .collect()
}

fn read(filter: &Value, left: &mut usize) -> Result<Node> {
    *left = left.checked_sub(1).ok_or_else(|| {
        let text = format!(
            "the request has more than {MOST_NODES} filters; use the operator in with a list of values"
        );
        invalid("too_many_filters", &text)
    })?;
    let object: FilterObject = match FilterObject::deserialize(filter) {
        Ok(object) => object,
        // Says what is wrong.
        Err(_) => json::read(filter.to_string().as_bytes(), "filter", KEYS)?,
    };
    let logic = logic(object.logic.as_deref())?;
    if let Some(filters) = &object.filters {
        let beside = [&object.field, &object.operator, &object.op];
        if beside.iter().any(|key| key.is_some()) || object.value.is_some() {
            let text = "a filter has 'filters' beside a comparison of its own; make the comparison one of the 'filters'";
            return Err(invalid("bad_filter", text));
        }
        let nodes = filters.iter().map(|filter| read(filter, left));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        return Ok(match logic {
            Logic::And => Node::All(nodes),
            Logic::Or => Node::Any(nodes),
            Logic::Not => Node::Not(nodes),
        });
    }
    compare(object, logic)
}

fn logic(name: Option<&str>) -> Result<Logic> {
    match name.map(str::to_ascii_uppercase).as_deref() {
        None | Some("AND") => Ok(Logic::And),
        Some("OR") => Ok(Logic::Or),
        Some("NOT") => Ok(Logic::Not),
        Some(_) => {
            let name = name.unwrap_or_default();
            let text = format!("a filter has the logic '{name}'; expected AND, OR or NOT");
            Err(invalid("bad_filter", &text))
        }
    }
}

fn compare(object: FilterObject, logic: Logic) -> Result<Node> {
    let lacks = |what: &str| {
        let known = KEYS.join(", ");
        let text = format!("a filter has no '{what}'; its keys are {known}");
        invalid("bad_filter", &text)
    };
    let field = object.field.ok_or_else(|| lacks("field"))?;
    if logic == Logic::Or {
        let text = format!(
            "the filter on '{field}' has the logic OR, and nothing to choose from; group filters as {{\"logic\": \"OR\", \"filters\": [...]}}"
        );
        return Err(invalid("bad_filter", &text));
    }
    let operator = match (object.operator, object.op) {
        (Some(operator), None) | (None, Some(operator)) => operator,
        (None, None) => return Err(lacks("operator")),
        (Some(one), Some(other)) => {
            let text = format!(
                "the filter on '{field}' has 'operator' ('{one}') and 'op' ('{other}'); send one of them"
            );
            return Err(invalid("bad_filter", &text));
        }
    };
    let operator = Operator::parse(&operator)?;
    let values = values(&field, operator, object.value)?;
    Ok(Node::Compare {
        field,
        operator,
        values,
        negated: logic == Logic::Not,
    })
}

fn values(field: &str, operator: Operator, value: Option<Value>) -> Result<Vec<Value>> {
    let wrong = |value: &Value, expected: &str| {
        let shown: String = value.to_string().chars().take(80).collect();
        let text = format!("the filter on '{field}' has the value {shown}; expected {expected}");
        invalid("filter_value", &text)
    };
    let value = value.unwrap_or(Value::Null);
    let values = match (operator, value) {
        // Some clients send a value with every filter.
        (Operator::IsNull | Operator::NotNull, _) => Vec::new(),
        (Operator::In | Operator::NotIn, Value::Array(values)) => values,
        (Operator::In | Operator::NotIn, other) => return Err(wrong(&other, "a list of values")),
        (_, value) => vec![value],
    };
    if values.len() > MOST_VALUES {
        let text = format!(
            "the filter on '{field}' has {} values; at most {MOST_VALUES} are read, so ask in several requests",
            values.len()
        );
        return Err(invalid("filter_value", &text));
    }
    match values.iter().find(|value| !is_scalar(value)) {
        Some(Value::Null) => Err(wrong(
            &Value::Null,
            "a string, number or boolean; nothing is equal to null, so use the operators is_null and not_null",
        )),
        Some(other) => Err(wrong(other, "a string, number or boolean")),
        None => Ok(values),
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}
