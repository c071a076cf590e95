//! `longbow verify`: reads every checksum of a data folder and lists all damage.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;
use longbow_engine::{FileDamage, FileKind, Folder, Tally, Verification};
use serde_json::{Value, json};

use super::progress::Watch;
use super::{bytes, count, data_path, open, path_in};
use crate::out::{DAMAGED, complain, print};

/// What it was given.
pub struct Arguments {
    path: PathBuf,
    json: bool,
}

impl Arguments {
    /// From the command line.
    pub fn of(matches: &ArgMatches) -> Arguments {
        Arguments {
            path: path_in(matches),
            json: matches.get_flag("json"),
        }
    }
}

/// The command, as the command line knows it.
pub fn command() -> clap::Command {
    clap::Command::new("verify")
        .about("Read every checksum of a data folder and list all damage; changes nothing")
        .after_help("Exit codes: 0 whole, 3 damaged, 1 if that could not be found out.")
        .arg(data_path())
        .arg(super::json())
}

/// Verifies, and prints what was found.
pub fn run(arguments: &Arguments) -> ExitCode {
    let folder = match open(&arguments.path, "longbow verify") {
        Ok(folder) => folder,
        Err(code) => return code,
    };
    let found = match look_over(&folder) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let text = match arguments.json {
        true => as_json(&found).to_string(),
        false => as_text(&found),
    };
    let printed = print(&text);
    match found.is_whole() {
        true => printed,
        false => ExitCode::from(DAMAGED),
    }
}

/// Verifies a folder, telling the progress.
pub fn look_over(folder: &Folder) -> Result<Verification, ExitCode> {
    let mut watch = Watch::begin();
    let found = folder.verify(&mut |progress| {
        watch.tell(progress);
        Ok(())
    });
    let found = found.map_err(|error| complain(&error.to_string(), 1))?;
    watch.end();
    Ok(found)
}

/// A line for each kind of files, and one for each damage.
pub fn as_text(found: &Verification) -> String {
    let mut lines: Vec<String> = found.tallies.iter().map(line).collect();
    if let Some(torn) = &found.torn {
        lines.push(format!(
            "torn tail: {} at offset {}: a write that a crash interrupted, no damage; the next start cuts it",
            torn.file.display(),
            torn.offset
        ));
    }
    let unnamed = found.unnamed.iter();
    lines.extend(unnamed.map(|file| {
        let file = file.display();
        format!(
            "not checked: {file}: no manifest names it; a start with a sound manifest removes it"
        )
    }));
    lines.extend(found.damages.iter().map(damage));
    lines.push(match found.damages.len() as u64 {
        0 => "whole".to_owned(),
        number => format!("damaged in {}", count(number, "place")),
    });
    lines.join("\n")
}

fn line(tally: &Tally) -> String {
    let (name, noun) = match tally.kind {
        FileKind::Log => ("log", Some(("entry", "entries"))),
        FileKind::Manifest => ("manifest", Some(("dataset", "datasets"))),
        FileKind::Rows => ("rows", Some(("row", "rows"))),
        FileKind::Tombstones => ("tombstones", Some(("dead row", "dead rows"))),
        FileKind::Graphs => ("graphs", None),
        FileKind::Texts => ("texts", Some(("row", "rows"))),
    };
    let entries = match noun {
        Some((one, _)) if tally.entries == 1 => format!("1 {one}"),
        Some((_, many)) => format!("{} {many}", tally.entries),
        None => String::new(),
    };
    let (files, bytes) = (count(tally.files, "file"), bytes(tally.bytes));
    let line = format!("{name:<10} {files:>9} {bytes:>12}  {entries}");
    line.trim_end().to_owned()
}

/// One damage, as a line. The error names the file and, where it can, the offset.
pub fn damage(damage: &FileDamage) -> String {
    let place = damage.file.display().to_string();
    let what = damage.error.to_string();
    let named = what.contains(&place);
    let place = match (named, damage.offset) {
        (true, _) => String::new(),
        (false, Some(offset)) => format!("{place} at offset {offset}: "),
        (false, None) => format!("{place}: "),
    };
    let indexes = match damage.indexes {
        None => String::new(),
        Some((from, through)) if from == through => {
            format!(" (index {from} cannot be vouched for)")
        }
        Some((from, through)) => format!(" (indexes {from} to {through} cannot be vouched for)"),
    };
    format!("damaged: {place}{what}{indexes}")
}

fn as_json(found: &Verification) -> Value {
    let damages = found.damages.iter().map(|damage| {
        json!({
            "kind": damage.kind,
            "file": damage.file,
            "offset": damage.offset,
            "code": damage.error.code(),
            "what": damage.error.to_string(),
            "first_index": damage.indexes.map(|(from, _)| from),
            "last_index": damage.indexes.map(|(_, through)| through),
        })
    });
    let torn = found.torn.as_ref();
    json!({
        "whole": found.is_whole(),
        "checkpoint": found.checkpoint,
        "covered_index": found.covered,
        "files": found.tallies,
        "damages": damages.collect::<Vec<_>>(),
        "torn": torn.map(|torn| json!({"file": torn.file, "offset": torn.offset})),
        "unnamed_files": found.unnamed,
    })
}
