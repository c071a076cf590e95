//! `DoGet`: rows of a dataset, or nearest neighbours.

use arrow_flight::FlightData;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use longbow_engine::{Piece, Scan, SearchReply};
use longbow_types::metrics;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::context::{Shared, blocking};
use crate::encode;
use crate::status::{name_of, of};
use crate::ticket::Ticket;

/// Messages of an answer.
pub(crate) type Messages = BoxStream<'static, Result<FlightData, Status>>;

/// What a ticket is answered by.
pub(crate) enum Answer {
    /// Messages that are all there.
    Whole(Vec<FlightData>),
    /// Messages as they come.
    Stream(Messages),
}

/// Answers a ticket.
///
/// # Errors
/// InvalidArgument or Unimplemented for the ticket, NotFound for the dataset.
pub(crate) fn answer(context: &Shared, ticket: &[u8]) -> Result<Answer, Status> {
    let started = std::time::Instant::now();
    let answered = match Ticket::parse(ticket) {
        Ok(Ticket::Search { dataset, request }) => {
            let search = || context.engine.search(&dataset, &request);
            // Another thread would take longer to wake than a brief search to end.
            let found = match context.engine.is_brief(&dataset, &request) {
                true => search(),
                false => blocking(search),
            };
            let found = found.map_err(|error| of(&error));
            found.and_then(|found| searched(&found, started))
        }
        Ok(Ticket::Scan { dataset, request }) => context
            .engine
            .scan(&dataset, &request)
            .map(|scan| Answer::Stream(scanned(scan, context.config.doget_pipeline_depth)))
            .map_err(|error| of(&error)),
        Err(refused) => Err(refused),
    };
    metrics()
        .flight_duration
        .with_label_values(&["get"])
        .observe(started.elapsed().as_secs_f64());
    let status = answered
        .as_ref()
        .err()
        .map_or("ok", |status| name_of(status));
    metrics()
        .flight_operations
        .with_label_values(&["get", status])
        .inc();
    answered
}

fn searched(found: &SearchReply, started: std::time::Instant) -> Result<Answer, Status> {
    observe_search(found, started);
    Ok(Answer::Whole(encode::reply(&found.batch)?))
}

/// Counts a search.
pub(crate) fn observe_search(found: &SearchReply, started: std::time::Instant) {
    let latency = &metrics().search_latency;
    latency
        .with_label_values(&[found.info.strategy])
        .observe(started.elapsed().as_secs_f64());
    metrics()
        .flight_rows
        .with_label_values(&["search", "ok"])
        .inc_by(found.info.returned as u64);
}

/// The messages of a scan, prepared `depth` ahead of the client.
fn scanned(scan: Scan, depth: usize) -> Messages {
    let schema = encode::schema(scan.schema());
    let (sender, receiver) = mpsc::channel(depth.max(1));
    tokio::task::spawn_blocking(move || {
        for pieces in scan {
            let messages = match pieces {
                Ok(pieces) => pieces.into_iter().map(message).collect(),
                Err(error) => vec![Err(of(&error))],
            };
            for message in messages {
                // An error means that the client went away.
                if sender.blocking_send(message).is_err() {
                    return;
                }
            }
        }
    });
    stream::iter([Ok(schema)])
        .chain(ReceiverStream::new(receiver))
        .boxed()
}

fn message(piece: Piece) -> Result<FlightData, Status> {
    let (how, rows) = (kind(&piece), piece.rows());
    let message = match piece {
        Piece::Kept { header, body, .. } => FlightData {
            data_header: header,
            data_body: body,
            app_metadata: Bytes::new(),
            flight_descriptor: None,
        },
        Piece::Slice(batch) | Piece::Picked(batch) => encode::batch(&batch)?,
    };
    metrics().doget_zero_copy.with_label_values(&[how]).inc();
    metrics()
        .flight_rows
        .with_label_values(&["get", "ok"])
        .inc_by(rows as u64);
    metrics()
        .flight_bytes
        .with_label_values(&["get"])
        .inc_by(message.data_body.len() as u64);
    Ok(message)
}

fn kind(piece: &Piece) -> &'static str {
    match piece {
        Piece::Kept { .. } => "zero_copy_retain",
        Piece::Slice(_) => "slice",
        Piece::Picked(_) => "encode",
    }
}
