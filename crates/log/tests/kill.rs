//! Kills a process in mid-write again and again: what it was told to be acknowledged is there.
//!
//! The program runs itself as the victim, which prints the index of every acknowledgement. Its own `main` instead of the
//! test harness keeps that output apart.

use bytes::Bytes;
use longbow_disk::RealDisk;
use longbow_log::{Ack, Entry, Log, Options, Recovery, Result, SyncMode};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const VICTIM: &str = "victim";

/// Kills in each mode, unless `KILLS` names another number.
const ROUNDS: u64 = 6;

/// What the victim keeps of its log when it purges, in entries.
const KEPT: u64 = 400;

fn mode(name: &str) -> SyncMode {
    match name {
        "every-ack" => SyncMode::EveryAck,
        "never" => SyncMode::Never,
        _ => SyncMode::Background {
            max_unsynced_bytes: u64::MAX,
            max_unsynced_age: Duration::from_secs(3600),
        },
    }
}

/// Bytes that follow from the index.
fn payload(index: u64) -> Bytes {
    let len = index.wrapping_mul(7919) % 3000;
    Bytes::from((0..len).map(|i| (i ^ index) as u8).collect::<Vec<u8>>())
}

/// Opens the log behind `after` and checks every record.
fn open(dir: &Path, sync: SyncMode, after: u64) -> Result<(Log, Recovery)> {
    let options = Options {
        sync,
        segment_size: 256 << 10,
        spare_bytes: 1 << 20,
        ..Options::new(dir)
    };
    let mut next = after + 1;
    let mut replay = |record: longbow_log::Record| {
        if record.index != next || record.payload != payload(next) {
            return Err(format!("record {} is wrong", record.index).into());
        }
        next += 1;
        Ok(())
    };
    Log::open(Arc::new(RealDisk), options, after, &mut replay)
}

/// Appends for ever, prints what is acknowledged, and purges, printing first what it gives up.
fn victim(dir: &Path, sync: SyncMode, after: u64) {
    let (log, _) = open(dir, sync, after).expect("the log opens");
    let (go_on, wait) = std::sync::mpsc::sync_channel(64);
    for _ in 0..64 {
        go_on.send(()).expect("there is room");
    }
    let tell = |line: String| {
        let mut out = std::io::stdout().lock();
        // The other side may be gone: then the end is near anyway.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    loop {
        wait.recv().expect("the writer lives");
        let index = log.last_index() + 1;
        let entry = Entry {
            payload: vec![payload(index)],
            ..Entry::default()
        };
        let go_on = go_on.clone();
        let done = move |ack: Result<Ack>| {
            tell(format!("acked {}", ack.expect("the disk works").index));
            let _ = go_on.try_send(());
        };
        log.append(entry, Box::new(done))
            .expect("there is room in the queue");
        if index % KEPT == 0 && index > 2 * KEPT {
            // A checkpoint would hold these; without syncs nothing else makes them durable.
            let purged = index - 2 * KEPT;
            tell(format!("purged {purged}"));
            log.purge(purged).expect("the disk works");
        }
    }
}

/// What a victim told before its death.
#[derive(Default)]
struct Told {
    first_acked: u64,
    last_acked: u64,
    purged: u64,
}

impl Told {
    /// Only the last line may be cut short, and a shorter number is a weaker claim.
    fn take(&mut self, line: std::io::Result<String>) {
        let Ok(line) = line else { return };
        let number = |rest: &str| rest.parse::<u64>().unwrap_or(0);
        if let Some(index) = line.strip_prefix("acked ") {
            let index = number(index);
            self.last_acked = self.last_acked.max(index);
            if self.first_acked == 0 {
                self.first_acked = index;
            }
        } else if let Some(index) = line.strip_prefix("purged ") {
            self.purged = self.purged.max(number(index));
        }
    }
}

/// Lets a victim work until it has told `patience` lines, and kills it.
fn murder(dir: &Path, name: &str, after: u64, patience: usize) -> Told {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program)
        .args([VICTIM, name, &after.to_string()])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the victim starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut told = Told::default();
    lines
        .by_ref()
        .take(patience)
        .for_each(|line| told.take(line));
    child.kill().expect("the victim is ours to kill");
    lines.for_each(|line| told.take(line));
    child.wait().expect("the victim ends");
    told
}

/// Kills so many victims in turn, and looks after each what is left.
fn check(name: &str, rounds: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut before, mut after) = (0, 0);
    for round in 0..rounds {
        // Now at the start, now after some segments.
        let patience = 1 + (round.wrapping_mul(7919) % 2500) as usize;
        let told = murder(folder.path(), name, after, patience);
        assert_eq!(
            told.first_acked,
            before + 1,
            "indexes go on behind {before}"
        );
        after = after.max(told.purged);
        let opened = open(folder.path(), mode(name), after);
        let (log, recovery) = opened.expect("the log opens again");
        assert!(
            recovery.last_index >= told.last_acked,
            "{} was acknowledged: {recovery:?}",
            told.last_acked
        );
        before = recovery.last_index;
        drop(log);
    }
    println!("{name}: {rounds} kills, {before} records, none lost, no index given twice");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, name, after, dir] = &arguments[..]
        && role == VICTIM
    {
        let after = after.parse().expect("an index");
        return victim(Path::new(dir), mode(name), after);
    }
    let rounds = std::env::var("KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    for name in ["every-ack", "background", "never"] {
        check(name, rounds.unwrap_or(ROUNDS));
    }
}
