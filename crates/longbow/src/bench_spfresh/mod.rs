//! `longbow bench spfresh`: how fast updates are and how good searches stay, over a whole engine on a folder of its own.
//!
//! What is timed is what a program sees that links the engine: a write is checked, logged, applied and acknowledged, from
//! when on searches find it; a search is answered with ids. Indexing goes on behind both, as it does in a node. Exact
//! answers are found here, in double precision, from the data and not from the engine.
//!
//! Three modes:
//!
//! - **The recipe** is that of a published comparison: noise that cannot be clustered, updates to rows of which a fifth
//!   drift, then searches. Figures are the median of whole runs, each on an empty folder.
//! - **A stream** (`--stream`) has rows come and go in rounds, drawn around centres that move, while another thread
//!   searches. It ends with an index that is built anew of the same rows, which tells what the rounds have cost.
//! - **A large set** (`--large`) is drawn piece by piece and indexed under a memory limit, to see what is read from the disk.

mod error;
mod flags;
mod large;
mod living;
mod mixture;
mod pass;
mod recipe;
mod recipe_bench;
mod recipe_file;
mod report;
mod rows;
mod runbook;
mod store;
mod stream;
mod svg;
mod table;
mod truth;

use std::process::ExitCode;

use longbow_disk::{Disk as _, RealDisk};

use crate::out::{BAD_CONFIGURATION, complain, print, publish};
use error::Error;
use flags::What;
pub use flags::{Settings, command, settings};

/// Measures what was asked for and tells it.
pub fn run(settings: Result<Settings, String>) -> ExitCode {
    let settings = match settings {
        Ok(settings) => settings,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    measure(&settings).unwrap_or_else(|error| complain(&error.to_string(), 1))
}

fn measure(settings: &Settings) -> Result<ExitCode, Error> {
    let json = settings.json.as_deref();
    Ok(match &settings.what {
        What::Recipe {
            source,
            sweep,
            repeat,
        } => {
            let report = recipe_bench::run(settings, source, sweep, *repeat)?;
            publish(&report, json, || table::recipe(&report))
        }
        What::Stream {
            mixture,
            runbook,
            svg,
        } => {
            let rounds = match runbook {
                Some(path) => runbook::read(path, mixture.base, settings.k)?,
                None => runbook::default_rounds(mixture.base),
            };
            let silent = json.is_some_and(|path| path.as_os_str() == "-");
            let mut tell = |line: &str| {
                if !silent {
                    print(line);
                }
            };
            let report = stream::run(settings, *mixture, &rounds, &mut tell)?;
            if let Some(path) = svg {
                let Some(picture) = svg::draw(&report) else {
                    let none = "the runbook has no round that a curve could be drawn from";
                    return Ok(complain(none, 1));
                };
                RealDisk.write_atomic(path, picture.as_bytes())?;
            }
            publish(&report, json, || table::end(&report))
        }
        What::Large {
            mixture,
            sweep,
            memory_limit,
        } => {
            let report = large::run(settings, *mixture, sweep, *memory_limit)?;
            publish(&report, json, || table::large(&report))
        }
    })
}
