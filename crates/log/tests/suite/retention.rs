//! What of the log stays beyond a purge, and when a segment ends.

use crate::common::*;
use longbow_disk::MemoryDisk;
use longbow_log::{Log, Options, SyncMode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SECOND_US: u64 = 1_000_000;

/// A log with a clock that is set by hand, and twenty entries of which each segment takes three.
fn log_with(options: impl FnOnce(Options) -> Options) -> (MemoryDisk, Log, Arc<AtomicU64>) {
    let disk = MemoryDisk::new();
    let now = Arc::new(AtomicU64::new(SECOND_US));
    let clock = now.clone();
    let options = options(Options {
        clock: Arc::new(move || clock.load(Ordering::SeqCst)),
        spare_bytes: 0,
        ..self::options(SyncMode::EveryAck)
    });
    let (log, _, _) = open_after(&disk, options, 0).unwrap();
    append_many(&log, 20, 1000);
    assert_eq!(log.first_index(), 1);
    (disk, log, now)
}

#[test]
fn records_stay_until_they_are_old() {
    let (_, log, now) = log_with(|options| Options {
        retain_age: Duration::from_secs(10),
        ..options
    });
    log.purge(20).unwrap();
    assert_eq!(log.first_index(), 1);
    assert_eq!(log.read(1, 1).unwrap()[0].index, 1);
    now.store(10 * SECOND_US, Ordering::SeqCst);
    append_many(&log, 4, 1000);
    now.store(11 * SECOND_US, Ordering::SeqCst);
    // The caller need not say again what a checkpoint covers.
    log.purge(0).unwrap();
    assert_eq!(log.first_index(), 19, "the segment with entry 21 is young");
}

#[test]
fn what_nobody_covers_stays_however_old() {
    let (_, log, now) = log_with(|options| Options {
        retain_age: Duration::from_secs(10),
        ..options
    });
    now.store(1000 * SECOND_US, Ordering::SeqCst);
    log.purge(5).unwrap();
    assert_eq!(log.first_index(), 4);
}

#[test]
fn a_hold_keeps_what_its_reader_needs() {
    let (_, log, _) = log_with(|options| options);
    let (slow, quick) = (log.hold(5), log.hold(11));
    log.purge(20).unwrap();
    assert_eq!(log.first_index(), 4, "the segment of entry 5");
    slow.move_to(12);
    log.purge(0).unwrap();
    assert_eq!(log.first_index(), 10, "that of entry 11");
    drop(quick);
    log.purge(0).unwrap();
    assert_eq!(log.first_index(), 10, "that of entry 12");
    drop(slow);
    log.purge(0).unwrap();
    assert_eq!(log.first_index(), 19, "the one that is written");
}

#[test]
fn a_hold_does_not_fill_the_disk() {
    let (_, log, _) = log_with(|options| Options {
        retain_age: Duration::from_secs(10),
        retain_bytes: 3 * 4096,
        ..options
    });
    let _stopped = log.hold(1);
    log.purge(20).unwrap();
    // Three segments of three frames of 1,064 bytes each fit.
    assert_eq!(log.first_index(), 10);
    assert!(log.read(1, 1).is_err());
}

#[test]
fn only_what_no_purge_covers_asks_for_a_checkpoint() {
    let (disk, log, _) = log_with(|options| Options {
        retain_age: Duration::from_secs(10),
        ..options
    });
    assert_eq!(log.uncovered_bytes(), log.size_bytes());
    log.purge(20).unwrap();
    let (left, size) = (log.uncovered_bytes(), log.size_bytes());
    assert!(left < 4096 && size > 20_000, "{left} of {size}");
    log.close().unwrap();
    let (log, _, _) = open_after(&disk, options(SyncMode::EveryAck), 20).unwrap();
    assert!(log.uncovered_bytes() < 4096);
}

#[test]
fn an_old_segment_is_followed_by_a_new_one() {
    let (disk, log, now) = log_with(|options| Options {
        segment_age: Duration::from_secs(60),
        segment_size: 1 << 20,
        ..options
    });
    now.store(60 * SECOND_US, Ordering::SeqCst);
    append_many(&log, 1, 10);
    assert_eq!(segments(&disk).len(), 1);
    now.store(61 * SECOND_US, Ordering::SeqCst);
    append_many(&log, 2, 10);
    assert_eq!(segments(&disk).len(), 2);
    log.purge(21).unwrap();
    assert_eq!(log.first_index(), 22);
    log.close().unwrap();
    let (_, recovery, records) = open_after(&disk, options(SyncMode::EveryAck), 21).unwrap();
    assert_eq!((recovery.last_index, records.len()), (23, 2));
}
