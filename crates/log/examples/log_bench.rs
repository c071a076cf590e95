//! Measures the log against the disk it is on, and prints one JSON object.
//!
//! `cargo run --release -p longbow-log --example log_bench -- [FOLDER] [MEBIBYTES]`
//!
//! Writes so many MiB (default 128) several times into a folder below FOLDER (default `.`) and removes it again. The raw
//! figures are the same bytes written to plain files by one thread, in turns with the log.

use bytes::Bytes;
use longbow_disk::{Disk, RealDisk};
use longbow_log::{Entry, Log, Options, SyncMode};
use std::error::Error;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const MIB: usize = 1 << 20;
const ROUNDS: usize = 5;

/// Where to measure, and with how much.
struct Bench {
    dir: PathBuf,
    bytes: usize,
}

fn background() -> SyncMode {
    SyncMode::Background {
        max_unsynced_bytes: 8 << 30,
        max_unsynced_age: Duration::from_secs(60),
    }
}

/// Bytes that a disk cannot compress.
fn noise(len: usize) -> Bytes {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    Bytes::from(bytes)
}

fn entry(payload: &Bytes) -> Entry {
    let payload = vec![payload.clone()];
    Entry {
        payload,
        ..Entry::default()
    }
}

/// Decimal megabytes per second.
fn rate(bytes: usize, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64() / 1e6
}

impl Bench {
    fn fresh(&self) -> Outcome<()> {
        if RealDisk.exists(&self.dir)? {
            RealDisk.remove_dir_all(&self.dir)?;
        }
        Ok(RealDisk.create_dir_all(&self.dir)?)
    }

    fn open(&self, sync: SyncMode) -> Outcome<Log> {
        self.fresh()?;
        let options = Options {
            sync,
            max_queued_bytes: 256 << 20,
            ..Options::new(&self.dir)
        };
        let (log, _) = Log::open(Arc::new(RealDisk), options, 0, &mut |_| Ok(()))?;
        Ok(log)
    }

    /// Plain files of 64 MiB, written in pieces, synced after every `per_sync` bytes if that is not more: MB/s.
    fn raw(&self, piece: usize, per_sync: usize) -> Outcome<f64> {
        self.fresh()?;
        let payload = noise(piece);
        let started = Instant::now();
        let mut written = 0;
        let mut number = 0;
        while written < self.bytes {
            let file = RealDisk.create(&self.dir.join(format!("{number}")))?;
            RealDisk.sync_dir(&self.dir)?;
            number += 1;
            for at in (piece..=64 * MIB).step_by(piece) {
                file.append_vectored(&[IoSlice::new(&payload)])?;
                if at % per_sync == 0 {
                    file.sync_data()?;
                }
            }
            written += 64 * MIB;
        }
        Ok(rate(written, started.elapsed()))
    }

    /// Everything appended by one caller that never has more than `window` entries on their way.
    fn pour(&self, log: &Log, size: usize, window: usize) -> Outcome<Duration> {
        let payload = noise(size);
        let (tell, told): (SyncSender<bool>, Receiver<bool>) = sync_channel(window);
        let started = Instant::now();
        let count = self.bytes / size;
        for nth in 0..count + window {
            if nth >= window && !told.recv()? {
                return Err("an append failed".into());
            }
            if nth < count {
                let tell = tell.clone();
                let done = move |ack: longbow_log::Result<_>| {
                    // Nobody listens only if the benchmark has failed already.
                    let _ = tell.send(ack.is_ok());
                };
                log.append(entry(&payload), Box::new(done))?;
            } else if nth < window {
                let _ = tell.send(true);
            }
        }
        Ok(started.elapsed())
    }

    /// Callers that each wait for the acknowledgement before they append again, for a second: a JSON object.
    fn callers(&self, sync: SyncMode, callers: usize) -> Outcome<String> {
        let log = self.open(sync)?;
        let payload = noise(1024);
        let until = Instant::now() + Duration::from_secs(1);
        let mut latencies: Vec<Duration> = std::thread::scope(|scope| {
            let one = || {
                let (tell, told) = sync_channel(1);
                let mut latencies = Vec::new();
                while Instant::now() < until {
                    let tell = tell.clone();
                    let started = Instant::now();
                    let done = move |ack: longbow_log::Result<_>| {
                        let _ = tell.send(ack.is_ok());
                    };
                    if log.append(entry(&payload), Box::new(done)).is_err()
                        || told.recv() != Ok(true)
                    {
                        return None;
                    }
                    latencies.push(started.elapsed());
                }
                Some(latencies)
            };
            let running: Vec<_> = (0..callers).map(|_| scope.spawn(one)).collect();
            let joined = running.into_iter().map(|r| r.join().ok().flatten());
            joined.collect::<Option<Vec<_>>>().map(|all| all.concat())
        })
        .ok_or("an append failed")?;
        latencies.sort_unstable();
        let at = |share: f64| {
            let nth = (latencies.len() as f64 * share) as usize;
            latencies[nth.min(latencies.len() - 1)].as_secs_f64() * 1e3
        };
        Ok(format!(
            "{{\"callers\": {callers}, \"entries_per_s\": {}, \"p50_ms\": {:.3}, \"p99_ms\": {:.3}}}",
            latencies.len(),
            at(0.5),
            at(0.99)
        ))
    }

    /// MB/s until everything is acknowledged, and until everything is durable.
    fn bulk(&self, sync: SyncMode, size: usize, window: usize) -> Outcome<(f64, f64)> {
        let log = self.open(sync)?;
        let started = Instant::now();
        let accepted = self.pour(&log, size, window)?;
        log.sync()?;
        let durable = started.elapsed();
        Ok((rate(self.bytes, accepted), rate(self.bytes, durable)))
    }

    /// The same bytes to plain files and through the log, in turns, so that both see the same moods of the disk: the
    /// median of each in MB/s, and of their ratios.
    fn pair(
        &self,
        name: &str,
        raw: impl Fn() -> Outcome<f64>,
        log: impl Fn() -> Outcome<f64>,
    ) -> Outcome<String> {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push((raw()?, log()?));
        }
        let raw = median(rounds.iter().map(|(raw, _)| *raw));
        let log = median(rounds.iter().map(|(_, log)| *log));
        let ratio = median(rounds.iter().map(|(raw, log)| log / raw));
        Ok(format!(
            "  \"{name}\": {{\"raw_mb_per_s\": {raw:.0}, \"log_mb_per_s\": {log:.0}, \"ratio\": {ratio:.2}}}"
        ))
    }

    fn run(&self) -> Outcome<()> {
        let every = SyncMode::EveryAck;
        let mut lines = vec![
            format!(
                "  \"mebibytes\": {}, \"rounds\": {ROUNDS}",
                self.bytes / MIB
            ),
            format!(
                "  \"crc32c\": \"{}\", \"crc32c_gb_per_s\": {:.1}",
                crc_target(),
                crc_rate()
            ),
            self.pair(
                "each_1mib_synced",
                || self.raw(MIB, MIB),
                || Ok(self.bulk(every, MIB, 1)?.1),
            )?,
            self.pair(
                "each_16mib_synced",
                || self.raw(MIB, 16 * MIB),
                || Ok(self.bulk(every, MIB, 32)?.1),
            )?,
            self.pair(
                "until_all_is_durable",
                || self.raw(MIB, 64 * MIB),
                || Ok(self.bulk(background(), MIB, 32)?.1),
            )?,
            self.pair(
                "until_accepted_4mib_entries",
                || self.raw(4 * MIB, usize::MAX),
                || Ok(self.bulk(background(), 4 * MIB, 8)?.0),
            )?,
            self.pair(
                "until_accepted_1kib_entries",
                || self.raw(1024, usize::MAX),
                || Ok(self.bulk(background(), 1024, 4096)?.0),
            )?,
        ];
        for (name, sync) in [("every_ack", every), ("background", background())] {
            let rows: Outcome<Vec<String>> =
                [1, 8, 64].iter().map(|n| self.callers(sync, *n)).collect();
            lines.push(format!("  \"{name}_1kib\": [{}]", rows?.join(", ")));
        }
        RealDisk.remove_dir_all(&self.dir)?;
        println!("{{\n{}\n}}", lines.join(",\n"));
        Ok(())
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn crc_target() -> String {
    crc_fast::get_calculator_target(crc_fast::CrcAlgorithm::Crc32Iscsi)
}

/// The checksum's speed over 1 MiB that stays in the cache, in GB/s.
fn crc_rate() -> f64 {
    let block = noise(MIB);
    let started = Instant::now();
    let rounds = 2000;
    for _ in 0..rounds {
        std::hint::black_box(crc_fast::crc32_iscsi(std::hint::black_box(&block)));
    }
    rate(rounds * MIB, started.elapsed()) / 1e3
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().unwrap_or_else(|| ".".to_string());
    let mebibytes: usize = arguments.next().map_or(Ok(128), |n| n.parse())?;
    let dir = Path::new(&parent).join(format!("log-bench-{}", std::process::id()));
    let bytes = mebibytes.next_multiple_of(64) * MIB;
    Bench { dir, bytes }.run()
}
