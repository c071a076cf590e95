//! One thing to be measured.

use std::time::Duration;

use longbow_log::{SyncMethod, SyncMode};

use longbow_log::frame_bytes;

/// How many hand-ins a pipelined caller keeps under way.
const PIPELINE_DEPTH: u64 = 4;

/// The most bytes that all callers together may have under way in an offered load. Beyond it a caller waits, and the
/// time it waits counts, because latency is taken from the moment the entry was due.
const OFFERED_BYTES: u64 = 128 << 20;

/// The most bytes that may be under way at all, which is what a log queues by default.
const MAX_UNDER_WAY: u64 = 1 << 30;

/// How a caller hands in entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Hands in a batch, waits for all of it, hands in the next.
    Blocking,
    /// The same, but the callers are tasks of one thread, as they are in a server, instead of a thread each.
    Tasks,
    /// Hands in a batch as soon as fewer than four are under way.
    Pipelined,
    /// All callers together hand in so many entries a second, whether or not the log keeps up.
    Offered(u64),
}

impl Mode {
    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Blocking => "blocking",
            Mode::Tasks => "tasks",
            Mode::Pipelined => "pipelined",
            Mode::Offered(_) => "offered",
        }
    }
}

/// When and how entries are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncing {
    /// A write, and `fdatasync` behind it, before the acknowledgement.
    Fdatasync,
    /// A write that is durable when it returns (`RWF_DSYNC`), before the acknowledgement.
    Dsync,
    /// The acknowledgement waits for the write only; `fdatasync` follows right behind, as it does by default in a server.
    Background,
    /// The acknowledgement waits for the write only, and nothing is synced: what syncing costs.
    None,
}

impl Syncing {
    /// All of them.
    pub const ALL: [Syncing; 4] = [
        Syncing::Fdatasync,
        Syncing::Dsync,
        Syncing::Background,
        Syncing::None,
    ];

    /// As in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Syncing::Fdatasync => "fdatasync",
            Syncing::Dsync => "dsync",
            Syncing::Background => "background",
            Syncing::None => "none",
        }
    }

    /// The log's mode. What is not synced yet is bounded as it is by default in a server.
    pub fn mode(self) -> SyncMode {
        match self {
            Syncing::Fdatasync | Syncing::Dsync => SyncMode::EveryAck,
            Syncing::Background => SyncMode::Background {
                max_unsynced_bytes: 256 << 20,
                max_unsynced_age: Duration::from_secs(1),
            },
            Syncing::None => SyncMode::Never,
        }
    }

    /// The log's method.
    pub fn method(self) -> SyncMethod {
        match self {
            Syncing::Dsync => SyncMethod::Dsync,
            Syncing::Fdatasync | Syncing::Background | Syncing::None => SyncMethod::Fdatasync,
        }
    }

    /// How the raw disk is measured that such a log is compared with: always with `fdatasync`, so that the methods can
    /// be compared with each other, except where nothing is synced at all.
    pub fn raw(self) -> Syncing {
        match self {
            Syncing::None => Syncing::None,
            Syncing::Fdatasync | Syncing::Dsync | Syncing::Background => Syncing::Fdatasync,
        }
    }
}

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// So many entries from each caller, rounded up to whole batches.
    Entries(u64),
    /// A stretch of time in the middle of the load; longer if nothing is acknowledged in it.
    Time(Duration),
}

/// How a log is kept while it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// When and how entries are made durable.
    pub sync: Syncing,
    /// The size of a segment file in bytes.
    pub segment_size: u64,
    /// How long the log's writer waits for more.
    pub linger: Duration,
}

/// One row of a report, to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What it is part of.
    pub test: &'static str,
    /// The log.
    pub keeping: Keeping,
    /// Threads, or tasks, that hand in entries.
    pub callers: u64,
    /// Entries in one hand-in.
    pub batch: u64,
    /// How they are handed in.
    pub mode: Mode,
    /// Payload bytes of an entry.
    pub entry_bytes: u64,
    /// How long.
    pub amount: Amount,
}

impl Case {
    /// How many hand-ins a caller may have under way, at least 1.
    pub fn depth(&self) -> u64 {
        match self.mode {
            Mode::Blocking | Mode::Tasks => 1,
            Mode::Pipelined => PIPELINE_DEPTH,
            Mode::Offered(_) => (OFFERED_BYTES / self.hand_in_bytes() / self.callers).max(1),
        }
    }

    fn hand_in_bytes(&self) -> u64 {
        self.batch * frame_bytes(self.entry_bytes)
    }

    /// Says what is wrong if it would put more under way than a log queues.
    pub fn check(&self) -> Result<(), String> {
        let under_way = self.callers * self.depth() * self.hand_in_bytes();
        if under_way <= MAX_UNDER_WAY {
            return Ok(());
        }
        Err(format!(
            "{} callers with {} hand-ins of {} entries of {} bytes each would have {under_way} bytes under way, \
             more than {MAX_UNDER_WAY}; lower --callers, --batch or --entry-bytes",
            self.callers,
            self.depth(),
            self.batch,
            self.entry_bytes
        ))
    }

    /// In one line, for a reader who waits.
    pub fn label(&self) -> String {
        let mode = match self.mode {
            Mode::Offered(rate) => format!("{rate} entries/s offered"),
            mode => mode.name().to_owned(),
        };
        format!(
            "{}: {} x {} {mode}, {} B, {}, segments of {} KiB, linger {} us",
            self.test,
            self.callers,
            self.batch,
            self.entry_bytes,
            self.keeping.sync.name(),
            self.keeping.segment_size >> 10,
            self.keeping.linger.as_micros()
        )
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A case to test with.
    pub fn case(callers: u64, batch: u64, mode: Mode) -> Case {
        let keeping = Keeping {
            sync: Syncing::Fdatasync,
            segment_size: 1 << 20,
            linger: Duration::ZERO,
        };
        Case {
            test: "t",
            keeping,
            callers,
            batch,
            mode,
            entry_bytes: 1024,
            amount: Amount::Entries(1),
        }
    }

    #[test]
    fn the_depth_of_a_mode() {
        assert_eq!(case(10, 100, Mode::Blocking).depth(), 1);
        assert_eq!(case(10, 100, Mode::Pipelined).depth(), 4);
        assert_eq!(case(2, 1, Mode::Offered(9)).depth(), (128 << 20) / 1088 / 2);
        assert_eq!(case(1, 1 << 20, Mode::Offered(9)).depth(), 1);
    }

    #[test]
    fn what_a_log_would_not_queue_is_refused() {
        assert_eq!(case(100, 1000, Mode::Pipelined).check(), Ok(()));
        let error = case(1000, 1000, Mode::Pipelined).check();
        let error = error.expect_err("4.4 GB");
        assert!(error.contains("4352000000 bytes"), "{error}");
    }
}
