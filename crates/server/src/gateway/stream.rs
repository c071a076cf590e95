//! Answers of any length, piece by piece.

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use longbow_query::Refusal;
use longbow_query::rows::write_bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::wanted::{ARROW, Format};

/// Pieces of an answer that are ready before the client takes them.
const AHEAD: usize = 2;

/// Answers with batches as they come, which are made on a thread of their own.
pub fn stream(
    format: Format,
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, Refusal>> + Send + 'static,
) -> Response {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let kind = match format {
        Format::Json => "application/json",
        Format::Arrow => ARROW,
    };
    tokio::task::spawn_blocking(move || {
        let send = |piece: Vec<u8>| sender.blocking_send(Ok(Bytes::from(piece))).is_ok();
        let written = match format {
            Format::Json => write_json(batches, send),
            Format::Arrow => write_arrow(&schema, batches, send),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "an answer was broken off");
            // The status went out before: all that is left is to end the body so that the client sees it is not whole.
            let _ = sender.blocking_send(Err(std::io::Error::other(error)));
        }
    });
    let body = Body::from_stream(ReceiverStream::new(pieces));
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// Why an answer was broken off.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Arrow(#[from] ArrowError),
}

/// `{"rows": [...]}`, piece by piece, until nobody takes them.
fn write_json(
    batches: impl Iterator<Item = Result<RecordBatch, Refusal>>,
    send: impl Fn(Vec<u8>) -> bool,
) -> Result<(), Broken> {
    let mut written = b"{\"rows\":[".to_vec();
    let mut first = true;
    for batch in batches {
        let rows = write_bytes(&batch?)?;
        // Without the brackets.
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

fn write_arrow(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, Refusal>>,
    send: impl Fn(Vec<u8>) -> bool,
) -> Result<(), Broken> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    for batch in batches {
        writer.write(&batch?)?;
        if !send(std::mem::take(writer.get_mut())) {
            return Ok(());
        }
    }
    writer.finish()?;
    send(std::mem::take(writer.get_mut()));
    Ok(())
}
