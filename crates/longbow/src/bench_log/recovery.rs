//! How fast a log is read again when it is opened, beside a plain read of the same files.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use longbow_disk::{Disk, RealDisk};
use longbow_log::{Log, Options, frame_bytes};
use serde::Serialize;

use super::case::{Amount, Case, Keeping, Mode, Syncing};
use super::error::Error;
use super::load::{Load, Payloads};
use super::meter::Meter;
use super::report::rounded;
use crate::median::median;

/// How much the plain read takes at once, in bytes.
const PIECE: usize = 1 << 20;

/// Entries in one hand-in while the log is written.
const BATCH: u64 = 64;

/// One way to read the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecoveryRow {
    /// `read`: the files one after the other by one thread; `open`: the log, each entry handed out. `warm`: the files are
    /// in the system's memory; `cold`: they were dropped from it.
    pub what: &'static str,
    /// Payload of an entry in bytes.
    pub entry_bytes: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// The median of the rounds.
    pub seconds: f64,
    /// Megabytes (10^6) of the files in a second.
    pub mb_per_s: f64,
    /// The rate as a share of that of the plain read.
    pub ratio_to_raw_read: f64,
    /// Entries in a second; nothing for the plain read.
    pub entries_per_s: Option<f64>,
}

/// Writes a log of so many entries into `dir`, which is new, and reads it again so many times in each way.
pub fn measure_recovery(
    dir: &Path,
    segment_size: u64,
    payloads: &Payloads,
    entries: u64,
    rounds: u64,
) -> Result<Vec<RecoveryRow>, Error> {
    let options = Options {
        segment_size,
        sync: Syncing::Fdatasync.mode(),
        prepared_segments: 0,
        ..Options::new(dir)
    };
    let entries = fill(&options, payloads, entries)?;
    let subject = Subject { options, entries };
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds.max(1) {
        subject.read()?;
        times[0].push(subject.read()?);
        times[1].push(subject.open()?);
        subject.forget()?;
        times[2].push(subject.read()?);
        subject.forget()?;
        times[3].push(subject.open()?);
    }
    let bytes = longbow_log::size_bytes(&RealDisk, dir)?;
    let seconds = times.map(|times| median(times).unwrap_or_default().max(f64::MIN_POSITIVE));
    let row = |what, nth: usize| {
        let opened = nth % 2 == 1;
        RecoveryRow {
            what,
            entry_bytes: payloads.entry_bytes(),
            bytes,
            seconds: rounded(seconds[nth]),
            mb_per_s: rounded(bytes as f64 / seconds[nth] / 1e6),
            ratio_to_raw_read: rounded(seconds[nth - nth % 2] / seconds[nth]),
            entries_per_s: opened.then(|| rounded(entries as f64 / seconds[nth])),
        }
    };
    Ok(vec![
        row("read warm", 0),
        row("open warm", 1),
        row("read cold", 2),
        row("open cold", 3),
    ])
}

/// Writes the log; answers how many entries it has, which is a whole number of batches.
fn fill(options: &Options, payloads: &Payloads, entries: u64) -> Result<u64, Error> {
    let meter = Meter::default();
    let (log, _) = Log::open(Arc::new(RealDisk), options.clone(), 0, &mut |_| Ok(()))?;
    // As many at once as a megabyte holds, so that large entries don't fill the log's queue.
    let batch = (PIECE as u64 / frame_bytes(payloads.entry_bytes())).clamp(1, BATCH);
    let case = Case {
        test: "recovery",
        keeping: Keeping {
            sync: Syncing::Fdatasync,
            segment_size: options.segment_size,
            linger: options.linger,
        },
        callers: 4,
        batch,
        mode: Mode::Pipelined,
        entry_bytes: payloads.entry_bytes(),
        amount: Amount::Entries(entries.div_ceil(4)),
    };
    let load = Load {
        log: &log,
        meter: &meter,
        case: &case,
        payloads,
        warm_up: std::time::Duration::ZERO,
    };
    let (span, _) = load.run()?;
    log.close()?;
    Ok(span.entries)
}

/// The log that is read.
struct Subject {
    options: Options,
    entries: u64,
}

impl Subject {
    /// Opens the log, and closes it outside the time that is answered in seconds.
    fn open(&self) -> Result<f64, Error> {
        let began = Instant::now();
        let mut seen = 0;
        let (log, _) = Log::open(Arc::new(RealDisk), self.options.clone(), 0, &mut |_| {
            seen += 1;
            Ok(())
        })?;
        let took = began.elapsed().as_secs_f64();
        log.close()?;
        if seen != self.entries {
            let written = self.entries;
            return Err(Error::Recovered { seen, written });
        }
        Ok(took)
    }

    /// Reads the files; answers how many seconds it took.
    fn read(&self) -> Result<f64, Error> {
        let mut buffer = vec![0; PIECE];
        let began = Instant::now();
        for name in self.names()? {
            let file = RealDisk.open(&self.options.dir.join(name))?;
            let mut at = 0;
            loop {
                let found = file.read_at(at, &mut buffer)?;
                at += found as u64;
                if found < buffer.len() {
                    break;
                }
            }
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Has the system drop the files from its memory.
    fn forget(&self) -> Result<(), Error> {
        for name in self.names()? {
            RealDisk.forget(&self.options.dir.join(name))?;
        }
        Ok(())
    }

    /// The names of the segment files.
    fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = RealDisk.list(&self.options.dir)?;
        names.retain(|name| name.ends_with(".log"));
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_in_each_way_and_every_entry_comes() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("log");
        let rows = measure_recovery(&folder, 256 << 10, &Payloads::new(1000), 1000, 2);
        let rows = rows.expect("measured");
        let names: Vec<&str> = rows.iter().map(|row| row.what).collect();
        assert_eq!(names, ["read warm", "open warm", "read cold", "open cold"]);
        for row in &rows {
            let opened = row.what.starts_with("open");
            assert_eq!(row.entries_per_s.is_some(), opened, "{row:?}");
            assert!(row.bytes > 1_000_000 && row.mb_per_s > 0.0, "{row:?}");
            assert!(
                opened || (row.ratio_to_raw_read - 1.0).abs() < 1e-9,
                "{row:?}"
            );
        }
    }
}
