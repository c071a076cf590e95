//! How far acknowledgements and readers may run ahead of the disk.

use crate::common::*;
use bytes::Bytes;
use longbow_disk::{Disk, File, Lock, MemoryDisk, Result};
use longbow_log::{Options, SyncMode};
use std::io::IoSlice;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A disk whose syncs take until its gate is opened.
#[derive(Debug, Clone)]
struct SlowDisk {
    memory: MemoryDisk,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl SlowDisk {
    fn new() -> SlowDisk {
        SlowDisk {
            memory: MemoryDisk::new(),
            gate: Arc::new((Mutex::new(true), Condvar::new())),
        }
    }

    /// Syncs wait from now on, until the answer is dropped: also by a failing test, which could not end otherwise.
    fn close_gate(&self) -> ClosedGate {
        *self.gate.0.lock().unwrap() = false;
        ClosedGate(self.gate.clone())
    }

    fn wrap(&self, file: Box<dyn File>) -> Box<dyn File> {
        let gate = self.gate.clone();
        Box::new(SlowFile { file, gate })
    }
}

struct ClosedGate(Arc<(Mutex<bool>, Condvar)>);

impl Drop for ClosedGate {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

#[derive(Debug)]
struct SlowFile {
    file: Box<dyn File>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl File for SlowFile {
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        self.file.append_vectored(parts)
    }

    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        self.file.write_at(offset, parts)
    }

    fn sync_data(&self) -> Result<()> {
        let (open, opened) = &*self.gate;
        drop(opened.wait_while(open.lock().unwrap(), |open| !*open));
        self.file.sync_data()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, buf)
    }
}

impl Disk for SlowDisk {
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.memory.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.memory.list(dir)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        self.memory.create(path).map(|file| self.wrap(file))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.memory.open(path).map(|file| self.wrap(file))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        self.memory.map(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.memory.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.memory.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.memory.sync_dir(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.memory.exists(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.memory.free_space(path)
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>> {
        self.memory.lock(path, note)
    }
}

fn limited(max_unsynced_bytes: u64, max_unsynced_age: Duration) -> Options {
    options(SyncMode::Background {
        max_unsynced_bytes,
        max_unsynced_age,
    })
}

#[test]
fn acknowledgements_do_not_wait_for_a_slow_disk_within_the_limits() {
    let disk = SlowDisk::new();
    let (log, ..) = open_after(&disk, limited(1 << 20, Duration::from_secs(3600)), 0).unwrap();
    let gate = disk.close_gate();
    for index in 1..=100 {
        let ack = append_acked(&log, entry(index, 100)).unwrap();
        assert!(!ack.durable);
    }
    assert_eq!((log.durable_index(), log.unsynced_bytes()), (0, 100 * 168));
    assert_eq!(log.read(1, u64::MAX).unwrap().len(), 100);
    drop(gate);
    assert_eq!(log.sync().unwrap(), 100);
    assert_eq!(log.unsynced_bytes(), 0);
}

#[test]
fn acknowledgements_wait_for_the_disk_beyond_a_limit() {
    let hour = Duration::from_secs(3600);
    for options in [limited(0, hour), limited(u64::MAX, Duration::ZERO)] {
        let disk = MemoryDisk::new();
        let (log, ..) = open_after(&disk, options, 0).unwrap();
        for index in 1..=200 {
            assert!(append_acked(&log, entry(index, 50)).unwrap().durable);
        }
    }
}

#[test]
fn the_entry_that_passes_the_limit_is_the_first_to_wait() {
    let disk = SlowDisk::new();
    let options = limited(5 * 168, Duration::from_secs(3600));
    let (log, ..) = open_after(&disk, options, 0).unwrap();
    let gate = disk.close_gate();
    for index in 1..=5 {
        assert!(!append_acked(&log, entry(index, 100)).unwrap().durable);
    }
    let opened = Arc::new(Mutex::new(false));
    let (tell, told) = std::sync::mpsc::channel();
    let seen = opened.clone();
    let done = move |ack: longbow_log::Result<_>| {
        tell.send((ack.is_ok(), *seen.lock().unwrap())).unwrap();
    };
    log.append(entry(6, 100), Box::new(done)).unwrap();
    // It is written, and therefore on its way to be acknowledged.
    while log.unsynced_bytes() < 6 * 168 {
        std::thread::yield_now();
    }
    assert!(told.try_recv().is_err());
    *opened.lock().unwrap() = true;
    drop(gate);
    assert_eq!(told.recv().unwrap(), (true, true));
}

#[test]
fn readers_do_not_see_what_is_not_acknowledged() {
    let disk = SlowDisk::new();
    let (log, ..) = open_after(&disk, options(SyncMode::EveryAck), 0).unwrap();
    append_many(&log, 2, 100);
    let gate = disk.close_gate();
    let (_, told) = append(&log, entry(3, 100));
    while log.unsynced_bytes() < 160 {
        std::thread::yield_now();
    }
    assert_eq!(log.read(1, u64::MAX).unwrap().len(), 2);
    assert!(log.read(3, u64::MAX).unwrap().is_empty());
    drop(gate);
    assert!(told.recv().unwrap().unwrap().durable);
    assert_eq!(log.read(1, u64::MAX).unwrap().len(), 3);
}
