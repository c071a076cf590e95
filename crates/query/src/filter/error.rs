use arrow_schema::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use longbow_engine::FilterError;

use crate::allowance::TooMuch;
use crate::refusal::without_appeal;

/// Why a filter is refused. Each text holds the value that was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("'{dataset}' has no column '{column}'{nearest}; it has {have}")]
    UnknownColumn {
        dataset: String,
        column: String,
        nearest: String,
        have: String,
    },
    #[error(
        "the value {value} of the filter on '{field}' cannot be read as {data_type}; give a value of that type"
    )]
    Value {
        field: String,
        value: String,
        data_type: String,
    },
    #[error(
        "the operator '{operator}' of the filter on '{field}' does not suit its type {data_type}; {remedy}"
    )]
    Operator {
        operator: &'static str,
        field: String,
        data_type: String,
        remedy: &'static str,
    },
    #[error("the predicate is not SQL: {0}; write a condition such as price < 5 AND lang = 'en'")]
    Syntax(String),
    #[error(
        "the predicate nests brackets, calls or names behind dots too deeply, or has a mistake within many; write it flatter"
    )]
    TooDeep,
    #[error("the predicate is of type {0}; write a condition, which is true or false")]
    NotBoolean(String),
    #[error(
        "the predicate holds {0}, which a condition on single rows cannot have; ask for that by SQL"
    )]
    NotOfRows(&'static str),
    #[error(
        "a row makes the predicate fail: division by zero; guard it, as in a <> 0 AND b / a > 1, by CASE or NULLIF(a, 0)"
    )]
    DivisionByZero,
    #[error("a row makes the predicate fail: {0}; change the predicate, or guard it by CASE")]
    Evaluation(String),
    #[error("the predicate does not suit the columns: {0}")]
    Unsuited(DataFusionError),
}

impl Error {
    /// The error as one that came up over rows.
    #[must_use]
    pub(super) fn evaluating(self) -> Self {
        match self {
            Error::Unsuited(error) => {
                let text = error.strip_backtrace();
                Error::Evaluation(without_appeal(&text).to_owned())
            }
            other => other,
        }
    }
}

impl FilterError for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::UnknownColumn { .. } => "column_not_found",
            Error::Value { .. } => "filter_value",
            Error::Operator { .. } => "filter_operator",
            Error::Syntax(_) => "bad_sql",
            Error::TooDeep => "predicate_too_large",
            Error::NotBoolean(_) => "not_boolean",
            Error::NotOfRows(_) | Error::Unsuited(_) => "bad_predicate",
            Error::DivisionByZero => "division_by_zero",
            Error::Evaluation(_) => "predicate_failed",
        }
    }
}

impl From<Error> for Box<dyn FilterError> {
    fn from(error: Error) -> Self {
        Box::new(error)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        DataFusionError::from(error).into()
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        if let Some(error) = TooMuch::of(&error) {
            return Error::Evaluation(error.to_string());
        }
        match error.find_root() {
            DataFusionError::SQL(error, _)
                if matches!(**error, ParserError::RecursionLimitExceeded) =>
            {
                Error::TooDeep
            }
            DataFusionError::SQL(error, _) => Error::Syntax(error.to_string()),
            DataFusionError::ArrowError(error, _)
                if matches!(**error, ArrowError::DivideByZero) =>
            {
                Error::DivisionByZero
            }
            DataFusionError::SchemaError(error, _) => match &**error {
                SchemaError::FieldNotFound {
                    field,
                    valid_fields,
                } => {
                    let have = valid_fields.iter().map(|field| field.name.as_str());
                    unknown_column("the dataset", &field.name, have)
                }
                _ => Error::Unsuited(error_of(error)),
            },
            _ => Error::Unsuited(error),
        }
    }
}

fn error_of(error: &SchemaError) -> DataFusionError {
    DataFusionError::Plan(error.to_string())
}

/// There is no such column among those that a dataset has.
pub(super) fn unknown_column<'a>(
    dataset: &str,
    column: &str,
    have: impl Iterator<Item = &'a str> + Clone,
) -> Error {
    let near = longbow_types::nearest(column, have.clone());
    let nearest = near.map(|name| format!("; did you mean '{name}'?"));
    Error::UnknownColumn {
        dataset: dataset.to_owned(),
        column: column.to_owned(),
        nearest: nearest.unwrap_or_default(),
        have: have.collect::<Vec<_>>().join(", "),
    }
}
