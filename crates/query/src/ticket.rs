//! Tickets: what a `DoGet` asks for.

use longbow_engine::{ScanRequest, SearchRequest};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

use crate::filter::conditions;
use crate::json;
use crate::refusal::{Result, invalid, unimplemented};

/// What a ticket asks for.
#[derive(Debug)]
pub enum Ticket {
    /// Rows of a dataset.
    Scan {
        /// Its name.
        dataset: String,
        /// Which rows of it.
        request: ScanRequest,
    },
    /// Nearest neighbours.
    Search {
        /// The dataset's name.
        dataset: String,
        /// What to find.
        request: Box<SearchRequest>,
    },
}

const SCAN_KEYS: &[&str] = &[
    "name", "dataset", "limit", "offset", "columns", "filters", "where",
];

/// The keys of a search object.
pub(crate) const SEARCH_KEYS: &[&str] = &[
    "dataset",
    "vector",
    "vectors",
    "column",
    "k",
    "filters",
    "where",
    "text_query",
    "text_columns",
    "alpha",
    "fusion",
    "ef",
    "nprobe",
    "recall_target",
    "exact",
    "max_distance",
    "columns",
    "include_vectors",
    "vector_format",
    "graph_alpha",
    "local_only",
    "consistency",
    "timeout_ms",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScanTicket {
    name: Option<String>,
    dataset: Option<String>,
    limit: Option<i64>,
    offset: Option<i64>,
    columns: Option<Vec<String>>,
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchTicket {
    search: SearchObject,
}

/// A search as clients write it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchObject {
    dataset: String,
    vector: Option<Vec<f32>>,
    vectors: Option<Vec<Vec<f32>>>,
    column: Option<String>,
    k: Option<i64>,
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
    text_query: Option<String>,
    text_columns: Option<Vec<String>>,
    alpha: Option<f32>,
    fusion: Option<String>,
    ef: Option<i64>,
    nprobe: Option<i64>,
    recall_target: Option<f32>,
    exact: Option<bool>,
    max_distance: Option<f32>,
    columns: Option<Vec<String>>,
    include_vectors: Option<bool>,
    vector_format: Option<String>,
    graph_alpha: Option<f32>,
    local_only: Option<bool>,
    consistency: Option<String>,
    timeout_ms: Option<i64>,
}

/// Neighbours given where a request does not say how many.
const DEFAULT_K: i64 = 10;

impl Ticket {
    /// Reads a ticket: a dataset's name, or JSON.
    ///
    /// # Errors
    /// InvalidArgument for what is wrong, Unimplemented for what this version does not have.
    pub fn parse(bytes: &[u8]) -> Result<Ticket> {
        let text = std::str::from_utf8(bytes).map_err(|_| {
            invalid(
                "bad_ticket",
                "the ticket is not UTF-8; send a dataset's name or JSON",
            )
        })?;
        if !text.trim_start().starts_with('{') {
            let dataset = text.to_owned();
            longbow_engine::check_name(&dataset)?;
            return Ok(Ticket::Scan {
                dataset,
                request: ScanRequest::default(),
            });
        }
        if is_search(text) {
            let ticket: SearchTicket = read_search(bytes)?;
            let (dataset, request) = ticket.search.into_request()?;
            return Ok(Ticket::Search {
                dataset,
                request: Box::new(request),
            });
        }
        json::read::<ScanTicket>(bytes, "ticket", SCAN_KEYS)?.into_ticket()
    }
}

/// Whether the first key of the ticket is `search`; the parser settles what else there is.
fn is_search(text: &str) -> bool {
    let rest = text.trim_start().trim_start_matches('{').trim_start();
    rest.starts_with("\"search\"")
}

fn read_search(bytes: &[u8]) -> Result<SearchTicket> {
    match serde_json::from_slice(bytes) {
        Ok(ticket) => Ok(ticket),
        Err(_) => {
            // Say it of the object inside, where the mistake most likely is.
            let outer: Outer = json::read(bytes, "ticket", &["search"])?;
            let inner = outer.search.to_string();
            json::read::<SearchObject>(inner.as_bytes(), "search", SEARCH_KEYS)
                .map(|search| SearchTicket { search })
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    search: Value,
}

impl ScanTicket {
    fn into_ticket(self) -> Result<Ticket> {
        if self.predicate.is_some() {
            return Err(unimplemented("a SQL predicate ('where')"));
        }
        let dataset = match (self.name, self.dataset) {
            (Some(name), None) | (None, Some(name)) => name,
            (Some(name), Some(dataset)) => {
                let text = format!(
                    "the ticket has 'name' ('{name}') and 'dataset' ('{dataset}'); send one of them"
                );
                return Err(invalid("bad_value", &text));
            }
            (None, None) => {
                let text = "the ticket names no dataset; add \"name\"";
                return Err(invalid("no_dataset", text));
            }
        };
        let limit = self
            .limit
            .map(|limit| not_negative("limit", limit))
            .transpose()?;
        let offset = not_negative("offset", self.offset.unwrap_or(0))?;
        let filters = conditions(self.filters)?;
        let request = ScanRequest {
            columns: self.columns.unwrap_or_default(),
            limit,
            offset,
            filters,
        };
        Ok(Ticket::Scan { dataset, request })
    }
}

impl SearchObject {
    /// Reads a search object that is the whole body.
    ///
    /// # Errors
    /// As [`Ticket::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        json::read(bytes, "search", SEARCH_KEYS)
    }

    /// The search with these queries, which came beside it; the reply tells them apart by their number if `many`.
    #[must_use]
    pub fn with_queries(mut self, vectors: Vec<Vec<f32>>, many: bool) -> Self {
        if many {
            self.vectors = Some(vectors);
        } else {
            self.vector = vectors.into_iter().next();
        }
        self
    }

    /// The dataset and the engine's request.
    ///
    /// # Errors
    /// As [`Ticket::parse`].
    pub fn into_request(self) -> Result<(String, SearchRequest)> {
        self.refuse_what_is_missing()?;
        if self.vector.is_some() && self.vectors.is_some() {
            return Err(invalid(
                "bad_value",
                "the search has both 'vector' and 'vectors'; send one of them",
            ));
        }
        // Who sends a list of queries gets their numbers, also for a list of one.
        let first_query = self.vectors.is_some().then_some(0);
        let vectors = self
            .vectors
            .or(self.vector.map(|vector| vec![vector]))
            .unwrap_or_default();
        let k = self.k.unwrap_or(DEFAULT_K);
        let max = longbow_engine::MAX_K;
        let k = usize::try_from(k).ok().filter(|k| (1..=max).contains(k));
        let k = k.ok_or_else(|| longbow_engine::Error::BadK {
            got: self.k.unwrap_or(0),
            max,
        })?;
        let ef = self.ef.map(|ef| not_negative("ef", ef)).transpose()?;
        let timeout = self
            .timeout_ms
            .map(|ms| not_negative("timeout_ms", ms))
            .transpose()?;
        let request = SearchRequest {
            column: self.column,
            vectors,
            k,
            ef: ef.map(|ef| usize::try_from(ef).unwrap_or(usize::MAX)),
            recall_target: self.recall_target,
            exact: self.exact.unwrap_or(false),
            max_distance: self.max_distance,
            filters: conditions(self.filters)?,
            columns: self.columns.unwrap_or_default(),
            include_vectors: self.include_vectors.unwrap_or(false),
            timeout: timeout.map(Duration::from_millis),
            first_query,
        };
        request.check()?;
        Ok((self.dataset, request))
    }

    fn refuse_what_is_missing(&self) -> Result<()> {
        let missing = [
            (self.predicate.is_some(), "a SQL predicate ('where')"),
            (
                self.text_query
                    .as_ref()
                    .is_some_and(|text| !text.is_empty()),
                "text and hybrid search ('text_query')",
            ),
            (self.text_columns.is_some(), "text search ('text_columns')"),
            (
                self.alpha.is_some_and(|alpha| alpha < 1.0),
                "hybrid search ('alpha' below 1)",
            ),
            (self.fusion.is_some(), "hybrid search ('fusion')"),
            (self.nprobe.is_some(), "a clustered index ('nprobe')"),
            (
                self.vector_format.is_some(),
                "a choice of vector format ('vector_format')",
            ),
            (
                self.graph_alpha.is_some_and(|alpha| alpha != 0.0),
                "graph ranking ('graph_alpha')",
            ),
        ];
        if let Some((_, what)) = missing.iter().find(|(asked, _)| *asked) {
            return Err(unimplemented(what));
        }
        if let Some(alpha) = self.alpha.filter(|alpha| *alpha > 1.0) {
            let text = format!("alpha is {alpha}; expected at most 1, which is the vector alone");
            return Err(invalid("bad_value", &text));
        }
        // One node holds everything, so every level of consistency and both scopes give the same answer.
        let _ = self.local_only;
        match self.consistency.as_deref() {
            None | Some("strong" | "bounded" | "session" | "eventual") => Ok(()),
            Some(other) => {
                let text = format!(
                    "consistency is '{other}'; expected strong, bounded, session or eventual"
                );
                Err(invalid("bad_value", &text))
            }
        }
    }
}

fn not_negative(field: &str, value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| {
        invalid(
            "bad_value",
            &format!("{field} is {value}; expected 0 or more"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(ticket: &str) -> &'static str {
        Ticket::parse(ticket.as_bytes())
            .expect_err("the ticket is wrong")
            .code
    }

    #[test]
    fn a_name_or_json_asks_for_a_dataset() {
        for ticket in [
            "words",
            r#"{"name":"words"}"#,
            r#"{"dataset":"words","limit":3}"#,
        ] {
            let parsed = Ticket::parse(ticket.as_bytes()).expect("good ticket");
            assert!(matches!(parsed, Ticket::Scan { dataset, .. } if dataset == "words"));
        }
    }

    #[test]
    fn wrong_tickets_say_what_is_wrong() {
        assert_eq!(code_of("{"), "bad_json");
        assert_eq!(code_of(r#"{"nmae":"words"}"#), "unknown_key");
        assert_eq!(code_of(r#"{"limit":1}"#), "no_dataset");
        assert_eq!(code_of(r#"{"name":"w","limit":-1}"#), "bad_value");
        assert_eq!(code_of(r#"{"name":"w","limit":"x"}"#), "bad_value");
        assert_eq!(
            code_of(r#"{"search":{"dataset":"w","vectr":[1]}}"#),
            "unknown_key"
        );
        assert_eq!(
            code_of(r#"{"search":{"dataset":"w","vector":[1],"k":0}}"#),
            "bad_k"
        );
        assert_eq!(code_of(r#"{"search":{"dataset":"w"}}"#), "no_query_vector");
        assert_eq!(
            code_of(r#"{"search":{"dataset":"w","vector":[1],"text_query":"x"}}"#),
            "unimplemented"
        );
        assert_eq!(
            code_of(r#"{"search":{"dataset":"w","vector":[NaN]}}"#),
            "bad_json"
        );
        assert_eq!(code_of(""), "bad_name");
    }
}
