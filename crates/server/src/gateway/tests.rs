//! Bodies of requests with bytes changed: answered or refused, and what is refused is the client's fault.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use proptest::prelude::*;

use super::parts::{Body, Name};
use super::{action, rows, search, sql};
use crate::context::Shared;
use crate::hostile::{NODE, changed, changes};

/// Bodies of the gateway, and what they are for.
const BODIES: [(&str, &str); 8] = [
    (
        "sql",
        r#"{"sql": "SELECT * FROM docs WHERE id = $1 AND word <> $2", "parameters": [1, "b"]}"#,
    ),
    (
        "sql",
        r#"{"sql": "SELECT id FROM docs ORDER BY distance(vector, $1) LIMIT 2", "parameters": [[0.5, 1]]}"#,
    ),
    (
        "search",
        r#"{"dataset": "docs", "vector": [1, 2], "k": 2, "where": "id > 0", "explain": true}"#,
    ),
    (
        "search",
        r#"{"dataset": "docs", "vector": [1, 2], "score_parts": true, "budget_ms": 60000, "timeout_ms": 60000}"#,
    ),
    (
        "rows",
        r#"{"name": "docs", "filters": [{"field": "id", "op": "in", "value": [1, 2]}], "limit": 5}"#,
    ),
    (
        "delete",
        r#"{"dataset": "docs", "filters": [{"field": "id", "op": ">", "value": 100}]}"#,
    ),
    (
        "HybridSearch",
        r#"{"dataset": "docs", "vector": [1, 2], "text_query": "a", "alpha": 0.5}"#,
    ),
    (
        "VectorSearchByID",
        r#"{"dataset": "docs", "id": 1, "k": 2}"#,
    ),
];

/// The status of an answer of the gateway.
async fn post(context: &Shared, name: &str, body: Vec<u8>) -> StatusCode {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let (engine, body) = (State(context.engine.clone()), Body(Bytes::from(body)));
    let answered = match name {
        "sql" => sql::run(State(Shared::clone(context)), headers, body).await,
        "search" => search(engine, headers, body).await,
        "rows" => rows::by_ticket(engine, headers, body).await,
        name => action(engine, Name(name.to_owned()), headers, body).await,
    };
    answered.into_response().status()
}

proptest! {
    #[test]
    fn bodies_with_changed_bytes_are_the_clients_fault(
        (name, body) in prop::sample::select(BODIES.to_vec()),
        changes in changes(),
    ) {
        let bytes = changed(body.as_bytes(), changes);
        let status = NODE.runtime.block_on(post(&NODE.context, name, bytes));
        prop_assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}

#[test]
fn bodies_that_are_not_changed_are_answered() {
    for (name, body) in BODIES {
        let status = NODE
            .runtime
            .block_on(post(&NODE.context, name, body.into()));
        assert_eq!(status, StatusCode::OK, "{name}: {body}");
    }
}

#[test]
fn each_key_that_the_document_names_is_one_of_a_search() {
    let document: serde_json::Value = serde_json::from_str(super::DOCUMENT).expect("JSON");
    let keys = &document["components"]["schemas"]["search"]["properties"];
    let keys = keys.as_object().expect("an object");
    assert!(keys.len() > 20);
    for key in keys.keys().filter(|key| *key != "dataset") {
        let body = serde_json::json!({"dataset": "docs", key: null}).to_string();
        let refused = longbow_query::SearchObject::parse(body.as_bytes()).err();
        assert_eq!(refused.map(|refused| refused.text), None, "{key}");
    }
}
