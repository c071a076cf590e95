//! `DoGet`: rows of a dataset, or nearest neighbours.
//!
//! A ticket with `vectors` is answered like a `VectorSearch` of [`crate::exchange`], message by message with the same
//! metadata, but all of one moment; the reply's schema holds the figures of the first message alone.

use std::ops::ControlFlow;

use arrow_flight::FlightData;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use longbow_engine::{Piece, Scan, SearchReply, SearchRequest};
use longbow_query::Ticket;
use longbow_types::metrics;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::context::{Shared, blocking};
use crate::encode;
use crate::pieces::{Progress, most_queries};
use crate::service::Service;
use crate::status::{name_of, of, refused};

/// Messages of an answer.
pub(crate) type Messages = BoxStream<'static, Result<FlightData, Status>>;

/// Answers to many queries that are ready before the client takes them.
const AHEAD: usize = 2;

/// Bytes of a ticket that are read in no time.
const BRIEF_TICKET: usize = 64 << 10;

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
pub(crate) fn answer(service: &Service, ticket: &[u8]) -> Result<Answer, Status> {
    let started = std::time::Instant::now();
    let context = &service.context;
    let parse = || Ticket::parse(ticket);
    let parsed = match ticket.len() <= BRIEF_TICKET {
        true => parse(),
        false => blocking(parse),
    };
    let answered = match parsed {
        Ok(Ticket::Search { dataset, request }) => search(service, dataset, request),
        Ok(Ticket::Scan { dataset, request }) => context
            .engine
            .scan(&dataset, &request)
            .map(|scan| Answer::Stream(scanned(scan, context.config.doget_pipeline_depth)))
            .map_err(|error| of(&error)),
        Err(refusal) => Err(refused(refusal)),
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

/// Neighbours: all at once, or message by message if there are too many queries for one.
fn search(
    service: &Service,
    dataset: String,
    request: Box<SearchRequest>,
) -> Result<Answer, Status> {
    let most = most_queries(request.k);
    let asked = request.vectors.len();
    if asked > most {
        return Ok(Answer::Stream(in_pieces(
            &service.context,
            dataset,
            request,
            most,
        )));
    }
    let found = found(service, &dataset, &request)?;
    let mut batch = encode::batch(&found.batch)?;
    if request.first_query.is_some() {
        let progress = Progress {
            queries_done: asked,
            queries_asked: asked,
            query: &found.info,
        };
        batch.app_metadata = progress.body();
    }
    Ok(Answer::Whole(vec![
        encode::schema(found.batch.schema_ref()),
        batch,
    ]))
}

/// Searches, and counts the search.
pub(crate) fn found(
    service: &Service,
    dataset: &str,
    request: &SearchRequest,
) -> Result<SearchReply, Status> {
    let engine = &service.context.engine;
    let search = || engine.search(dataset, request);
    // Another thread would take longer to wake than a brief search to end.
    let found = match engine.brief(dataset, request) {
        // Who stays awake would be in the way of those that bring rows into the index.
        Some(waiting) if !service.vigil.is_crowded() => service.vigil.brief(waiting == 0, search),
        // Calls that came meanwhile are taken up by another thread.
        _ => blocking(search),
    };
    let found = found.map_err(|error| of(&error))?;
    observe_search(&found);
    Ok(found)
}

/// The answers to every `most` queries, found while those before are sent, all of one moment.
fn in_pieces(
    context: &Shared,
    dataset: String,
    request: Box<SearchRequest>,
    most: usize,
) -> Messages {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let context = Shared::clone(context);
    tokio::task::spawn_blocking(move || {
        let asked = request.vectors.len();
        let mut done = 0;
        let send = |message: Result<FlightData, Status>| match sender.blocking_send(message) {
            Ok(()) => ControlFlow::Continue(()),
            // The client went away.
            Err(_) => ControlFlow::Break(()),
        };
        let each = |found: SearchReply| {
            observe_search(&found);
            if done == 0 {
                send(Ok(encode::schema(found.batch.schema_ref())))?;
            }
            done = asked.min(done + most);
            let progress = Progress {
                queries_done: done,
                queries_asked: asked,
                query: &found.info,
            };
            send(encode::piece(&found.batch, &progress))
        };
        let searched = context
            .engine
            .search_in_pieces(&dataset, &request, most, each);
        if let Err(error) = searched {
            let _ = send(Err(of(&error)));
        }
    });
    ReceiverStream::new(receiver).boxed()
}

/// Counts a search.
pub(crate) fn observe_search(found: &SearchReply) {
    let latency = &metrics().search_latency;
    latency
        .with_label_values(&[found.info.strategy])
        .observe(found.info.elapsed_us as f64 / 1e6);
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
