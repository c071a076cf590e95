//! DataFusion's errors in our words: a stable code, what was wrong, and what to do.

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use longbow_engine::{Class, Error};

use crate::allowance::TooMuch;
use crate::refusal::{Refusal, invalid, without_appeal};

/// An error of ours on its way through DataFusion.
pub(super) fn ours(error: impl Into<Refusal>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}

/// What to tell of an error.
pub(super) fn refuse(error: &DataFusionError) -> Refusal {
    let text = told(error);
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => refuse(inner),
        DataFusionError::Shared(inner) => refuse(inner),
        DataFusionError::Collection(all) => match all.first() {
            Some(first) => refuse(first),
            None => internal(&text),
        },
        DataFusionError::External(inner) => {
            of_outside(inner.as_ref()).unwrap_or_else(|| of_library(&text))
        }
        DataFusionError::ArrowError(inner, _) => of_arrow(inner),
        DataFusionError::SQL(inner, _) => of_parser(inner),
        DataFusionError::SchemaError(inner, _) => of_schema(inner, &text),
        DataFusionError::Plan(_) => of_plan(&text),
        DataFusionError::NotImplemented(_) => not_there(&text),
        DataFusionError::Internal(_) => of_datafusion(&text),
        DataFusionError::Configuration(_) | DataFusionError::Execution(_) => invalid(
            "bad_value",
            &format!("{text}; correct the statement or the rows that it reads"),
        ),
        DataFusionError::ResourcesExhausted(_) => {
            let text = format!("{text}; ask for less at a time, or raise LONGBOW_SQL_MEMORY_LIMIT");
            Refusal::new(Class::ResourceExhausted, "sql_memory", &text)
        }
        _ => internal(&text),
    }
}

/// The text of an error without DataFusion's own prefix and traces.
fn told(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    let bare = [
        "Error during planning: ",
        "This feature is not implemented: ",
        "Execution error: ",
        "Resources exhausted: ",
    ]
    .iter()
    .find_map(|prefix| text.strip_prefix(prefix));
    bare.unwrap_or(&text)
        .trim_end_matches(['.', '\n'])
        .to_owned()
}

fn internal(text: &str) -> Refusal {
    Refusal::new(
        Class::Internal,
        "sql_internal",
        &format!("{text}; report this"),
    )
}

/// An error of a library that DataFusion hands on: of the one for patterns it is the pattern's fault.
fn of_library(text: &str) -> Refusal {
    let text = text.strip_prefix("External error: ").unwrap_or(text);
    if text.to_ascii_lowercase().contains("regex") {
        return invalid("bad_value", &format!("{text}; write a simpler pattern"));
    }
    internal(text)
}

/// What DataFusion takes for a fault of its own: mostly a statement whose types do not fit, which it found out late.
fn of_datafusion(text: &str) -> Refusal {
    let text = without_appeal(text);
    let types = ["failed to match any signature", "Failed to coerce types"];
    if types.iter().any(|words| text.contains(words)) {
        return invalid(
            "bad_sql",
            &format!("{text}; give values of other types, by CAST for instance"),
        );
    }
    not_there(text)
}

fn not_there(text: &str) -> Refusal {
    let text = format!("{text}; write the statement without it");
    Refusal::new(Class::Unimplemented, "unimplemented", &text)
}

fn of_outside(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Option<Refusal> {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return Some(refusal.clone());
    }
    if let Some(error) = error.downcast_ref::<Error>() {
        return Some(error.into());
    }
    if let Some(error) = error.downcast_ref::<TooMuch>() {
        let text = format!("{error}; correct the statement or the rows that it reads");
        return Some(invalid("bad_value", &text));
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return Some(of_arrow(error));
    }
    error.downcast_ref::<DataFusionError>().map(refuse)
}

fn of_arrow(error: &ArrowError) -> Refusal {
    match error {
        ArrowError::ExternalError(inner) => {
            of_outside(inner.as_ref()).unwrap_or_else(|| internal(&error.to_string()))
        }
        ArrowError::DivideByZero => {
            let text =
                "the statement divides by zero; leave such rows out, or divide by NULLIF(…, 0)";
            invalid("division_by_zero", text)
        }
        ArrowError::ArithmeticOverflow(what) => invalid(
            "numeric_overflow",
            &format!("{what}; compute in a wider type by CAST"),
        ),
        ArrowError::CastError(what) | ArrowError::ParseError(what) => invalid(
            "bad_cast",
            &format!("{what}; give a value of that type, or use TRY_CAST"),
        ),
        ArrowError::NotYetImplemented(what) => not_there(what),
        ArrowError::InvalidArgumentError(what) | ArrowError::ComputeError(what) => invalid(
            "bad_value",
            &format!("{what}; correct the statement or the rows that it reads"),
        ),
        other => internal(&other.to_string()),
    }
}

fn of_parser(error: &ParserError) -> Refusal {
    match error {
        ParserError::RecursionLimitExceeded => {
            let text = "the statement nests brackets, calls, subqueries or names behind dots too deeply, or has a mistake within many; write it flatter";
            invalid("sql_too_deep", text)
        }
        ParserError::TokenizerError(what) | ParserError::ParserError(what) => {
            invalid("bad_sql", &format!("{what}; correct the statement"))
        }
    }
}

fn of_schema(error: &SchemaError, text: &str) -> Refusal {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let names = valid_fields.iter().map(|column| column.name.as_str());
            let near = longbow_types::nearest(&field.name, names);
            let near = near.map(|name| format!("; did you mean '{name}'?"));
            let have: Vec<String> = valid_fields
                .iter()
                .map(|column| column.quoted_flat_name())
                .collect();
            let have = match have.is_empty() {
                true => "there are no columns here".to_owned(),
                false => format!("there are {}", have.join(", ")),
            };
            let text = format!(
                "there is no column '{}'{}; {have} (names with capitals or signs need double quotes)",
                field.flat_name(),
                near.unwrap_or_default()
            );
            invalid("unknown_column", &text)
        }
        SchemaError::AmbiguousReference { field } => {
            let text = format!(
                "column '{}' is in several tables; name the table before it",
                field.name
            );
            invalid("ambiguous_column", &text)
        }
        _ => invalid(
            "bad_sql",
            &format!("{text}; give each column a name of its own by AS"),
        ),
    }
}

fn of_plan(text: &str) -> Refusal {
    if let Some(table) = between(text, "table '", "' not found") {
        let name = table.rsplit('.').next().unwrap_or(table);
        let text = format!(
            "there is no table '{table}'; SHOW TABLES lists what there is, names with capitals or signs need double quotes (\"{name}\")"
        );
        return Refusal::new(Class::NotFound, "unknown_table", &text);
    }
    if let Some(rest) = text.strip_prefix("table function '") {
        let name = rest.split('\'').next().unwrap_or(rest);
        let text = format!(
            "there is no table function '{name}'; there are vector_search, hybrid_search, generate_series and range"
        );
        return invalid("unknown_function", &text);
    }
    if text.starts_with("Invalid function") {
        return invalid(
            "unknown_function",
            &format!("{text}; call a function that there is"),
        );
    }
    if text.contains(" not supported")
        && ["DDL", "DML", "Statement"]
            .iter()
            .any(|kind| text.starts_with(kind))
    {
        return not_there(text);
    }
    invalid("bad_sql", &format!("{text}; correct the statement"))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    rest.find(after).map(|end| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_ours_come_back_as_they_went_in() {
        let no_dataset = Error::DatasetNotFound("words".into());
        let expected = Refusal::from(&no_dataset);
        let through_arrow = ArrowError::ExternalError(Box::new(ours(no_dataset)));
        assert_eq!(refuse(&DataFusionError::from(through_arrow)), expected);
    }

    #[test]
    fn a_users_fault_is_never_internal() {
        for (error, code) in [
            (
                DataFusionError::Plan("table 'longbow.public.x' not found".into()),
                "unknown_table",
            ),
            (
                DataFusionError::Plan("Invalid function 'f'".into()),
                "unknown_function",
            ),
            (DataFusionError::Execution("no".into()), "bad_value"),
            (
                DataFusionError::from(ArrowError::DivideByZero),
                "division_by_zero",
            ),
            (
                DataFusionError::from(ArrowError::CastError("no".into())),
                "bad_cast",
            ),
            (
                DataFusionError::ResourcesExhausted("no".into()),
                "sql_memory",
            ),
            (
                DataFusionError::NotImplemented("no".into()),
                "unimplemented",
            ),
            (
                DataFusionError::Internal("Failed to coerce types A and B".into()),
                "bad_sql",
            ),
            (DataFusionError::Internal("no".into()), "unimplemented"),
        ] {
            let refusal = refuse(&error.context("deep within"));
            assert_eq!(refusal.code, code);
            assert_ne!(refusal.class, Class::Internal);
            assert!(refusal.text.contains(';'), "{}", refusal.text);
        }
    }
}
