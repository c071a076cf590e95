//! `DoExchange`: what it does is chosen by the descriptor of the first message.
//!
//! | descriptor | what it does | answers |
//! |---|---|---|
//! | command `VectorSearch` | a k-NN join: each row (`dataset`, `k`, `query_vector`, perhaps `ef`) is a query | record batches of `query_index`, `id`, `score`, `distance`, in the order of the queries |
//! | command `sync` | the change feed | see [`crate::feed`] |
//! | path `ingest`, dataset | takes batches as `DoPut` does | one acknowledgement a batch |
//! | any other | a probe | `ack` for each message |
//!
//! A message of a `VectorSearch` answers up to 512 queries or 65,536 rows, each message as of its own moment. Its metadata
//! is JSON: `{"queries_done": 1024, "queries_asked": 2000, "query": {…}}`, answered by it and the messages before, received
//! so far, and how its own queries were answered. A few messages are made ahead of the client, and no more: who does not
//! read is not searched for.

use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, RecordBatch};
use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt;
use longbow_engine::{Batch, PutOptions, SearchRequest};
use serde_json::json;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::context::{Shared, blocking, let_finish};
use crate::get::found;
use crate::pieces::{Progress, most_queries};
use crate::put::{acknowledgement, read_schema};
use crate::service::Service;
use crate::status::{invalid, of, of_transport};
use crate::{encode, feed, json};

/// Columns that a batch of queries may have.
const QUERY_COLUMNS: &[&str] = &["dataset", "k", "ef", "query_vector"];
/// Answers prepared ahead of the client.
const AHEAD: usize = 8;
/// How long what a client still sends is taken before its call ends. Some clients end their process where a call ends while
/// they say that they have said all (pyarrow 26 with gRPC's check of misuse): these should have said it by then.
const LET_FINISH: Duration = Duration::from_millis(100);

/// Where answers go; an error from it means that the client went away.
pub(crate) type Answers = mpsc::Sender<Result<FlightData, Status>>;

/// Takes the stream in a task of its own and gives its answers.
pub(crate) fn start(
    service: &Service,
    messages: Streaming<FlightData>,
    options: PutOptions,
) -> mpsc::Receiver<Result<FlightData, Status>> {
    let (answers, receiver) = mpsc::channel(AHEAD);
    let service = service.clone();
    tokio::spawn(async move {
        let mut incoming = Incoming {
            context: Shared::clone(&service.context),
            first: None,
            rest: messages,
        };
        let taken = take(&service, &mut incoming, options, &answers).await;
        let_finish(incoming.rest, LET_FINISH).await;
        if let Err(status) = taken {
            let _ = answers.send(Err(status)).await;
        }
    });
    receiver
}

async fn take(
    service: &Service,
    incoming: &mut Incoming,
    options: PutOptions,
    answers: &Answers,
) -> Result<(), Status> {
    let Some(first) = incoming.next().await? else {
        return Ok(());
    };
    let descriptor = first.flight_descriptor.clone().unwrap_or_default();
    let is_command = descriptor.r#type == DescriptorType::Cmd as i32;
    incoming.first = Some(first);
    let context = &service.context;
    if is_command && descriptor.cmd.as_ref() == b"VectorSearch" {
        return search(service, incoming, answers).await;
    }
    if is_command && descriptor.cmd.as_ref() == b"sync" {
        return feed::changes(context, incoming, answers).await;
    }
    match ingest_dataset(&descriptor) {
        Some(dataset) => ingest(context, &dataset, incoming, options, answers).await,
        None => echo(incoming, answers).await,
    }
}

/// The messages of a call, the first one included.
pub(crate) struct Incoming {
    context: Shared,
    first: Option<FlightData>,
    rest: Streaming<FlightData>,
}

impl Incoming {
    /// The next message; an error also once the node is to stop and none comes.
    pub async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let then = "send the rest when it runs again";
        let next = self.context.unless_idle(self.rest.next(), then).await?;
        next.transpose().map_err(of_transport)
    }

    /// The next message that carries Arrow data. Some clients send their descriptor in a message of its own, and
    /// metadata alone carries no rows.
    async fn next_data(&mut self) -> Result<Option<FlightData>, Status> {
        loop {
            match self.next().await? {
                Some(message) if message.data_header.is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    /// The schema that comes before all batches.
    async fn schema(&mut self) -> Result<SchemaRef, Status> {
        match self.next_data().await? {
            Some(message) => read_schema(&message.data_header),
            None => Err(invalid(
                "empty_stream",
                "the stream ended before its schema; send a schema first",
            )),
        }
    }
}

fn ingest_dataset(descriptor: &FlightDescriptor) -> Option<String> {
    match descriptor.path.as_slice() {
        [verb, dataset] if verb == "ingest" && descriptor.r#type == DescriptorType::Path as i32 => {
            Some(dataset.clone())
        }
        _ => None,
    }
}

/// A connectivity probe: every message is answered.
async fn echo(messages: &mut Incoming, answers: &Answers) -> Result<(), Status> {
    let ack = || {
        Ok(FlightData {
            data_body: Bytes::from_static(b"ack"),
            ..FlightData::default()
        })
    };
    while messages.next().await?.is_some() {
        if answers.send(ack()).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// A stream of batches into a dataset, each acknowledged in turn.
async fn ingest(
    context: &Shared,
    dataset: &str,
    messages: &mut Incoming,
    options: PutOptions,
    answers: &Answers,
) -> Result<(), Status> {
    let schema = messages.schema().await?;
    let mut session = context
        .engine
        .put_with(dataset, &schema, options)
        .map_err(|error| of(&error))?;
    let mut batch_id = 0;
    while let Some(message) = messages.next_data().await? {
        context
            .engine
            .check_writable()
            .map_err(|error| of(&error))?;
        let taken = blocking(|| session.message(message.data_header, message.data_body));
        let Some(pending) = taken.map_err(|error| of(&error))? else {
            continue;
        };
        let applied = pending.done().await.map_err(|error| of(&error))?;
        let mut said = acknowledgement(context, applied);
        said["batch_id"] = json!(batch_id);
        said["status"] = said
            .get("status")
            .cloned()
            .unwrap_or_else(|| "acked".into());
        batch_id += 1;
        let answer = FlightData {
            app_metadata: json::body(&said),
            ..FlightData::default()
        };
        if answers.send(Ok(answer)).await.is_err() {
            return Ok(());
        }
    }
    blocking(|| session.finish()).map_err(|error| of(&error))
}

/// The rows of one batch of queries.
struct Queries {
    batch: RecordBatch,
    first_query: i32,
}

/// A k-NN join: each row of the stream is a query.
async fn search(
    service: &Service,
    messages: &mut Incoming,
    answers: &Answers,
) -> Result<(), Status> {
    let schema = messages.schema().await?;
    for field in schema.fields() {
        json::check_key(field.name(), "batch of queries", QUERY_COLUMNS)?;
    }
    let mut sent: Option<SchemaRef> = None;
    let mut first_query = 0;
    while let Some(message) = messages.next_data().await? {
        let batch = Batch::from_message(&schema, message.data_header, message.data_body)
            .map_err(|error| of(&error.into()))?;
        let batch = batch.view().clone();
        let rows = batch.num_rows();
        let queries = Queries { batch, first_query };
        let mut start = 0;
        let before = usize::try_from(first_query).unwrap_or(0);
        while start < rows {
            let (dataset, request, taken) = queries.request(start)?;
            let found = found(service, &dataset, &request)?;
            start += taken;
            let progress = Progress {
                queries_done: before + start,
                queries_asked: before + rows,
                query: &found.info,
            };
            for answer in frame(&mut sent, &found.batch, &progress)? {
                if answers.send(Ok(answer)).await.is_err() {
                    return Ok(());
                }
            }
        }
        first_query = first_query.saturating_add(i32::try_from(rows).unwrap_or(i32::MAX));
    }
    Ok(())
}

/// A reply's batch, after its schema where none was sent yet.
fn frame(
    sent: &mut Option<SchemaRef>,
    batch: &RecordBatch,
    progress: &Progress<'_>,
) -> Result<Vec<FlightData>, Status> {
    match sent {
        None => {
            *sent = Some(batch.schema());
            Ok(vec![
                encode::schema(batch.schema_ref()),
                encode::piece(batch, progress)?,
            ])
        }
        Some(schema) if schema.fields() == batch.schema_ref().fields() => {
            Ok(vec![encode::piece(batch, progress)?])
        }
        Some(_) => {
            let text =
                "the datasets of one stream have ids of different types; send a stream for each";
            Err(invalid("mixed_datasets", text))
        }
    }
}

impl Queries {
    /// The search for the rows from `start` on that ask alike, as many as one message answers, and how many those are.
    fn request(&self, start: usize) -> Result<(String, SearchRequest, usize), Status> {
        let of_row = |row: usize| {
            Ok::<_, Status>((
                self.text("dataset", row)?,
                self.number("k", row)?,
                self.ef(row)?,
            ))
        };
        let (dataset, k, ef) = of_row(start)?;
        let mut vectors = vec![self.vector(start)?];
        // A `k` that is out of range is refused by the search.
        let most = most_queries(usize::try_from(k).unwrap_or(0));
        for row in start + 1..self.batch.num_rows().min(start + most) {
            if of_row(row)? != (dataset.clone(), k, ef) {
                break;
            }
            vectors.push(self.vector(row)?);
        }
        let taken = vectors.len();
        let max = longbow_engine::MAX_K;
        let refused = || {
            of(&longbow_engine::Error::BadK {
                got: i64::from(k),
                max,
            })
        };
        let mut request =
            SearchRequest::nearest(Vec::new(), usize::try_from(k).map_err(|_| refused())?);
        request.vectors = vectors;
        request.ef = ef;
        request.first_query = Some(
            self.first_query
                .saturating_add(i32::try_from(start).unwrap_or(i32::MAX)),
        );
        Ok((dataset, request, taken))
    }

    fn column(&self, name: &str, expected: &str) -> Result<&dyn Array, Status> {
        let column = self.batch.column_by_name(name);
        column.map(AsRef::as_ref).ok_or_else(|| {
            invalid(
                "missing_column",
                &format!("the batch of queries has no column '{name}' of type {expected}; add it"),
            )
        })
    }

    fn text(&self, name: &str, row: usize) -> Result<String, Status> {
        let column = self.column(name, "utf8")?;
        match column.as_string_opt::<i32>() {
            Some(texts) if texts.is_valid(row) => Ok(texts.value(row).to_owned()),
            _ => Err(wrong(name, "utf8", column, row)),
        }
    }

    fn number(&self, name: &str, row: usize) -> Result<i32, Status> {
        let column = self.column(name, "int32")?;
        match column.as_primitive_opt::<Int32Type>() {
            Some(numbers) if numbers.is_valid(row) => Ok(numbers.value(row)),
            _ => Err(wrong(name, "int32", column, row)),
        }
    }

    fn ef(&self, row: usize) -> Result<Option<usize>, Status> {
        let Some(column) = self.batch.column_by_name("ef") else {
            return Ok(None);
        };
        if column.is_null(row) {
            return Ok(None);
        }
        let ef = self.number("ef", row)?;
        let ef = SearchRequest::read_ef(i64::from(ef));
        ef.map(Some).map_err(|error| of(&error))
    }

    fn vector(&self, row: usize) -> Result<Vec<f32>, Status> {
        let column = self.column("query_vector", "list of float32")?;
        let values = if let Some(lists) = column.as_list_opt::<i32>() {
            lists.is_valid(row).then(|| lists.value(row))
        } else if let Some(lists) = column.as_fixed_size_list_opt() {
            lists.is_valid(row).then(|| lists.value(row))
        } else {
            None
        };
        match values
            .as_ref()
            .and_then(|values| values.as_primitive_opt::<Float32Type>())
        {
            Some(floats) if floats.null_count() == 0 => Ok(floats.values().to_vec()),
            _ => Err(wrong("query_vector", "list of float32", column, row)),
        }
    }
}

fn wrong(name: &str, expected: &str, column: &dyn Array, row: usize) -> Status {
    let got = column.data_type();
    let text = format!(
        "row {row} of column '{name}' (type {got}) is null or of the wrong type; expected {expected}"
    );
    invalid("bad_query_column", &text)
}
