//! Segments in files that were segments before, or were written full of zeros.

use crate::common::*;
use longbow_disk::{Disk, MemoryDisk};
use longbow_log::{Error, Log, Options, SyncMode};
use std::path::{Path, PathBuf};

const MODES: [SyncMode; 2] = [SyncMode::EveryAck, BACKGROUND];

fn spares(disk: &MemoryDisk) -> Vec<String> {
    let names = disk.list(Path::new(DIR)).unwrap();
    names
        .into_iter()
        .filter(|name| name.ends_with(".spare"))
        .collect()
}

/// A log whose files have had some lives already, and the index up to which it was purged.
fn used_log(disk: &MemoryDisk, sync: SyncMode) -> (Log, u64) {
    let (log, ..) = open_after(disk, options(sync), 0).unwrap();
    for _ in 0..4 {
        append_many(&log, 100, 100);
        log.sync().unwrap();
        log.purge(log.last_index()).unwrap();
    }
    let after = log.first_index() - 1;
    (log, after)
}

#[test]
fn purged_files_become_segments_again() {
    for sync in MODES {
        let disk = MemoryDisk::new();
        let (log, after) = used_log(&disk, sync);
        let before = spares(&disk);
        assert!(before.len() > 2);
        append_many(&log, 60, 100);
        assert!(spares(&disk).len() < before.len(), "none was used");
        let last = log.last_index();
        drop(log);
        let (log, recovery, records) = open_after(&disk, options(sync), after).unwrap();
        assert_eq!((recovery.last_index, recovery.cut_bytes), (last, 0));
        assert!(records.iter().map(|r| r.index).eq(after + 1..=last));
        assert!(records.iter().all(is_right));
        assert_eq!(log.read(after + 1, u64::MAX).unwrap(), records);
    }
}

#[test]
fn spares_are_kept_up_to_their_limit_and_given_up_when_the_disk_is_full() {
    let disk = MemoryDisk::with_capacity(64 << 10);
    let (log, ..) = used_log(&disk, SyncMode::EveryAck);
    let held: u64 = spares(&disk)
        .iter()
        .map(|name| {
            disk.open(&Path::new(DIR).join(name))
                .unwrap()
                .len()
                .unwrap()
        })
        .sum();
    assert!(held > 0 && held <= 6 * 4096, "{held}");
    let mut index = log.last_index() + 1;
    let full = loop {
        match append_acked(&log, entry(index, 3000)) {
            Ok(_) => index += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::NoSpace { .. }), "{full}");
    assert!(spares(&disk).is_empty());
    log.purge(log.last_index()).unwrap();
    append_acked(&log, entry(log.last_index() + 1, 3000)).unwrap();
}

#[test]
fn a_spare_that_makes_no_sense_or_has_too_late_an_index_is_removed() {
    let disk = MemoryDisk::new();
    let (log, after) = used_log(&disk, SyncMode::EveryAck);
    let next = log.last_index() + 1;
    drop(log);
    let good = spares(&disk).len();
    // Was to be the next segment when the power was lost: its name did not become durable, what it holds is no longer so.
    let mut begun = files_of(&disk).pop().unwrap().1;
    begun[16..24].copy_from_slice(&next.to_le_bytes());
    let crc = crc_fast::crc32_iscsi(&[&begun[..12], &begun[16..24]].concat());
    begun[12..16].copy_from_slice(&crc.to_le_bytes());
    let crc = crc_fast::crc32_iscsi(&begun[..28]);
    begun[28..32].copy_from_slice(&crc.to_le_bytes());
    let bad = [begun, vec![7; 4096], vec![0; 3], Vec::new()];
    for (number, bytes) in bad.iter().enumerate() {
        let path = Path::new(DIR).join(format!("{:020}.spare", 9000 + number));
        disk.write_atomic(&path, bytes).unwrap();
    }
    let options = Options {
        spare_bytes: 1 << 30,
        ..options(SyncMode::EveryAck)
    };
    let (log, ..) = open_after(&disk, options, after).unwrap();
    assert_eq!(spares(&disk).len(), good);
    append_many(&log, 200, 100);
}

/// The first `len` bytes of the last segment's frames are there, behind them what the file held before.
fn torn(before: &[u8], after: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = before.to_vec();
    bytes[..len].copy_from_slice(&after[..len]);
    bytes
}

#[test]
fn a_tail_torn_at_any_byte_over_an_earlier_life_is_cut_there() {
    let disk = MemoryDisk::new();
    let (log, after) = used_log(&disk, SyncMode::EveryAck);
    // Into a new segment of a used file, then a few frames.
    while files_of(&disk).len() < 3 {
        append_many(&log, 1, 100);
    }
    append_many(&log, 3, 100);
    let mut files = files_of(&disk);
    let (path, before) = files.pop().unwrap();
    let sound = log.last_index();
    append_many(&log, 2, 45);
    let now = files_of(&disk).pop().unwrap().1;
    drop(log);
    let start = before.iter().zip(&now).position(|(a, b)| a != b).unwrap();
    let frame = HEADER + 48;
    for len in start..start + 2 * frame {
        let torn: PathBuf = path.clone();
        let mut files = files.clone();
        files.push((torn, self::torn(&before, &now, len)));
        let disk = disk_with(&files);
        let opened = open_after(&disk, options(SyncMode::EveryAck), after);
        let (log, recovery, records) = opened.unwrap();
        assert!((sound..=sound + 2).contains(&recovery.last_index));
        assert!(recovery.last_index >= sound + ((len - start) / frame) as u64);
        assert!(records.iter().all(is_right));
        append_many(&log, 5, 50);
        let last = log.last_index();
        drop(log);
        let (_, again, records) = open_after(&disk, options(SyncMode::EveryAck), after).unwrap();
        assert_eq!((again.last_index, again.cut_bytes), (last, 0));
        assert!(records.iter().all(is_right));
    }
}

/// Opens a log after a loss of power, in which all up to `safe` must be, and nothing wrong.
fn open_whole(disk: &MemoryDisk, options: Options, after: u64, safe: u64) -> Log {
    let (log, recovery, records) = open_after(disk, options, after).unwrap();
    let last = recovery.last_index;
    assert!(last >= safe, "lost: {last} of {safe}");
    assert!(records.iter().map(|r| r.index).eq(after + 1..=last));
    assert!(records.iter().all(is_right));
    log
}

/// Unsynced sectors survive or not, each on its own.
fn lose_power(disk: &MemoryDisk, random: &mut Random) -> MemoryDisk {
    let odds = 1 + random.below(4);
    disk.crash_scattered(&mut |_, _| random.below(odds) == 0)
}

/// Appends, purges and loses power at random.
fn check_power(sync: SyncMode, seed: u64) {
    let mut random = Random(seed);
    let mut disk = MemoryDisk::new();
    let mut after = 0;
    // What must be there, and what may.
    let mut safe = 0;
    for _ in 0..12 {
        let log = open_whole(&disk, options(sync), after, safe);
        for _ in 0..random.below(6) {
            append_many(&log, random.below(60), 1 + random.below(300) as usize);
            if random.below(3) == 0 {
                log.sync().unwrap();
                after = after.max(log.durable_index().saturating_sub(random.below(20)));
                log.purge(after).unwrap();
            }
        }
        safe = match sync {
            SyncMode::EveryAck => log.last_index(),
            _ => log.durable_index(),
        };
        disk = lose_power(&disk, &mut random);
        drop(log);
    }
}

#[test]
fn power_loss_in_any_order_loses_nothing_that_was_durable() {
    for seed in 0..150 {
        check_power(SyncMode::EveryAck, seed);
        check_power(BACKGROUND, seed);
    }
}

/// As above with entries of up to a megabyte and a half, which are handed to the disk in chunks before they are synced:
/// the power is lost while some of them are on their way.
fn check_power_amid_chunks(sync: SyncMode, seed: u64) {
    let mut random = Random(seed);
    let mut disk = MemoryDisk::new();
    let (mut after, mut safe) = (0, 0);
    let options = || Options {
        segment_size: 4 << 20,
        spare_bytes: 16 << 20,
        ..options(sync)
    };
    for _ in 0..6 {
        let log = open_whole(&disk, options(), after, safe);
        // Some files are used again, some are not yet.
        for _ in 0..random.below(8) {
            append_many(&log, 1, random.below(1_500_000) as usize);
        }
        after = after.max(log.sync().unwrap().saturating_sub(random.below(3)));
        log.purge(after).unwrap();
        let first = log.last_index() + 1;
        let count = 1 + random.below(4);
        let under_way: Vec<_> = (first..first + count)
            .map(|index| append(&log, entry(index, random.below(1_500_000) as usize)).1)
            .collect();
        let waited_for = random.below(count) as usize;
        for told in &under_way[..waited_for] {
            told.recv().unwrap().unwrap();
        }
        safe = match sync {
            SyncMode::EveryAck => first - 1 + waited_for as u64,
            _ => log.durable_index(),
        };
        disk = lose_power(&disk, &mut random);
        drop(log);
    }
}

#[test]
fn power_loss_amid_the_chunks_of_large_entries_loses_nothing_that_was_durable() {
    for seed in 0..12 {
        check_power_amid_chunks(SyncMode::EveryAck, seed);
        check_power_amid_chunks(BACKGROUND, seed);
    }
}

#[test]
fn swapped_and_repeated_blocks_are_never_served() {
    let disk = MemoryDisk::new();
    let (log, after) = used_log(&disk, SyncMode::EveryAck);
    append_many(&log, 100, 100);
    log.close().unwrap();
    let files = files_of(&disk);
    let mut random = Random(5);
    let mut refused = 0;
    for _ in 0..3000 {
        let mut broken = files.clone();
        let mut place = || {
            let file = random.below(files.len() as u64) as usize;
            let blocks = files[file].1.len() as u64 / 512;
            (file, random.below(blocks) as usize * 512)
        };
        let (from, to) = (place(), place());
        let block = files[from.0].1[from.1..][..512].to_vec();
        let other = files[to.0].1[to.1..][..512].to_vec();
        broken[to.0].1[to.1..][..512].copy_from_slice(&block);
        if random.below(2) == 0 {
            broken[from.0].1[from.1..][..512].copy_from_slice(&other);
        }
        // What was claimed at the close lies elsewhere.
        let claim = Path::new(DIR).join("durable.claim");
        broken.push((claim.clone(), disk.read(&claim, 100).unwrap()));
        let opened = open_after(&disk_with(&broken), options(SyncMode::EveryAck), after);
        match opened {
            Err(Error::Damaged { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
            Ok((_, recovery, records)) => {
                // Only what lies behind the last frame may change unnoticed.
                assert_eq!(recovery.last_index, after + records.len() as u64);
                assert_eq!(recovery.last_index, 500);
                assert!(records.iter().all(is_right));
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn segments_are_prepared_ahead_and_used() {
    for sync in MODES {
        let disk = MemoryDisk::new();
        let options = || Options {
            prepared_segments: 2,
            spare_bytes: 6 * 4096,
            ..options(sync)
        };
        let (log, ..) = open_after(&disk, options(), 0).unwrap();
        log.wait_until_prepared();
        assert!(spares(&disk).len() >= 2);
        append_many(&log, 300, 100);
        drop(log);
        let (_, recovery, records) = open_after(&disk, options(), 0).unwrap();
        assert_eq!((recovery.last_index, recovery.cut_bytes), (300, 0));
        assert!(records.iter().all(is_right));
    }
}

#[test]
fn written_with_each_entry_or_never_synced_it_comes_back() {
    let dsync = Options {
        sync_method: longbow_log::SyncMethod::Dsync,
        ..options(SyncMode::EveryAck)
    };
    let disk = MemoryDisk::new();
    let (log, ..) = open_after(&disk, dsync, 0).unwrap();
    append_many(&log, 100, 100);
    assert_eq!((log.durable_index(), log.unsynced_bytes()), (100, 0));
    let (_, recovery, _) = open_after(&disk.crash(), options(SyncMode::EveryAck), 0).unwrap();
    assert_eq!(recovery.last_index, 100);

    let disk = MemoryDisk::new();
    let (log, ..) = open_after(&disk, options(SyncMode::Never), 0).unwrap();
    append_many(&log, 100, 100);
    assert_eq!(log.durable_index(), 0);
    let (_, recovery, _) = open_after(&disk.crash(), options(SyncMode::Never), 0).unwrap();
    assert_eq!(recovery.last_index, 0);
    // What relies on the log, a checkpoint, asks for it.
    assert_eq!(log.sync().unwrap(), 100);
    let (_, recovery, _) = open_after(&disk.crash(), options(SyncMode::Never), 0).unwrap();
    assert_eq!(recovery.last_index, 100);
    append_many(&log, 20, 100);
    log.close().unwrap();
    assert_eq!(log.durable_index(), 120);
    let (_, recovery, _) = open_after(&disk.crash(), options(SyncMode::Never), 0).unwrap();
    assert_eq!(recovery.last_index, 120);
}

#[test]
fn a_new_log_moves_to_a_file_that_does_not_grow_as_soon_as_there_is_one() {
    let disk = MemoryDisk::new();
    let options = Options {
        prepared_segments: 1,
        segment_size: 1 << 20,
        ..options(SyncMode::EveryAck)
    };
    let (log, ..) = open_after(&disk, options, 0).unwrap();
    log.wait_until_prepared();
    append_many(&log, 3, 20_000);
    let lens = segments(&disk).into_iter().map(|path| {
        let file = disk.open(&path).unwrap();
        file.len().unwrap()
    });
    assert!(lens.eq([32 + 64 + 20_000, 1 << 20]));
    log.close().unwrap();
    let (_, _, records) = open(&disk, SyncMode::EveryAck).unwrap();
    assert!(records.len() == 3 && records.iter().all(is_right));
}
