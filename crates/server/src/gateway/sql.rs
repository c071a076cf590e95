//! SQL.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use longbow_query::{json, rows};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::parts::Body;
use super::stream::stream;
use super::wanted::{Format, check_json};
use super::{Result, blocking};
use crate::context::Shared;

/// A statement, and the values for its `$1`, `$2`, …
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    sql: String,
    #[serde(default, deserialize_with = "longbow_query::once::values")]
    parameters: Option<Vec<Value>>,
}

/// Runs a statement.
pub async fn run(
    State(context): State<Shared>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response> {
    check_json(&headers)?;
    let format = Format::of(&headers)?;
    let started = blocking(move || {
        let statement: Statement = json::read(&body, "statement", &["sql", "parameters"])?;
        let parameters = parameters(statement.parameters.unwrap_or_default())?;
        let mut answer = context.sql.run_blocking(&statement.sql, parameters)?;
        // Most of what can fail does before the first row: then there is still a status to say so.
        let first = answer.next_blocking().transpose()?;
        Ok((answer, first))
    });
    let (mut answer, first) = started.await?;
    let schema = Arc::clone(answer.schema());
    let rest = std::iter::from_fn(move || answer.next_blocking());
    Ok(stream(
        format,
        schema,
        first.map(Ok).into_iter().chain(rest),
    ))
}

/// The values as one row of columns.
fn parameters(values: Vec<Value>) -> longbow_query::Result<Option<arrow_array::RecordBatch>> {
    if values.is_empty() {
        return Ok(None);
    }
    // Names in whose order the columns stand, however they are sorted.
    let named = values.into_iter().enumerate();
    let named: Map<String, Value> = named
        .map(|(at, value)| (format!("{at:06}"), value))
        .collect();
    let row = Value::Object(named).to_string();
    rows::read(row.as_bytes(), None, &rows::RowsAs::default()).map(Some)
}
