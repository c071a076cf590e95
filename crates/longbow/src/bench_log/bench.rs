//! A folder with a log and a raw file in it, measured in turns.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use longbow_disk::{Disk, RealDisk};
use longbow_log::{Entry, Log, Options, frame_bytes};

use super::case::{Amount, Case, Keeping, Syncing};
use super::error::Error;
use super::lens::Lens;
use super::load::{Load, Payloads, noise};
use super::meter::Meter;
use super::raw::{RawFile, RawRow};
use super::recovery::{RecoveryRow, measure_recovery};
use super::report::{Round, Row};
use super::stages::{StageRow, measure_stages};
use crate::scratch::Scratch;

/// How often segments that are durable are purged, as checkpoints do it in a server.
const PURGE_EVERY: Duration = Duration::from_millis(20);

/// Payload bytes of the entries that fill a new log's first segment.
const FILLER: u64 = 1 << 20;

/// Segments that a log holds at most while it is measured, spare ones and those that wait to be purged included.
const SEGMENTS: u64 = 12;

/// How often and how long each case is measured.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Rounds of a case; figures are the median of theirs.
    pub repeat: u64,
    /// How long a load runs before it is measured.
    pub warm_up: Duration,
    /// How long the raw disk is measured after each round.
    pub raw: Duration,
}

/// A place to measure in. Its folder goes with it.
pub struct Bench {
    rounds: Rounds,
    running: Option<Running>,
    raw: Option<RawFile>,
    payloads: Option<Payloads>,
    // Last, so that it goes when nothing in it is open any more.
    folder: Scratch,
}

impl Bench {
    /// Makes a folder of its own in `dir`, which is created if it is missing.
    pub fn new(dir: &Path, largest_segment: u64, rounds: Rounds) -> Result<Bench, Error> {
        RealDisk.create_dir_all(dir)?;
        let free = RealDisk.free_space(dir)?;
        let needed = largest_segment.saturating_mul(SEGMENTS + 1);
        if free < needed {
            let folder = dir.to_path_buf();
            return Err(Error::Space {
                folder,
                free,
                needed,
            });
        }
        Ok(Bench {
            rounds,
            running: None,
            raw: None,
            payloads: None,
            folder: Scratch::create(dir)?,
        })
    }

    /// Bytes that are free on its disk.
    pub fn free_space(&self) -> Result<u64, Error> {
        Ok(RealDisk.free_space(&self.folder.path)?)
    }

    /// The raw disk by itself.
    pub fn raw(&mut self, segment_size: u64, bytes: u64, sync: Syncing) -> Result<RawRow, Error> {
        let raw = raw_file(&mut self.raw, &self.folder.path, segment_size.max(bytes))?;
        raw.measure(bytes, sync, self.rounds.raw)
    }

    /// Measures a case, in rounds: the log, then the raw disk with as many bytes a sync, so that both see the same moods
    /// of the disk.
    pub fn measure(&mut self, case: &Case) -> Result<Row, Error> {
        let running = running(&mut self.running, &self.folder.path, case.keeping)?;
        let payloads = payloads(&mut self.payloads, case.entry_bytes);
        let warm_up = Case {
            amount: Amount::Time(Duration::ZERO),
            ..case.clone()
        };
        let load = |case| Load {
            log: &running.log,
            meter: &running.meter,
            case,
            payloads,
            warm_up: self.rounds.warm_up,
        };
        if matches!(case.amount, Amount::Entries(_)) {
            load(&warm_up).run()?;
        }
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.repeat {
            let (span, latencies) = load(case).run()?;
            // Where acknowledgements don't wait for the disk, it must not be busy with them any more.
            running.log.sync()?;
            running.check()?;
            let sync = case.keeping.sync.raw();
            let bytes = match sync {
                Syncing::None => span.bytes_per_write(),
                _ => span.bytes_per_sync(),
            };
            let raw = match bytes {
                Some(bytes) => {
                    let size = case.keeping.segment_size.max(bytes);
                    let raw = raw_file(&mut self.raw, &self.folder.path, size)?;
                    Some(raw.measure(bytes, sync, self.rounds.raw)?)
                }
                None => None,
            };
            rounds.push(Round {
                span,
                latencies,
                raw,
            });
        }
        Ok(Row::new(case, &rounds))
    }

    /// Where the time of one write goes: one caller that waits for each of so many entries.
    pub fn stages(
        &mut self,
        keeping: Keeping,
        entry_bytes: u64,
        entries: u64,
    ) -> Result<Vec<StageRow>, Error> {
        let running = running(&mut self.running, &self.folder.path, keeping)?;
        let payloads = payloads(&mut self.payloads, entry_bytes);
        let rows = measure_stages(&running.log, payloads, entries)?;
        running.check()?;
        Ok(rows)
    }

    /// How fast a log of so many entries is read again.
    pub fn recovery(
        &mut self,
        segment_size: u64,
        entry_bytes: u64,
        entries: u64,
    ) -> Result<Vec<RecoveryRow>, Error> {
        let needed = entries.saturating_mul(frame_bytes(entry_bytes)) + 2 * segment_size;
        let free = self.free_space()?;
        if free < needed {
            let folder = self.folder.path.clone();
            return Err(Error::Space {
                folder,
                free,
                needed,
            });
        }
        let dir = self.folder.path.join("recovery");
        let payloads = payloads(&mut self.payloads, entry_bytes);
        let rows = measure_recovery(&dir, segment_size, payloads, entries, self.rounds.repeat)?;
        RealDisk.remove_dir_all(&dir)?;
        Ok(rows)
    }

    /// Closes the log and removes the folder.
    pub fn close(mut self) -> Result<(), Error> {
        self.running.take().map_or(Ok(()), Running::close)
    }
}

/// The log that is kept so: the one that runs, or a new one in its place.
fn running<'a>(
    slot: &'a mut Option<Running>,
    dir: &Path,
    keeping: Keeping,
) -> Result<&'a Running, Error> {
    let running = match slot.take() {
        Some(running) if running.keeping == keeping => running,
        other => {
            other.map_or(Ok(()), Running::close)?;
            Running::open(dir.join("log"), keeping)?
        }
    };
    Ok(slot.insert(running))
}

/// A raw file of at least that size.
fn raw_file<'a>(
    slot: &'a mut Option<RawFile>,
    dir: &Path,
    size: u64,
) -> Result<&'a mut RawFile, Error> {
    let raw = match slot.take() {
        Some(raw) if raw.size() >= size => raw,
        other => {
            other.map_or(Ok(()), RawFile::remove)?;
            RawFile::create(dir, size)?
        }
    };
    Ok(slot.insert(raw))
}

fn payloads(slot: &mut Option<Payloads>, entry_bytes: u64) -> &Payloads {
    let payloads = match slot.take() {
        Some(payloads) if payloads.entry_bytes() == entry_bytes => payloads,
        _ => Payloads::new(entry_bytes),
    };
    slot.insert(payloads)
}

/// An open log and whoever purges behind it.
struct Running {
    keeping: Keeping,
    dir: PathBuf,
    log: Arc<Log>,
    meter: Arc<Meter>,
    purger: Purger,
}

impl Running {
    fn open(dir: PathBuf, keeping: Keeping) -> Result<Running, Error> {
        let meter = Arc::new(Meter::default());
        let options = Options {
            segment_size: keeping.segment_size,
            sync: keeping.sync.mode(),
            sync_method: keeping.sync.method(),
            linger: keeping.linger,
            observer: meter.clone(),
            ..Options::new(&dir)
        };
        let (log, _) = Log::open(Arc::new(Lens), options, 0, &mut |_| Ok(()))?;
        log.wait_until_prepared();
        let log = Arc::new(log);
        fill_first_segment(&log, keeping.segment_size)?;
        log.wait_until_prepared();
        Ok(Running {
            keeping,
            dir,
            meter,
            purger: Purger::start(log.clone(), keeping.sync),
            log,
        })
    }

    /// The failure of the purger, if there was one.
    fn check(&self) -> Result<(), Error> {
        let failure = self.purger.failure.lock();
        match failure.unwrap_or_else(PoisonError::into_inner).clone() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Closes the log and gives its space back.
    fn close(self) -> Result<(), Error> {
        drop(self.purger);
        self.log.close()?;
        drop(self.log);
        Ok(RealDisk.remove_dir_all(&self.dir)?)
    }
}

/// Fills the segment that a new log begins with, whose file grows with every write, so that what is measured is a log that
/// writes over files that are there, as it does all its later life.
fn fill_first_segment(log: &Log, segment_size: u64) -> Result<(), Error> {
    let payload = noise(FILLER.min(segment_size), 1);
    let left = (segment_size / payload.len() as u64) + 1;
    for _ in 0..left {
        let (tell, told) = sync_channel(1);
        let entry = Entry {
            payload: vec![payload.clone()],
            ..Entry::default()
        };
        let done = move |result: longbow_log::Result<_>| {
            // Somebody listens, or the benchmark has failed.
            let _ = tell.send(result.map(|_| ()));
        };
        log.append(entry, Box::new(done))?;
        told.recv().map_err(|_| longbow_log::Error::Closed)??;
    }
    Ok(())
}

/// Purges what is durable, or, where nothing ever is, what was handed in, until it is dropped.
struct Purger {
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<longbow_log::Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Purger {
    fn start(log: Arc<Log>, sync: Syncing) -> Purger {
        let stop = Arc::new(AtomicBool::new(false));
        let failure = Arc::new(Mutex::new(None));
        let (stopped, failed) = (stop.clone(), failure.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                let up_to = match sync {
                    Syncing::None => log.last_index(),
                    Syncing::Fdatasync | Syncing::Dsync | Syncing::Background => {
                        log.durable_index()
                    }
                };
                if let Err(error) = log.purge(up_to) {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    *failed = Some(error);
                    return;
                }
                thread::park_timeout(PURGE_EVERY);
            }
        });
        Purger {
            stop,
            failure,
            thread: Some(thread),
        }
    }
}

impl Drop for Purger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was printed where it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Mode;
    use super::*;

    fn rounds() -> Rounds {
        Rounds {
            repeat: 2,
            warm_up: Duration::from_millis(1),
            raw: Duration::from_millis(1),
        }
    }

    fn case(sync: Syncing, amount: Amount) -> Case {
        let keeping = Keeping {
            sync,
            segment_size: 64 << 10,
            linger: Duration::ZERO,
        };
        Case {
            test: "t",
            keeping,
            callers: 2,
            batch: 3,
            mode: Mode::Pipelined,
            entry_bytes: 1000,
            amount,
        }
    }

    #[test]
    fn a_case_is_measured_with_each_sync_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut bench = Bench::new(dir.path(), 64 << 10, rounds()).expect("made");
        for sync in Syncing::ALL {
            let row = bench.measure(&case(sync, Amount::Entries(300)));
            let row = row.expect("measured");
            assert_eq!((row.entries, row.rounds), (1200, 2), "{row:?}");
            assert!(row.entries_per_s > 0.0 && row.p50_us > 0.0, "{row:?}");
        }
        let row = bench.measure(&case(
            Syncing::Fdatasync,
            Amount::Time(Duration::from_millis(30)),
        ));
        assert!(row.expect("measured").ratio_to_raw.is_some_and(|r| r > 0.0));
        bench.close().expect("closed");
        assert_eq!(RealDisk.list(dir.path()).expect("listed"), [""; 0]);
    }

    #[test]
    fn too_little_space_is_said_before_anything_is_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let error = Bench::new(dir.path(), 1 << 60, rounds()).err();
        let error = error.expect("no disk is so large").to_string();
        assert!(error.contains("--segment-size"), "{error}");
        assert_eq!(RealDisk.list(dir.path()).expect("listed"), [""; 0]);
    }

    #[test]
    fn the_folder_goes_even_when_the_bench_is_dropped() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut bench = Bench::new(dir.path(), 64 << 10, rounds()).expect("made");
        let raw = bench.raw(64 << 10, 100_000, Syncing::Dsync);
        assert_eq!(raw.expect("measured").bytes_per_sync, 100_000);
        drop(bench);
        assert_eq!(RealDisk.list(dir.path()).expect("listed"), [""; 0]);
    }
}
