//! Callers that hand entries to a log, and what they see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longbow_log::{Ack, Entry, Log};
use tokio::sync::oneshot;

use super::case::{Amount, Case, Mode, Syncing};
use super::error::Error;
use super::meter::{Meter, Span};
use crate::histogram::Histogram;

/// Payloads take so many bytes together: more than a processor keeps near, so that checksums are not flattered.
const POOL_BYTES: u64 = 16 << 20;

/// The most payloads in a pool.
const MAX_PAYLOADS: u64 = 4096;

/// The longest that a caller sleeps before it looks whether the load has ended.
const NAP: Duration = Duration::from_millis(20);

/// Different bytes that no disk can compress.
pub struct Payloads {
    entry_bytes: u64,
    pool: Vec<Bytes>,
}

impl Payloads {
    /// For entries of so many bytes.
    pub fn new(entry_bytes: u64) -> Payloads {
        let count = (POOL_BYTES / entry_bytes.max(1)).clamp(1, MAX_PAYLOADS);
        // Given away for good: counting references to thousands of payloads would be measured too.
        let pool = (0..count).map(|nth| {
            let payload: &'static [u8] = noise(entry_bytes, nth + 1).to_vec().leak();
            Bytes::from_static(payload)
        });
        let pool = pool.collect();
        Payloads { entry_bytes, pool }
    }

    /// How long each is.
    pub fn entry_bytes(&self) -> u64 {
        self.entry_bytes
    }

    /// One of them.
    pub fn pick(&self, nth: u64) -> Bytes {
        self.pool[(nth % self.pool.len() as u64) as usize].clone()
    }
}

/// Bytes by xorshift64 (Marsaglia, 2003).
pub fn noise(len: u64, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len as usize);
    Bytes::from(bytes)
}

/// A caller is warm after so many hand-ins.
const WARM_HAND_INS: u64 = 512;

/// How long callers are waited for that take longer to become warm: few entries a second may be all that is offered.
const LONGEST_WARM_UP: Duration = Duration::from_secs(1);

/// What all callers of a load share.
#[derive(Default)]
struct Tally {
    measuring: AtomicBool,
    stop: AtomicBool,
    failure: Mutex<Option<longbow_log::Error>>,
}

impl Tally {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn measure(&self, on: bool) {
        self.measuring.store(on, Ordering::Relaxed);
    }

    fn fail(&self, error: longbow_log::Error) {
        self.stop();
        held(&self.failure).get_or_insert(error);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that hands in, how many of its hand-ins are under way, and what became of the others.
struct Caller {
    tally: Arc<Tally>,
    /// Itself, once it runs.
    thread: OnceLock<Thread>,
    under_way: AtomicU64,
    acked: AtomicU64,
    /// Its own, so that callers do not wait for each other.
    latencies: Mutex<Histogram>,
}

impl Caller {
    fn new(tally: &Arc<Tally>) -> Arc<Caller> {
        Arc::new(Caller {
            tally: tally.clone(),
            thread: OnceLock::new(),
            under_way: AtomicU64::new(0),
            acked: AtomicU64::new(0),
            latencies: Mutex::new(Histogram::new()),
        })
    }

    fn wait_below(&self, limit: u64) {
        while self.under_way.load(Ordering::Acquire) >= limit {
            thread::park();
        }
    }

    /// A hand-in of so many entries is complete.
    fn note(&self, result: longbow_log::Result<Ack>, began: Instant, entries: u64) {
        let latency = began.elapsed();
        if let Err(error) = result {
            self.tally.fail(error);
        }
        self.acked.fetch_add(entries, Ordering::Relaxed);
        if self.tally.measuring.load(Ordering::Relaxed) {
            held(&self.latencies).note(latency);
        }
    }

    /// The same, of one that the caller did not wait for.
    fn note_later(&self, result: longbow_log::Result<Ack>, began: Instant, entries: u64) {
        self.note(result, began, entries);
        self.under_way.fetch_sub(1, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Entries that all callers were told of.
fn acked(callers: &[Arc<Caller>]) -> u64 {
    let each = callers.iter().map(|c| c.acked.load(Ordering::Relaxed));
    each.sum()
}

/// What all callers measured together.
fn latencies(callers: &[Arc<Caller>]) -> Histogram {
    let mut all = Histogram::new();
    callers.iter().for_each(|c| all.add(&held(&c.latencies)));
    all
}

/// A load on a log.
pub struct Load<'a> {
    /// The log.
    pub log: &'a Log,
    /// Its observer.
    pub meter: &'a Meter,
    /// What to do.
    pub case: &'a Case,
    /// With what.
    pub payloads: &'a Payloads,
    /// How long to run before a stretch of time is measured.
    pub warm_up: Duration,
}

impl Load<'_> {
    /// Carries it out. The latencies are those of whole hand-ins; of an offered load, from when they were due.
    pub fn run(&self) -> Result<(Span, Histogram), Error> {
        let tally = Arc::new(Tally::default());
        let callers: Vec<_> = (0..self.case.callers)
            .map(|_| Caller::new(&tally))
            .collect();
        let mark = || self.meter.mark(acked(&callers));
        let span = match self.case.amount {
            Amount::Time(time) => self.with_callers(&callers, &tally, || {
                thread::sleep(self.warm_up);
                self.wait_until_warm(&callers, &tally);
                tally.measure(true);
                let from = mark();
                thread::sleep(time);
                let mut span = Span::between(from, mark());
                while !self.says_something(&span, &callers) && !tally.stopped() {
                    thread::sleep(NAP);
                    span = Span::between(from, mark());
                }
                tally.measure(false);
                span
            })?,
            Amount::Entries(_) => {
                tally.measure(true);
                let from = mark();
                self.with_callers(&callers, &tally, || ())?;
                Span::between(from, mark())
            }
        };
        match held(&tally.failure).take() {
            Some(error) => Err(error.into()),
            None => Ok((span, latencies(&callers))),
        }
    }

    /// Waits until the memory that each caller needs was touched before: the system clears it by megabytes at the first touch,
    /// which for a hundred new threads takes half a second.
    fn wait_until_warm(&self, callers: &[Arc<Caller>], tally: &Tally) {
        let enough = WARM_HAND_INS * self.case.batch;
        let is_warm = |caller: &Arc<Caller>| caller.acked.load(Ordering::Relaxed) >= enough;
        let latest = Instant::now() + LONGEST_WARM_UP;
        while !callers.iter().all(is_warm) && !tally.stopped() && Instant::now() < latest {
            thread::sleep(NAP);
        }
    }

    /// Whether there is anything to be told: on a disk that is slower than the stretch is long it takes longer.
    fn says_something(&self, span: &Span, callers: &[Arc<Caller>]) -> bool {
        let synced = span.syncs > 0 || self.case.keeping.sync == Syncing::None;
        span.entries > 0 && synced && latencies(callers).max_us().is_some()
    }

    /// Lets the callers run beside `meanwhile`, and until they are done. A load that is measured by time ends with it.
    fn with_callers<T>(
        &self,
        callers: &[Arc<Caller>],
        tally: &Tally,
        meanwhile: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        let begin = Instant::now();
        thread::scope(|scope| {
            let threads = match self.case.mode {
                Mode::Tasks => 1,
                _ => callers.len(),
            };
            for nth in 0..threads {
                let run = move || match self.case.mode {
                    Mode::Tasks => self.call_as_tasks(callers),
                    _ => self.call(nth as u64, begin, &callers[nth]),
                };
                let spawned = thread::Builder::new().spawn_scoped(scope, run);
                if let Err(cause) = spawned {
                    tally.stop();
                    let number = nth as u64 + 1;
                    return Err(Error::Thread { number, cause });
                }
            }
            let result = meanwhile();
            if matches!(self.case.amount, Amount::Time(_)) {
                tally.stop();
            }
            Ok(result)
        })
    }

    /// The life of a caller.
    fn call(&self, nth: u64, begin: Instant, caller: &Arc<Caller>) {
        caller.thread.get_or_init(thread::current);
        let depth = self.case.depth();
        for hand_in in 0..self.hand_ins() {
            caller.wait_below(depth);
            let began = match self.case.mode {
                Mode::Offered(rate) => {
                    let due = begin + due_after(self.case, rate, hand_in, nth);
                    wait_until(due, &caller.tally);
                    due
                }
                Mode::Blocking | Mode::Tasks | Mode::Pipelined => Instant::now(),
            };
            if caller.tally.stopped() {
                break;
            }
            self.hand_in(caller, began, nth + hand_in * self.case.batch);
        }
        caller.wait_below(1);
    }

    /// The lives of all callers, on this thread.
    fn call_as_tasks(&self, callers: &[Arc<Caller>]) {
        let tasks = (0..).zip(callers).map(|(nth, caller)| async move {
            for hand_in in 0..self.hand_ins() {
                if caller.tally.stopped() {
                    break;
                }
                let began = Instant::now();
                let (tell, told) = oneshot::channel();
                let done = move |result| {
                    // Somebody listens, or the load has failed.
                    let _ = tell.send(result);
                };
                let entries = self.entries(nth + hand_in * self.case.batch);
                // A refusal reaches the completion too.
                let _ = self.log.append_all(entries, Box::new(done));
                let result = told.await.unwrap_or(Err(longbow_log::Error::Closed));
                caller.note(result, began, self.case.batch);
            }
        });
        futures::executor::block_on(futures::future::join_all(tasks));
    }

    /// How many hand-ins each caller makes, if nothing ends them earlier.
    fn hand_ins(&self) -> u64 {
        match self.case.amount {
            Amount::Entries(entries) => entries.div_ceil(self.case.batch),
            Amount::Time(_) => u64::MAX,
        }
    }

    /// The entries of a hand-in.
    fn entries(&self, first: u64) -> impl Iterator<Item = Entry> {
        (first..first + self.case.batch).map(|nth| Entry {
            payload: vec![self.payloads.pick(nth)],
            ..Entry::default()
        })
    }

    fn hand_in(&self, caller: &Arc<Caller>, began: Instant, first: u64) {
        let entries = self.case.batch;
        if self.case.mode == Mode::Blocking {
            let result = self.log.append_and_wait(self.entries(first));
            return caller.note(result, began, entries);
        }
        caller.under_way.fetch_add(1, Ordering::Relaxed);
        let waiting = caller.clone();
        let done = move |result| waiting.note_later(result, began, entries);
        // A refusal reaches the completion too, which notes it.
        let _ = self.log.append_all(self.entries(first), Box::new(done));
    }
}

/// When a hand-in of a caller is due: those of all callers follow each other at equal distances.
fn due_after(case: &Case, rate: u64, hand_in: u64, caller: u64) -> Duration {
    let before = hand_in * case.callers + caller;
    Duration::from_secs_f64((before * case.batch) as f64 / rate as f64)
}

/// Sleeps until a moment or until the load ends.
fn wait_until(due: Instant, tally: &Tally) {
    while !tally.stopped() {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(NAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longbow_disk::{Fault, FaultyDisk, MemoryDisk, Operation};
    use longbow_log::Options;

    fn case(callers: u64, batch: u64, mode: Mode, entries: u64) -> Case {
        Case {
            entry_bytes: 100,
            amount: Amount::Entries(entries),
            ..super::super::case::tests::case(callers, batch, mode)
        }
    }

    fn run(
        case: &Case,
        disk: Arc<dyn longbow_disk::Disk>,
    ) -> Result<(Span, Histogram, u64), Error> {
        let meter = Arc::new(Meter::default());
        let options = Options {
            sync: case.keeping.sync.mode(),
            observer: meter.clone(),
            ..Options::new("log")
        };
        let (log, _) = Log::open(disk, options, 0, &mut |_| Ok(()))?;
        let load = Load {
            log: &log,
            meter: &meter,
            case,
            payloads: &Payloads::new(100),
            warm_up: Duration::ZERO,
        };
        let (span, latencies) = load.run()?;
        Ok((span, latencies, log.durable_index()))
    }

    #[test]
    fn every_entry_is_handed_in_and_counted_once() {
        for (callers, batch, mode) in [
            (1, 1, Mode::Blocking),
            (4, 10, Mode::Blocking),
            (5, 2, Mode::Tasks),
            (3, 10, Mode::Pipelined),
            (2, 5, Mode::Offered(1_000_000)),
        ] {
            let case = case(callers, batch, mode, 100);
            let (span, latencies, durable) = run(&case, Arc::new(MemoryDisk::new())).expect("ran");
            assert_eq!((span.entries, durable), (callers * 100, callers * 100));
            assert!(span.syncs >= 1 && span.syncs <= span.entries, "{span:?}");
            assert_eq!(span.written_bytes, span.entries * 168);
            assert!(latencies.max_us().is_some_and(|us| us > 0.0));
        }
    }

    #[test]
    fn whole_batches_are_handed_in() {
        let case = case(1, 64, Mode::Blocking, 100);
        let (span, _, _) = run(&case, Arc::new(MemoryDisk::new())).expect("ran");
        assert_eq!(span.entries, 128);
    }

    #[test]
    fn one_blocking_caller_gets_a_sync_for_each_entry() {
        let case = case(1, 1, Mode::Blocking, 50);
        let (span, _, _) = run(&case, Arc::new(MemoryDisk::new())).expect("ran");
        assert_eq!(span.syncs, 50);
    }

    #[test]
    fn a_stretch_of_time_lasts_until_there_is_something_to_tell() {
        for mode in [
            Mode::Blocking,
            Mode::Tasks,
            Mode::Pipelined,
            Mode::Offered(100),
        ] {
            let case = Case {
                amount: Amount::Time(Duration::ZERO),
                ..case(2, 3, mode, 0)
            };
            let (span, latencies, durable) = run(&case, Arc::new(MemoryDisk::new())).expect("ran");
            assert!(span.entries > 0 && span.syncs > 0, "{span:?}");
            assert!(latencies.max_us().is_some() && durable >= span.entries);
        }
    }

    #[test]
    fn a_disk_that_fails_ends_the_load_with_its_error() {
        for mode in [
            Mode::Blocking,
            Mode::Tasks,
            Mode::Pipelined,
            Mode::Offered(1_000_000),
        ] {
            let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
            let case = Case {
                amount: Amount::Time(Duration::from_millis(5)),
                ..case(3, 2, mode, 0)
            };
            let failing = disk.clone();
            let meter = Arc::new(Meter::default());
            let options = Options {
                sync: case.keeping.sync.mode(),
                observer: meter.clone(),
                prepared_segments: 0,
                ..Options::new("log")
            };
            let (log, _) = Log::open(Arc::new(disk), options, 0, &mut |_| Ok(())).expect("opened");
            failing.fail_always(Operation::Sync, Fault::Io);
            let load = Load {
                log: &log,
                meter: &meter,
                case: &case,
                payloads: &Payloads::new(100),
                warm_up: Duration::ZERO,
            };
            let error = load.run().map(|_| ()).expect_err("no sync succeeds");
            assert!(error.to_string().contains("injected"), "{error}");
        }
    }

    #[test]
    fn offered_entries_are_due_at_equal_distances() {
        let case = case(4, 5, Mode::Offered(1000), 1);
        let due = |hand_in, caller| due_after(&case, 1000, hand_in, caller);
        assert_eq!(due(0, 0), Duration::ZERO);
        assert_eq!(due(0, 3), Duration::from_millis(15));
        assert_eq!(due(1, 0), Duration::from_millis(20));
        assert_eq!(due(50, 1), Duration::from_millis(1005));
    }
}
