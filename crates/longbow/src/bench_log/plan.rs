//! Which cases a command measures, in which order.

use std::time::Duration;

use super::case::{Amount, Case, Keeping, Mode, Syncing};

/// What was asked for on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One caller, as fast as it can.
    Throughput,
    /// One caller that waits for each entry.
    Latency,
    /// Many callers.
    Concurrent,
    /// Where the time of one write goes.
    Stages,
    /// How fast a log is read again.
    Recovery,
    /// All of it.
    Report,
}

impl What {
    /// All of them.
    pub const ALL: [What; 6] = [
        What::Throughput,
        What::Latency,
        What::Concurrent,
        What::Stages,
        What::Recovery,
        What::Report,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            What::Throughput => "throughput",
            What::Latency => "latency",
            What::Concurrent => "concurrent",
            What::Stages => "stages",
            What::Recovery => "recovery",
            What::Report => "report",
        }
    }
}

/// What is varied. The first of each list is what the rows have that vary something else.
#[derive(Debug, Clone, PartialEq)]
pub struct Axes {
    /// Threads that hand in.
    pub callers: Vec<u64>,
    /// Entries in one hand-in.
    pub batch: Vec<u64>,
    /// How they are handed in.
    pub modes: Vec<Mode>,
    /// How they are made durable.
    pub syncs: Vec<Syncing>,
    /// Sizes of segment files.
    pub segment_sizes: Vec<u64>,
    /// How long the log's writer waits for more.
    pub lingers: Vec<Duration>,
    /// Offered loads of a report, in entries a second.
    pub rates: Vec<u64>,
    /// Payload bytes of an entry.
    pub entry_bytes: u64,
    /// How long each is measured.
    pub amount: Amount,
}

/// Payload bytes of the large entries in a report.
const LARGE_ENTRY: u64 = 1 << 20;

/// Callers and batch of the rows of a report that compare ways to keep a log under load.
const LOADED: (u64, u64) = (10, 100);

impl Axes {
    fn keeping(&self) -> Keeping {
        Keeping {
            sync: self.syncs[0],
            segment_size: self.segment_sizes[0],
            linger: self.lingers[0],
        }
    }

    fn case(&self, test: &'static str, callers: u64, batch: u64, mode: Mode) -> Case {
        Case {
            test,
            keeping: self.keeping(),
            callers,
            batch,
            mode,
            entry_bytes: self.entry_bytes,
            amount: self.amount,
        }
    }

    /// The cases of a command that is not a report: everything with everything.
    pub fn product(&self, what: What) -> Vec<Case> {
        let mut cases = Vec::new();
        for sync in &self.syncs {
            for segment_size in &self.segment_sizes {
                for linger in &self.lingers {
                    let keeping = Keeping {
                        sync: *sync,
                        segment_size: *segment_size,
                        linger: *linger,
                    };
                    let matrix = self.matrix(what.name());
                    cases.extend(matrix.into_iter().map(|case| Case { keeping, ..case }));
                }
            }
        }
        cases
    }

    /// Callers by batches by modes.
    fn matrix(&self, test: &'static str) -> Vec<Case> {
        let mut cases = Vec::new();
        for mode in &self.modes {
            for callers in &self.callers {
                for batch in &self.batch {
                    cases.push(self.case(test, *callers, *batch, *mode));
                }
            }
        }
        cases
    }

    /// The cases of a report. Those that share a log follow each other.
    pub fn report(&self) -> Vec<Case> {
        let mut cases = self.matrix("matrix");
        for mode in [Mode::Blocking, Mode::Pipelined] {
            cases.push(Case {
                entry_bytes: LARGE_ENTRY,
                ..self.case("large_entries", 1, 1, mode)
            });
        }
        for rate in &self.rates {
            cases.push(self.case("offered", 1, 1, Mode::Offered(*rate)));
        }
        let keeping = self.keeping();
        let loaded = |test| self.case(test, LOADED.0, LOADED.1, Mode::Pipelined);
        for segment_size in self.segment_sizes.iter().copied() {
            cases.push(Case {
                keeping: Keeping {
                    segment_size,
                    ..keeping
                },
                ..loaded("segment_size")
            });
        }
        for sync in self.syncs.iter().copied() {
            let keeping = Keeping { sync, ..keeping };
            let alone = self.case("sync", 1, 1, Mode::Blocking);
            cases.extend([alone, loaded("sync")].map(|case| Case { keeping, ..case }));
        }
        for linger in self.lingers.iter().copied() {
            let keeping = Keeping { linger, ..keeping };
            let rate = self.rates[self.rates.len() / 2];
            let offered = self.case("linger", 1, 1, Mode::Offered(rate));
            let full = loaded("linger");
            cases.extend([offered, full].map(|case| Case { keeping, ..case }));
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Axes {
        Axes {
            callers: vec![1, 10, 50],
            batch: vec![1, 100],
            modes: vec![Mode::Blocking, Mode::Pipelined],
            syncs: Syncing::ALL.to_vec(),
            segment_sizes: vec![64 << 20, 16 << 20],
            lingers: vec![Duration::ZERO, Duration::from_millis(1)],
            rates: vec![1000, 10_000, 50_000],
            entry_bytes: 1024,
            amount: Amount::Entries(100),
        }
    }

    #[test]
    fn a_report_has_the_whole_matrix_and_varies_one_thing_at_a_time() {
        let axes = axes();
        let cases = axes.report();
        let of = |test| cases.iter().filter(move |case| case.test == test);
        assert_eq!(of("matrix").count(), 3 * 2 * 2);
        assert!(of("matrix").any(|c| (c.callers, c.batch, c.mode) == (50, 100, Mode::Blocking)));
        assert!(of("matrix").all(|case| case.keeping == axes.keeping()));
        assert_eq!(of("large_entries").count(), 2);
        assert_eq!(of("offered").count(), 3);
        let sizes: Vec<u64> = of("segment_size").map(|c| c.keeping.segment_size).collect();
        assert_eq!(sizes, axes.segment_sizes);
        assert_eq!(of("sync").count(), 8);
        assert_eq!(of("linger").count(), 4);
        assert!(of("linger").any(|case| case.mode == Mode::Offered(10_000)));
        let known: usize = [
            "matrix",
            "large_entries",
            "offered",
            "segment_size",
            "sync",
            "linger",
        ]
        .map(|test| of(test).count())
        .iter()
        .sum();
        assert_eq!(known, cases.len());
        assert!(cases.iter().all(|case| case.check().is_ok()));
    }

    #[test]
    fn a_log_is_not_opened_anew_more_often_than_it_is_varied() {
        let cases = axes().report();
        let changes = cases
            .windows(2)
            .filter(|pair| pair[0].keeping != pair[1].keeping);
        // One other size, back for the first sync, three other syncs, back for the first linger, one other linger.
        assert_eq!(changes.count(), 7);
    }

    #[test]
    fn another_command_measures_everything_with_everything() {
        let axes = axes();
        let cases = axes.product(What::Concurrent);
        assert_eq!(cases.len(), 3 * 2 * 2 * 4 * 2 * 2);
        assert!(cases.iter().all(|case| case.test == "concurrent"));
        let distinct = cases
            .iter()
            .enumerate()
            .filter(|(i, case)| !cases[..*i].contains(case));
        assert_eq!(distinct.count(), cases.len());
    }
}
