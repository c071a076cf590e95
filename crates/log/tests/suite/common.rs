//! What the tests of the log share.

use bytes::Bytes;
use longbow_disk::{Disk, MemoryDisk};
use longbow_log::{Ack, Entry, Error, Log, Options, Record, Recovery, Result, SyncMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Bytes of a segment before its first frame.
pub const BEGIN: usize = 32;

/// Bytes of a frame before its payload.
pub const HEADER: usize = 64;

/// The folder of the log under test.
pub const DIR: &str = "log";

/// Everything in the background, without limits that a test could meet.
pub const BACKGROUND: SyncMode = SyncMode::Background {
    max_unsynced_bytes: u64::MAX,
    max_unsynced_age: Duration::from_secs(3600),
};

/// Small segments, whose files are used again, and a clock that stands still. None is prepared ahead, so that a test does
/// the same each time.
pub fn options(sync: SyncMode) -> Options {
    Options {
        sync,
        segment_size: 4096,
        prepared_segments: 0,
        spare_bytes: 6 * 4096,
        clock: Arc::new(|| 1_700_000_000_000_000),
        ..Options::new(DIR)
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

/// A payload of `len` bytes that only this index has.
pub fn payload(index: u64, len: usize) -> Vec<u8> {
    let mut random = Random(index);
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// An entry with that payload, in two parts.
pub fn entry(index: u64, len: usize) -> Entry {
    let mut rest = Bytes::from(payload(index, len));
    let first = rest.split_to(len / 3);
    Entry {
        shard: index as u32,
        term: index / 10,
        shard_index: index * 3,
        kind: 7,
        payload: vec![first, rest],
        ..Entry::default()
    }
}

/// Whether a record is what [`entry`] made for its index.
pub fn is_right(record: &Record) -> bool {
    record.payload[..] == payload(record.index, record.payload.len())
        && record.shard == record.index as u32
        && record.term == record.index / 10
        && record.shard_index == record.index * 3
        && record.kind == 7
}

/// Opens the log and collects what it replays.
pub fn open_after(
    disk: &(impl Disk + Clone + 'static),
    options: Options,
    after: u64,
) -> Result<(Log, Recovery, Vec<Record>)> {
    let mut records = Vec::new();
    let mut replay = |record| {
        records.push(record);
        Ok(())
    };
    let (log, recovery) = Log::open(Arc::new(disk.clone()), options, after, &mut replay)?;
    Ok((log, recovery, records))
}

/// Opens the log from the beginning.
pub fn open(
    disk: &(impl Disk + Clone + 'static),
    sync: SyncMode,
) -> Result<(Log, Recovery, Vec<Record>)> {
    open_after(disk, options(sync), 0)
}

/// Appends and hands out what the completion is told.
pub fn append(log: &Log, entry: Entry) -> (Result<u64>, Receiver<Result<Ack>>) {
    let (tell, told) = channel();
    let done = Box::new(move |result| {
        // The test may have lost interest.
        let _ = tell.send(result);
    });
    (log.append(entry, done), told)
}

/// Appends and waits for the acknowledgement.
pub fn append_acked(log: &Log, entry: Entry) -> std::result::Result<Ack, Error> {
    let (_, told) = append(log, entry);
    told.recv().expect("every completion is called")
}

/// Appends the next `count` entries of `len` bytes, waiting for each.
pub fn append_many(log: &Log, count: u64, len: usize) {
    for _ in 0..count {
        let index = log.last_index() + 1;
        let ack = append_acked(log, entry(index, len)).unwrap();
        assert_eq!(ack.index, index);
    }
}

/// The paths of the segment files, in order.
pub fn segments(disk: &dyn Disk) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).unwrap();
    let segments = names.iter().filter(|name| name.ends_with(".log"));
    segments.map(|name| Path::new(DIR).join(name)).collect()
}

/// A disk that holds nothing but these files in the log's folder, all durable.
pub fn disk_with(files: &[(PathBuf, Vec<u8>)]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    for (path, bytes) in files {
        disk.write_atomic(path, bytes).unwrap();
    }
    disk
}

/// The segment files and their contents.
pub fn files_of(disk: &dyn Disk) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: PathBuf| {
        let bytes = disk.read(&path, u64::MAX).unwrap();
        (path, bytes)
    };
    segments(disk).into_iter().map(read).collect()
}

/// An entry that tells itself apart from every other attempt, whatever index it gets.
pub fn tagged(id: u64, len: usize) -> Entry {
    Entry {
        shard: 1,
        term: id,
        kind: 9,
        payload: vec![Bytes::from(payload(id, len))],
        ..Entry::default()
    }
}

/// Which attempt a record is from; it must be whole.
pub fn tag_of(record: &Record) -> u64 {
    let expected = payload(record.term, record.payload.len());
    assert_eq!(record.payload[..], expected, "record {}", record.index);
    record.term
}
