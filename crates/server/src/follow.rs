//! The client side of the change feed: what a node says about the entries of its log, as they come.

use std::ops::ControlFlow;

use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightData, FlightDescriptor};
use bytes::Bytes;
use futures::stream;
use longbow_engine::{ChangeKind, LogEntry};
use serde::Deserialize;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::feed::FeedRequest;

/// Why a node cannot be followed, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The address is none.
    #[error("'{0}' is no address of a node; give its data server's, like grpc://127.0.0.1:3000")]
    BadUri(String),
    /// Nobody answers there.
    #[error("cannot reach {uri}: {cause}; see that a node serves there")]
    Unreachable {
        /// The address.
        uri: String,
        /// What the transport says.
        cause: String,
    },
    /// The node refuses, or ends the feed.
    #[error("{0}")]
    Refused(String),
    /// Whoever answers does not speak this feed.
    #[error("the answer of {uri} is not that of a change feed: {cause}; is its version another?")]
    BadAnswer {
        /// The address.
        uri: String,
        /// What is wrong.
        cause: String,
    },
}

/// What is said about an entry.
#[derive(Deserialize)]
struct Said {
    sequence: u64,
    timestamp: u64,
    kind: ChangeKind,
    subject: String,
    shard: u32,
    bytes: u64,
}

/// Asks the data server at `uri` for changes, without their rows, and hands each to `each`, in order, until it says so or
/// the feed ends.
///
/// # Errors
/// If the address is none or nobody answers there; if the node refuses, or stops.
pub async fn follow(
    uri: &str,
    asked: FeedRequest,
    each: &mut (dyn FnMut(LogEntry) -> ControlFlow<()> + Send),
) -> Result<(), FollowError> {
    let channel = connect(uri).await?;
    let bad = |error: serde_json::Error| FollowError::BadAnswer {
        uri: uri.to_owned(),
        cause: error.to_string(),
    };
    let asked = FeedRequest {
        rows: Some(false),
        ..asked
    };
    let first = FlightData {
        flight_descriptor: Some(FlightDescriptor {
            r#type: DescriptorType::Cmd as i32,
            cmd: Bytes::from_static(b"sync"),
            path: Vec::new(),
        }),
        app_metadata: serde_json::to_vec(&asked).map_err(bad)?.into(),
        ..FlightData::default()
    };
    let mut client = FlightServiceClient::new(channel);
    let sent = client.do_exchange(stream::iter([first])).await;
    let mut answers = sent.map_err(refused)?.into_inner();
    while let Some(answer) = answers.message().await.map_err(refused)? {
        let said: Said = serde_json::from_slice(&answer.app_metadata).map_err(bad)?;
        let entry = LogEntry {
            index: said.sequence,
            timestamp_us: said.timestamp,
            shard: said.shard,
            kind: said.kind,
            subject: said.subject,
            bytes: said.bytes,
        };
        if each(entry).is_break() {
            break;
        }
    }
    Ok(())
}

async fn connect(uri: &str) -> Result<Channel, FollowError> {
    let at = ["grpc://", "grpc+tcp://"]
        .iter()
        .find_map(|scheme| uri.strip_prefix(scheme));
    let endpoint = at.and_then(|at| Endpoint::from_shared(format!("http://{at}")).ok());
    let endpoint = endpoint.ok_or_else(|| FollowError::BadUri(uri.to_owned()))?;
    endpoint
        .connect()
        .await
        .map_err(|error| FollowError::Unreachable {
            uri: uri.to_owned(),
            cause: root_of(&error),
        })
}

fn refused(status: Status) -> FollowError {
    FollowError::Refused(match status.message() {
        "" => status.code().to_string(),
        text => text.to_owned(),
    })
}

/// The innermost cause, which is the system's.
fn root_of(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
