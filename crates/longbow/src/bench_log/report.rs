//! What was measured, as JSON.

use serde::Serialize;

use super::case::{Case, Mode};
use super::meter::Span;
use super::raw::RawRow;
use super::recovery::RecoveryRow;
use super::stages::StageRow;
use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::median::median;

/// A whole report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of the program.
    pub longbow: &'static str,
    /// The command that made it.
    pub command: &'static str,
    /// Where it was made.
    pub machine: Machine,
    /// Bytes that were free on the disk before.
    pub disk_free_bytes: u64,
    /// The disk by itself, before everything else.
    pub raw: Vec<RawRow>,
    /// The log.
    pub rows: Vec<Row>,
    /// Where the time of one write goes; empty if that was not asked for.
    pub stages: Vec<StageRow>,
    /// How fast a log is read again; empty if that was not asked for.
    pub recovery: Vec<RecoveryRow>,
    /// What there was no time left for.
    pub skipped: Vec<String>,
    /// How long all of it took.
    pub seconds: f64,
}

/// One round of a case.
pub struct Round {
    /// What the log did.
    pub span: Span,
    /// How long hand-ins took.
    pub latencies: Histogram,
    /// The raw disk right after it, with as many bytes a sync; nothing if no sync ended in the round.
    pub raw: Option<RawRow>,
}

/// A case that was measured. Figures are the median of the rounds, but for `entries` (the sum) and `max_us` (the
/// largest). What could not be measured is null.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is part of.
    pub test: &'static str,
    /// Threads that hand in.
    pub callers: u64,
    /// Entries in one hand-in.
    pub batch: u64,
    /// `blocking`, `pipelined` or `offered`.
    pub mode: &'static str,
    /// `fdatasync`, `dsync`, `background` or `none`.
    pub sync: &'static str,
    /// Payload bytes of an entry.
    pub entry_bytes: u64,
    /// The size of a segment file.
    pub segment_size: u64,
    /// How long the writer waits for more.
    pub linger_us: u64,
    /// Entries a second that were offered.
    pub offered_per_s: Option<u64>,
    /// How many rounds there were.
    pub rounds: u64,
    /// Entries acknowledged in all rounds.
    pub entries: u64,
    /// Entries acknowledged in a second.
    pub entries_per_s: f64,
    /// Megabytes (10^6) of payload acknowledged in a second.
    pub mb_per_s: f64,
    /// Syncs in a second.
    pub syncs_per_s: f64,
    /// Entries that share a sync.
    pub entries_per_sync: Option<f64>,
    /// Bytes, framing included, that share a sync.
    pub bytes_per_sync: Option<f64>,
    /// From the hand-in of a batch, or from when it was due, to its last acknowledgement.
    pub p50_us: f64,
    /// As `p50_us`.
    pub p95_us: f64,
    /// As `p50_us`.
    pub p99_us: f64,
    /// As `p50_us`.
    pub max_us: f64,
    /// Bytes a second, framing included, as a share of what the raw disk does with as many bytes a sync, or a write where
    /// nothing is synced. Null for an offered load, whose throughput is given.
    pub ratio_to_raw: Option<f64>,
    /// A write of the raw disk with its sync.
    pub raw_p50_us: Option<f64>,
    /// As `raw_p50_us`.
    pub raw_p99_us: Option<f64>,
    /// Processor time of the process, callers included, for an entry.
    pub cpu_us_per_entry: Option<f64>,
}

impl Row {
    /// From the rounds of a case.
    pub fn new(case: &Case, rounds: &[Round]) -> Row {
        let over = |figure: &dyn Fn(&Round) -> Option<f64>| {
            median(rounds.iter().filter_map(figure)).map(rounded)
        };
        let rate = |figure: &dyn Fn(&Round) -> f64| {
            over(&|round| Some(figure(round) / round.span.seconds)).unwrap_or_default()
        };
        let at = |quantile: f64| {
            over(&|round| round.latencies.percentile_us(quantile)).unwrap_or_default()
        };
        let max = rounds.iter().filter_map(|round| round.latencies.max_us());
        let each = |figure: &dyn Fn(&Span) -> (f64, u64)| {
            over(&|round| {
                let (sum, count) = figure(&round.span);
                (count > 0).then(|| sum / count as f64)
            })
        };
        let offered = match case.mode {
            Mode::Offered(rate) => Some(rate),
            Mode::Blocking | Mode::Tasks | Mode::Pipelined => None,
        };
        Row {
            test: case.test,
            callers: case.callers,
            batch: case.batch,
            mode: case.mode.name(),
            sync: case.keeping.sync.name(),
            entry_bytes: case.entry_bytes,
            segment_size: case.keeping.segment_size,
            linger_us: u64::try_from(case.keeping.linger.as_micros()).unwrap_or(u64::MAX),
            offered_per_s: offered,
            rounds: rounds.len() as u64,
            entries: rounds.iter().map(|round| round.span.entries).sum(),
            entries_per_s: rate(&|round| round.span.entries as f64),
            mb_per_s: rate(&|round| (round.span.entries * case.entry_bytes) as f64 / 1e6),
            syncs_per_s: rate(&|round| round.span.syncs as f64),
            entries_per_sync: each(&|span| (span.entries as f64, span.syncs)),
            bytes_per_sync: over(&|round| Some(round.span.bytes_per_sync()? as f64)),
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: rounded(max.fold(0.0, f64::max)),
            ratio_to_raw: over(&|round| offered.is_none().then(|| ratio_to_raw(round)).flatten()),
            raw_p50_us: over(&|round| Some(round.raw.as_ref()?.p50_us)),
            raw_p99_us: over(&|round| Some(round.raw.as_ref()?.p99_us)),
            cpu_us_per_entry: each(&|span| (span.cpu_seconds * 1e6, span.entries)),
        }
    }
}

fn ratio_to_raw(round: &Round) -> Option<f64> {
    let raw = round.raw.as_ref()?;
    let log_rate = round.span.written_bytes as f64 / round.span.seconds;
    Some(log_rate / (raw.syncs_per_s * raw.bytes_per_sync as f64))
}

/// To three places, which is more than any figure here is worth.
pub fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::case::{Amount, Keeping, Syncing};
    use super::*;
    use std::time::Duration;

    fn round(entries: u64, syncs: u64, latency_us: u64, raw_syncs_per_s: f64) -> Round {
        let mut latencies = Histogram::new();
        latencies.note(Duration::from_micros(latency_us));
        let bytes = 1088 * entries;
        Round {
            span: Span {
                seconds: 2.0,
                cpu_seconds: 0.5,
                entries,
                writes: syncs,
                written_bytes: bytes,
                syncs,
                synced_bytes: bytes,
            },
            latencies,
            raw: (syncs > 0).then(|| RawRow {
                bytes_per_sync: bytes / syncs,
                sync: "fdatasync",
                syncs_per_s: raw_syncs_per_s,
                mb_per_s: 0.0,
                p50_us: 1.0,
                p95_us: 2.0,
                p99_us: 3.0,
                max_us: 4.0,
            }),
        }
    }

    fn case(mode: Mode) -> Case {
        Case {
            test: "t",
            keeping: Keeping {
                sync: Syncing::Fdatasync,
                segment_size: 1 << 20,
                linger: Duration::from_millis(1),
            },
            callers: 2,
            batch: 10,
            mode,
            entry_bytes: 1000,
            amount: Amount::Time(Duration::from_secs(2)),
        }
    }

    #[test]
    fn a_row_is_the_median_of_its_rounds() {
        let rounds = [
            round(1000, 100, 5000, 100.0),
            round(4000, 100, 1000, 100.0),
            round(2000, 50, 3000, 50.0),
        ];
        let row = Row::new(&case(Mode::Pipelined), &rounds);
        assert_eq!((row.entries, row.rounds, row.linger_us), (7000, 3, 1000));
        assert_eq!((row.entries_per_s, row.mb_per_s), (1000.0, 1.0));
        assert_eq!((row.syncs_per_s, row.entries_per_sync), (50.0, Some(40.0)));
        assert_eq!(row.bytes_per_sync, Some(43_520.0));
        assert_eq!((row.p50_us, row.max_us), (3000.0, 5000.0));
        assert_eq!((row.ratio_to_raw, row.raw_p99_us), (Some(0.5), Some(3.0)));
        assert_eq!(row.cpu_us_per_entry, Some(250.0));
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let row = Row::new(&case(Mode::Blocking), &[round(0, 0, 1, 1.0)]);
        assert_eq!((row.entries_per_sync, row.ratio_to_raw), (None, None));
        assert_eq!((row.cpu_us_per_entry, row.raw_p99_us), (None, None));
        let row = Row::new(&case(Mode::Offered(700)), &[round(10, 1, 1, 1.0)]);
        assert_eq!((row.ratio_to_raw, row.offered_per_s), (None, Some(700)));
        let json = serde_json::to_value(&row).expect("JSON");
        assert!(json["ratio_to_raw"].is_null() && json["mode"] == "offered");
    }
}
