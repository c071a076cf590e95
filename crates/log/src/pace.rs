//! How far and how fast a log is read when it is opened.

use std::time::Instant;

/// How often it is told, in microseconds.
const INTERVAL_US: u64 = 1_000_000;

/// The clock is asked whenever so many bytes were read.
const LOOK_BYTES: u64 = 64 << 10;

/// What a frame counts for besides its bytes, so that the clock is asked among small ones too.
const FRAME_BYTES: u64 = 1 << 10;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Report {
    /// Bytes read.
    bytes: u64,
    entries: u64,
    seconds: f64,
    /// Megabytes (10^6) in a second, since the beginning.
    mb_per_s: f64,
}

/// Counts what is read, and traces it once a second.
pub(crate) struct Pace {
    /// Microseconds since some moment.
    clock: Box<dyn Fn() -> u64>,
    begun_us: u64,
    told_us: u64,
    of_bytes: u64,
    bytes: u64,
    entries: u64,
    /// Bytes since the clock was asked.
    unseen: u64,
}

impl Pace {
    /// Nothing of so many bytes is read so far.
    pub(crate) fn begin(of_bytes: u64) -> Pace {
        // Not the log's clock, which may be anything and be set.
        let began = Instant::now();
        let clock = move || u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Pace::with_clock(Box::new(clock), of_bytes)
    }

    fn with_clock(clock: Box<dyn Fn() -> u64>, of_bytes: u64) -> Pace {
        let begun_us = clock();
        Pace {
            clock,
            begun_us,
            told_us: begun_us,
            of_bytes,
            bytes: 0,
            entries: 0,
            unseen: 0,
        }
    }

    /// A frame of so many bytes was read.
    pub(crate) fn frame(&mut self, bytes: u64, mark: bool) {
        self.entries += u64::from(!mark);
        self.pass(bytes);
    }

    /// So many bytes are no frames.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.pass(bytes);
    }

    fn pass(&mut self, bytes: u64) {
        if let Some(report) = self.due(bytes) {
            tracing::info!(
                bytes = report.bytes,
                of_bytes = self.of_bytes,
                entries = report.entries,
                mb_per_s = report.mb_per_s,
                "reading the log"
            );
        }
    }

    /// Counts bytes; answers what is to be told now, if anything is.
    fn due(&mut self, bytes: u64) -> Option<Report> {
        self.bytes += bytes;
        self.unseen += bytes + FRAME_BYTES;
        if self.unseen < LOOK_BYTES {
            return None;
        }
        self.unseen = 0;
        let now = (self.clock)();
        if now.saturating_sub(self.told_us) < INTERVAL_US {
            return None;
        }
        self.told_us = now;
        Some(self.report(now))
    }

    fn report(&self, now: u64) -> Report {
        let took_us = now.saturating_sub(self.begun_us);
        // Bytes in a microsecond are megabytes in a second.
        let rate = self.bytes as f64 / took_us.max(1) as f64;
        Report {
            bytes: self.bytes,
            entries: self.entries,
            seconds: took_us as f64 / 1e6,
            mb_per_s: (rate * 10.0).round() / 10.0,
        }
    }

    /// All of it was read, and what it holds was taken.
    pub(crate) fn end(&self) {
        let report = self.report((self.clock)());
        tracing::info!(
            bytes = report.bytes,
            entries = report.entries,
            seconds = report.seconds,
            mb_per_s = report.mb_per_s,
            "read the log"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn clock() -> (Arc<AtomicU64>, Box<dyn Fn() -> u64>) {
        let now = Arc::new(AtomicU64::new(5_000_000));
        let read = now.clone();
        (now, Box::new(move || read.load(Ordering::Relaxed)))
    }

    #[test]
    fn a_report_is_due_once_a_second_with_the_rate_so_far() {
        let (now, clock) = clock();
        let mut pace = Pace::with_clock(clock, 100 << 20);
        let mut reports = Vec::new();
        // 1 MB in each tenth of a second.
        for _ in 0..25 {
            now.fetch_add(100_000, Ordering::Relaxed);
            pace.entries += 1;
            reports.extend(pace.due(1_000_000));
        }
        let report = |entries, seconds| Report {
            bytes: entries * 1_000_000,
            entries,
            seconds,
            mb_per_s: 10.0,
        };
        assert_eq!(reports, [report(10, 1.0), report(20, 2.0)]);
        assert_eq!(pace.report(now.load(Ordering::Relaxed)), report(25, 2.5));
    }

    #[test]
    fn small_frames_are_told_too_and_a_clock_that_goes_back_tells_nothing() {
        let (now, clock) = clock();
        let mut pace = Pace::with_clock(clock, 1000);
        now.store(6_000_000, Ordering::Relaxed);
        assert!((0..64).any(|_| pace.due(64).is_some()));
        now.store(1_000_000, Ordering::Relaxed);
        assert!((0..64).all(|_| pace.due(64).is_none()));
        assert_eq!(pace.report(now.load(Ordering::Relaxed)).seconds, 0.0);
    }
}
