//! `longbow bench log`: what the write-ahead log does on this machine, and what its disk does by itself.
//!
//! Each row is measured in rounds; in each, the log first and right after it the raw disk with as many bytes a sync, so
//! that both see the same moods of the disk and their ratio can be believed on a machine that is not quiet. A *hand-in*
//! is `batch` entries given to the log one after the other: a blocking caller waits until all of them are acknowledged
//! before the next, a pipelined one has four hand-ins under way, and an offered load hands in by the clock, its latency
//! taken from when a hand-in was due (Gil Tene's "coordinated omission" is what that avoids). Latency is always that of a
//! whole hand-in.

mod bench;
mod case;
mod error;
mod flags;
mod lens;
mod load;
mod meter;
mod plan;
mod raw;
mod recovery;
mod report;
mod stages;
mod svg;
mod table;

use std::process::ExitCode;
use std::time::Instant;

use longbow_disk::{Disk, RealDisk};
use longbow_log::SyncMode;

use crate::machine::Machine;
use crate::out::{BAD_CONFIGURATION, complain, publish};
use bench::Bench;
use case::{Amount, Keeping, Syncing};
use error::Error;
pub use flags::{Settings, command, settings};
use longbow_log::frame_bytes;
use plan::What;
use report::Report;

/// Entries that the stages in a report are taken from.
const REPORT_STAGES: u64 = 1000;

/// Measures what was asked for and tells it.
pub fn run(settings: Result<Settings, String>) -> ExitCode {
    let settings = match settings {
        Ok(settings) => settings,
        Err(message) => return complain(&message, BAD_CONFIGURATION),
    };
    match measure(&settings) {
        Ok(report) => tell(&settings, &report),
        Err(error) => complain(&error.to_string(), 1),
    }
}

fn measure(settings: &Settings) -> Result<Report, Error> {
    let began = Instant::now();
    let axes = &settings.axes;
    let largest = axes.segment_sizes.iter().copied().max().unwrap_or_default();
    let mut bench = Bench::new(&settings.dir, largest, settings.rounds)?;
    let machine = Machine::probe();
    let disk_free_bytes = bench.free_space()?;
    let mut raw = Vec::new();
    let batches = match settings.what {
        What::Recovery => &[][..],
        _ => &axes.batch,
    };
    for batch in batches {
        let bytes = batch * frame_bytes(axes.entry_bytes);
        for sync in axes
            .syncs
            .iter()
            .filter(|sync| **sync != Syncing::Background)
        {
            raw.push(bench.raw(axes.segment_sizes[0], bytes, *sync)?);
        }
    }
    let mut rows = Vec::new();
    let mut skipped = Vec::new();
    let late = || {
        settings
            .budget
            .is_some_and(|budget| began.elapsed() > budget)
    };
    for case in settings.cases() {
        if late() {
            skipped.push(case.label());
            continue;
        }
        eprintln!("{:6.1} s  {}", began.elapsed().as_secs_f64(), case.label());
        rows.push(bench.measure(&case)?);
    }
    let mut stages = Vec::new();
    match stages_of(settings) {
        Some(_) if late() => skipped.push("stages of one write".to_owned()),
        Some((keeping, entries)) => stages = bench.stages(keeping, axes.entry_bytes, entries)?,
        None => {}
    }
    let mut recovery = Vec::new();
    if let (What::Recovery, Amount::Entries(entries)) = (settings.what, axes.amount) {
        recovery = bench.recovery(axes.segment_sizes[0], axes.entry_bytes, entries)?;
    }
    bench.close()?;
    Ok(Report {
        longbow: env!("CARGO_PKG_VERSION"),
        command: settings.what.name(),
        machine,
        disk_free_bytes,
        raw,
        rows,
        stages,
        recovery,
        skipped,
        seconds: report::rounded(began.elapsed().as_secs_f64()),
    })
}

/// The log whose stages are asked for, and over how many entries.
fn stages_of(settings: &Settings) -> Option<(Keeping, u64)> {
    let axes = &settings.axes;
    let entries = match (settings.what, axes.amount) {
        (What::Stages, Amount::Entries(entries)) => entries,
        (What::Report, _) if settings.budget.is_some() => REPORT_STAGES / 10,
        (What::Report, _) => REPORT_STAGES,
        _ => return None,
    };
    // Without a sync before the acknowledgement there would be none to be timed.
    let synced = |sync: &&Syncing| sync.mode() == SyncMode::EveryAck;
    let sync = axes.syncs.iter().find(synced).copied();
    let keeping = Keeping {
        sync: sync.unwrap_or(Syncing::Fdatasync),
        segment_size: axes.segment_sizes[0],
        linger: axes.lingers[0],
    };
    Some((keeping, entries))
}

/// Writes and prints a report where it was asked for.
fn tell(settings: &Settings, report: &Report) -> ExitCode {
    if let Some(path) = &settings.svg {
        let Some(picture) = svg::draw(report) else {
            return complain("no row was measured that a curve could be drawn from", 1);
        };
        if let Err(error) = RealDisk.write_atomic(path, picture.as_bytes()) {
            return complain(&error.to_string(), 1);
        }
    }
    publish(report, settings.json.as_deref(), || table::tables(report))
}
