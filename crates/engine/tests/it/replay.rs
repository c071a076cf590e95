//! The log's entries when a folder is opened: several datasets at once, each in order.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use longbow_disk::MemoryDisk;
use longbow_engine::{ChangeKind, Engine, Error, Folder, Id, Options, Start, SyncMode};
use longbow_log::{Entry, Log};

use crate::damage::files_below;
use crate::plain::put;

const DATA: &str = "data";

/// The kind of an entry that puts rows.
const KIND_PUT: u8 = 2;

fn options() -> Options {
    Options {
        sync: SyncMode::EveryAck,
        index_workers: 1,
        ..Options::new(DATA)
    }
}

fn open(disk: &MemoryDisk) -> Result<Engine, Error> {
    Engine::open(Arc::new(disk.clone()), options())
}

fn delete(engine: &Engine, dataset: &str, ids: std::ops::Range<i64>) {
    let dead = engine.delete_ids(dataset, ids.map(Id::Int).collect());
    dead.and_then(|dead| dead.wait()).expect("known ids");
}

/// The log of a folder that nobody has open.
fn open_log(disk: &MemoryDisk) -> Log {
    let log_options = longbow_log::Options {
        sync: SyncMode::EveryAck,
        ..longbow_log::Options::new(Path::new(DATA).join("log"))
    };
    let opened = Log::open(Arc::new(disk.clone()), log_options, 0, &mut |_| Ok(()));
    opened.expect("a log").0
}

/// Appends entries to it.
fn append(disk: &MemoryDisk, entries: impl IntoIterator<Item = (u8, Vec<u8>)>) -> u64 {
    let log = open_log(disk);
    for (kind, payload) in entries {
        let (tell, told) = channel();
        let entry = Entry {
            kind,
            payload: vec![payload.into()],
            ..Entry::default()
        };
        let done = move |ack| tell.send(ack).expect("somebody listens");
        log.append(entry, Box::new(done)).expect("queued");
        told.recv().expect("told").expect("acknowledged");
    }
    log.close().expect("closed");
    log.last_index()
}

/// A put that is not one: of a schema version that the dataset does not have.
fn bad_put(dataset: u64) -> (u8, Vec<u8>) {
    let mut payload = dataset.to_le_bytes().to_vec();
    payload.extend_from_slice(&99_u32.to_le_bytes());
    payload.extend_from_slice(&[0; 12]);
    (KIND_PUT, payload)
}

#[test]
fn many_datasets_come_back_whole_however_their_entries_mix() {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    let name = |nth: i64| format!("d{nth}");
    for round in 0..20 {
        for nth in 0..12 {
            // Dropped and begun anew in between, under a new number.
            if round > 0 && (round + nth) % 9 == 0 {
                engine.drop_dataset(&name(nth)).expect("known");
            }
            put(&engine, &name(nth), round * 10..round * 10 + 20);
            delete(&engine, &name(nth), round * 10..round * 10 + nth);
        }
    }
    let state = |engine: &Engine| -> Vec<(String, u64)> {
        let named = (0..12).map(name);
        named
            .map(|name| {
                let dataset = engine.dataset(&name).expect("known");
                (name, dataset.view().live)
            })
            .collect()
    };
    let before = state(&engine);
    engine.close().expect("closed");
    drop(engine);
    let engine = open(&disk).expect("sound");
    assert_eq!(state(&engine), before);
    let found = engine.recovered();
    assert_eq!(found.datasets, 12);
    assert!(found.replayed >= 2 * 12 * 20, "{found:?}");
    assert!(found.log_bytes > 100_000, "{found:?}");
}

#[test]
fn the_first_failure_in_the_order_of_the_log_is_told_and_nothing_is_touched() {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    put(&engine, "quick", 0..1);
    put(&engine, "slow", 0..1);
    // Work that the thread of one dataset has before it comes to its failure.
    for start in 0..40 {
        put(&engine, "slow", start * 2000..start * 2000 + 4000);
    }
    engine.close().expect("closed");
    drop(engine);
    let last = append(&disk, [bad_put(2), bad_put(1)]);
    let files = files_below(&disk, Path::new(DATA));
    for _ in 0..5 {
        let error = open(&disk).expect_err("entries of no use");
        assert_eq!(error.code(), "replay_failed", "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("index {} ", last - 1)), "{text}");
        assert!(files_below(&disk, Path::new(DATA)) == files, "touched");
    }
}

#[test]
fn an_entry_that_is_none_is_told_by_its_index() {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    put(&engine, "a", 0..10);
    engine.close().expect("closed");
    drop(engine);
    let last = append(&disk, [(77, vec![1, 2, 3])]);
    let text = open(&disk).expect_err("no such kind").to_string();
    assert!(text.contains(&format!("index {last} ")), "{text}");
}

#[test]
fn entries_of_the_logs_own_change_nothing_and_are_no_changes() {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    put(&engine, "a", 0..10);
    engine.close().expect("closed");
    drop(engine);
    let log = open_log(&disk);
    let first = log.last_index() + 1;
    for after in 0..3 {
        let (tell, told) = channel();
        let voted = tell.clone();
        let done = Box::new(move |ack| voted.send(ack).expect("somebody listens"));
        log.save_vote(1, "vote".into(), done).expect("queued");
        let done = Box::new(move |ack| tell.send(ack).expect("somebody listens"));
        log.truncate(1, after, 1, done).expect("queued");
        told.iter().for_each(|ack| drop(ack.expect("acknowledged")));
    }
    log.close().expect("closed");
    drop(log);
    let engine = open(&disk).expect("sound");
    assert_eq!(engine.dataset("a").expect("known").view().live, 10);
    let mut feed = engine.feed(Start::At(first), None).expect("a feed");
    let nothing = feed.read().expect("whole").unwrap_or_default();
    assert!(nothing.is_empty(), "{nothing:?}");
    put(&engine, "a", 20..30);
    let mut changes = Vec::new();
    while let Some(more) = feed.read().expect("whole") {
        changes.extend(more);
    }
    let found: Vec<_> = changes.iter().map(|c| (c.sequence, c.kind)).collect();
    assert_eq!(found, [(first + 6, ChangeKind::Put)]);
    drop(feed);
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    let mut listed = Vec::new();
    let folder = Folder::open(Arc::new(disk.clone()), Path::new(DATA), "test").expect("closed");
    let mut each = |entry: longbow_engine::LogEntry| {
        listed.push((entry.kind, entry.subject));
        ControlFlow::Continue(())
    };
    folder.log_entries(first, &mut each).expect("whole");
    assert_eq!(listed.len(), 7);
    assert_eq!(listed[0], (ChangeKind::Control, "vote".to_owned()));
    let truncation = (ChangeKind::Control, "truncation after 2".to_owned());
    assert_eq!(listed[5], truncation);
}
