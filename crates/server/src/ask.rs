//! The client side of SQL: a statement to a node, and the rows that it answers.

use arrow_array::RecordBatch;
use arrow_flight::FlightClient;
use arrow_flight::Ticket;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{ProstMessageExt, TicketStatementQuery};
use arrow_schema::SchemaRef;
use futures::TryStreamExt;
use prost::Message;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The address is none.
    #[error("'{0}' is no address of a node; give its meta server's, like 127.0.0.1:3001")]
    BadAddress(String),
    /// Nobody answers there.
    #[error("cannot reach {address}: {cause}; see that a node serves there")]
    Unreachable {
        /// The address.
        address: String,
        /// What the transport says.
        cause: String,
    },
    /// The node refuses the statement; the text begins with the stable code.
    #[error("{0}")]
    Refused(String),
}

/// Sends a statement to the meta server at `address`, and returns the columns of its answer and its rows.
///
/// # Errors
/// If the address is none or nobody answers there; if the node refuses the statement, or it fails on the way.
pub async fn ask(
    address: &str,
    statement: &str,
) -> Result<(SchemaRef, Vec<RecordBatch>), AskError> {
    let mut client = FlightClient::new(connect(address).await?);
    let ticket = TicketStatementQuery {
        statement_handle: statement.to_owned().into(),
    };
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let mut rows = client.do_get(ticket).await.map_err(refused)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.try_next().await.map_err(refused)? {
        batches.push(batch);
    }
    let schema = rows.schema().cloned();
    let none = || {
        AskError::Refused(
            "bad_answer: the answer has no columns; is its version another?".to_owned(),
        )
    };
    Ok((schema.ok_or_else(none)?, batches))
}

async fn connect(address: &str) -> Result<Channel, AskError> {
    let schemes = ["grpc://", "grpc+tcp://"];
    let bare = schemes
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme))
        .unwrap_or(address);
    let endpoint = Endpoint::from_shared(format!("http://{bare}"));
    let endpoint = endpoint.map_err(|_| AskError::BadAddress(address.to_owned()))?;
    endpoint.connect().await.map_err(|error| {
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
            error.source()
        });
        AskError::Unreachable {
            address: address.to_owned(),
            cause: causes.last().map(ToString::to_string).unwrap_or_default(),
        }
    })
}

fn refused(error: FlightError) -> AskError {
    AskError::Refused(match error {
        FlightError::Tonic(status) => told(&status),
        other => other.to_string(),
    })
}

fn told(status: &Status) -> String {
    match status.message() {
        "" => status.code().to_string(),
        text => text.to_owned(),
    }
}
