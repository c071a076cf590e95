//! Counters of what the log and the process do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use longbow_log::Observer;
use longbow_types::cpu_time;

/// Counts the log's writes and syncs.
#[derive(Default)]
pub struct Meter {
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    synced_bytes: AtomicU64,
}

impl Observer for Meter {
    fn written(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn synced(&self, _took: Duration, bytes: u64) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// All counters at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    at: Instant,
    cpu: Duration,
    entries: u64,
    writes: u64,
    written_bytes: u64,
    syncs: u64,
    synced_bytes: u64,
}

impl Meter {
    /// The counters now; so many entries are acknowledged.
    pub fn mark(&self, entries: u64) -> Mark {
        Mark {
            at: Instant::now(),
            cpu: cpu_time::of_process(),
            entries,
            writes: self.writes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
            synced_bytes: self.synced_bytes.load(Ordering::Relaxed),
        }
    }
}

/// What happened between two marks.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Its length.
    pub seconds: f64,
    /// Processor time of the whole process, callers included, in seconds.
    pub cpu_seconds: f64,
    /// Entries acknowledged.
    pub entries: u64,
    /// Writes of the log, however many entries each.
    pub writes: u64,
    /// Bytes handed to the system, framing included.
    pub written_bytes: u64,
    /// Syncs that ended.
    pub syncs: u64,
    /// Bytes that they made durable, framing included.
    pub synced_bytes: u64,
}

impl Span {
    /// From one mark to a later one.
    pub fn between(from: Mark, to: Mark) -> Span {
        Span {
            seconds: (to.at - from.at).as_secs_f64(),
            cpu_seconds: to.cpu.saturating_sub(from.cpu).as_secs_f64(),
            entries: to.entries - from.entries,
            writes: to.writes - from.writes,
            written_bytes: to.written_bytes - from.written_bytes,
            syncs: to.syncs - from.syncs,
            synced_bytes: to.synced_bytes - from.synced_bytes,
        }
    }

    /// Bytes of a write, in the mean; `None` if there was none.
    pub fn bytes_per_write(&self) -> Option<u64> {
        self.written_bytes.checked_div(self.writes)
    }

    /// Bytes that a sync made durable, in the mean; `None` if no sync ended.
    pub fn bytes_per_sync(&self) -> Option<u64> {
        self.synced_bytes
            .checked_div(self.syncs)
            .filter(|bytes| *bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_the_difference_of_two_marks() {
        let meter = Meter::default();
        meter.written(500);
        let from = meter.mark(10);
        meter.written(1000);
        meter.written(2000);
        meter.synced(Duration::ZERO, 3000);
        meter.synced(Duration::ZERO, 0);
        let span = Span::between(from, meter.mark(25));
        assert_eq!((span.entries, span.syncs), (15, 2));
        assert_eq!((span.written_bytes, span.synced_bytes), (3000, 3000));
        assert_eq!(span.bytes_per_sync(), Some(1500));
        assert_eq!((span.writes, span.bytes_per_write()), (2, Some(1500)));
        assert!(span.seconds >= 0.0 && span.cpu_seconds >= 0.0);
        let empty = Span::between(from, from);
        assert_eq!(empty.bytes_per_sync(), None);
    }
}
