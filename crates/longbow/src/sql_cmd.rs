//! `longbow sql`: a statement to a node, and its answer as a table.

use std::process::ExitCode;

use arrow_array::RecordBatch;
use arrow_cast::pretty::pretty_format_batches;
use clap::{Arg, ArgMatches};

use crate::out::{complain, print};

/// Where a node of this machine listens unless it is told otherwise.
const ADDRESS: &str = "127.0.0.1:3001";

/// What is asked.
pub struct Asked {
    statement: String,
    address: String,
}

/// The command.
pub fn command() -> clap::Command {
    clap::Command::new("sql")
        .about("Run a SQL statement on a node")
        .arg_required_else_help(true)
        .after_help("Exit codes: 0; 1 if the node refuses the statement or is not there. Standard error tells why.")
        .arg(
            Arg::new("statement")
                .required(true)
                .value_name("STATEMENT")
                .help("The statement, like \"SELECT count(*) FROM docs\""),
        )
        .arg(
            Arg::new("addr")
                .long("addr")
                .visible_alias("uri")
                .value_name("ADDRESS")
                .default_value(ADDRESS)
                .help("The node's meta server"),
        )
}

/// What a command line asks.
pub fn asked(matches: &ArgMatches) -> Asked {
    // The one is required, the other has a default.
    let get = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    Asked {
        statement: get("statement"),
        address: get("addr"),
    }
}

/// Asks, and prints the answer.
pub fn run(asked: &Asked) -> ExitCode {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start the network: {error}"), 1),
    };
    let answer = runtime.block_on(longbow_server::ask(&asked.address, &asked.statement));
    let (schema, mut batches) = match answer {
        Ok(answer) => answer,
        Err(error) => return complain(&error.to_string(), 1),
    };
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema));
    }
    match pretty_format_batches(&batches) {
        Ok(table) => print(&table.to_string()),
        Err(error) => complain(&format!("the answer cannot be shown: {error}"), 1),
    }
}
