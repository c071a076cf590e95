//! The change feed: `DoExchange` with the command `sync`.
//!
//! A message an entry, its `app_metadata` a JSON object of sequence, timestamp, kind, dataset, subject, shard and bytes,
//! and its data what the entry carries. Arrow's own clients take one schema a stream: they follow one dataset, whose
//! schema comes first, in a message of its own; or ask for no rows.

use arrow_flight::FlightData;
use bytes::Bytes;
use longbow_engine::{Change, ChangeKind, Feed, Start};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tonic::Status;

use crate::context::{self, Shared, blocking};
use crate::exchange::{Answers, Incoming};
use crate::json;
use crate::status::{invalid, of};

/// What a client asks of the change feed, in the metadata of a message; all of it may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedRequest {
    /// The first sequence number; 1 if neither this nor `last` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Begin with so many of the entries that are there, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Only the changes of this dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Go on with what comes, instead of ending with the log.
    pub follow: bool,
    /// Whether rows and schemas are sent, or only what is said about the entries; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<bool>,
}

const KEYS: [&str; 5] = ["from", "last", "dataset", "follow", "rows"];

impl FeedRequest {
    /// The request of a client; it may come with the descriptor or in any message after it, up to where the client is
    /// done writing.
    async fn receive(messages: &mut Incoming) -> Result<FeedRequest, Status> {
        while let Some(message) = messages.next().await? {
            if !message.app_metadata.is_empty() {
                return json::read(&message.app_metadata, "sync request", &KEYS);
            }
        }
        Ok(FeedRequest::default())
    }

    fn start(&self) -> Result<Start, Status> {
        match (self.from, self.last) {
            (Some(from), Some(last)) => Err(invalid(
                "bad_value",
                &format!("the sync request has from {from} and last {last}; give one of the two"),
            )),
            (_, Some(last)) => Ok(Start::Last(last)),
            (from, None) => Ok(Start::At(from.unwrap_or(1))),
        }
    }
}

/// What of a change is sent as Arrow data.
struct Data {
    rows: bool,
    /// Arrow readers need a schema before the first rows; whether they had one.
    has_schema: bool,
    /// Schemas in mid-stream are left out.
    one_schema: bool,
}

/// Sends the log from a place on, to its present end or for as long as the client and the node are there.
pub(crate) async fn changes(
    context: &Shared,
    messages: &mut Incoming,
    answers: &Answers,
) -> Result<(), Status> {
    let asked = FeedRequest::receive(messages).await?;
    let (start, dataset) = (asked.start()?, asked.dataset.as_deref());
    let mut feed = blocking(|| context.engine.feed(start, dataset)).map_err(|error| of(&error))?;
    let mut data = Data {
        rows: asked.rows.unwrap_or(true),
        has_schema: false,
        one_schema: dataset.is_some(),
    };
    let first = feed.schema().filter(|_| data.rows);
    if let Some(schema) = first {
        data.has_schema = true;
        if answers.send(Ok(only_header(schema))).await.is_err() {
            return Ok(());
        }
    }
    loop {
        let read = blocking(|| feed.read()).map_err(|error| of(&error))?;
        match read {
            Some(changes) => {
                for change in changes {
                    let sequence = change.sequence;
                    for message in data.messages(&feed, change)? {
                        tokio::select! {
                            sent = answers.send(Ok(message)) => if sent.is_err() {
                                return Ok(());
                            },
                            () = context.stopping(), if asked.follow => {
                                return Err(stopped(sequence));
                            }
                        }
                    }
                }
            }
            None if !asked.follow || feed.is_over() => return Ok(()),
            None => tokio::select! {
                () = feed.more() => {}
                () = answers.closed() => return Ok(()),
                () = context.stopping() => return Err(stopped(feed.next())),
            },
        }
    }
}

fn stopped(next: u64) -> Status {
    context::stopped(&format!(
        "follow its log from sequence {next} when it runs again"
    ))
}

impl Data {
    /// The messages of a change: often one, and before the first rows their schema.
    fn messages(&mut self, feed: &Feed, change: Change) -> Result<Vec<FlightData>, Status> {
        let mut messages = Vec::new();
        if self.rows && !change.header.is_empty() && !std::mem::replace(&mut self.has_schema, true)
        {
            // The dataset was created before the feed began.
            let schema = feed.schema_of_put(&change).map_err(|error| of(&error))?;
            messages.extend(schema.map(only_header));
        }
        let said = json!({
            "sequence": change.sequence,
            "timestamp": change.timestamp_us,
            "dataset": change.dataset,
            "kind": change.kind,
            "subject": change.subject,
            "shard": change.shard,
            "bytes": change.bytes,
        });
        let is_sent = self.rows && (change.kind == ChangeKind::Put || !self.one_schema);
        let (header, body) = match is_sent {
            true => (change.header, change.body),
            false => (Bytes::new(), Bytes::new()),
        };
        messages.push(FlightData {
            data_header: header,
            data_body: body,
            app_metadata: json::body(&said),
            flight_descriptor: None,
        });
        Ok(messages)
    }
}

fn only_header(header: Bytes) -> FlightData {
    FlightData {
        data_header: header,
        ..FlightData::default()
    }
}
