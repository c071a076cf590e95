//! Flight SQL, on the meta server: statements, prepared statements, bulk ingestion and the catalog.
//!
//! Its commands come as descriptors, tickets and actions like those of this node's own, packed in protobuf's `Any`; a
//! dataset's name and JSON never begin as one does. A statement's ticket is its text, so that a query keeps nothing here
//! between its two calls; a prepared statement is kept by its handle. A write is carried out by the call that fetches its
//! answer, not by the one that asks for its schema.

mod action;
mod catalog;
mod get;
mod info;
mod ingest;
mod prepared;
mod put;
#[cfg(test)]
mod tests;

use arrow_flight::sql::{Any, Command};
use prost::Message;
use tonic::{Code, Status};

use crate::status::{invalid, status};

pub(crate) use action::{ACTIONS, action};
pub(crate) use get::get;
pub(crate) use info::{info, schema};
pub(crate) use prepared::Prepared;
pub(crate) use put::put;

/// What the names of all commands begin with.
const COMMANDS: &str = "type.googleapis.com/arrow.flight.protocol.sql.";

/// The command of Flight SQL that these bytes are; nothing if they are something else.
///
/// # Errors
/// InvalidArgument, if it is a broken one.
pub(crate) fn command(bytes: &[u8]) -> Result<Option<Command>, Status> {
    let Some(any) = Any::decode(bytes)
        .ok()
        .filter(|any| any.type_url.starts_with(COMMANDS))
    else {
        return Ok(None);
    };
    match Command::try_from(any) {
        Ok(command) => Ok(Some(command)),
        Err(error) => Err(invalid(
            "bad_message",
            &format!("{error}; send a command of Flight SQL"),
        )),
    }
}

/// Refuses a command that there is, at a place where it is none or where this node has none.
fn refused(command: &Command, call: &str) -> Status {
    let name = command.type_url();
    let name = name.strip_prefix(COMMANDS).unwrap_or(name);
    let text = format!(
        "{call} of the Flight SQL command {name} is not in this version of Longbow; send statements as text"
    );
    status(Code::Unimplemented, "unimplemented", &text)
}

/// Refuses what is asked for as part of a transaction.
fn alone<T>(transaction: Option<&T>) -> Result<(), Status> {
    match transaction {
        None => Ok(()),
        Some(_) => Err(crate::status::unimplemented(
            "a transaction ('transaction_id')",
        )),
    }
}

/// The text of a statement that came as bytes.
fn text_of(bytes: &[u8]) -> Result<&str, Status> {
    std::str::from_utf8(bytes).map_err(|_| {
        invalid(
            "bad_ticket",
            "the ticket's statement is not UTF-8; ask for its info anew",
        )
    })
}
