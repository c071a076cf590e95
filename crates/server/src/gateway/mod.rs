//! The JSON gateway: every capability as HTTP, for browsers, for curl, and for languages without Flight.
//!
//! Bodies are the JSON objects of tickets and actions, read by the same code, so that a request means the same on every way
//! in. Answers are JSON, or an Arrow IPC stream for `Accept: application/vnd.apache.arrow.stream`. A page of another site
//! cannot use it: nothing is shared across origins, and a body must be declared as JSON or Arrow, which such a page may
//! not do unasked.

mod parts;
mod reply;
mod rows;
mod sql;
mod stream;
#[cfg(test)]
mod tests;
mod wanted;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use longbow_engine::{Class, Engine};
use longbow_query::{Answer, Refusal, SearchObject, Ticket, deleted};
use serde_json::{Value, json};

use crate::context::Shared;
use crate::gateway::parts::{Body, Name};
use crate::gateway::reply::{Refused, json_of};
use crate::gateway::wanted::{Format, check_json};

/// Bytes of a body.
const MOST_BYTES: usize = 256 << 20;

type Result<T> = std::result::Result<T, Refused>;

/// The routes under `/v1`.
pub(crate) fn router(context: &Shared) -> Router {
    let sql = Router::new().route("/sql", post(sql::run));
    let own = Router::new()
        .route("/", get(document))
        .route("/openapi.json", get(document))
        .route("/datasets", get(datasets))
        .route("/datasets/{name}", get(dataset).delete(drop_dataset))
        .route("/datasets/{name}/rows", get(rows::get).post(rows::put))
        .route("/rows", post(rows::by_ticket))
        .route("/search", post(search))
        .route("/delete", post(delete))
        .route("/actions/{name}", post(action))
        .fallback(unknown)
        .with_state(context.engine.clone());
    own.merge(sql.with_state(Shared::clone(context)))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
}

/// What there is, for programs: OpenAPI 3.1.
const DOCUMENT: &str = include_str!("openapi.json");

async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}

async fn unknown(uri: Uri) -> Refused {
    let text = format!(
        "there is nothing at /v1{}; see /v1/openapi.json for what there is",
        uri.path()
    );
    Refused(Refusal::new(Class::NotFound, "unknown_path", &text))
}

async fn wrong_method(method: Method, uri: Uri) -> Refused {
    let text = format!(
        "{method} is nothing that /v1{} answers to; see /v1/openapi.json for what does",
        uri.path()
    );
    Refused(Refusal::new(Class::Unimplemented, "wrong_method", &text))
}

/// Runs what may take long where it holds up no other call.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> longbow_query::Result<T> + Send + 'static,
) -> Result<T> {
    let called = tokio::task::spawn_blocking(call).await;
    let fault = || {
        Refusal::new(
            Class::Internal,
            "internal",
            "the request failed; see the log",
        )
    };
    called.map_err(|_| fault())?.map_err(Refused)
}

fn describe(engine: &Engine, name: &str) -> longbow_query::Result<Value> {
    let dataset = engine.dataset(name)?;
    let view = dataset.view();
    let column = |field: &arrow_schema::FieldRef| json!({"name": field.name(), "type": field.data_type().to_string()});
    Ok(json!({
        "name": dataset.name,
        "rows": view.live,
        "bytes": view.bytes(),
        "unindexed": dataset.unindexed(),
        "metric": longbow_engine::metric_name(view.schema.metric),
        "columns": view.schema.arrow.fields().iter().map(column).collect::<Vec<_>>(),
    }))
}

async fn datasets(State(engine): State<Engine>) -> Result<Response> {
    let all = blocking(move || {
        let names = engine.catalog().datasets();
        // One that is dropped meanwhile is left out.
        let all = names
            .iter()
            .filter_map(|dataset| describe(&engine, &dataset.name).ok());
        Ok(all.collect::<Vec<Value>>())
    });
    Ok(json_of(&json!({"datasets": all.await?})))
}

async fn dataset(State(engine): State<Engine>, Name(name): Name) -> Result<Response> {
    let told = blocking(move || describe(&engine, &name)).await?;
    Ok(json_of(&told))
}

async fn drop_dataset(State(engine): State<Engine>, Name(name): Name) -> Result<Response> {
    let dropped = blocking(move || Ok(engine.drop_dataset(&name)?)).await?;
    Ok(json_of(
        &json!({"status": "deleted", "offset": dropped.offset}),
    ))
}

async fn search(
    State(engine): State<Engine>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response> {
    check_json(&headers)?;
    let format = Format::of(&headers)?;
    let found = blocking(move || {
        let (dataset, request) = SearchObject::parse(&body)?.into_request()?;
        Ok(engine.search(&dataset, &request)?)
    });
    let found = found.await?;
    crate::get::observe_search(&found);
    let info = serde_json::to_value(&found.info).unwrap_or_default();
    reply::table(format, found.batch, &[("query", info)])
}

async fn delete(state: State<Engine>, headers: HeaderMap, Body(body): Body) -> Result<Response> {
    action(state, Name("delete".to_owned()), headers, Body(body)).await
}

async fn action(
    State(engine): State<Engine>,
    Name(name): Name,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response> {
    check_json(&headers)?;
    let answer = blocking(move || longbow_query::run(&engine, &name, &body)).await?;
    Ok(match answer {
        Answer::Deleted(gone) => json_of(&deleted(gone)),
        Answer::Json(value) => json_of(&value),
    })
}

/// A ticket from what stands in a path and behind its question mark.
fn ticket(name: &str, query: &wanted::RowsQuery) -> longbow_query::Result<Ticket> {
    Ticket::parse(query.ticket(name)?.to_string().as_bytes())
}
