//! The bytes of format version 1, as they were first written, are written and read for ever.

use crate::common::*;
use bytes::Bytes;
use longbow_disk::MemoryDisk;
use longbow_log::{Entry, Options, SyncMode};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const FIXTURE: &[u8] = include_bytes!("../fixtures/segment_v1.log");

fn segment_path() -> std::path::PathBuf {
    Path::new(DIR).join("00000000000000000041.log")
}

fn entries() -> Vec<Entry> {
    let parts = |parts: &[&'static str]| parts.iter().map(|p| Bytes::from(*p)).collect();
    vec![
        Entry {
            shard: 0,
            term: 0,
            kind: 0,
            payload: vec![],
        },
        Entry {
            shard: 1,
            term: 2,
            kind: 3,
            payload: parts(&["one part"]),
        },
        Entry {
            shard: u32::MAX,
            term: u64::MAX,
            kind: 255,
            payload: parts(&["several", "", " parts"]),
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
fn version_1_is_written_as_it_always_was() {
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
        files[0].1 == FIXTURE,
        "the bytes differ from tests/fixtures/segment_v1.log"
    );
}

#[test]
fn version_1_is_read_as_it_always_was() {
    let disk = disk_with(&[(segment_path(), FIXTURE.to_vec())]);
    let (_log, recovery, records) = open_after(&disk, golden_options(), 40).unwrap();
    assert_eq!(
        (
            recovery.first_index,
            recovery.last_index,
            recovery.cut_bytes
        ),
        (41, 43, 0)
    );
    for (nth, (record, entry)) in records.iter().zip(entries()).enumerate() {
        assert_eq!(record.index, 41 + nth as u64);
        assert_eq!(record.timestamp_us, 1_732_147_200_000_000 + nth as u64);
        assert_eq!((record.shard, record.term), (entry.shard, entry.term));
        assert_eq!(
            (record.kind, &record.payload[..]),
            (entry.kind, &entry.payload.concat()[..])
        );
    }
    assert_eq!(records.len(), 3);
}
