//! Filters, as clients write them.

use longbow_engine::{Comparison, Condition};
use serde::Deserialize;
use serde_json::Value;

use crate::json;
use crate::refusal::{Result, invalid, unimplemented};

const FILTER_KEYS: &[&str] = &["field", "operator", "op", "value", "logic", "filters"];

/// A filter as clients write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterObject {
    field: Option<String>,
    operator: Option<String>,
    op: Option<String>,
    #[serde(default)]
    value: Value,
    logic: Option<String>,
    filters: Option<Vec<Value>>,
}

/// Filters as conditions that must all hold.
///
/// # Errors
/// InvalidArgument for an object without field, operator or value; Unimplemented for what this version does not have.
pub fn conditions(filters: Option<Vec<Value>>) -> Result<Vec<Condition>> {
    let filters = filters.unwrap_or_default().into_iter();
    filters
        .map(|filter| FilterObject::read(filter)?.into_condition())
        .collect()
}

impl FilterObject {
    fn read(filter: Value) -> Result<Self> {
        json::read(filter.to_string().as_bytes(), "filter", FILTER_KEYS)
    }

    fn into_condition(self) -> Result<Condition> {
        let logic = self.logic.as_deref().unwrap_or("AND");
        match logic.to_ascii_uppercase().as_str() {
            "AND" => {}
            "OR" | "NOT" => return Err(unimplemented(&format!("a filter with 'logic' {logic}"))),
            _ => {
                let text = format!("a filter has the logic '{logic}'; expected AND, OR or NOT");
                return Err(invalid("bad_filter", &text));
            }
        }
        if self.filters.is_some_and(|filters| !filters.is_empty()) {
            return Err(unimplemented("a filter with nested 'filters'"));
        }
        let known = FILTER_KEYS.join(", ");
        let lacks = |what: &str| {
            invalid(
                "bad_filter",
                &format!("a filter has no '{what}'; its keys are {known}"),
            )
        };
        let field = self.field.ok_or_else(|| lacks("field"))?;
        let operator = match (self.operator, self.op) {
            (Some(operator), None) | (None, Some(operator)) => operator,
            (None, None) => return Err(lacks("operator")),
            (Some(one), Some(other)) => {
                let text = format!(
                    "the filter on '{field}' has 'operator' ('{one}') and 'op' ('{other}'); send one of them"
                );
                return Err(invalid("bad_filter", &text));
            }
        };
        let comparison = Comparison::parse(&operator)?;
        let value = match self.value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            other => {
                let text = format!(
                    "the filter on '{field}' has the value {other}; expected a string, number or boolean"
                );
                return Err(invalid("filter_value", &text));
            }
        };
        Ok(Condition {
            field,
            comparison,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(filter: &str) -> &'static str {
        let filter = serde_json::from_str(filter).expect("JSON");
        conditions(Some(vec![filter]))
            .expect_err("the filter is wrong")
            .code
    }

    #[test]
    fn values_of_any_type_are_taken_as_text() {
        let filters =
            r#"[{"field":"a","op":">=","value":3},{"field":"b","operator":"EQ","value":"x"}]"#;
        let filters = serde_json::from_str(filters).expect("JSON");
        let read = conditions(filters).expect("good filters");
        assert_eq!(read[0].value, "3");
        assert_eq!(read[1].comparison, Comparison::Eq);
    }

    #[test]
    fn wrong_filters_say_what_is_wrong() {
        assert_eq!(
            code_of(r#"{"field":"a","op":"like","value":"x"}"#),
            "unimplemented"
        );
        assert_eq!(
            code_of(r#"{"field":"a","op":"~","value":"x"}"#),
            "unknown_operator"
        );
        assert_eq!(code_of(r#"{"field":"a","op":"="}"#), "filter_value");
    }
}
