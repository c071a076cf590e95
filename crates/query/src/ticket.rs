//! Tickets: what a `DoGet` asks for.

use longbow_engine::{ScanRequest, SearchRequest};
use serde::Deserialize;
use serde_json::Value;

use crate::filter::Conditions;
use crate::json;
use crate::number::not_negative;
use crate::once::Once;
use crate::refusal::{Result, invalid};
use crate::search::{SEARCH_KEYS, SearchObject};

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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScanTicket {
    name: Option<String>,
    dataset: Option<String>,
    limit: Option<i64>,
    offset: Option<i64>,
    columns: Option<Vec<String>>,
    #[serde(default, deserialize_with = "crate::once::values")]
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchTicket {
    search: SearchObject,
}

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
            let inner = outer.search.0.to_string();
            json::read::<SearchObject>(inner.as_bytes(), "search", SEARCH_KEYS)
                .map(|search| SearchTicket { search })
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    search: Once,
}

impl ScanTicket {
    fn into_ticket(self) -> Result<Ticket> {
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
        let filter = Conditions::shared(self.filters, self.predicate)?;
        let request = ScanRequest {
            columns: self.columns.unwrap_or_default(),
            limit,
            offset,
            filter,
            ..ScanRequest::default()
        };
        Ok(Ticket::Scan { dataset, request })
    }
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
        let twice = r#"[{"field":"a","op":"=","value":1,"value":2}]"#;
        for ticket in [
            format!(r#"{{"name":"w","filters":{twice}}}"#),
            format!(r#"{{"search":{{"dataset":"w","vector":[1],"filters":{twice}}}}}"#),
            r#"{"search":{"dataset":"w","vector":[1],"k":1,"k":2}}"#.to_owned(),
        ] {
            assert_eq!(code_of(&ticket), "bad_value", "{ticket}");
        }
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
            code_of(r#"{"search":{"dataset":"w","vector":[1],"text_columns":["x"]}}"#),
            "bad_value"
        );
        assert_eq!(
            code_of(r#"{"search":{"dataset":"w","vector":[NaN]}}"#),
            "bad_json"
        );
        assert_eq!(code_of(""), "bad_name");
    }
}
