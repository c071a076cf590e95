//! Looking over logs that are closed: all damage is named, and nothing that is whole is.

use crate::common::*;
use longbow_disk::{Disk, MemoryDisk};
use longbow_log::{Damage, Error, Flaw, Options, Record, Survey, SyncMode};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

type Files = Vec<(PathBuf, Vec<u8>)>;

/// Options that write nothing ahead, but use files again.
pub fn plain() -> Options {
    Options {
        prepared_segments: 0,
        spare_bytes: 1 << 20,
        ..options(SyncMode::EveryAck)
    }
}

/// The segment files and their contents.
pub fn segment_files(disk: &dyn Disk) -> Files {
    let is_segment = |(path, _): &(PathBuf, Vec<u8>)| path.extension().is_some_and(|e| e == "log");
    files_of(disk).into_iter().filter(is_segment).collect()
}

/// A log of four or more segments, closed or killed, in new files or in recycled ones; and the index before its first.
pub fn written(closed: bool, recycled: bool) -> (Files, u64) {
    let disk = MemoryDisk::new();
    let (log, ..) = open_after(&disk, plain(), 0).unwrap();
    append_many(&log, 60, 200);
    if recycled {
        log.purge(60).unwrap();
        append_many(&log, 60, 190);
    }
    let after = log.first_index() - 1;
    if closed {
        log.close().unwrap();
    }
    let files = segment_files(&disk);
    assert!(files.len() >= 4, "{} segments", files.len());
    (files, after)
}

fn survey(disk: &dyn Disk, after: u64) -> Survey {
    longbow_log::verify(disk, Path::new(DIR), after, &mut |_| ()).unwrap()
}

/// Behind the last byte that is not zero.
fn used(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1)
}

/// The file, offset, index and flaw of damage that the log found.
fn named(error: &Error) -> (&Path, u64, u64, Flaw) {
    match error {
        Error::Damaged {
            file,
            offset,
            expected,
            flaw,
        } => (file, *offset, *expected, *flaw),
        other => panic!("{other}"),
    }
}

/// The file that says that everything up to an index was durable at the last close.
pub fn claim(durable: u64) -> (PathBuf, Vec<u8>) {
    let mut bytes = b"LBCLAIM\0".to_vec();
    bytes.extend_from_slice(&durable.to_le_bytes());
    let crc = crc_fast::crc32_iscsi(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    (Path::new(DIR).join("durable.claim"), bytes)
}

/// Looks over the files, opens them, and expects both to think the same.
fn agree(files: &Files, after: u64) -> Survey {
    agree_with(files, after, None)
}

fn agree_with(files: &Files, after: u64, claimed: Option<u64>) -> Survey {
    let (found, records) = compare(files, after, claimed);
    assert!(records.iter().all(is_right));
    found
}

fn compare(files: &Files, after: u64, claimed: Option<u64>) -> (Survey, Vec<Record>) {
    let mut all = files.clone();
    all.extend(claimed.map(claim));
    let disk = disk_with(&all);
    let found = survey(&disk, after);
    assert!(&segment_files(&disk) == files, "looking changed something");
    let mut walked = Vec::new();
    let walk = longbow_log::records(&disk, Path::new(DIR), after, 0, &mut |record| {
        walked.push(record);
        ControlFlow::Continue(())
    });
    assert_eq!(walk.unwrap().torn, found.torn);
    match open_after(&disk, plain(), after) {
        Ok((_log, recovery, records)) => {
            assert!(found.damages.is_empty(), "{:?}", found.damages);
            let torn = found.torn.clone().map(|torn| (torn.file, torn.offset));
            assert_eq!(recovery.cut_at, torn);
            assert_eq!(records, walked);
        }
        Err(error @ Error::Damaged { .. }) => {
            assert_eq!(named(&error), named(&found.damages[0].error));
        }
        Err(Error::Missing { first, .. }) => assert_eq!(found.first_index, first),
        Err(other) => panic!("{other}"),
    }
    (found, walked)
}

#[test]
fn a_whole_log_is_whole() {
    for (closed, recycled) in [(true, false), (false, false), (true, true), (false, true)] {
        let (files, after) = written(closed, recycled);
        let found = agree(&files, after);
        assert!(
            found.damages.is_empty() && found.torn.is_none(),
            "{found:?}"
        );
        assert_eq!(found.files, files.len() as u64);
        assert_eq!(found.entries, found.last_index - after);
        assert_eq!(found.first_index, after + 1);
        let mut told = 0;
        let disk = disk_with(&files);
        longbow_log::verify(&disk, Path::new(DIR), after, &mut |bytes| told += bytes).unwrap();
        assert_eq!(told, found.bytes);
        assert_eq!(
            longbow_log::size_bytes(&disk, Path::new(DIR)).unwrap(),
            told
        );
    }
}

#[test]
fn no_folder_is_an_empty_log() {
    let found = survey(&MemoryDisk::new(), 0);
    assert_eq!((found.files, found.entries, found.last_index), (0, 0, 0));
    assert!(found.damages.is_empty());
}

#[test]
fn every_flipped_bit_is_named_by_file_and_offset() {
    let mut random = Random(7);
    let mut several = 0;
    for round in 0..400 {
        let (files, after) = written(true, round % 2 == 1);
        let mut broken = files.clone();
        let mut flips = Vec::new();
        for (path, bytes) in &mut broken {
            if random.below(2) == 0 {
                continue;
            }
            let last = path == &files[files.len() - 1].0;
            // Nothing vouches for the mark at the very end.
            let end = used(bytes) - if last { 64 } else { 0 };
            let at = random.below(end as u64);
            bytes[at as usize] ^= 1 << random.below(8);
            flips.push((path.clone(), at));
        }
        let found = agree(&broken, after);
        for (path, at) in &flips {
            let names = |damage: &&Damage| &damage.file == path && damage.offset <= *at;
            let inside = found.damages.iter().any(|damage| names(&damage));
            // What earlier lives of a file left behind its last frame says nothing, and is not looked at.
            let harmless = || {
                let healed = disk_with(&files);
                let (_, whole) = broken.iter().find(|(other, _)| other == path).unwrap();
                healed.write_atomic(path, whole).unwrap();
                open_after(&healed, plain(), after).is_ok()
            };
            assert!(inside || harmless(), "{path:?} at {at}: {found:?}");
        }
        several += usize::from(found.damages.len() > 1);
    }
    assert!(several > 100, "{several} rounds with more than one damage");
}

/// The first byte, in the order of the log, in which two sets of the same files differ.
fn first_difference<'a>(files: &'a Files, broken: &Files) -> Option<(&'a Path, u64)> {
    files
        .iter()
        .zip(broken)
        .find_map(|((path, whole), (_, bytes))| {
            let at = whole.iter().zip(bytes).position(|(a, b)| a != b)?;
            Some((path.as_path(), at as u64))
        })
}

#[test]
fn ten_thousand_flips_and_swaps_are_found_and_named() {
    let mut random = Random(11);
    let (files, after) = written(true, false);
    // Nothing vouches for the mark at the very end.
    let ends: Vec<usize> = (1..=files.len())
        .map(|nth| used(&files[nth - 1].1) - if nth == files.len() { 64 } else { 0 })
        .collect();
    let mut place = |len: usize| {
        let file = random.below(files.len() as u64) as usize;
        let at = random.below((ends[file] - len) as u64 + 1) as usize;
        (file, at)
    };
    let mut lengths = Random(12);
    let mut tried = 0;
    while tried < 10_000 {
        let mut broken = files.clone();
        if tried % 2 == 0 {
            let (file, at) = place(1);
            broken[file].1[at] ^= 1 << lengths.below(8);
        } else {
            let len = 1 + lengths.below(200) as usize;
            let (a, b) = (place(len), place(len));
            let block = |(file, at): (usize, usize)| files[file].1[at..at + len].to_vec();
            broken[a.0].1[a.1..a.1 + len].copy_from_slice(&block(b));
            broken[b.0].1[b.1..b.1 + len].copy_from_slice(&block(a));
        }
        let Some((path, at)) = first_difference(&files, &broken) else {
            continue;
        };
        let found = agree(&broken, after);
        let named = found
            .damages
            .iter()
            .any(|d| d.file == path && d.offset <= at);
        assert!(named, "{path:?} at {at}: {found:?}");
        let opened = open_after(&disk_with(&broken), plain(), after);
        assert!(
            matches!(opened, Err(Error::Damaged { .. })),
            "{path:?} at {at}"
        );
        tried += 1;
    }
}

#[test]
fn mangled_logs_are_judged_as_a_start_judges_them() {
    let mut random = Random(99);
    let (mut damaged, mut torn) = (0, 0);
    for round in 0..1500 {
        let (mut files, after) = written(round % 2 == 0, round % 4 >= 2);
        for _ in 0..=random.below(2) {
            let file = random.below(files.len() as u64) as usize;
            let len = files[file].1.len() as u64;
            let at = random.below(len.max(1)) as usize;
            let bytes = &mut files[file].1;
            match random.below(6) {
                0 => bytes.truncate(at),
                1 => bytes[at..].fill(0),
                2 => drop(files.remove(file)),
                3 => {
                    let end = bytes.len().min(at + random.below(700) as usize);
                    bytes[at..end].fill(0);
                }
                4 => {
                    let end = bytes.len().min(at + random.below(700) as usize);
                    bytes.drain(at..end);
                }
                _ => bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 16),
            }
        }
        let claimed = (random.below(2) == 0).then(|| after + random.below(62));
        let found = agree_with(&files, after, claimed);
        damaged += usize::from(!found.damages.is_empty());
        torn += usize::from(found.torn.is_some());
    }
    assert!(
        damaged > 200 && torn > 100,
        "{damaged} damaged, {torn} torn"
    );
}

#[test]
fn a_missing_segment_is_named_with_the_indexes_that_went_with_it() {
    let (mut files, _) = written(true, false);
    let first = |path: &Path| {
        path.file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let (gone, after_it) = (first(&files[1].0), first(&files[2].0));
    files.remove(1);
    let found = agree(&files, 0);
    assert_eq!(found.damages.len(), 1, "{found:?}");
    let damage = &found.damages[0];
    assert_eq!((damage.from, damage.through), (gone, after_it - 1));
    assert_eq!((&damage.file, damage.offset), (&files[1].0, 0));
    assert_eq!(found.entries, 60 - (after_it - gone));
}

#[test]
fn the_indexes_behind_a_break_are_named_up_to_the_next_segment() {
    let (mut files, _) = written(true, false);
    let half = files[1].1.len() / 2;
    files[1].1[half] ^= 1;
    let end = used(&files[3].1);
    files[3].1[end - 64 - 20] ^= 1;
    let found = agree(&files, 0);
    let ranges: Vec<_> = found.damages.iter().map(|d| (d.from, d.through)).collect();
    let second = |at: usize| {
        files[at]
            .0
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .parse::<u64>()
    };
    assert_eq!(ranges.len(), 2, "{found:?}");
    assert!(ranges[0].0 > second(1).unwrap() && ranges[0].1 == second(2).unwrap() - 1);
    assert_eq!(
        ranges[1],
        (60, 60),
        "the mark says that the last entry was durable"
    );
}

#[test]
fn records_come_from_the_index_asked_for_and_until_told_to_stop() {
    let (files, after) = written(true, true);
    let disk = disk_with(&files);
    for from in [0, after + 1, after + 2, after + 17, after + 40, 10_000] {
        let mut seen = Vec::new();
        let each = &mut |record: longbow_log::Record| {
            seen.push(record.index);
            match seen.len() < 5 {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        longbow_log::records(&disk, Path::new(DIR), after, from, each).unwrap();
        let last = survey(&disk, after).last_index;
        let expected: Vec<u64> = (from.max(after + 1)..=last).take(5).collect();
        assert_eq!(seen, expected, "from {from}");
    }
}

#[test]
fn what_the_last_close_promised_is_missed() {
    let (files, _) = written(true, false);
    assert!(agree_with(&files, 0, Some(60)).damages.is_empty());
    let short = files[..3].to_vec();
    let whole = agree(&short, 0);
    assert!(whole.damages.is_empty(), "{whole:?}");
    let found = agree_with(&short, 0, Some(60));
    let ranges: Vec<_> = found.damages.iter().map(|d| (d.from, d.through)).collect();
    assert_eq!(ranges, [(whole.last_index + 1, 60)]);
    assert_eq!(found.damages[0].file, short[2].0);
    let found = agree_with(&Vec::new(), 0, Some(5));
    assert_eq!(found.damages.len(), 1);
    assert!(agree_with(&Vec::new(), 5, Some(5)).damages.is_empty());
    let torn = vec![(files[0].0.clone(), files[0].1[..1000].to_vec())];
    assert!(agree(&torn, 0).torn.is_some());
    assert!(agree_with(&torn, 0, Some(60)).torn.is_none());
}

#[test]
fn segments_of_every_version_are_looked_over() {
    for bytes in [
        &include_bytes!("../fixtures/segment_v1.log")[..],
        include_bytes!("../fixtures/segment_v2.log"),
    ] {
        let path = Path::new(DIR).join("00000000000000000041.log");
        let (found, records) = compare(&vec![(path.clone(), bytes.to_vec())], 40, None);
        assert!(found.damages.is_empty() && found.torn.is_none());
        assert_eq!(found.entries, records.len() as u64);
        let mut damaged = 0;
        for at in 0..bytes.len() {
            let mut broken = bytes.to_vec();
            broken[at] ^= 2;
            let file = vec![(path.clone(), broken)];
            let (found, kept) = compare(&file, 40, None);
            damaged += found.damages.len();
            assert!(
                kept.iter()
                    .zip(&records)
                    .all(|(kept, record)| kept == record)
            );
            assert!(found.torn.is_some() || !found.damages.is_empty() || kept == records);
        }
        assert!(damaged > 50, "{damaged}");
    }
}

#[test]
fn a_hole_within_the_checkpoint_is_damage_too() {
    let (mut files, _) = written(true, false);
    files.remove(1);
    let found = agree(&files, 60);
    assert_eq!(found.damages.len(), 1, "{found:?}");
}
