//! The rows of a statement or of a call of the catalog.

use arrow_array::RecordBatch;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::Command;
use arrow_schema::SchemaRef;
use futures::{Stream, StreamExt, stream};
use longbow_query::sql::Answer;
use longbow_types::metrics;
use tonic::{Code, Status};

use super::{catalog, refused, text_of};
use crate::context::Shared;
use crate::get::Messages;
use crate::status::status;

/// Answers a ticket of Flight SQL.
///
/// # Errors
/// As the statement says; Unimplemented for a ticket that is none.
pub(crate) async fn get(context: &Shared, command: &Command) -> Result<Messages, Status> {
    let answer = match command {
        Command::TicketStatementQuery(ticket) => {
            context
                .sql
                .run(text_of(&ticket.statement_handle)?, None)
                .await
        }
        Command::CommandPreparedStatementQuery(query) => {
            let statement = context.prepared.get(&query.prepared_statement_handle)?;
            context.sql.run(&statement.text, statement.parameters).await
        }
        other => {
            let answer = catalog::answer(context, other)?;
            let batch = answer.ok_or_else(|| refused(other, "DoGet"))?;
            return Ok(messages(batch.schema(), stream::iter([Ok(batch)])));
        }
    };
    let answer = answer.map_err(crate::status::refused)?;
    let schema = SchemaRef::clone(answer.schema());
    Ok(messages(schema, batches(answer)))
}

fn batches(answer: Answer) -> impl Stream<Item = Result<RecordBatch, FlightError>> {
    stream::unfold(answer, |mut answer| async {
        let batch = answer.next().await?;
        if let Ok(batch) = &batch {
            let rows = &metrics().flight_rows;
            rows.with_label_values(&["sql", "ok"])
                .inc_by(batch.num_rows() as u64);
        }
        let batch =
            batch.map_err(|refusal| FlightError::Tonic(Box::new(crate::status::refused(refusal))));
        Some((batch, answer))
    })
}

fn messages(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> Messages {
    let messages = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .build(batches);
    messages.map(|message| message.map_err(of_flight)).boxed()
}

/// A status of ours that went through Flight's own code, or what that code says.
pub(super) fn of_flight(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => status(Code::Internal, "encode", &other.to_string()),
    }
}
