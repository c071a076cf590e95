//! `longbow plan`: what a dataset will take of memory, disk and time, before it is there.
//!
//! Which index its vectors get and what counts for the memory limit is asked of the engine, by the functions that it
//! admits writes by, with the configuration that `serve` would have: of the environment, of a file, and of the flags. Time
//! is told only by `--measure`, which builds a small graph on this machine and extrapolates by n log n; real vectors may be
//! harder to index than its clusters are, or easier.

mod flags;
mod measure;
mod report;
mod table;

use std::process::ExitCode;

use longbow_engine::Plan;

use crate::out::{BAD_CONFIGURATION, complain, publish};
use report::Report;

pub use flags::{Asked, asked, command};

/// Says what the rows will take.
pub fn run(asked: Result<Asked, String>) -> ExitCode {
    let asked = match asked {
        Ok(asked) => asked,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    let report = match report(&asked) {
        Ok(report) => report,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    publish(&report, asked.json.as_deref(), || table::text(&report))
}

fn report(asked: &Asked) -> Result<Report, String> {
    let plan = Plan::of(&asked.load, &asked.options).map_err(|error| error.to_string())?;
    let most_rows = Plan::most_rows(&asked.load, &asked.options);
    let most_rows = most_rows.map_err(|error| error.to_string())?;
    let index_s = match asked.measure {
        true => Some(measure::index_seconds(&plan, &asked.load, &asked.options)?),
        false => None,
    };
    Ok(Report::new(asked, &plan, most_rows, index_s))
}
