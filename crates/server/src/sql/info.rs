//! What a command would answer, and the ticket that fetches it.

use arrow_flight::sql::{Command, ProstMessageExt, TicketStatementQuery};
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, SchemaResult, Ticket};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use prost::Message;
use tonic::Status;

use super::action::encoded;
use super::{alone, catalog, refused};
use crate::context::Shared;

/// The info of a command.
///
/// # Errors
/// If its statement cannot be planned, or it is none that answers rows.
pub(crate) async fn info(
    context: &Shared,
    command: Command,
    descriptor: &FlightDescriptor,
) -> Result<FlightInfo, Status> {
    let schema = schema_of(context, &command).await?;
    let ticket = match command {
        Command::CommandStatementQuery(query) => TicketStatementQuery {
            statement_handle: query.query.into(),
        }
        .as_any()
        .encode_to_vec(),
        // The command itself says all that its answer takes.
        _ => descriptor.cmd.to_vec(),
    };
    // Without a location: the answer is fetched over the connection that asks.
    let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
    let mut info = FlightInfo::new()
        .with_descriptor(descriptor.clone())
        .with_endpoint(endpoint);
    info.schema = schema.map_or(Ok(Bytes::new()), |schema| encoded(&schema))?;
    Ok(info)
}

/// The columns of a command's answer.
///
/// # Errors
/// As [`info`].
pub(crate) async fn schema(context: &Shared, command: &Command) -> Result<SchemaResult, Status> {
    let schema = schema_of(context, command).await?;
    let schema = schema.map_or(Ok(Bytes::new()), |schema| encoded(&schema))?;
    Ok(SchemaResult { schema })
}

/// Nothing if the columns are known only with the values of parameters.
async fn schema_of(context: &Shared, command: &Command) -> Result<Option<SchemaRef>, Status> {
    let described = match command {
        Command::CommandStatementQuery(query) => {
            alone(query.transaction_id.as_ref())?;
            context.sql.describe(&query.query, None).await
        }
        Command::CommandPreparedStatementQuery(query) => {
            let statement = context.prepared.get(&query.prepared_statement_handle)?;
            context
                .sql
                .describe(&statement.text, statement.parameters)
                .await
        }
        other => {
            let answer = catalog::answer(context, other)?;
            return match answer {
                Some(batch) => Ok(Some(batch.schema())),
                None => Err(refused(other, "GetFlightInfo")),
            };
        }
    };
    Ok(described.map_err(crate::status::refused)?.schema)
}
