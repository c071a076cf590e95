//! `longbow bench ann`: how fast an index answers at which recall, over vectors from a file.
//!
//! A *pass* searches once for each query. Its rate is by processor time of the searching threads, which holds on a
//! machine that is not quiet; the rate by the clock stands beside it. Preparing a query is part of a search, comparing
//! what was found with the exact answers is not. Passes take turns over the breadths, and the median of each is told.

mod bench;
mod error;
mod flags;
mod idx;
mod index;
mod npy;
mod parquet;
mod pass;
mod report;
mod serve;
mod table;
mod truth;
mod vecs;
mod vectors;

use std::process::ExitCode;

use longbow_disk::{Disk, RealDisk};

use crate::out::{BAD_CONFIGURATION, complain, print};
use bench::Bench;
use error::Error;
pub use flags::{Settings, command, settings};

/// Measures what was asked for and tells it.
pub fn run(settings: Result<Settings, String>) -> ExitCode {
    let settings = match settings {
        Ok(settings) => settings,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    match measure(&settings) {
        Ok(told) => told.map_or(ExitCode::SUCCESS, |text| print(&text)),
        Err(error) => complain(&error.to_string(), 1),
    }
}

/// What is to be printed in the end.
fn measure(settings: &Settings) -> Result<Option<String>, Error> {
    let (bench, mut report) = Bench::prepare(settings)?;
    if settings.serve {
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        serve::serve(&bench, &report, input, output)?;
        return Ok(None);
    }
    report.points = bench.sweep(&settings.sweep, settings.repeat)?;
    let json = serde_json::to_string_pretty(&report)?;
    match &settings.json {
        Some(path) if path.as_os_str() == "-" => return Ok(Some(json)),
        Some(path) => RealDisk.write_atomic(path, json.as_bytes())?,
        None => {}
    }
    Ok(Some(table::text(&report)))
}
