//! What is done with a data folder while no node runs on it: `verify`, `repair`, `log tail`, which also asks a node
//! that runs.

pub mod repair;
pub mod tail;
pub mod verify;

mod progress;
mod time;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use longbow_engine::Folder;

use crate::out::complain;

/// What was asked of a folder.
pub enum Asked {
    /// Look over all of it.
    Verify(verify::Arguments),
    /// Make it one that a node can be started on.
    Repair(repair::Arguments),
    /// Print its log.
    Tail(tail::Arguments),
}

/// Does what was asked.
pub fn run(asked: Asked) -> ExitCode {
    match asked {
        Asked::Verify(arguments) => verify::run(&arguments),
        Asked::Repair(arguments) => repair::run(&arguments),
        Asked::Tail(arguments) => tail::run(&arguments),
    }
}

/// The commands, as the command line knows them.
pub fn commands() -> [clap::Command; 3] {
    let log = clap::Command::new("log").about("Read the log");
    [
        verify::command(),
        repair::command(),
        log.subcommand_required(true).subcommand(tail::command()),
    ]
}

/// What one of these commands was given; `None` if it is not one of them.
pub fn asked(name: &str, matches: &ArgMatches) -> Option<Asked> {
    match (name, matches.subcommand()) {
        ("verify", _) => Some(Asked::Verify(verify::Arguments::of(matches))),
        ("repair", _) => Some(Asked::Repair(repair::Arguments::of(matches))),
        ("log", Some(("tail", matches))) => Some(Asked::Tail(tail::Arguments::of(matches))),
        _ => None,
    }
}

/// The folder is named and never guessed: what is done to it may cost data.
fn data_path() -> Arg {
    Arg::new("data_path")
        .long("data-path")
        .value_name("DIR")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The data folder; no node may run on it")
}

fn json() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print JSON instead of text")
}

fn path_in(matches: &ArgMatches) -> PathBuf {
    let path = matches.get_one::<PathBuf>("data_path");
    path.cloned().unwrap_or_default()
}

/// Takes hold of the folder, or says why that is not possible.
fn open(path: &std::path::Path, purpose: &str) -> Result<Folder, ExitCode> {
    Folder::open_real(path, purpose).map_err(|error| complain(&error.to_string(), 1))
}

/// "1 file", "2 files".
fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// A number of bytes for people.
fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return count(bytes, "byte");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes_are_told_in_the_largest_unit_that_fits() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (3 << 30, "3.0 GiB"),
            (5 << 50, "5120.0 TiB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn the_folder_must_be_named() {
        for command in commands() {
            let name = command.get_name().to_owned();
            command.clone().debug_assert();
            let line: &[&str] = if name == "log" {
                &["log", "tail"]
            } else {
                &[&name]
            };
            let error = command.try_get_matches_from(line).expect_err("no folder");
            assert!(error.to_string().contains("--data-path"), "{error}");
        }
    }
}
