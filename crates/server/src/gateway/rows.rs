//! Rows in and out.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_schema::ArrowError;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use longbow_engine::{Engine, Pending, PutOptions};
use longbow_query::rows::{RowsAs, read};
use longbow_query::{Refusal, Ticket, invalid};
use serde_json::json;

use super::parts::{Body, Name, Wishes};
use super::reply::json_of;
use super::stream::stream;
use super::wanted::{Format, PutQuery, RowsQuery, body_format, check_json};
use super::{Result, blocking, ticket};

/// Rows of a dataset.
pub async fn get(
    State(engine): State<Engine>,
    Name(name): Name,
    Wishes(query): Wishes<RowsQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let format = Format::of(&headers)?;
    scan(engine, format, ticket(&name, &query)?).await
}

/// Rows of a dataset, by a ticket.
pub async fn by_ticket(
    State(engine): State<Engine>,
    headers: HeaderMap,
    Body(body): Body,
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
    let schema = Arc::clone(scan.schema());
    let batches = scan.decoded().map(|batch| batch.map_err(Refusal::from));
    Ok(stream(format, schema, batches))
}

/// Takes rows.
pub async fn put(
    State(engine): State<Engine>,
    Name(name): Name,
    Wishes(how): Wishes<PutQuery>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response> {
    let format = body_format(&headers)?;
    let taken = blocking(move || {
        let batches = match format {
            Format::Json => vec![from_json(&engine, &name, &how, &body)?],
            Format::Arrow => from_arrow(&how, body)?,
        };
        write(&engine, &name, how.options(), &batches)
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

fn from_arrow(how: &PutQuery, body: Bytes) -> longbow_query::Result<Vec<RecordBatch>> {
    for (name, value) in [("metric", &how.metric), ("vectors", &how.vectors)] {
        if let Some(value) = value {
            let text = format!(
                "{name} is {value}, and the body is Arrow, whose schema says so: by the metadata longbow.metric, and by columns that are lists of one length"
            );
            return Err(invalid("bad_value", &text));
        }
    }
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
    options: PutOptions,
    batches: &[RecordBatch],
) -> longbow_query::Result<serde_json::Value> {
    let Some(first) = batches.first() else {
        return Err(invalid("bad_rows", "there are no rows; send at least one"));
    };
    engine.check_writable()?;
    let mut session = engine.put_with(name, &first.schema(), options)?;
    let mut taken: Vec<std::result::Result<Pending, longbow_engine::Error>> = Vec::new();
    for batch in batches {
        taken.push(session.record_batch(batch));
        // The others of a body are not tried after one that is refused: each might wait for room.
        if taken.last().is_some_and(std::result::Result::is_err) {
            break;
        }
    }
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
