//! `longbow log tail`: prints the log entry by entry, of a node that does not run from its folder, of one that runs by
//! asking it.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, value_parser};
use longbow_engine::{LogEntry, Survey};
use longbow_server::FeedRequest;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{data_path, open, time};
use crate::out::{DAMAGED, complain};

/// How many entries are printed where nothing else is said, and the most that may be asked for without a first index.
const LAST: u64 = 20;
const MOST_LAST: u64 = 1_000_000;

/// What it was given.
pub struct Arguments {
    source: Source,
    from: Option<u64>,
    limit: Option<u64>,
    json: bool,
}

/// Where the log is.
enum Source {
    /// The folder of a node that does not run.
    Folder(PathBuf),
    /// The data server of one that runs; and whether to go on with what comes.
    Node { uri: String, follow: bool },
}

impl Arguments {
    /// From the command line.
    pub fn of(matches: &ArgMatches) -> Arguments {
        let source = match matches.get_one::<String>("uri") {
            Some(uri) => Source::Node {
                uri: uri.clone(),
                follow: matches.get_flag("follow"),
            },
            None => Source::Folder(super::path_in(matches)),
        };
        Arguments {
            source,
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
            "Print at most so many entries; without --from the last so many [default: {LAST}], before those that follow"
        ));
    let uri = Arg::new("uri")
        .long("uri")
        .visible_alias("addr")
        .value_name("URI")
        .conflicts_with("data_path")
        .help("The data server of a node that runs, like grpc://127.0.0.1:3000");
    let follow = Arg::new("follow")
        .long("follow")
        .action(ArgAction::SetTrue)
        .conflicts_with("data_path")
        .help("Go on with the entries as they come, until interrupted; with --uri");
    let source = ArgGroup::new("source").args(["data_path", "uri"]);
    clap::Command::new("tail")
        .about("Print entries of the log: index, time, shard, what was done, to what, bytes")
        .after_help(
            "Exit codes: 0, also when interrupted; 1 if the node refuses, stops or is not there; 3 if the log is damaged \
             where it was read.",
        )
        .arg(data_path().required(false))
        .arg(uri)
        .group(source.required(true))
        .arg(follow)
        .arg(from)
        .arg(limit)
        .arg(super::json())
}

/// Prints entries.
pub fn run(arguments: &Arguments) -> ExitCode {
    match &arguments.source {
        Source::Folder(path) => of_folder(path, arguments),
        Source::Node { uri, follow } => of_node(uri, *follow, arguments),
    }
}

/// Prints what a node says of its log.
fn of_node(uri: &str, follow: bool, arguments: &Arguments) -> ExitCode {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start the network: {error}"), 1),
    };
    let last = arguments.limit.unwrap_or(LAST).min(MOST_LAST);
    let asked = FeedRequest {
        from: arguments.from,
        last: arguments.from.is_none().then_some(last),
        follow,
        ..FeedRequest::default()
    };
    // The last entries are as many as were asked for anyway.
    let limit = arguments.limit.filter(|_| arguments.from.is_some());
    let mut left = limit.unwrap_or(u64::MAX);
    let mut written = Ok(());
    // Standard output hands on each line as it ends.
    let mut each = |entry: LogEntry| {
        written = writeln!(io::stdout().lock(), "{}", line(&entry, arguments.json));
        left -= 1;
        match written.is_ok() && left > 0 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let read = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())
            .map_err(|error| format!("cannot listen for signals: {error}"))?;
        tokio::select! {
            read = longbow_server::follow(uri, asked, &mut each) => {
                read.map_err(|error| error.to_string())
            }
            _ = interrupt.recv() => Ok(()),
        }
    });
    match (read, written) {
        (Err(message), _) => complain(&message, 1),
        (Ok(()), written) => outcome(written),
    }
}

/// Prints what lies in a folder.
fn of_folder(path: &Path, arguments: &Arguments) -> ExitCode {
    let folder = match open(path, "longbow log tail") {
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
        (Ok(survey), Ok(())) => end(&survey),
        (Ok(_), written) => outcome(written),
    }
}

/// The exit code for what became of the output. A reader that has gone away is no error of ours.
fn outcome(written: io::Result<()>) -> ExitCode {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {error}"), 1)
        }
        _ => ExitCode::SUCCESS,
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
