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
const ROUNDS: u64 = 6;

fn mode(name: &str) -> SyncMode {
    match name {
        "every-ack" => SyncMode::EveryAck,
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

/// Opens the log and checks every record.
fn open(dir: &Path, sync: SyncMode) -> Result<(Log, Recovery)> {
    let options = Options {
        sync,
        segment_size: 256 << 10,
        ..Options::new(dir)
    };
    let mut next = 1;
    let mut replay = |record: longbow_log::Record| {
        if record.index != next || record.payload != payload(next) {
            return Err(format!("record {} is wrong", record.index).into());
        }
        next += 1;
        Ok(())
    };
    Log::open(Arc::new(RealDisk), options, 0, &mut replay)
}

/// Appends for ever, and prints what is acknowledged.
fn victim(dir: &Path, sync: SyncMode) {
    let (log, _) = open(dir, sync).expect("the log opens");
    let (go_on, wait) = std::sync::mpsc::sync_channel(64);
    for _ in 0..64 {
        go_on.send(()).expect("there is room");
    }
    loop {
        wait.recv().expect("the writer lives");
        let entry = Entry {
            payload: vec![payload(log.last_index() + 1)],
            ..Entry::default()
        };
        let go_on = go_on.clone();
        let done = move |ack: Result<Ack>| {
            let index = ack.expect("the disk works").index;
            let mut out = std::io::stdout().lock();
            // The other side may be gone: then the end is near anyway.
            let _ = writeln!(out, "{index}").and_then(|()| out.flush());
            let _ = go_on.try_send(());
        };
        log.append(entry, Box::new(done))
            .expect("there is room in the queue");
    }
}

/// Lets a victim work until it has told of `patience` acknowledgements, kills it, and returns the last one it told.
fn murder(dir: &Path, name: &str, patience: usize) -> u64 {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program)
        .args([VICTIM, name])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the victim starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut last = 0;
    let mut take = |line: std::io::Result<String>| {
        // Only the last line may be cut short, and a shorter number is a weaker claim.
        last = line.ok().and_then(|l| l.parse().ok()).unwrap_or(last);
    };
    lines.by_ref().take(patience).for_each(&mut take);
    child.kill().expect("the victim is ours to kill");
    lines.for_each(&mut take);
    child.wait().expect("the victim ends");
    last
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, name, dir] = &arguments[..]
        && role == VICTIM
    {
        return victim(Path::new(dir), mode(name));
    }
    for name in ["every-ack", "background"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut before = 0;
        for round in 0..ROUNDS {
            let acked = murder(folder.path(), name, 20 + 150 * round as usize);
            let (log, recovery) = open(folder.path(), mode(name)).expect("the log opens again");
            assert!(acked > before, "the victim went on behind {before}");
            assert!(
                recovery.last_index >= acked,
                "{acked} was acknowledged: {recovery:?}"
            );
            before = recovery.last_index;
            drop(log);
        }
        println!("{name}: {ROUNDS} kills, {before} records, none lost");
    }
}
