//! What a request says of itself: headers, and what stands behind the question mark.

use axum::http::{HeaderMap, header};
use longbow_engine::PutOptions;
use longbow_query::once::Once;
use longbow_query::{Refusal, invalid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::Refused;

/// The media type of an Arrow IPC stream.
pub const ARROW: &str = "application/vnd.apache.arrow.stream";

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Arrow,
}

impl Format {
    /// What the client accepts: JSON if it does not say.
    ///
    /// # Errors
    /// If it is neither.
    pub fn of(headers: &HeaderMap) -> Result<Self, Refused> {
        let Some(accept) = text(headers, header::ACCEPT) else {
            return Ok(Format::Json);
        };
        if accept.contains(ARROW) {
            return Ok(Format::Arrow);
        }
        if accept.contains("json") || accept.contains("*/*") || accept.contains("application/*") {
            return Ok(Format::Json);
        }
        let text =
            format!("the answer is asked for as '{accept}'; accept application/json or {ARROW}");
        Err(invalid("not_acceptable", &text).into())
    }
}

/// How rows come.
pub fn body_format(headers: &HeaderMap) -> Result<Format, Refused> {
    let declared = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let kind = declared.split(';').next().unwrap_or_default().trim();
    match kind {
        "application/json" | "application/x-ndjson" => Ok(Format::Json),
        ARROW => Ok(Format::Arrow),
        other => {
            let text = format!(
                "the body's Content-Type is '{other}'; send application/json, application/x-ndjson for a line a row, or {ARROW}"
            );
            Err(invalid("content_type", &text).into())
        }
    }
}

/// Refuses a body that is not declared as JSON: a page of another site may send others.
pub fn check_json(headers: &HeaderMap) -> Result<(), Refused> {
    match body_format(headers)? {
        Format::Json => Ok(()),
        Format::Arrow => Err(invalid("content_type", "the body is Arrow; send JSON here").into()),
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.to_ascii_lowercase())
}

/// Rows of a dataset, by `GET`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsQuery {
    limit: Option<i64>,
    offset: Option<i64>,
    /// Names with commas between them.
    columns: Option<String>,
    #[serde(rename = "where")]
    predicate: Option<String>,
    /// A JSON array.
    filters: Option<String>,
}

impl RowsQuery {
    /// The same as a ticket.
    ///
    /// # Errors
    /// If the filters are no JSON.
    pub fn ticket(&self, name: &str) -> Result<Value, Refusal> {
        let mut ticket = json!({"name": name});
        if let Some(limit) = self.limit {
            ticket["limit"] = limit.into();
        }
        if let Some(offset) = self.offset {
            ticket["offset"] = offset.into();
        }
        if let Some(columns) = &self.columns {
            ticket["columns"] = columns.split(',').map(str::trim).collect();
        }
        if let Some(predicate) = &self.predicate {
            ticket["where"] = predicate.as_str().into();
        }
        if let Some(filters) = &self.filters {
            let Once(filters) = serde_json::from_str(filters).map_err(|error| {
                let text = format!(
                    "the filters cannot be read as JSON: {error}; send an array of objects"
                );
                invalid("bad_json", &text)
            })?;
            ticket["filters"] = filters;
        }
        Ok(ticket)
    }
}

/// How rows are put.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutQuery {
    /// Columns that are vectors, beside `vector`, with commas between them.
    pub vectors: Option<String>,
    /// The metric of a dataset that the rows create.
    pub metric: Option<String>,
    /// Whether to be told of the write only when it survives power loss.
    pub durable: Option<bool>,
    /// Whether columns that the dataset does not have are added to it.
    pub add_columns: Option<bool>,
}

impl PutQuery {
    /// What is asked of the put as a whole.
    pub fn options(&self) -> PutOptions {
        let usual = PutOptions::default();
        PutOptions {
            until_durable: self.durable.unwrap_or(usual.until_durable),
            add_columns: self.add_columns.unwrap_or(usual.add_columns),
        }
    }
}
