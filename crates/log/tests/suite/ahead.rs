//! Segments that are large enough to be read ahead by threads: what is found in them is what is there.

use crate::common::*;
use longbow_disk::MemoryDisk;
use longbow_log::{Error, Log, Options, SyncMode, frame_bytes, verify};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SEGMENT: u64 = 3 << 20;

fn large() -> Options {
    Options {
        segment_size: SEGMENT,
        ..options(SyncMode::EveryAck)
    }
}

/// Small entries and, among them, some that are read by themselves.
fn len_of(index: u64) -> usize {
    match index % 50 {
        7 => 300_000,
        31 => 1_200_000,
        _ => 9_000,
    }
}

type Files = Vec<(PathBuf, Vec<u8>)>;

/// A log of several such segments, closed, and where the frame of each index is.
fn written(last: u64) -> (Files, Vec<(PathBuf, u64)>) {
    let disk = MemoryDisk::new();
    let (log, _, _) = open_after(&disk, large(), 0).unwrap();
    for index in 1..=last {
        append_acked(&log, entry(index, len_of(index))).unwrap();
    }
    log.close().unwrap();
    let files = files_of(&disk);
    assert!(files.len() >= 3 && files.iter().any(|(_, bytes)| bytes.len() > 2 << 20));
    let first_of = |path: &Path| -> u64 {
        let name = path.file_stem().unwrap().to_str().unwrap();
        name.parse().unwrap()
    };
    let mut places = vec![(PathBuf::new(), 0)];
    for (nth, (path, _)) in files.iter().enumerate() {
        let end = files
            .get(nth + 1)
            .map_or(last + 1, |(path, _)| first_of(path));
        let mut offset = BEGIN as u64;
        for index in first_of(path)..end {
            places.push((path.clone(), offset));
            offset += frame_bytes(len_of(index) as u64);
        }
    }
    assert_eq!(places.len() as u64, last + 1);
    (files, places)
}

#[test]
fn every_record_comes_in_order_and_outlives_the_log() {
    let (files, _) = written(400);
    let disk = disk_with(&files);
    for after in [0, 250] {
        let (log, recovery, records) = open_after(&disk, large(), after).unwrap();
        let files = files_of(&disk);
        let bytes = files.iter().map(|(_, bytes)| bytes.len() as u64);
        assert_eq!(recovery.bytes, bytes.sum::<u64>());
        assert_eq!((recovery.last_index, recovery.cut_bytes), (400, 0));
        log.close().unwrap();
        drop(log);
        assert_eq!(records.len() as u64, 400 - after);
        for (record, index) in records.iter().zip(after + 1..) {
            assert!(record.index == index && is_right(record), "{index}");
            assert_eq!(record.payload.len(), len_of(index));
        }
    }
}

#[test]
fn damage_is_told_by_its_place_and_everything_before_it_comes() {
    let (files, places) = written(400);
    let mut random = Random(3);
    for _ in 0..15 {
        let index = 1 + random.below(399);
        let (path, offset) = &places[index as usize];
        let mut broken = files.clone();
        let (_, bytes) = broken.iter_mut().find(|(p, _)| p == path).unwrap();
        let inside = random.below(HEADER as u64 + len_of(index) as u64);
        bytes[(offset + inside) as usize] ^= 1 << random.below(8);
        let disk = disk_with(&broken);
        let mut seen = 0;
        let mut replay = |record: longbow_log::Record| {
            seen += 1;
            assert!(record.index == seen && is_right(&record));
            Ok(())
        };
        let error = Log::open(Arc::new(disk.clone()), large(), 0, &mut replay);
        let error = error.map(|_| ()).unwrap_err();
        match error {
            Error::Damaged {
                file,
                offset: at,
                expected,
                ..
            } => assert_eq!((&file, at, expected), (path, *offset, index)),
            other => panic!("{other}"),
        }
        assert_eq!(seen, index - 1);
        assert!(files_of(&disk) == broken, "refused, and changed");
        let survey = verify(&disk, Path::new(DIR), 0, &mut |_| ()).unwrap();
        assert_eq!(
            (survey.damages[0].offset, survey.damages[0].from),
            (*offset, index)
        );
    }
}

#[test]
fn a_torn_tail_is_cut_where_it_begins() {
    let (mut files, places) = written(200);
    let (path, offset) = &places[200];
    let (last, bytes) = files.last_mut().unwrap();
    assert_eq!(last, path);
    // Neither the mark nor the claim of the close is there.
    bytes.truncate(*offset as usize + 70);
    let disk = disk_with(&files);
    let (_log, recovery, records) = open_after(&disk, large(), 0).unwrap();
    assert_eq!(recovery.cut_at, Some((path.clone(), *offset)));
    assert_eq!((recovery.cut_bytes, records.len()), (70, 199));
}

#[test]
fn who_stops_early_waits_for_nobody() {
    let disk = MemoryDisk::new();
    let options = || Options {
        segment_size: 80 << 20,
        ..options(SyncMode::Never)
    };
    let (log, _, _) = open_after(&disk, options(), 0).unwrap();
    // More than is read ahead.
    append_many(&log, 70, 1 << 20);
    log.close().unwrap();
    let mut seen = 0;
    let refused = Log::open(Arc::new(disk.clone()), options(), 0, &mut |record| {
        seen = record.index;
        match record.index {
            2 => Err("enough".into()),
            _ => Ok(()),
        }
    });
    assert!(matches!(
        refused.unwrap_err(),
        Error::Replay { index: 2, .. }
    ));
    assert_eq!(seen, 2);
    let panicked = std::panic::catch_unwind(|| {
        let mut replay = |_| panic!("on purpose");
        Log::open(Arc::new(disk.clone()), options(), 0, &mut replay).map(|_| ())
    });
    assert!(panicked.is_err());
}

#[test]
fn a_disk_that_fails_is_told() {
    let (files, _) = written(200);
    let faulty = longbow_disk::FaultyDisk::new(Arc::new(disk_with(&files)));
    faulty.fail_always(longbow_disk::Operation::Read, longbow_disk::Fault::Io);
    let refused = open_after(&faulty, large(), 0).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Disk(_)), "{refused}");
    let survey = verify(&faulty, Path::new(DIR), 0, &mut |_| ());
    // The claim of the close cannot be read either, or every segment is told to be unreadable.
    if let Ok(survey) = survey {
        assert_eq!(survey.damages.len(), files.len());
    }
}
