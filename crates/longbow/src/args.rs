//! Arguments of more than one command.

use clap::{Arg, value_parser};
use longbow_types::{Kind, Value};

/// One value, still without its parser.
pub fn one(name: &'static str, value: &'static str, help: impl Into<String>) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help.into())
}

/// A whole number.
pub fn int(name: &'static str, help: impl Into<String>, min: i64, max: i64) -> Arg {
    let number = value_parser!(i64).range(min..=max);
    one(name, "N", help).value_parser(number)
}

/// A number of bytes, in the words of the configuration.
pub fn size(name: &'static str, help: impl Into<String>, min: u64, max: u64) -> Arg {
    let kind = move || Kind::Bytes(min, max);
    let parse = move |text: &str| match kind().parse(text) {
        Some(Value::Bytes(n)) => Ok(n),
        _ => Err(format!("allowed: {}", kind().allowed())),
    };
    one(name, "BYTES", help).value_parser(parse)
}

/// What a command reads in a line, for tests.
#[cfg(test)]
pub fn read(command: clap::Command, line: &str) -> Result<clap::ArgMatches, String> {
    command
        .no_binary_name(true)
        .try_get_matches_from(line.split_whitespace())
        .map_err(|error| error.to_string())
}
