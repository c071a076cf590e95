//! `longbow log tail`: prints the log of a node that does not run, entry by entry.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, value_parser};
use longbow_engine::{LogEntry, Survey};
use serde_json::json;

use super::{data_path, open, path_in, time};
use crate::out::{DAMAGED, complain};

/// How many entries are printed where nothing else is said, and the most that may be asked for without a first index.
const LAST: u64 = 20;
const MOST_LAST: u64 = 1_000_000;

/// What it was given.
pub struct Arguments {
    path: PathBuf,
    from: Option<u64>,
    limit: Option<u64>,
    json: bool,
}

impl Arguments {
    /// From the command line.
    pub fn of(matches: &ArgMatches) -> Arguments {
        Arguments {
            path: path_in(matches),
            from: matches.get_one::<u64>("from").copied(),
            limit: matches.get_one::<u64>("limit").copied(),
            json: matches.get_flag("json"),
        }
    }
}

/// The command, as the command line knows it.
pub fn command() -> clap::Command {
    let from = Arg::new("from")
        .long("from")
        .value_name("INDEX")
        .value_parser(value_parser!(u64))
        .help("Begin with this index and go on to the end; without it, print the last entries");
    let limit = Arg::new("limit")
        .long("limit")
        .value_name("N")
        .value_parser(value_parser!(u64).range(1..))
        .help(format!(
            "Print at most so many entries [default without --from: {LAST}]"
        ));
    clap::Command::new("tail")
        .about("Print entries of the log: index, time, shard, what was done, to what, bytes")
        .after_help("Exit codes: 0, or 3 if the log is damaged where it was read.")
        .arg(data_path())
        .arg(from)
        .arg(limit)
        .arg(super::json())
}

/// Prints entries.
pub fn run(arguments: &Arguments) -> ExitCode {
    let folder = match open(&arguments.path, "longbow log tail") {
        Ok(folder) => folder,
        Err(code) => return code,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let read = match arguments.from {
        Some(from) => {
            let mut left = arguments.limit.unwrap_or(u64::MAX);
            folder.log_entries(from, &mut |entry| {
                written = writeln!(out, "{}", line(&entry, arguments.json));
                left -= 1;
                match written.is_ok() && left > 0 {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })
        }
        None => {
            let most = arguments.limit.unwrap_or(LAST).min(MOST_LAST) as usize;
            let mut last = VecDeque::new();
            let read = folder.log_entries(0, &mut |entry| {
                if last.len() == most {
                    last.pop_front();
                }
                last.push_back(entry);
                ControlFlow::Continue(())
            });
            for entry in &last {
                written = written.and_then(|()| writeln!(out, "{}", line(entry, arguments.json)));
            }
            read
        }
    };
    let written = written.and_then(|()| out.flush());
    match (read, written) {
        (Err(error), _) => complain(&error.to_string(), 1),
        (Ok(_), Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {error}"), 1)
        }
        (Ok(survey), _) => end(&survey),
    }
}

/// Says how the log ends, where it does not end well.
fn end(survey: &Survey) -> ExitCode {
    if let Some(damage) = survey.damages.first() {
        return complain(&damage.error.to_string(), DAMAGED);
    }
    if let Some(torn) = &survey.torn {
        let (file, offset) = (torn.file.display(), torn.offset);
        complain(
            &format!(
                "the log ends in a write that a crash interrupted, at offset {offset} of {file}"
            ),
            0,
        );
    }
    ExitCode::SUCCESS
}

fn line(entry: &LogEntry, as_json: bool) -> String {
    let time = time::rfc3339(entry.timestamp_us);
    if as_json {
        let LogEntry {
            index,
            timestamp_us,
            shard,
            kind,
            subject,
            bytes,
        } = entry;
        return json!({
            "index": index,
            "time": time,
            "timestamp_us": timestamp_us,
            "shard": shard,
            "kind": kind,
            "subject": subject,
            "bytes": bytes,
        })
        .to_string();
    }
    format!(
        "{:>10}  {time}  shard {}  {:<14}  {}  {} bytes",
        entry.index,
        entry.shard,
        words(entry),
        entry.subject,
        entry.bytes
    )
}

/// What an entry does.
fn words(entry: &LogEntry) -> &'static str {
    use longbow_engine::ChangeKind;
    match entry.kind {
        ChangeKind::Put => "put",
        ChangeKind::Delete => "delete",
        ChangeKind::CreateDataset => "create dataset",
        ChangeKind::DropDataset => "drop dataset",
        ChangeKind::Schema => "new schema",
        ChangeKind::Namespace => "namespace",
        ChangeKind::Control => "control",
    }
}
