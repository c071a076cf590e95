//! A disk that fails at every call there is.

use crate::common::*;
use longbow_disk::{Fault, FaultyDisk, MemoryDisk, Operation};
use longbow_log::{Error, Log, Options, Result, SyncMode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What became of the attempts to append.
#[derive(Default)]
struct Fates {
    /// Acknowledged, by index.
    acked: BTreeMap<u64, u64>,
    /// Refused because the disk was full: these may never be seen.
    refused: Vec<u64>,
    tried: u64,
}

impl Fates {
    /// Appends a few at once and waits for what becomes of them.
    fn append(&mut self, log: &Log, count: u64, len: usize) {
        let first = self.tried + 1;
        self.tried += count;
        let told: Vec<_> = (first..=self.tried)
            .map(|tag| (tag, append(log, tagged(tag, len)).1))
            .collect();
        for (tag, told) in told {
            match told.recv().expect("every completion is called") {
                Ok(ack) => {
                    let before = self.acked.insert(ack.index, tag);
                    assert_eq!(before, None, "index {} was given twice", ack.index);
                }
                Err(Error::NoSpace { .. }) => self.refused.push(tag),
                Err(Error::Poisoned { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            assert!(told.recv().is_err(), "every completion is called once");
        }
    }

    /// Opens what is on the disk: everything acknowledged is there, nothing refused is, and whatever else is there is
    /// whole.
    fn check(&self, disk: &MemoryDisk, after: u64, acked_too: bool) {
        let (_log, recovery, records) =
            open_after(disk, options(SyncMode::EveryAck), after).unwrap();
        assert!(
            records
                .iter()
                .map(|r| r.index)
                .eq(after + 1..=recovery.last_index)
        );
        let found: BTreeMap<u64, u64> = records.iter().map(|r| (r.index, tag_of(r))).collect();
        assert!(!found.values().any(|tag| self.refused.contains(tag)));
        for (index, tag) in self.acked.range(after + 1..) {
            let there = found.get(index);
            assert!(
                there == Some(tag) || (there.is_none() && !acked_too),
                "index {index}"
            );
        }
    }
}

/// Opens a log, fills a few segments, purges, reads and closes; every step may fail.
fn life(disk: &FaultyDisk, sync: SyncMode, fates: &mut Fates) -> Result<u64> {
    let (log, ..) = open(disk, sync)?;
    fates.append(&log, 3, 700);
    fates.append(&log, 4, 700);
    log.sync()?;
    fates.append(&log, 3, 2000);
    let after = log.last_index().min(4);
    let purged = log.purge(after);
    let read = log.read(after + 1, u64::MAX);
    fates.append(&log, 2, 100);
    log.close()?;
    purged?;
    read?;
    Ok(after)
}

/// A life with one fault, for every call that a life without faults makes.
fn fail_every_call(sync: SyncMode, fault: Fault) {
    let counting = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    life(&counting, sync, &mut Fates::default()).unwrap();
    let calls = counting.calls(None);
    assert!(calls > 20, "{calls}");
    let mut failures = 0;
    for nth in 1..=calls {
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        disk.fail(None, nth, fault);
        let mut fates = Fates::default();
        failures += u64::from(life(&disk, sync, &mut fates).is_err());
        // What was purged is covered by the caller's checkpoint.
        let after = fates.acked.keys().copied().max().unwrap_or(0).min(4);
        fates.check(&memory.crash(), after, sync == SyncMode::EveryAck);
        fates.check(&memory, after, true);
    }
    assert!(
        failures > 10,
        "{failures} of {calls} lives noticed their fault"
    );
}

#[test]
fn an_input_output_error_at_any_call_loses_nothing_acknowledged() {
    fail_every_call(SyncMode::EveryAck, Fault::Io);
    fail_every_call(BACKGROUND, Fault::Io);
}

#[test]
fn a_full_disk_at_any_call_loses_nothing_acknowledged() {
    for fault in [
        Fault::NoSpace,
        Fault::ShortWrite(3),
        Fault::ShortWrite(1500),
    ] {
        fail_every_call(SyncMode::EveryAck, fault);
        fail_every_call(BACKGROUND, fault);
    }
}

#[test]
fn many_faults_lose_nothing_acknowledged() {
    for seed in 0..200 {
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
        disk.fail_randomly(Operation::Write, seed, 4, Fault::ShortWrite(seed * 7));
        disk.fail_randomly(Operation::Create, seed, 4, Fault::NoSpace);
        disk.fail_randomly(Operation::SyncDir, seed, 10, Fault::NoSpace);
        disk.fail_randomly(Operation::Truncate, seed, 10, Fault::Io);
        disk.fail_randomly(Operation::Sync, seed, 50, Fault::Io);
        let mut fates = Fates::default();
        for round in 0..40 {
            fates.append(&log, round % 5, (round * 37 % 900) as usize);
        }
        let crashed = memory.crash();
        drop(log);
        fates.check(&crashed, 0, true);
        fates.check(&memory, 0, true);
    }
}

#[test]
fn a_full_disk_refuses_and_the_log_goes_on_when_there_is_space() {
    for sync in [SyncMode::EveryAck, BACKGROUND] {
        let memory = MemoryDisk::new();
        let disk = FaultyDisk::new(Arc::new(memory.clone()));
        let (log, ..) = open(&disk, sync).unwrap();
        append_many(&log, 2, 100);
        disk.fail_always(Operation::Write, Fault::ShortWrite(90));
        for _ in 0..3 {
            let error = append_acked(&log, entry(9, 100)).unwrap_err();
            assert!(
                matches!(error, Error::NoSpace { .. }) && error.is_no_space(),
                "{error}"
            );
            assert_eq!(log.last_index(), 2);
        }
        assert!(log.poisoned().is_none());
        assert_eq!(log.sync().unwrap(), 2);
        disk.heal();
        append_many(&log, 2, 100);
        log.close().unwrap();
        let (_log, recovery, records) = open(&memory, sync).unwrap();
        assert_eq!((recovery.last_index, recovery.cut_bytes), (4, 0));
        assert!(records.iter().all(is_right));
    }
}

#[test]
fn a_disk_of_limited_size_fills_up_and_works_again_after_a_purge() {
    let disk = MemoryDisk::with_capacity(20_000);
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    let mut fates = Fates::default();
    while fates.refused.is_empty() {
        fates.append(&log, 1, 1000);
    }
    let last = log.last_index();
    assert_eq!(last, fates.acked.len() as u64);
    log.purge(last).unwrap();
    let refused = fates.refused.len();
    fates.append(&log, 5, 1000);
    assert_eq!(fates.refused.len(), refused, "there is space again");
    assert_eq!(log.last_index(), last + 5);
    fates.check(&disk.crash(), last, true);
    drop(log);
    fates.check(&disk, last, true);
}

#[test]
fn a_failed_sync_ends_the_writing_and_not_the_reading() {
    for sync in [SyncMode::EveryAck, BACKGROUND] {
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let (log, ..) = open(&disk, sync).unwrap();
        append_many(&log, 3, 100);
        log.sync().unwrap();
        disk.fail(Operation::Sync, 1, Fault::Io);
        // In the background it may be acknowledged before the sync fails.
        let _ = append_acked(&log, entry(4, 100));
        let error = log.sync().unwrap_err();
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        assert!(error.to_string().contains("input/output error"), "{error}");
        let (refused, told) = append(&log, entry(5, 100));
        assert!(matches!(refused, Err(Error::Poisoned { .. })));
        assert!(matches!(told.recv().unwrap(), Err(Error::Poisoned { .. })));
        assert!(log.poisoned().is_some());
        assert_eq!(log.durable_index(), 3, "a second sync is not tried");
        assert!(log.read(1, u64::MAX).unwrap().len() >= 3);
        log.purge(2).unwrap();
        assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_full_disk_that_cannot_be_tidied_poisons_the_log() {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, 1, 100);
    disk.fail(Operation::Write, 1, Fault::ShortWrite(10));
    disk.fail(Operation::Truncate, 1, Fault::Io);
    let error = append_acked(&log, entry(2, 100)).unwrap_err();
    assert!(
        matches!(error, Error::Poisoned { .. }) && error.is_no_space(),
        "{error}"
    );
    assert!(log.poisoned().is_some());
}

#[test]
fn a_failed_purge_can_be_tried_again() {
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    // Some files are kept, and the rest is removed.
    let kept = || Options {
        spare_bytes: 8 << 10,
        ..options(SyncMode::EveryAck)
    };
    let (log, ..) = open_after(&disk, kept(), 0).unwrap();
    append_many(&log, 20, 1000);
    let mut failures = 0;
    for nth in [1, 2] {
        for operation in [Operation::Rename, Operation::SyncDir] {
            disk.fail(operation, nth, Fault::Io);
            failures += u64::from(matches!(log.purge(20), Err(Error::Disk(_))));
            let first = log.first_index();
            assert_eq!(log.read(first, 1).unwrap()[0].index, first);
            // Nothing removed so far leaves a hole, whatever a power loss undoes.
            open_after(&memory.crash(), kept(), first - 1).unwrap();
        }
    }
    disk.fail(Operation::Remove, 1, Fault::Io);
    failures += u64::from(matches!(log.purge(20), Err(Error::Disk(_))));
    assert!(failures >= 4, "{failures}");
    log.purge(20).unwrap();
    assert_eq!(segments(&disk).len(), 1);
    append_many(&log, 1, 10);
}
