//! Entries handed in together, callers that wait, and writes that ask for more than the default.

use crate::common::*;
use longbow_disk::{Fault, FaultyDisk, MemoryDisk, Operation};
use longbow_log::{Ack, Entry, Error, Options, SyncMode};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

const MODES: [SyncMode; 3] = [SyncMode::EveryAck, BACKGROUND, SyncMode::Never];

#[test]
fn they_get_consecutive_indexes_and_one_answer() {
    for sync in MODES {
        let disk = MemoryDisk::new();
        let (log, _, _) = open(&disk, sync).unwrap();
        let (tell, told) = channel();
        let done = Box::new(move |ack| tell.send(ack).unwrap());
        let entries = (1..=5).map(|index| entry(index, 300));
        assert_eq!(log.append_all(entries, done).unwrap(), 1..6);
        let ack = told.recv().unwrap().unwrap();
        assert_eq!((ack.index, ack.payload), (5, None));
        assert!(told.recv().is_err(), "the completion is gone");
        let entries = (6..=9).map(|index| entry(index, 300));
        assert_eq!(log.append_and_wait(entries).unwrap().index, 9);
        log.close().unwrap();
        let (_, _, records) = open(&disk, sync).unwrap();
        assert!(records.len() == 9 && records.iter().all(is_right));
    }
}

#[test]
fn none_at_all_are_refused() {
    let (log, _, _) = open(&MemoryDisk::new(), SyncMode::EveryAck).unwrap();
    let (tell, told) = channel();
    let done = Box::new(move |ack| tell.send(ack).unwrap());
    assert!(matches!(log.append_all([], done), Err(Error::Empty)));
    assert!(matches!(told.recv().unwrap(), Err(Error::Empty)));
    assert!(matches!(log.append_and_wait([]), Err(Error::Empty)));
    assert_eq!(log.last_index(), 0);
}

#[test]
fn a_hand_in_larger_than_a_batch_is_written_as_one() {
    let disk = MemoryDisk::new();
    let options = Options {
        max_batch_entries: 3,
        ..options(SyncMode::EveryAck)
    };
    let (log, _, _) = open_after(&disk, options, 0).unwrap();
    let entries = (1..=50).map(|index| entry(index, 200));
    assert_eq!(log.append_and_wait(entries).unwrap().index, 50);
    append_many(&log, 10, 200);
    drop(log);
    let (_, _, records) = open(&disk, SyncMode::EveryAck).unwrap();
    assert!(records.len() == 60 && records.iter().all(is_right));
}

#[test]
fn callers_that_wait_are_all_served() {
    for sync in MODES {
        let disk = MemoryDisk::new();
        let (log, _, _) = open(&disk, sync).unwrap();
        let indexes = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for caller in 0..20 {
                let (log, indexes) = (&log, &indexes);
                scope.spawn(move || {
                    for id in caller * 100..caller * 100 + 100 {
                        let pair = [tagged(id, 50), tagged(id, 60)];
                        let ack = log.append_and_wait(pair).unwrap();
                        assert!(ack.durable || sync != SyncMode::EveryAck);
                        indexes.lock().unwrap().push((ack.index, id));
                    }
                });
            }
        });
        log.close().unwrap();
        let (_, _, records) = open(&disk, sync).unwrap();
        assert_eq!(records.len(), 4000);
        for (index, id) in indexes.into_inner().unwrap() {
            let pair = &records[index as usize - 2..index as usize];
            assert!(pair.iter().all(|record| tag_of(record) == id));
        }
    }
}

#[test]
fn a_write_may_ask_to_be_durable() {
    for sync in [BACKGROUND, SyncMode::Never] {
        let disk = MemoryDisk::new();
        let (log, _, _) = open(&disk, sync).unwrap();
        append_many(&log, 3, 100);
        let wanted = Entry {
            durable: true,
            ..entry(4, 100)
        };
        let ack = append_acked(&log, wanted).unwrap();
        assert!(ack.durable && log.durable_index() >= 4);
        let (_, _, records) = open(&disk.crash(), sync).unwrap();
        assert!(records.len() >= 4 && records.iter().all(is_right));
    }
}

#[test]
fn completions_come_in_order_whatever_each_asks_for() {
    let (log, _, _) = open(&MemoryDisk::new(), BACKGROUND).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    for index in 1..=500 {
        let entry = Entry {
            durable: index % 7 == 0,
            ..entry(index, 100)
        };
        let order = order.clone();
        let done = move |ack: Result<Ack, Error>| {
            let ack = ack.unwrap();
            assert!(ack.durable || index % 7 != 0);
            order.lock().unwrap().push(ack.index);
        };
        log.append(entry, Box::new(done)).unwrap();
    }
    log.close().unwrap();
    assert_eq!(*order.lock().unwrap(), Vec::from_iter(1..=500));
}

#[test]
fn a_caller_that_waits_is_told_of_a_failure() {
    for operation in [Operation::Sync, Operation::Write] {
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let (log, _, _) = open(&disk, SyncMode::EveryAck).unwrap();
        log.append_and_wait([entry(1, 10)]).unwrap();
        disk.fail_always(operation, Fault::Io);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let error = log.append_and_wait([entry(2, 10)]).unwrap_err();
                    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
                });
            }
        });
        assert!(log.close().is_err());
    }
}

#[test]
fn a_caller_that_waits_is_told_of_a_full_disk_and_the_log_goes_on() {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let (log, _, _) = open(&disk, SyncMode::EveryAck).unwrap();
    log.append_and_wait([entry(1, 10)]).unwrap();
    disk.fail_always(Operation::Write, Fault::NoSpace);
    let refused = log.append_and_wait([entry(2, 10), entry(3, 10)]);
    assert!(refused.unwrap_err().is_no_space());
    disk.heal();
    assert_eq!(log.append_and_wait([entry(2, 10)]).unwrap().index, 2);
}
