//! `DoPut`: a stream of batches into one dataset.

use std::time::Duration;

use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::{FlightData, FlightDescriptor, PutResult};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use http::HeaderMap;
use longbow_engine::{Applied, Pending, PutOptions, PutSession};
use longbow_types::metrics;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::context::{Shared, blocking, let_finish};
use crate::json;
use crate::status::{invalid, name_of, of};
use crate::wire::MessageReader;

/// Bytes of one stream that may wait for the log; beyond it the stream is read no further until the log took some.
const IN_FLIGHT_BYTES: usize = 64 << 20;
/// How long a client that was refused may go on sending: where the connection ends with the call, bytes that nobody has read would reset it before
/// the client has read why.
const LET_FINISH: Duration = Duration::from_millis(200);

/// The header with which a client asks for acknowledgements of durable writes only.
const UNTIL_DURABLE: &str = "x-longbow-durable";
/// The header with which a client has columns refused that the dataset does not have.
const ADD_COLUMNS: &str = "x-longbow-add-columns";

/// What the headers of a put ask for.
pub(crate) fn options(headers: &HeaderMap) -> Result<PutOptions, Status> {
    let usual = PutOptions::default();
    Ok(PutOptions {
        until_durable: flag(headers, UNTIL_DURABLE)?.unwrap_or(usual.until_durable),
        add_columns: flag(headers, ADD_COLUMNS)?.unwrap_or(usual.add_columns),
    })
}

fn flag(headers: &HeaderMap, name: &str) -> Result<Option<bool>, Status> {
    match headers.get(name).map(|value| value.as_bytes()) {
        None => Ok(None),
        Some(b"false") => Ok(Some(false)),
        Some(b"true") => Ok(Some(true)),
        Some(other) => {
            let got = String::from_utf8_lossy(other);
            let text = format!("the header {name} is '{}'; send true or false", shown(&got));
            Err(invalid("bad_header", &text))
        }
    }
}

/// Answers of a put, in the order of its batches. Never full: a client need not read them.
pub(crate) type Answers = mpsc::UnboundedReceiver<Result<PutResult, Status>>;

/// Takes the stream in a task of its own, so that it goes on whether or not the client reads its answers.
pub(crate) fn start(context: Shared, messages: MessageReader, options: PutOptions) -> Answers {
    let (answers, receiver) = mpsc::unbounded_channel();
    let mut messages = read_ahead(messages);
    tokio::spawn(async move {
        let timer = metrics()
            .flight_duration
            .with_label_values(&["put"])
            .start_timer();
        let outcome = take(&context, &mut messages, options, &answers).await;
        timer.observe_duration();
        let status = outcome
            .as_ref()
            .err()
            .map_or("ok", |status| name_of(status));
        metrics()
            .flight_operations
            .with_label_values(&["put", status])
            .inc();
        if let Err(status) = outcome {
            // The client may be gone.
            let _ = answers.send(Err(status));
            let_finish(ReceiverStream::new(messages), LET_FINISH).await;
        }
    });
    receiver
}

/// Messages of one put.
type Messages = mpsc::Receiver<Result<FlightData, Status>>;

/// Reads in a task of its own, so that the next batch comes in while the last one is checked and logged. Also, a
/// message that is half read must not be dropped because something else happened, and a channel's never is.
fn read_ahead(mut reader: MessageReader) -> Messages {
    let (sender, messages) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let message = tokio::select! {
                message = reader.next() => message.transpose(),
                () = sender.closed() => return,
            };
            let Some(message) = message else {
                return;
            };
            let ended = message.is_err();
            if sender.send(message).await.is_err() || ended {
                return;
            }
        }
    });
    messages
}

/// The next message; an error also once the node is to stop and none comes.
async fn next(context: &Shared, messages: &mut Messages) -> Result<Option<FlightData>, Status> {
    let then = "what was acknowledged is kept; send the rest when it runs again";
    context
        .unless_idle(messages.recv(), then)
        .await?
        .transpose()
}

/// Batches that the log has and the client was not yet told of.
struct Waiting {
    pending: std::collections::VecDeque<(Pending, usize)>,
    bytes: usize,
}

async fn take(
    context: &Shared,
    messages: &mut Messages,
    options: PutOptions,
    answers: &mpsc::UnboundedSender<Result<PutResult, Status>>,
) -> Result<(), Status> {
    let Some(first) = next(context, messages).await? else {
        return Err(invalid(
            "empty_stream",
            "the stream ended before its schema; send a schema first",
        ));
    };
    let dataset = dataset_of(first.flight_descriptor.as_ref())?;
    let schema = read_schema(&first.data_header)?;
    let mut session = context
        .engine
        .put_with(&dataset, &schema, options)
        .map_err(|error| of(&error))?;
    let mut waiting = Waiting {
        pending: Default::default(),
        bytes: 0,
    };
    let outcome = take_batches(context, &mut session, messages, &mut waiting, answers).await;
    // What was taken before a bad batch is written, and said so.
    while let Some((pending, _)) = waiting.pending.pop_front() {
        answer(
            context,
            pending.done().await.map_err(|error| of(&error))?,
            answers,
        );
    }
    outcome?;
    blocking(|| session.finish()).map_err(|error| of(&error))
}

async fn take_batches(
    context: &Shared,
    session: &mut PutSession,
    messages: &mut Messages,
    waiting: &mut Waiting,
    answers: &mpsc::UnboundedSender<Result<PutResult, Status>>,
) -> Result<(), Status> {
    loop {
        let message = tokio::select! {
            message = next(context, messages), if waiting.bytes < IN_FLIGHT_BYTES => message,
            applied = oldest(&mut waiting.pending), if !waiting.pending.is_empty() => {
                let (applied, bytes) = applied;
                waiting.bytes -= bytes;
                answer(context, applied.map_err(|error| of(&error))?, answers);
                continue;
            }
        };
        let Some(message) = message? else {
            return Ok(());
        };
        let bytes = message.data_body.len();
        let (header, body) = (message.data_header, message.data_body);
        if header.is_empty() {
            // Metadata alone carries no rows.
            continue;
        }
        context
            .engine
            .check_writable()
            .map_err(|error| of(&error))?;
        metrics()
            .flight_bytes
            .with_label_values(&["put"])
            .inc_by(bytes as u64);
        let taken = blocking(|| session.message(header, body)).map_err(|error| of(&error))?;
        if let Some(pending) = taken {
            waiting.pending.push_back((pending, bytes));
            waiting.bytes += bytes;
        }
    }
}

/// Waits for the oldest write of the queue and takes it out. Dropping the wait leaves it in the queue.
async fn oldest(
    pending: &mut std::collections::VecDeque<(Pending, usize)>,
) -> (longbow_engine::Result<Applied>, usize) {
    let Some((first, bytes)) = pending.front_mut() else {
        std::future::pending().await
    };
    let bytes = *bytes;
    let applied = first.acknowledged().await;
    pending.pop_front();
    (applied, bytes)
}

fn answer(
    context: &Shared,
    applied: Applied,
    answers: &mpsc::UnboundedSender<Result<PutResult, Status>>,
) {
    metrics()
        .flight_rows
        .with_label_values(&["put", "ok"])
        .inc_by(applied.rows);
    let result = PutResult {
        app_metadata: json::body(&acknowledgement(context, applied)),
    };
    // The client may not read, or be gone; the write stands.
    let _ = answers.send(Ok(result));
}

/// What an acknowledgement says.
pub(crate) fn acknowledgement(context: &Shared, applied: Applied) -> serde_json::Value {
    let mut said = json!({
        "offset": applied.offset,
        "rows": applied.rows,
        "durable": applied.durable,
        "replicated": 1,
        "searchable": true,
    });
    if let Some(reason) = context.engine.pressure() {
        said["status"] = "slow_down".into();
        said["reason"] = reason.into();
    }
    said
}

/// The dataset that a descriptor names.
pub(crate) fn dataset_of(descriptor: Option<&FlightDescriptor>) -> Result<String, Status> {
    let wanted = "send a PATH descriptor with the dataset's name as its one element";
    let Some(descriptor) = descriptor else {
        return Err(invalid(
            "no_descriptor",
            &format!("the stream has no descriptor; {wanted}"),
        ));
    };
    if descriptor.r#type != DescriptorType::Path as i32 {
        let command = shown(&String::from_utf8_lossy(&descriptor.cmd));
        let text = format!("the descriptor is a CMD, '{command}'; {wanted}");
        return Err(invalid("wrong_descriptor", &text));
    }
    match descriptor.path.as_slice() {
        [dataset] => Ok(dataset.clone()),
        other => Err(invalid(
            "wrong_descriptor",
            &format!(
                "the path '{}' has {} elements; {wanted}",
                shown(&other.join("/")),
                other.len()
            ),
        )),
    }
}

/// The beginning of what a client sent, for a text.
fn shown(sent: &str) -> String {
    sent.chars().take(64).collect()
}

/// The schema in the first message of a stream.
pub(crate) fn read_schema(header: &Bytes) -> Result<SchemaRef, Status> {
    longbow_engine::schema_from_message(header).map_err(|error| of(&error.into()))
}
