//! The log without accidents: order, completion, rotation, reading, purging, reopening.

use crate::common::*;
use bytes::Bytes;
use longbow_disk::{Disk, MemoryDisk, RealDisk};
use longbow_log::{Entry, Error, Log, Observer, Options, SyncMode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MODES: [SyncMode; 2] = [BACKGROUND, SyncMode::EveryAck];

#[test]
fn what_is_appended_comes_back() {
    for sync in MODES {
        let disk = MemoryDisk::new();
        let (log, recovery, _) = open(&disk, sync).unwrap();
        assert_eq!((recovery.first_index, recovery.last_index), (1, 0));
        for len in [0, 1, 7, 8, 9, 1000, 5000] {
            append_many(&log, 3, len);
        }
        assert_eq!(log.sync().unwrap(), 21);
        log.close().unwrap();
        let (log, recovery, records) = open(&disk, sync).unwrap();
        assert_eq!((recovery.replayed, recovery.last_index), (21, 21));
        assert_eq!(recovery.cut_at, None);
        assert!(records.iter().all(is_right));
        assert_eq!(log.durable_index(), 21);
        append_many(&log, 1, 10);
        assert_eq!(log.last_index(), 22);
        assert_eq!(log.read(1, u64::MAX).unwrap()[..21], records);
    }
}

#[test]
fn it_works_on_the_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    for sync in MODES {
        let dir = folder
            .path()
            .join(format!("{}", sync == SyncMode::EveryAck));
        let options = Options {
            dir,
            ..options(sync)
        };
        let (log, ..) = open_after(&RealDisk, options.clone(), 0).unwrap();
        append_many(&log, 50, 300);
        log.purge(20).unwrap();
        drop(log);
        let (log, recovery, records) = open_after(&RealDisk, options, 20).unwrap();
        assert_eq!((recovery.replayed, recovery.last_index), (30, 50));
        assert!(records.iter().all(is_right));
        let first = log.first_index();
        assert!((2..=21).contains(&first), "{first}");
        assert_eq!(log.read(first, u64::MAX).unwrap().len() as u64, 51 - first);
    }
}

#[test]
fn an_acknowledgement_says_whether_it_is_durable() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    let ack = append_acked(&log, entry(1, 10)).unwrap();
    assert!(ack.durable && log.durable_index() == 1);
    assert_eq!((log.queued_bytes(), log.unsynced_bytes()), (0, 0));
}

#[test]
fn completions_of_many_threads_come_once_and_in_order() {
    const THREADS: u64 = 8;
    const EACH: u64 = 300;
    for sync in MODES {
        let disk = MemoryDisk::new();
        let (log, ..) = open(&disk, sync).unwrap();
        let completed = Arc::new(Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (log, completed) = (&log, completed.clone());
                scope.spawn(move || {
                    let mut last = 0;
                    for i in 0..EACH {
                        let completed = completed.clone();
                        let done = move |ack: longbow_log::Result<longbow_log::Ack>| {
                            completed.lock().unwrap().push(ack.unwrap().index);
                        };
                        let payload = vec![Bytes::from(format!("{thread}/{i}"))];
                        let entry = Entry {
                            payload,
                            ..Entry::default()
                        };
                        let index = log.append(entry, Box::new(done)).unwrap();
                        assert!(index > last, "a thread's entries stay in order");
                        last = index;
                    }
                });
            }
        });
        log.close().unwrap();
        let all: Vec<u64> = (1..=THREADS * EACH).collect();
        assert_eq!(*completed.lock().unwrap(), all);
        let (_log, _, records) = open(&disk, sync).unwrap();
        for thread in 0..THREADS {
            let prefix = format!("{thread}/");
            let own = records
                .iter()
                .filter(|r| r.payload.starts_with(prefix.as_bytes()));
            let expected = (0..EACH).map(|i| format!("{thread}/{i}"));
            assert!(
                own.map(|r| r.payload.to_vec())
                    .eq(expected.map(String::into_bytes))
            );
        }
    }
}

#[test]
fn segments_are_cut_to_size_and_larger_entries_get_their_own() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, 20, 1000);
    append_many(&log, 1, 10_000);
    append_many(&log, 1, 1000);
    let files = files_of(&disk);
    let longest = files.iter().filter(|(_, bytes)| bytes.len() > 4096).count();
    assert_eq!((files.len(), longest), (9, 1));
    let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(log.size_bytes(), total as u64);
    assert_eq!(log.read(1, u64::MAX).unwrap().len(), 22);
}

#[test]
fn reads_begin_anywhere_and_keep_to_their_limit() {
    let disk = MemoryDisk::new();
    let options = Options {
        segment_size: 1 << 20,
        ..options(BACKGROUND)
    };
    let (log, ..) = open_after(&disk, options, 0).unwrap();
    append_many(&log, 3000, 1000);
    for from in [1, 2, 500, 1024, 2999, 3000] {
        let records = log.read(from, 10_500).unwrap();
        assert_eq!(records.len() as u64, 10.min(3001 - from));
        assert!(
            records
                .iter()
                .map(|r| r.index)
                .eq(from..from + records.len() as u64)
        );
        assert!(records.iter().all(is_right));
    }
    assert_eq!(log.read(5, 0).unwrap().len(), 1, "at least one");
    assert_eq!(log.read(0, 1).unwrap()[0].index, 1);
    assert!(log.read(3001, 100).unwrap().is_empty());
    assert!(log.read(u64::MAX, 100).unwrap().is_empty());
}

#[test]
fn purging_removes_what_a_checkpoint_covers_and_no_more() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, 30, 1000);
    let before = segments(&disk).len();
    log.purge(0).unwrap();
    log.purge(2).unwrap();
    assert_eq!(
        segments(&disk).len(),
        before,
        "the first segment holds three"
    );
    log.purge(3).unwrap();
    assert_eq!((segments(&disk).len(), log.first_index()), (before - 1, 4));
    let error = log.read(3, 1).unwrap_err();
    assert!(
        matches!(error, Error::Purged { from: 3, first: 4 }),
        "{error}"
    );
    assert_eq!(log.read(4, u64::MAX).unwrap().len(), 27);
    log.purge(u64::MAX).unwrap();
    assert_eq!(segments(&disk).len(), 1, "the last segment stays");
    append_many(&log, 1, 10);
    log.close().unwrap();
    let error = open(&disk, BACKGROUND).unwrap_err();
    let first = log.first_index();
    assert!(
        matches!(error, Error::Missing { after: 0, first: f } if f == first),
        "{error}"
    );
    let (_log, recovery, records) = open_after(&disk, options(BACKGROUND), 30).unwrap();
    assert_eq!((recovery.first_index, recovery.last_index), (first, 31));
    assert_eq!(records.len(), 1);
}

#[test]
fn a_log_goes_on_behind_the_checkpoint() {
    let disk = MemoryDisk::new();
    let (log, recovery, _) = open_after(&disk, options(BACKGROUND), 100).unwrap();
    assert_eq!((recovery.first_index, recovery.last_index), (101, 100));
    append_many(&log, 2, 10);
    assert_eq!(log.last_index(), 102);
    drop(log);
    // The checkpoint got further than what a power loss left of the log.
    let (log, recovery, records) = open_after(&disk, options(BACKGROUND), 200).unwrap();
    assert_eq!((recovery.first_index, recovery.last_index), (201, 200));
    assert!(records.is_empty());
    append_many(&log, 1, 10);
    drop(log);
    let (log, recovery, _) = open_after(&disk, options(BACKGROUND), 200).unwrap();
    assert_eq!((recovery.first_index, recovery.last_index), (201, 201));
    assert_eq!(log.read(201, 1).unwrap()[0].index, 201);
}

#[test]
fn a_clean_reopening_changes_nothing() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, BACKGROUND).unwrap();
    append_many(&log, 5, 100);
    log.close().unwrap();
    let before = files_of(&disk);
    for _ in 0..3 {
        drop(open(&disk, BACKGROUND).unwrap());
    }
    assert_eq!(files_of(&disk), before);
}

#[test]
fn what_cannot_be_queued_is_refused_at_once() {
    let disk = MemoryDisk::new();
    let limit = 2000;
    let options = Options {
        max_queued_bytes: limit,
        ..options(SyncMode::EveryAck)
    };
    let (log, ..) = open_after(&disk, options, 0).unwrap();

    let megabyte = Bytes::from(vec![0; 1 << 20]);
    let huge = Entry {
        payload: vec![megabyte; 1025],
        ..Entry::default()
    };
    let (refused, told) = append(&log, huge);
    assert!(matches!(refused, Err(Error::TooLong { len, .. }) if len == 1025 << 20));
    assert!(matches!(
        told.try_recv().unwrap(),
        Err(Error::TooLong { .. })
    ));

    append_acked(&log, entry(1, 5000)).expect("a large entry may wait alone");

    // While a completion runs, the writer takes nothing from the queue.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let (running, runs) = std::sync::mpsc::channel::<()>();
    let done = move |_| {
        running.send(()).unwrap();
        held.recv().unwrap();
    };
    log.append(entry(2, 10), Box::new(done)).unwrap();
    runs.recv().unwrap();
    let (third, told) = append(&log, entry(3, 1500));
    assert_eq!((third.unwrap(), log.last_index()), (3, 3));
    let (refused, told_refused) = append(&log, entry(4, 1500));
    let error = refused.unwrap_err();
    assert!(
        matches!(
            error,
            Error::QueueFull {
                queued: 1568,
                limit: 2000
            }
        ),
        "{error}"
    );
    assert!(told_refused.try_recv().unwrap().is_err());
    hold.send(()).unwrap();
    assert_eq!(told.recv().unwrap().unwrap().index, 3);

    log.close().unwrap();
    let (refused, told) = append(&log, entry(4, 1));
    assert!(matches!(refused, Err(Error::Closed)));
    assert!(matches!(told.try_recv().unwrap(), Err(Error::Closed)));
    assert_eq!(log.read(1, u64::MAX).unwrap().len(), 3, "reads go on");
}

#[test]
fn a_completion_that_panics_does_no_harm() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    let done = |_| panic!("a careless caller");
    log.append(entry(1, 10), Box::new(done)).unwrap();
    append_many(&log, 1, 10);
    log.close().unwrap();
}

#[test]
fn a_completion_may_hold_the_log_last() {
    for sync in MODES {
        let disk = MemoryDisk::new();
        let log = Arc::new(open(&disk, sync).unwrap().0);
        let (dropped, drops) = std::sync::mpsc::channel();
        let (go, may_go) = std::sync::mpsc::channel::<()>();
        let last_handle = log.clone();
        let done = move |_| {
            may_go.recv().unwrap();
            drop(last_handle);
            dropped.send(()).unwrap();
        };
        log.append(entry(1, 10), Box::new(done)).unwrap();
        drop(log);
        go.send(()).unwrap();
        drops
            .recv()
            .expect("dropping the log does not wait for itself");
    }
}

#[test]
fn a_failing_replay_is_reported_with_its_index() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, BACKGROUND).unwrap();
    append_many(&log, 3, 10);
    drop(log);
    let mut replay = |record: longbow_log::Record| match record.index {
        2 => Err("no such shard".into()),
        _ => Ok(()),
    };
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let error = Log::open(disk, options(BACKGROUND), 0, &mut replay).unwrap_err();
    assert!(matches!(error, Error::Replay { index: 2, .. }));
    assert!(error.to_string().contains("no such shard"), "{error}");
}

/// Counts what it is told.
#[derive(Default)]
struct Counter {
    written: AtomicU64,
    synced: AtomicU64,
    syncs: AtomicU64,
}

impl Observer for Counter {
    fn written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    fn synced(&self, _took: Duration, bytes: u64) {
        self.synced.fetch_add(bytes, Ordering::Relaxed);
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_observer_sees_every_byte_and_one_sync_serves_many() {
    let disk = MemoryDisk::new();
    let counter = Arc::new(Counter::default());
    let options = Options {
        observer: counter.clone(),
        linger: Duration::from_millis(1),
        ..options(SyncMode::EveryAck)
    };
    let (log, ..) = open_after(&disk, options, 0).unwrap();
    // While the first completion waits, the others queue up behind it.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let done = move |_| held.recv().unwrap();
    log.append(entry(1, 8), Box::new(done)).unwrap();
    let waiting: Vec<_> = (2..=50).map(|i| append(&log, entry(i, 8)).1).collect();
    hold.send(()).unwrap();
    for told in waiting {
        told.recv().unwrap().unwrap();
    }
    assert_eq!(counter.written.load(Ordering::Relaxed), 50 * 72);
    assert_eq!(counter.synced.load(Ordering::Relaxed), 50 * 72);
    assert!(counter.syncs.load(Ordering::Relaxed) <= 3);
}

#[test]
fn timestamps_never_decrease() {
    let disk = MemoryDisk::new();
    let times = Mutex::new(vec![50, 70, 20, 100, 60]);
    let options = Options {
        clock: Arc::new(move || times.lock().unwrap().pop().unwrap_or(1)),
        ..options(SyncMode::EveryAck)
    };
    let (log, ..) = open_after(&disk, options.clone(), 0).unwrap();
    append_many(&log, 3, 1);
    drop(log);
    let (log, _, records) = open_after(&disk, options, 0).unwrap();
    append_many(&log, 3, 1);
    let times: Vec<u64> = log
        .read(1, 100)
        .unwrap()
        .iter()
        .map(|r| r.timestamp_us)
        .collect();
    assert_eq!(times, [60, 100, 100, 100, 100, 100]);
    assert_eq!(records.len(), 3);
}
