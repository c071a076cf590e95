//! The bytes of each format version, as they were first written, are read for ever, and those of the last are written.

use crate::common::*;
use bytes::Bytes;
use longbow_disk::MemoryDisk;
use longbow_log::{Entry, Options, Recovery, SyncMode};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const VERSION_1: &[u8] = include_bytes!("../fixtures/segment_v1.log");
const VERSION_2: &[u8] = include_bytes!("../fixtures/segment_v2.log");

fn segment_path() -> std::path::PathBuf {
    Path::new(DIR).join("00000000000000000041.log")
}

fn entries() -> Vec<Entry> {
    let parts = |parts: &[&'static str]| parts.iter().map(|p| Bytes::from(*p)).collect();
    vec![
        Entry::default(),
        Entry {
            shard: 1,
            term: 2,
            kind: 3,
            shard_index: 4,
            payload: parts(&["one part"]),
            ..Entry::default()
        },
        Entry {
            shard: u32::MAX,
            term: u64::MAX,
            kind: 255,
            shard_index: u64::MAX,
            payload: parts(&["several", "", " parts"]),
            ..Entry::default()
        },
    ]
}

fn golden_options() -> Options {
    let time = AtomicU64::new(1_732_147_200_000_000);
    Options {
        clock: Arc::new(move || time.fetch_add(1, Ordering::Relaxed)),
        ..options(SyncMode::EveryAck)
    }
}

#[test]
fn version_2_is_written_as_it_always_was() {
    let disk = MemoryDisk::new();
    let (log, ..) = open_after(&disk, golden_options(), 40).unwrap();
    for entry in entries() {
        append_acked(&log, entry).unwrap();
    }
    log.close().unwrap();
    let files = files_of(&disk);
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0, segment_path());
    assert!(
        files[0].1 == VERSION_2,
        "the bytes differ from tests/fixtures/segment_v2.log"
    );
}

fn check_read(fixture: &[u8], has_shard_indexes: bool) {
    let disk = disk_with(&[(segment_path(), fixture.to_vec())]);
    let (log, recovery, records) = open_after(&disk, golden_options(), 40).unwrap();
    let Recovery {
        first_index,
        last_index,
        cut_bytes,
        ..
    } = recovery;
    assert_eq!((first_index, last_index, cut_bytes), (41, 43, 0));
    for (nth, (record, entry)) in records.iter().zip(entries()).enumerate() {
        assert_eq!(record.index, 41 + nth as u64);
        assert_eq!(record.timestamp_us, 1_732_147_200_000_000 + nth as u64);
        assert_eq!((record.shard, record.term), (entry.shard, entry.term));
        let shard_index = entry.shard_index * u64::from(has_shard_indexes);
        assert_eq!(record.shard_index, shard_index);
        assert_eq!(
            (record.kind, &record.payload[..]),
            (entry.kind, &entry.payload.concat()[..])
        );
    }
    assert_eq!(records.len(), 3);
    // It is gone on with, whatever version it was.
    for index in 44..100 {
        assert_eq!(append_acked(&log, entry(index, 300)).unwrap().index, index);
    }
    assert_eq!(log.read(41, u64::MAX).unwrap().len(), 59);
    drop(log);
    let (_log, recovery, again) = open_after(&disk, golden_options(), 40).unwrap();
    assert_eq!((recovery.last_index, recovery.cut_bytes), (99, 0));
    assert_eq!(again[..3], records[..]);
    assert!(again[3..].iter().all(is_right));
}

#[test]
fn version_1_is_read_as_it_always_was() {
    check_read(VERSION_1, false);
}

#[test]
fn version_2_is_read_as_it_always_was() {
    check_read(VERSION_2, true);
}
