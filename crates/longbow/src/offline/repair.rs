//! `longbow repair`: says what a damaged data folder can be brought back without, and does it when told to.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches};
use longbow_engine::{Cut, Repair, Verification};

use super::verify::{as_text, look_over};
use super::{bytes, data_path, open, path_in, time};
use crate::out::{DAMAGED, complain, print};

/// What it was given.
pub struct Arguments {
    path: PathBuf,
    accept_loss: bool,
}

impl Arguments {
    /// From the command line.
    pub fn of(matches: &ArgMatches) -> Arguments {
        Arguments {
            path: path_in(matches),
            accept_loss: matches.get_flag("accept_loss"),
        }
    }
}

/// The command, as the command line knows it.
pub fn command() -> clap::Command {
    let accept_loss = Arg::new("accept_loss")
        .long("accept-loss")
        .action(ArgAction::SetTrue)
        .help("Do it; without this nothing is changed");
    clap::Command::new("repair")
        .about("Say what a damaged data folder can be started without, and with --accept-loss do it")
        .after_help(
            "The log is cut at its first damage, and graphs are left to be built anew. What goes is moved to DIR/lost. \
             Damaged rows, tombstones or manifests cannot be repaired: restore them from a backup or a replica.\n\
             Exit codes: 0 whole or repaired, 3 damaged, 1 if it could not be done.",
        )
        .arg(data_path())
        .arg(accept_loss)
}

/// Looks, tells, and repairs if that is accepted.
pub fn run(arguments: &Arguments) -> ExitCode {
    attempt(arguments).unwrap_or_else(|code| code)
}

fn attempt(arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let failed = |error: longbow_engine::Error| complain(&error.to_string(), 1);
    let folder = open(&arguments.path, "longbow repair")?;
    let found = look_over(&folder)?;
    if found.is_whole() {
        return Ok(print(&format!(
            "{}\nthere is nothing to repair",
            as_text(&found)
        )));
    }
    let repair = folder.plan_repair(&found).map_err(failed)?;
    print(&as_text(&found));
    if !repair.beyond.is_empty() {
        print(&beyond(&repair.beyond));
        return Ok(ExitCode::from(DAMAGED));
    }
    print(&plan(&repair, &found));
    if !arguments.accept_loss {
        print(
            "Nothing was changed. With --accept-loss it is done, and what goes is moved to the folder 'lost'.",
        );
        return Ok(ExitCode::from(DAMAGED));
    }
    let time = time::compact(time::now_us());
    let lost = folder.repair(&repair, &time).map_err(failed)?;
    print(&format!("Done. What went is in {}.", lost.display()));
    let found = look_over(&folder)?;
    let code = print(&as_text(&found));
    match found.is_whole() {
        true => Ok(code),
        false => Ok(ExitCode::from(DAMAGED)),
    }
}

/// Why nothing is done.
fn beyond(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    format!(
        "This cannot be repaired here, because it is nowhere else in the folder:\n  {}\n\
         Restore it from a backup or a replica, or restore the whole folder. Nothing was changed.",
        names.join("\n  ")
    )
}

/// What is going to be done.
fn plan(repair: &Repair, found: &Verification) -> String {
    let mut lines = Vec::new();
    if let Some(cut) = &repair.cut {
        lines.extend(cut_lines(cut, found.covered));
    }
    for graph in &repair.graphs {
        lines.push(format!(
            "{} goes; the node builds the graph anew, and scans until then. No rows are lost.",
            graph.display()
        ));
    }
    lines.join("\n")
}

fn cut_lines(cut: &Cut, covered: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(damage) = &cut.damage {
        lines.push(format!(
            "The log has to be cut at {}, offset {}: entries from index {} on go, with everything behind the damage, \
             because a log has no holes.",
            damage.file.display(),
            damage.offset,
            cut.next
        ));
    }
    let files: Vec<&str> = cut.files.iter().filter_map(|f| name_of(f)).collect();
    if !files.is_empty() {
        lines.push(format!("Whole files that go: {}.", files.join(", ")));
    }
    lines.push(format!("In all, {} go.", bytes(cut.bytes)));
    lines.push(match &cut.lost {
        None => format!("Nothing is lost: the checkpoint holds everything up to index {covered}."),
        Some(lost) => format!(
            "Lost are {}, indexes {} to at least {}; the checkpoint holds everything up to index {covered}. \
             The indexes are given again: whoever follows the change feed must begin anew.",
            entries(lost.end() - lost.start() + 1),
            lost.start(),
            lost.end()
        ),
    });
    lines
}

fn entries(number: u64) -> String {
    match number {
        1 => "at least 1 entry".to_owned(),
        _ => format!("at least {number} entries"),
    }
}

fn name_of(file: &Path) -> Option<&str> {
    file.file_name()?.to_str()
}
