//! Random lives of a log on a disk that loses power.

use crate::common::*;
use longbow_disk::MemoryDisk;
use longbow_log::{Ack, Log, Result, SyncMode};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// What must be true of a log, kept beside it.
struct Model {
    random: Random,
    sync: SyncMode,
    disk: MemoryDisk,
    /// The attempt that holds each index, as far as it was told or seen.
    tags: BTreeMap<u64, u64>,
    /// Every index up to here must survive power loss.
    safe: u64,
    /// The caller's checkpoint.
    after: u64,
    next_tag: u64,
    /// Acknowledgements that were not waited for yet.
    open_acks: Vec<(u64, Receiver<Result<Ack>>)>,
}

impl Model {
    fn new(seed: u64, sync: SyncMode) -> Model {
        Model {
            random: Random(seed),
            sync,
            disk: MemoryDisk::new(),
            tags: BTreeMap::new(),
            safe: 0,
            after: 0,
            next_tag: 1,
            open_acks: Vec::new(),
        }
    }

    fn append(&mut self, log: &Log) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let len = self.random.below(600) as usize;
        let (index, told) = append(log, tagged(tag, len));
        let index = index.unwrap();
        self.tags.insert(index, tag);
        self.open_acks.push((index, told));
    }

    fn wait_for_acks(&mut self) {
        for (index, told) in self.open_acks.drain(..) {
            let ack = told.recv().unwrap().unwrap();
            assert_eq!(ack.index, index);
            assert!(ack.durable || self.sync != SyncMode::EveryAck);
            if ack.durable {
                self.safe = self.safe.max(index);
            }
        }
    }

    fn step(&mut self, log: &Log) {
        match self.random.below(20) {
            0..=11 => self.append(log),
            12..=14 => self.wait_for_acks(),
            15 => self.safe = self.safe.max(log.sync().unwrap()),
            16 => {
                // A checkpoint, now and then ahead of what is durable.
                let span = log.last_index() - self.after + 1;
                self.after += self.random.below(span);
                log.purge(self.after).unwrap();
            }
            _ => self.read(log),
        }
    }

    fn read(&mut self, log: &Log) {
        let first = log.first_index();
        let span = log.last_index() + 2 - first;
        let from = first + self.random.below(span);
        let records = log.read(from, self.random.below(3000)).unwrap();
        for (record, index) in records.iter().zip(from..) {
            assert_eq!(record.index, index);
            assert_eq!(Some(&tag_of(record)), self.tags.get(&index));
        }
    }

    /// Ends the log by a kill, a power loss or properly, and checks what is found.
    fn end_and_reopen(&mut self, log: Log) -> Log {
        let power_loss = match self.random.below(4) {
            0 => {
                log.close().unwrap();
                self.safe = log.last_index();
                false
            }
            1 => {
                self.wait_for_acks();
                drop(log);
                self.safe = self.safe.max(*self.tags.keys().last().unwrap_or(&0));
                false
            }
            _ => {
                self.safe = self.safe.max(log.durable_index());
                let random = &mut self.random;
                self.disk = self
                    .disk
                    .crash_keeping(&mut |_, unsynced| random.below(unsynced + 1));
                true
            }
        };
        self.open_acks.clear();
        let (log, recovery, records) =
            open_after(&self.disk, options(self.sync), self.after).unwrap();
        assert!(recovery.last_index >= self.safe.max(self.after));
        assert!(power_loss || recovery.cut_bytes == 0);
        let expected = self.after + 1..=recovery.last_index;
        assert!(records.iter().map(|r| r.index).eq(expected));
        for record in &records {
            assert_eq!(Some(&tag_of(record)), self.tags.get(&record.index));
        }
        self.tags.split_off(&(recovery.last_index + 1));
        self.safe = recovery.last_index;
        log
    }
}

fn live(seed: u64, sync: SyncMode) {
    let mut model = Model::new(seed, sync);
    let (mut log, ..) = open(&model.disk, sync).unwrap();
    for _ in 0..6 {
        for _ in 0..model.random.below(60) {
            model.step(&log);
        }
        log = model.end_and_reopen(log);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_every_acknowledgement_is_synced() {
    for seed in 0..150 {
        live(seed, SyncMode::EveryAck);
    }
}

#[test]
fn a_prefix_survives_and_all_that_was_called_durable_in_the_background() {
    for seed in 0..150 {
        live(seed, BACKGROUND);
    }
}
