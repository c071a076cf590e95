//! What Flight SQL sends: statements that write, parameters, and rows to ingest.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{Command, DoPutPreparedStatementResult, DoPutUpdateResult};
use arrow_flight::{FlightData, PutResult};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use tonic::Status;

use super::{alone, ingest, refused};
use crate::context::Shared;
use crate::status::invalid;
use crate::wire::MessageReader;

/// Carries out a command whose stream begins with `first`.
///
/// # Errors
/// As the statement says; Unimplemented for a command that sends nothing.
pub(crate) async fn put(
    context: &Shared,
    command: Command,
    first: FlightData,
    reader: MessageReader,
) -> Result<PutResult, Status> {
    let written = match command {
        Command::CommandStatementUpdate(update) => {
            alone(update.transaction_id.as_ref())?;
            written(context, &update.query, None).await?
        }
        Command::CommandPreparedStatementUpdate(update) => {
            let handle = &update.prepared_statement_handle;
            let statement = context.prepared.get(handle)?;
            let parameters = parameters(first, reader).await?.or(statement.parameters);
            written(context, &statement.text, parameters).await?
        }
        Command::CommandPreparedStatementQuery(query) => {
            let handle = query.prepared_statement_handle;
            if let Some(parameters) = parameters(first, reader).await? {
                context.prepared.bind(&handle, parameters)?;
            }
            let result = DoPutPreparedStatementResult {
                prepared_statement_handle: Some(handle),
            };
            return Ok(told(&result));
        }
        Command::CommandStatementIngest(command) => {
            ingest::ingest(context, &command, &first, reader).await?
        }
        other => return Err(refused(&other, "DoPut")),
    };
    let result = DoPutUpdateResult {
        record_count: i64::try_from(written).unwrap_or(i64::MAX),
    };
    Ok(told(&result))
}

fn told(result: &impl Message) -> PutResult {
    PutResult {
        app_metadata: result.encode_to_vec().into(),
    }
}

/// Rows written; of a query that came as an update, the rows that it answers.
async fn written(
    context: &Shared,
    text: &str,
    parameters: Option<RecordBatch>,
) -> Result<u64, Status> {
    let answer = context
        .sql
        .run(text, parameters)
        .await
        .map_err(crate::status::refused)?;
    answer.count().await.map_err(crate::status::refused)
}

/// The rows of parameters in a stream; nothing if it holds none.
async fn parameters(
    first: FlightData,
    reader: MessageReader,
) -> Result<Option<RecordBatch>, Status> {
    if first.data_header.is_empty() {
        return Ok(None);
    }
    let messages = stream::iter([Ok(first)]).chain(rest(reader));
    let batches = FlightRecordBatchStream::new_from_flight_data(messages);
    let batches: Vec<RecordBatch> = batches.try_collect().await.map_err(|error| match error {
        FlightError::Tonic(status) => *status,
        other => invalid(
            "bad_parameters",
            &format!("{other}; bind Arrow batches of one schema"),
        ),
    })?;
    let Some(one) = batches.first() else {
        return Ok(None);
    };
    let together = arrow_select::concat::concat_batches(&Arc::clone(one.schema_ref()), &batches);
    together.map(Some).map_err(|error| {
        invalid(
            "bad_parameters",
            &format!("{error}; bind batches of one schema"),
        )
    })
}

fn rest(reader: MessageReader) -> impl Stream<Item = Result<FlightData, FlightError>> {
    stream::try_unfold(reader, |mut reader| async {
        let next = reader
            .next()
            .await
            .map_err(|status| FlightError::Tonic(Box::new(status)))?;
        Ok(next.map(|message| (message, reader)))
    })
}
