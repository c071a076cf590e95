//! Where the time of one write goes.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use longbow_log::{Entry, Log};
use serde::Serialize;

use super::error::Error;
use super::lens::{Calls, last_calls};
use super::load::Payloads;
use super::report::rounded;
use crate::histogram::Histogram;

/// The stages in their order.
const STAGES: [(&str, &str); 6] = [
    ("append", "the caller's call: checksum, queue"),
    (
        "wake",
        "until the log's thread begins to write: waking it, framing",
    ),
    ("write", "the write"),
    ("account", "the log's bookkeeping before and after the sync"),
    ("sync", "the sync"),
    (
        "reply",
        "from the acknowledgement until the caller runs again",
    ),
];

/// One stage of a write.
#[derive(Debug, Clone, Serialize)]
pub struct StageRow {
    /// Its name.
    pub stage: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Its mean in microseconds.
    pub mean_us: f64,
    /// Its median in microseconds.
    pub p50_us: f64,
    /// The time that 99 of 100 do not exceed, in microseconds.
    pub p99_us: f64,
    /// Its share of the whole, 0 to 1.
    pub share: f64,
}

/// The moments of one write.
struct Trace {
    began: Instant,
    appended: Instant,
    calls: Calls,
    completed: Instant,
    resumed: Instant,
}

impl Trace {
    /// The lengths of the stages. They follow each other without gaps; the log's thread may have begun to write before
    /// the caller returned from its call, and then the call ends there.
    fn stages(&self) -> [Duration; STAGES.len()] {
        let (write, sync) = (self.calls.write, self.calls.sync);
        let appended = self.appended.min(write.0);
        [
            appended - self.began,
            write.0 - appended,
            write.1 - write.0,
            (sync.0 - write.1) + (self.completed - sync.1),
            sync.1 - sync.0,
            self.resumed - self.completed,
        ]
    }
}

/// Appends so many entries, each after the acknowledgement of the one before, to a log on a [`Lens`](super::lens::Lens)
/// that syncs before each acknowledgement.
pub fn measure_stages(
    log: &Log,
    payloads: &Payloads,
    entries: u64,
) -> Result<Vec<StageRow>, Error> {
    let mut histograms = vec![Histogram::new(); STAGES.len()];
    let mut sums = [Duration::ZERO; STAGES.len()];
    let mut seen = 0;
    for nth in 0..entries {
        let trace = trace(log, payloads, nth)?;
        seen += 1;
        for (i, took) in trace.stages().into_iter().enumerate() {
            histograms[i].note(took);
            sums[i] += took;
        }
    }
    let total = sums.iter().sum::<Duration>().as_secs_f64();
    let row = |i: usize| StageRow {
        stage: STAGES[i].0,
        what: STAGES[i].1,
        mean_us: rounded(sums[i].as_secs_f64() * 1e6 / f64::from(seen.max(1))),
        p50_us: rounded(histograms[i].percentile_us(0.5).unwrap_or_default()),
        p99_us: rounded(histograms[i].percentile_us(0.99).unwrap_or_default()),
        share: rounded(sums[i].as_secs_f64() / total.max(f64::MIN_POSITIVE)),
    };
    Ok((0..STAGES.len()).map(row).collect())
}

fn trace(log: &Log, payloads: &Payloads, nth: u64) -> Result<Trace, Error> {
    let (tell, told) = sync_channel(1);
    let entry = Entry {
        payload: vec![payloads.pick(nth)],
        ..Entry::default()
    };
    let done = move |result: longbow_log::Result<_>| {
        // Called by the log's thread, which has just written and synced. Somebody listens, or the benchmark has failed.
        let _ = tell.send((Instant::now(), last_calls(), result.map(|_| ())));
    };
    let began = Instant::now();
    log.append(entry, Box::new(done))?;
    let appended = Instant::now();
    let (completed, calls, result) = told.recv().map_err(|_| longbow_log::Error::Closed)?;
    let resumed = Instant::now();
    result?;
    // A log on another disk has no calls; its write then takes no time.
    let nothing = (completed, completed);
    let none = Calls {
        write: nothing,
        sync: nothing,
    };
    Ok(Trace {
        began,
        appended,
        calls: calls.unwrap_or(none),
        completed,
        resumed,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lens::Lens;
    use super::*;
    use longbow_log::{Options, SyncMode};
    use std::sync::Arc;

    #[test]
    fn stages_follow_each_other_without_gaps() {
        let began = Instant::now();
        let at = |us| began + Duration::from_micros(us);
        let mut trace = Trace {
            began,
            appended: at(3),
            calls: Calls {
                write: (at(10), at(15)),
                sync: (at(16), at(40)),
            },
            completed: at(42),
            resumed: at(50),
        };
        let us = |trace: &Trace| trace.stages().map(|took| took.as_micros());
        assert_eq!(us(&trace), [3, 7, 5, 3, 24, 8]);
        trace.appended = at(12);
        assert_eq!(us(&trace), [10, 0, 5, 3, 24, 8]);
    }

    #[test]
    fn the_stages_of_a_real_write_add_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            sync: SyncMode::EveryAck,
            ..Options::new(folder.path().join("log"))
        };
        let (log, _) = Log::open(Arc::new(Lens), options, 0, &mut |_| Ok(())).expect("opened");
        let rows = measure_stages(&log, &Payloads::new(100), 20).expect("measured");
        let share: f64 = rows.iter().map(|row| row.share).sum();
        assert!((share - 1.0).abs() < 0.01, "{rows:?}");
        for stage in ["write", "sync"] {
            let row = rows.iter().find(|row| row.stage == stage);
            assert!(row.is_some_and(|row| row.mean_us > 0.0), "{rows:?}");
        }
    }
}
