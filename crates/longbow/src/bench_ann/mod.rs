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

use crate::out::{BAD_CONFIGURATION, complain, publish};
use bench::Bench;
use error::Error;
pub use flags::{Settings, command, settings};
use report::Report;

/// Measures what was asked for and tells it.
pub fn run(settings: Result<Settings, String>) -> ExitCode {
    let settings = match settings {
        Ok(settings) => settings,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    match measure(&settings) {
        Ok(Some(report)) => publish(&report, settings.json.as_deref(), || table::text(&report)),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string(), 1),
    }
}

/// The report; nothing after passes on request.
fn measure(settings: &Settings) -> Result<Option<Report>, Error> {
    let (bench, mut report) = Bench::prepare(settings)?;
    if settings.serve {
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        serve::serve(&bench, &report, input, output)?;
        return Ok(None);
    }
    report.points = bench.sweep(&settings.sweep, settings.repeat)?;
    Ok(Some(report))
}
