//! Files of arbitrary and mangled bytes: opening never panics, and shows no record that was not written.

use crate::common::*;
use longbow_disk::{Disk, MemoryDisk};
use longbow_log::{Error, SyncMode};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Files = Vec<(PathBuf, Vec<u8>)>;

fn written() -> Files {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, 30, 150);
    files_of(&disk)
}

/// Opens the files after the given checkpoint and checks whatever comes of it.
fn survive(files: &Files, after: u64) {
    let disk = disk_with(files);
    match open_after(&disk, options(SyncMode::EveryAck), after) {
        Ok((log, recovery, records)) => {
            assert!(records.iter().all(is_right));
            assert!(
                records
                    .iter()
                    .map(|r| r.index)
                    .eq(after + 1..=recovery.last_index)
            );
            append_many(&log, 1, 9);
            drop(log);
            let (_log, again, _) = open_after(&disk, options(SyncMode::EveryAck), after).unwrap();
            assert_eq!(
                (again.last_index, again.cut_bytes),
                (recovery.last_index + 1, 0)
            );
        }
        Err(Error::Damaged { .. } | Error::Newer { .. } | Error::Missing { .. }) => {
            assert_eq!(&files_of(&disk), files, "a refusal changes nothing");
        }
        Err(other) => panic!("{other}"),
    }
}

/// One way to mangle a file.
#[derive(Debug, Clone)]
enum Mangle {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Zero(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
}

fn any_mangle() -> impl Strategy<Value = Mangle> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 1u8..).prop_map(|(at, bits)| Mangle::Flip(at, bits)),
        at().prop_map(Mangle::Cut),
        (at(), 1usize..600).prop_map(|(at, len)| Mangle::Remove(at, len)),
        (at(), 1usize..600).prop_map(|(at, len)| Mangle::Repeat(at, len)),
        (at(), 1usize..600).prop_map(|(at, len)| Mangle::Zero(at, len)),
        (at(), prop::collection::vec(any::<u8>(), 1..100))
            .prop_map(|(at, b)| Mangle::Insert(at, b)),
    ]
}

fn mangle(bytes: &mut Vec<u8>, how: Mangle) {
    if bytes.is_empty() {
        return;
    }
    let stop = |at: usize, len: usize| (at + len).min(bytes.len());
    match how {
        Mangle::Flip(at, bits) => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Mangle::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Mangle::Remove(at, len) => {
            let at = at.index(bytes.len());
            bytes.drain(at..stop(at, len));
        }
        Mangle::Repeat(at, len) => {
            let at = at.index(bytes.len());
            let again = bytes[at..stop(at, len)].to_vec();
            bytes.splice(at..at, again);
        }
        Mangle::Zero(at, len) => {
            let at = at.index(bytes.len());
            let stop = stop(at, len);
            bytes[at..stop].fill(0);
        }
        Mangle::Insert(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mangled_segments_are_refused_or_cut(
        mangles in prop::collection::vec((any::<prop::sample::Index>(), any_mangle()), 1..4),
        after in 0u64..40,
    ) {
        let mut files = written();
        for (file, how) in mangles {
            let file = file.index(files.len());
            mangle(&mut files[file].1, how);
        }
        survive(&files, after);
    }

    #[test]
    fn arbitrary_files_are_refused_or_cut(
        segments in prop::collection::btree_map(1u64..50, prop::collection::vec(any::<u8>(), 0..300), 1..4),
        after in 0u64..60,
    ) {
        let path = |first| Path::new(DIR).join(format!("{first:020}.log"));
        let files = segments.into_iter().map(|(first, bytes)| (path(first), bytes)).collect();
        survive(&files, after);
    }
}

#[test]
fn other_files_in_the_folder_are_left_alone() {
    let mut files = written();
    files.push((Path::new(DIR).join("notes.txt"), b"mine".to_vec()));
    let disk = disk_with(&files);
    let (_log, recovery, _) = open(&disk, SyncMode::EveryAck).unwrap();
    assert_eq!(recovery.last_index, 30);
    assert_eq!(disk.read(&files[files.len() - 1].0, 9).unwrap(), b"mine");
}

/// A log whose files were segments before, some of which were purged, and its folder, spares and all.
fn used() -> (Files, u64) {
    let disk = MemoryDisk::new();
    let (log, ..) = open(&disk, SyncMode::EveryAck).unwrap();
    append_many(&log, 150, 150);
    log.purge(120).unwrap();
    append_many(&log, 40, 150);
    (folder(&disk), log.first_index() - 1)
}

/// All files of the folder.
fn folder(disk: &MemoryDisk) -> Files {
    let names = disk.list(Path::new(DIR)).unwrap();
    let paths = names.iter().map(|name| Path::new(DIR).join(name));
    paths
        .map(|path| (path.clone(), disk.read(&path, u64::MAX).unwrap()))
        .collect()
}

/// Changes a file: bits, bytes, blocks from elsewhere, its length.
fn mangle_folder(files: &mut Files, random: &mut Random) {
    let file = random.below(files.len() as u64) as usize;
    let other = files[random.below(files.len() as u64) as usize].1.clone();
    let bytes = &mut files[file].1;
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len() as u64) as usize;
    let len = (1 << random.below(12)).min(bytes.len() - at);
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at..at + len].fill(random.below(2) as u8 * 255),
        2 => bytes.truncate(at),
        3 => bytes.copy_within(at..at + len, (at / 2) & !7),
        4 => {
            let from = random.below(other.len().max(1) as u64) as usize & !7;
            let len = len.min(other.len().saturating_sub(from));
            bytes[at..at + len].copy_from_slice(&other[from..from + len]);
        }
        _ => (0..len).for_each(|i| bytes[at + i] = random.below(256) as u8),
    }
}

/// Runs for a second, or for `FUZZ_SECONDS`.
#[test]
fn whatever_happens_to_the_files_no_wrong_record_is_shown() {
    let seconds = std::env::var("FUZZ_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    let (files, after) = used();
    let (mut rounds, mut refused) = (0, 0);
    while rounds < 100 || Instant::now() < until {
        let mut random = Random(rounds);
        let mut broken = files.clone();
        for _ in 0..=random.below(4) {
            mangle_folder(&mut broken, &mut random);
        }
        let disk = disk_with(&broken);
        match open_after(&disk, options(SyncMode::EveryAck), after) {
            Ok((log, recovery, records)) => {
                let expected = after + 1..=recovery.last_index;
                assert!(
                    records.iter().map(|r| r.index).eq(expected),
                    "round {rounds}"
                );
                assert!(records.iter().all(is_right), "round {rounds}");
                append_many(&log, 3, 9);
            }
            Err(Error::Damaged { .. } | Error::Newer { .. } | Error::Missing { .. }) => {
                refused += 1;
                assert_eq!(
                    folder(&disk),
                    broken,
                    "round {rounds}: a refusal changes nothing"
                );
            }
            Err(other) => panic!("round {rounds}: {other}"),
        }
        rounds += 1;
    }
    println!("{rounds} rounds, {refused} refused");
    assert!(refused > 0);
}
