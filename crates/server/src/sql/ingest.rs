//! Bulk ingestion: a put by another name, with a say in whether the dataset may or must be there.

use std::collections::VecDeque;

use arrow_flight::FlightData;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use longbow_engine::{Error, Pending};
use longbow_query::sql::{CATALOG, DATASETS};
use tonic::{Code, Status};

use super::alone;
use crate::context::{Shared, blocking};
use crate::put::read_schema;
use crate::status::{invalid, of, status, unimplemented};
use crate::wire::MessageReader;

/// Batches that wait for their acknowledgement while more are read.
const AHEAD: usize = 16;

/// Writes a stream of rows, whose schema is in `first`, and returns how many there were.
///
/// # Errors
/// If the dataset is there and must not be, or the other way round; as a put does.
pub(super) async fn ingest(
    context: &Shared,
    command: &CommandStatementIngest,
    first: &FlightData,
    mut reader: MessageReader,
) -> Result<u64, Status> {
    let schema = read_schema(&first.data_header)?;
    make_way(context, command)?;
    let put = context.engine.put(&command.table, &schema);
    let mut put = put.map_err(|error| of(&error))?;
    let mut pending: VecDeque<Pending> = VecDeque::new();
    let mut rows = 0;
    while let Some(message) = reader.next().await? {
        if message.data_header.is_empty() {
            continue;
        }
        context
            .engine
            .check_writable()
            .map_err(|error| of(&error))?;
        let taken = blocking(|| put.message(message.data_header, message.data_body));
        pending.extend(taken.map_err(|error| of(&error))?);
        if pending.len() >= AHEAD {
            rows += oldest(&mut pending).await?;
        }
    }
    while !pending.is_empty() {
        rows += oldest(&mut pending).await?;
    }
    blocking(|| put.finish()).map_err(|error| of(&error))?;
    Ok(rows)
}

async fn oldest(pending: &mut VecDeque<Pending>) -> Result<u64, Status> {
    match pending.pop_front() {
        Some(pending) => Ok(pending.done().await.map_err(|error| of(&error))?.rows),
        None => Ok(0),
    }
}

/// Checks that the rows may go where they are to go, and drops the dataset that they replace.
fn make_way(context: &Shared, command: &CommandStatementIngest) -> Result<(), Status> {
    alone(command.transaction_id.as_ref())?;
    if command.temporary {
        return Err(unimplemented("a temporary table ('temporary')"));
    }
    for (what, given, known) in [
        ("catalog", &command.catalog, CATALOG),
        ("schema", &command.schema, DATASETS),
    ] {
        if given
            .as_ref()
            .is_some_and(|given| !given.is_empty() && given != known)
        {
            let given = given.as_deref().unwrap_or_default();
            let text = format!(
                "there is no {what} '{given}' to ingest into; leave it out or send '{known}'"
            );
            return Err(invalid("bad_value", &text));
        }
    }
    let options = command.table_definition_options.as_ref();
    if context.engine.catalog().find(&command.table).is_some() {
        match options.map_or(TableExistsOption::Unspecified, |options| {
            options.if_exists()
        }) {
            TableExistsOption::Append | TableExistsOption::Unspecified => Ok(()),
            TableExistsOption::Fail => {
                let text = format!(
                    "dataset '{}' exists; append to it, or replace it",
                    command.table
                );
                Err(status(Code::AlreadyExists, "dataset_exists", &text))
            }
            TableExistsOption::Replace => {
                blocking(|| context.engine.drop_dataset(&command.table))
                    .map_err(|error| of(&error))?;
                Ok(())
            }
        }
    } else {
        match options.map_or(TableNotExistOption::Create, |options| {
            options.if_not_exist()
        }) {
            TableNotExistOption::Fail => Err(of(&Error::DatasetNotFound(command.table.clone()))),
            TableNotExistOption::Create | TableNotExistOption::Unspecified => Ok(()),
        }
    }
}
