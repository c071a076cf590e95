//! Rows in and out.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use longbow_engine::{Engine, Pending, Scan};
use longbow_query::rows::{RowsAs, read};
use longbow_query::{Refusal, Ticket, invalid};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::reply::{self, json_of};
use super::wanted::{ARROW, Format, PutQuery, RowsQuery, body_format, check_json};
use super::{Result, blocking, ticket};

/// Pieces of an answer that are ready before the client takes them.
const AHEAD: usize = 2;

/// Rows of a dataset.
pub async fn get(
    State(engine): State<Engine>,
    Path(name): Path<String>,
    query: Query<RowsQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let format = Format::of(&headers)?;
    scan(engine, format, ticket(&name, query)?).await
}

/// Rows of a dataset, by a ticket.
pub async fn by_ticket(
    State(engine): State<Engine>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    check_json(&headers)?;
    let format = Format::of(&headers)?;
    scan(engine, format, Ticket::parse(&body)?).await
}

async fn scan(engine: Engine, format: Format, ticket: Ticket) -> Result<Response> {
    let Ticket::Scan { dataset, request } = ticket else {
        let text = "the ticket is a search; post its object to /v1/search";
        return Err(invalid("bad_ticket", text).into());
    };
    let scan = blocking(move || Ok(engine.scan(&dataset, &request)?)).await?;
    let (sender, pieces) = mpsc::channel(AHEAD);
    let kind = match format {
        Format::Json => "application/json",
        Format::Arrow => ARROW,
    };
    tokio::task::spawn_blocking(move || {
        let send = |piece: Vec<u8>| sender.blocking_send(Ok(Bytes::from(piece))).is_ok();
        let written = match format {
            Format::Json => write_json(scan, send),
            Format::Arrow => write_arrow(scan, send),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "an answer was broken off");
            // The status went out before: all that is left is to end the body so that the client sees it is not whole.
            let _ = sender.blocking_send(Err(std::io::Error::other(error)));
        }
    });
    let body = Body::from_stream(ReceiverStream::new(pieces));
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

/// `{"rows": [...]}`, piece by piece, until nobody takes them.
fn write_json(scan: Scan, send: impl Fn(Vec<u8>) -> bool) -> std::result::Result<(), ArrowError> {
    let mut written = b"{\"rows\":[".to_vec();
    let mut first = true;
    for batch in batches(scan) {
        let rows = reply::rows(&batch?)?;
        let rows = &rows[1..rows.len() - 1];
        if rows.is_empty() {
            continue;
        }
        if !std::mem::take(&mut first) {
            written.push(b',');
        }
        written.extend_from_slice(rows);
        if !send(std::mem::take(&mut written)) {
            return Ok(());
        }
    }
    written.extend_from_slice(b"]}");
    send(written);
    Ok(())
}

fn write_arrow(scan: Scan, send: impl Fn(Vec<u8>) -> bool) -> std::result::Result<(), ArrowError> {
    let schema = std::sync::Arc::clone(scan.schema());
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    for batch in batches(scan) {
        writer.write(&batch?)?;
        if !send(std::mem::take(writer.get_mut())) {
            return Ok(());
        }
    }
    writer.finish()?;
    send(std::mem::take(writer.get_mut()));
    Ok(())
}

/// The batches of a scan, decoded.
fn batches(scan: Scan) -> impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>> {
    scan.decoded().map(|batch| Ok(batch?))
}

/// Takes rows.
pub async fn put(
    State(engine): State<Engine>,
    Path(name): Path<String>,
    Query(how): Query<PutQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    let format = body_format(&headers)?;
    let taken = blocking(move || {
        let batches = match format {
            Format::Json => vec![from_json(&engine, &name, &how, &body)?],
            Format::Arrow => from_arrow(body)?,
        };
        write(&engine, &name, how.durable.unwrap_or(false), &batches)
    });
    Ok(json_of(&taken.await?))
}

fn from_json(
    engine: &Engine,
    name: &str,
    how: &PutQuery,
    body: &[u8],
) -> longbow_query::Result<RecordBatch> {
    let known = engine.catalog().find(name);
    let known = known.map(|dataset| dataset.view().schema.arrow.clone());
    let vectors = how.vectors.as_deref().unwrap_or_default().split(',');
    let how = RowsAs {
        vectors: vectors.map(|name| name.trim().to_owned()).collect(),
        metric: how.metric.clone(),
    };
    read(body, known.as_ref(), &how)
}

fn from_arrow(body: Bytes) -> longbow_query::Result<Vec<RecordBatch>> {
    let wrong = |error: ArrowError| {
        let text =
            format!("the body is no Arrow IPC stream: {error}; write it with an Arrow library");
        invalid("bad_batch", &text)
    };
    let reader = StreamReader::try_new(Cursor::new(body), None).map_err(wrong)?;
    reader
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(wrong)
}

fn write(
    engine: &Engine,
    name: &str,
    until_durable: bool,
    batches: &[RecordBatch],
) -> longbow_query::Result<serde_json::Value> {
    let Some(first) = batches.first() else {
        return Err(invalid("bad_rows", "there are no rows; send at least one"));
    };
    engine.check_writable()?;
    let mut session = engine
        .put(name, &first.schema())?
        .until_durable(until_durable);
    let taken = batches.iter().map(|batch| session.record_batch(batch));
    let taken: Vec<std::result::Result<Pending, longbow_engine::Error>> = taken.collect();
    // All that was taken is waited for before a refusal is told.
    let mut told: longbow_query::Result<(u64, u64, bool)> = Ok((0, 0, true));
    for pending in taken {
        match (pending.and_then(Pending::wait), &mut told) {
            (Ok(applied), Ok((rows, offset, durable))) => {
                *rows += applied.rows;
                *offset = applied.offset;
                *durable &= applied.durable;
            }
            (Err(error), Ok(_)) => told = Err(Refusal::from(error)),
            (_, Err(_)) => {}
        }
    }
    let (rows, offset, durable) = told?;
    Ok(json!({"rows": rows, "offset": offset, "durable": durable, "searchable": true}))
}
