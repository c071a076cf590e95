//! Logs that end, or break, in the middle of something.

use crate::common::*;
use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk};
use longbow_log::{Error, Log, Record, Recovery, Result, SyncMode};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Files = Vec<(PathBuf, Vec<u8>)>;

/// The files of a log as a kill -9 leaves it after these entries, each synced on its own.
fn killed_log(entries: u64, len: usize) -> Files {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, entries, len);
    files_of(&disk)
}

/// The files of a log as a power loss may leave it that never synced anything, and happened to lose no byte.
fn unsynced_log(entries: u64, len: usize) -> Files {
    let mut files = killed_log(entries, len);
    claim_nothing(&mut files);
    files
}

/// Rewrites every frame so that none says that anything was durable, and with it the chain of checksums.
fn claim_nothing(files: &mut Files) {
    let mut link = [0; 4];
    for (_, bytes) in files {
        bytes[24..28].copy_from_slice(&link);
        let crc = crc_fast::crc32_iscsi(&bytes[..28]);
        link = crc.to_le_bytes();
        bytes[28..32].copy_from_slice(&link);
        let first = bytes[16..24].to_vec();
        let mut at = BEGIN;
        while at < bytes.len() {
            let header = &mut bytes[at..at + HEADER];
            header[24..32].fill(0);
            header[60..].copy_from_slice(&link);
            let crc = crc_fast::crc32_iscsi(&[&first, &header[4..]].concat());
            link = crc.to_le_bytes();
            header[..4].copy_from_slice(&link);
            let len = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
            at += HEADER + len.next_multiple_of(8);
        }
    }
}

fn reopen(files: &Files) -> (MemoryDisk, Result<(Log, Recovery, Vec<Record>)>) {
    let disk = disk_with(files);
    let opened = open(&disk, SyncMode::EveryAck);
    (disk, opened)
}

/// Opens, checks that exactly the first `kept` records are there, and that the log goes on behind them.
fn check_prefix(files: &Files, kept: u64) -> Recovery {
    let (disk, opened) = reopen(files);
    let (log, recovery, records) = opened.unwrap();
    assert_eq!(recovery.last_index, kept);
    assert!(records.iter().map(|r| r.index).eq(1..=kept));
    assert!(records.iter().all(is_right));
    append_many(&log, 1, 50);
    drop(log);
    let (_log, again, records) = open(&disk, SyncMode::EveryAck).unwrap();
    assert_eq!((again.last_index, again.cut_bytes), (kept + 1, 0));
    assert!(records.iter().all(is_right));
    recovery
}

/// Opens and expects to hear about damage at that index, and an untouched folder.
fn check_damaged(files: &Files, index: u64) {
    let (disk, opened) = reopen(files);
    let error = opened.map(|(_, recovery, _)| recovery).unwrap_err();
    assert!(
        matches!(error, Error::Damaged { expected, .. } if expected == index),
        "{error}"
    );
    assert_eq!(&files_of(&disk), files);
}

#[test]
fn a_tail_torn_at_any_byte_of_the_last_two_frames_is_cut() {
    let files = killed_log(6, 45);
    assert_eq!(files.len(), 1);
    let frame = HEADER + 48;
    let (path, whole) = &files[0];
    assert_eq!(whole.len(), BEGIN + 6 * frame);
    for len in BEGIN + 4 * frame..=whole.len() {
        let torn = vec![(path.clone(), whole[..len].to_vec())];
        let kept = (len - BEGIN) / frame;
        let recovery = check_prefix(&torn, kept as u64);
        let sound = BEGIN + kept * frame;
        let used = whole[sound..len].iter().rposition(|byte| *byte != 0);
        assert_eq!(recovery.cut_bytes, used.map_or(0, |last| last as u64 + 1));
        let cut_at = used.is_some().then(|| (path.clone(), sound as u64));
        assert_eq!(recovery.cut_at, cut_at);
    }
}

#[test]
fn a_segment_torn_at_any_byte_of_its_header_is_begun_anew() {
    let files = killed_log(1, 10);
    let (path, whole) = &files[0];
    for len in 0..BEGIN {
        check_prefix(&vec![(path.clone(), whole[..len].to_vec())], 0);
    }
    let mut files = killed_log(40, 100);
    assert_eq!(files.len(), 2);
    let kept = first_of(&files[1].0) - 1;
    for len in 0..BEGIN {
        files[1].1.truncate(len);
        check_prefix(&files, kept);
        files[1].1 = killed_log(40, 100)[1].1.clone();
    }
}

#[test]
fn a_file_that_is_no_log_is_not_cut_as_a_torn_one() {
    let files = killed_log(40, 100);
    let (second, _) = &files[1];
    for other in [&b"a diary, not a log"[..], b"LBLOC\0\0\0", &[0, 0, 0, 7]] {
        check_damaged(&vec![(files[0].0.clone(), other.to_vec())], 1);
        let both = vec![files[0].clone(), (second.clone(), other.to_vec())];
        check_damaged(&both, first_of(second));
        // Nor where it is not the next one, or stands behind what a crash did tear.
        let far = second.with_file_name(format!("{:020}.log", 5000));
        let gap = [files.clone(), vec![(far.clone(), other.to_vec())]].concat();
        check_damaged(&gap, 41);
        let torn = files[1].1[..10].to_vec();
        let behind = vec![
            files[0].clone(),
            (second.clone(), torn),
            (far, other.to_vec()),
        ];
        check_damaged(&behind, first_of(second));
    }
}

#[test]
fn a_folder_is_never_without_a_segment_while_a_torn_one_is_replaced() {
    let files = killed_log(1, 10);
    let torn = vec![(files[0].0.clone(), files[0].1[..BEGIN / 2].to_vec())];
    for nth in 1.. {
        let disk = disk_with(&torn);
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        faulty.fail(None, nth, Fault::Io);
        let opened = open(&faulty, SyncMode::EveryAck).map(|opened| opened.1);
        for disk in [&disk, &disk.crash()] {
            assert!(!segments(disk).is_empty(), "call {nth}");
            let (_, recovery, _) = open(disk, SyncMode::EveryAck).unwrap();
            assert_eq!(recovery.last_index, 0);
        }
        if opened.is_ok() {
            assert!(nth > 5, "{nth} calls");
            return;
        }
    }
}

#[test]
fn a_segment_that_holds_only_a_mark_is_not_begun_again_under_its_name() {
    let mut files = killed_log(40, 100);
    let kept = first_of(&files[1].0) - 1;
    files[1].1.truncate(BEGIN);
    let disk = disk_with(&files);
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    log.close().unwrap();
    let (log, recovery, _) = open(&disk, SyncMode::EveryAck).unwrap();
    assert_eq!(recovery.last_index, kept);
    // Too large for what is left in the segment.
    append_many(&log, 1, 5000);
    append_many(&log, 3, 100);
    assert_eq!(log.read(kept + 1, u64::MAX).unwrap().len(), 4);
    log.purge(kept + 1).unwrap();
    append_many(&log, 60, 100);
    log.purge(kept + 20).unwrap();
    let (first, last) = (log.first_index(), log.last_index());
    drop(log);
    let (_, again, records) = open_after(&disk, options(SyncMode::EveryAck), first - 1).unwrap();
    assert_eq!((again.last_index, again.cut_bytes), (last, 0));
    assert!(records.iter().all(is_right));
}

#[test]
fn a_broken_header_of_a_segment_is_refused() {
    let whole = killed_log(40, 100);
    for (segment, index) in [(0, 1), (1, first_of(&whole[1].0))] {
        for at in 0..BEGIN {
            let mut files = whole.clone();
            files[segment].1[at] ^= 1;
            check_damaged(&files, index);
        }
    }
}

/// The first index of a segment, by its name.
fn first_of(path: &Path) -> u64 {
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn a_tail_of_garbage_is_cut_and_one_of_zeros_written_over() {
    let files = killed_log(3, 40);
    let (path, whole) = &files[0];
    let mut random = Random(1);
    for extra in [1, 7, 8, 63, 64, 100, 5000] {
        for garbage in [false, true] {
            let mut bytes = whole.clone();
            let tail = (0..extra).map(|_| {
                if garbage {
                    1 + random.below(255) as u8
                } else {
                    0
                }
            });
            bytes.extend(tail);
            let recovery = check_prefix(&vec![(path.clone(), bytes)], 3);
            // Zeros are the room that is left in a file.
            assert_eq!(recovery.cut_bytes, if garbage { extra } else { 0 });
        }
    }
}

#[test]
fn damage_that_a_later_frame_vouches_for_is_refused() {
    let files = killed_log(40, 100);
    assert_eq!(files.len(), 2);
    let frame = HEADER + 104;
    for index in [1, 2, 20, 24, 25, 38] {
        let (segment, nth) = if index <= 24 {
            (0, index - 1)
        } else {
            (1, index - 25)
        };
        for offset in [0, 30, 57, 60, 63, 64, 100, 163, 167] {
            let mut broken = files.clone();
            broken[segment].1[BEGIN + nth * frame + offset] ^= 4;
            check_damaged(&broken, index as u64);
        }
    }
    let mut broken = files.clone();
    broken[0].1.truncate(BEGIN + 20 * frame);
    check_damaged(&broken, 21);
    let mut broken = files.clone();
    broken[0].1[3] ^= 1;
    check_damaged(&broken, 1);
    let mut broken = files.clone();
    broken[1].1[3] ^= 1;
    check_damaged(&broken, 25);
}

#[test]
fn a_missing_or_repeated_frame_is_refused() {
    let frame = HEADER + 104;
    for (sound, files) in [(true, killed_log(10, 100)), (false, unsynced_log(10, 100))] {
        let at = BEGIN + 4 * frame;
        let mut missing = files.clone();
        missing[0].1.drain(at..at + frame);
        let mut repeated = files.clone();
        let again = repeated[0].1[at - frame..at].to_vec();
        repeated[0].1.splice(at..at, again);
        for broken in [missing, repeated] {
            if sound {
                check_damaged(&broken, 5);
            } else {
                check_prefix(&broken, 4);
            }
        }
    }
}

#[test]
fn a_missing_segment_is_refused() {
    let files = killed_log(60, 100);
    assert_eq!(files.len(), 3);
    let without_middle = vec![files[0].clone(), files[2].clone()];
    check_damaged(&without_middle, 25);
    let (disk, opened) = reopen(&files[1..].to_vec());
    let error = opened.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Missing {
                after: 0,
                first: 25
            }
        ),
        "{error}"
    );
    assert_eq!(files_of(&disk), files[1..]);
}

#[test]
fn a_renamed_segment_is_noticed() {
    let mut files = killed_log(60, 100);
    files[2].0.set_file_name("00000000000000000070.log");
    check_damaged(&files, 49);
}

#[test]
fn unsynced_segments_are_cut_where_the_first_of_them_breaks() {
    let files = unsynced_log(60, 100);
    let frame = HEADER + 104;
    check_prefix(&files, 60);
    let mut torn = files.clone();
    torn[0].1.truncate(BEGIN + 10 * frame + 60);
    let recovery = check_prefix(&torn, 10);
    // But for zeros at the ends: of the last payloads' padding and of the torn header.
    let rest = torn[1].1.len() + torn[2].1.len() + 60;
    assert!((rest - 20..=rest).contains(&(recovery.cut_bytes as usize)));
    // A name that was never synced is missing.
    check_prefix(&vec![files[0].clone(), files[2].clone()], 24);
    // A page in the middle was never written, the ones behind it were.
    let mut hole = files.clone();
    hole[1].1[BEGIN + 5 * frame..BEGIN + 8 * frame].fill(0);
    check_prefix(&hole, 29);
}

#[test]
fn what_was_replayed_is_durable() {
    let files = unsynced_log(60, 100);
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    for (path, bytes) in &files {
        let file = disk.create(path).unwrap();
        file.append_vectored(&[IoSlice::new(bytes)]).unwrap();
    }
    assert!(disk.crash().list(Path::new(DIR)).unwrap().is_empty());
    let (log, ..) = open(&disk, BACKGROUND).unwrap();
    assert_eq!(log.durable_index(), 60);
    assert_eq!(files_of(&disk.crash()), files);
}

#[test]
fn after_a_clean_close_every_flipped_bit_but_the_marks_own_is_refused() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, BACKGROUND).unwrap();
    append_many(&log, 5, 30);
    log.close().unwrap();
    let files = files_of(&disk);
    let len = files[0].1.len();
    for at in 0..len {
        let mut broken = files.clone();
        broken[0].1[at] ^= 1 << (at % 8);
        if at < len - HEADER {
            let (disk, opened) = reopen(&broken);
            assert!(matches!(opened, Err(Error::Damaged { .. })), "byte {at}");
            assert_eq!(files_of(&disk), broken);
        } else {
            check_prefix(&broken, 5);
        }
    }
}

#[test]
fn flipped_bits_never_show_a_wrong_record() {
    let mut random = Random(42);
    let (mut refused, mut cut) = (0, 0);
    for round in 0..3000 {
        let files = match round % 2 {
            0 => killed_log(12, 200),
            _ => unsynced_log(12, 200),
        };
        let mut broken = files.clone();
        for _ in 0..=random.below(3) {
            let file = random.below(broken.len() as u64) as usize;
            let at = random.below(broken[file].1.len() as u64) as usize;
            broken[file].1[at] ^= 1 << random.below(8);
        }
        let (_, opened) = reopen(&broken);
        match opened {
            Err(Error::Damaged { .. } | Error::Newer { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
            Ok((log, recovery, records)) => {
                cut += u64::from(recovery.cut_bytes > 0);
                assert!(records.iter().all(is_right));
                assert!(records.iter().map(|r| r.index).eq(1..=recovery.last_index));
                let read = log.read(1, u64::MAX).unwrap_or_default();
                assert_eq!(read, records);
            }
        }
    }
    assert!(refused > 500 && cut > 500, "{refused} refused, {cut} cut");
}

#[test]
fn reads_notice_damage_that_happens_while_the_log_is_open() {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, 40, 100);
    let (path, mut bytes) = files_of(&disk)[0].clone();
    bytes[BEGIN + 3 * 168 + 70] ^= 1;
    disk.write_atomic(&path, &bytes).unwrap();
    assert_eq!(log.read(1, 300).unwrap().len(), 3);
    let error = log.read(2, u64::MAX).unwrap_err();
    let offset = BEGIN + 3 * 168;
    assert!(
        matches!(error, Error::Damaged { expected: 4, offset: o, .. } if o == offset as u64),
        "{error}"
    );
    bytes.truncate(100);
    disk.write_atomic(&path, &bytes).unwrap();
    assert!(matches!(log.read(2, 1), Err(Error::Damaged { .. })));
}

#[test]
fn a_newer_format_is_refused() {
    let mut files = killed_log(2, 10);
    let header = &mut files[0].1[..24];
    header[8] = 9;
    let mut covered = header[..12].to_vec();
    covered.extend_from_slice(&header[16..24]);
    let crc = crc_fast::crc32_iscsi(&covered);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    let (disk, opened) = reopen(&files);
    let error = opened.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Newer {
                found: 9,
                known: 2,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("use a newer one"), "{error}");
    assert_eq!(files_of(&disk), files);
}
