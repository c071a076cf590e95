//! Cutting damaged logs, with failures, kills and power losses at every step of it.

use crate::common::*;
use crate::verify::{claim, plain, segment_files, written};
use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk};
use longbow_log::{Cut, Error};
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Files = Vec<(PathBuf, Vec<u8>)>;

fn find(disk: &dyn Disk, after: u64) -> Option<Cut> {
    Cut::find(disk, Path::new(DIR), after).unwrap()
}

/// Ways to damage a log of 60 entries.
fn damages(files: &Files) -> Vec<(&'static str, Files)> {
    let flip = |file: usize, at: usize| {
        let mut broken = files.clone();
        broken[file].1[at] ^= 4;
        broken
    };
    let without = |file: usize| {
        let mut broken = files.clone();
        broken.remove(file);
        broken
    };
    let mut twice = flip(1, 900);
    twice[2].1[5] ^= 1;
    let mut bottom = flip(1, 900);
    for (_, bytes) in &mut bottom[2..] {
        bytes[5] ^= 1;
    }
    let mut hollow = files.to_vec();
    hollow[1].1[900..].fill(0);
    hollow[2].1[32..].fill(0);
    let mut torn = files.clone();
    torn[3].1.truncate(700);
    vec![
        ("a frame of the first", flip(0, 700)),
        ("a frame in the middle", flip(1, 900)),
        ("the header of the first", flip(0, 3)),
        ("the header of another", flip(2, 3)),
        ("a missing segment", without(1)),
        ("two places", twice),
        ("all but the last that vouches", hollow),
        ("all headers behind", bottom),
        ("a missing end", [&files[..3], &[claim(60)]].concat()),
        (
            "a promise and a frame",
            [&flip(1, 900)[..], &[claim(60)]].concat(),
        ),
        (
            "a promise and a torn tail",
            [&torn, &[claim(60)][..]].concat(),
        ),
    ]
}

/// The files that change with a cut: all from the damage on, but for a sound segment behind which the end is missing.
fn going(name: &str, files: &Files, cut: &Cut) -> Files {
    let at = &cut.damage.as_ref().expect(name).file;
    let goes = |(path, _): &&(PathBuf, Vec<u8>)| path > at || path == at && name != "a missing end";
    files.iter().filter(goes).cloned().collect()
}

/// Everything in the folder of the log.
fn all_of(disk: &dyn Disk) -> Files {
    let names = disk.list(Path::new(DIR)).unwrap();
    let paths = names.iter().map(|name| Path::new(DIR).join(name));
    let read = |path: PathBuf| (path.clone(), disk.read(&path, u64::MAX).unwrap());
    paths.map(read).collect()
}

/// Whether each of the files is still somewhere, byte by byte.
fn all_kept(disk: &dyn Disk, files: &Files) {
    let mut folders = vec![PathBuf::from(DIR)];
    for number in 0..3 {
        folders.push(lost(number));
    }
    for (path, bytes) in files {
        let name = path.file_name().unwrap();
        let kept = folders.iter().any(|folder| {
            let found = disk.read(&folder.join(name), u64::MAX);
            found.is_ok_and(|found| &found == bytes)
        });
        assert!(kept, "{path:?} is gone");
    }
}

fn lost(number: u32) -> PathBuf {
    Path::new("lost").join(number.to_string())
}

/// Opens the log, and checks that it has exactly what was before the damage.
fn check_open(disk: &MemoryDisk, kept: u64, going: &Files) {
    let (log, recovery, records) = open_after(disk, plain(), 0).unwrap();
    all_kept(disk, going);
    assert_eq!(recovery.last_index, kept);
    assert!(records.iter().map(|record| record.index).eq(1..=kept));
    assert!(records.iter().all(is_right));
    append_many(&log, 3, 77);
    log.close().unwrap();
    drop(log);
    let (_log, recovery, _) = open_after(disk, plain(), 0).unwrap();
    assert_eq!((recovery.last_index, recovery.cut_bytes), (kept + 3, 0));
}

/// What a repair may meet after it was interrupted.
fn go_on(disk: &MemoryDisk, kept: u64, going: &Files) {
    all_kept(disk, going);
    // A node that is started meanwhile refuses, or finds what the repair would have left.
    let copy = disk.crash_keeping(&mut |_, unsynced| unsynced);
    match open_after(&copy, plain(), 0) {
        Err(Error::Damaged { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok((log, ..)) => {
            all_kept(&copy, going);
            drop(log);
            check_open(&copy, kept, going);
        }
    }
    let rest = find(disk, 0);
    if let Some(cut) = rest {
        assert_eq!(cut.next, kept + 1);
        cut.carry_out(disk, &lost(1)).unwrap();
    }
    assert!(find(disk, 0).is_none());
    check_open(disk, kept, going);
}

#[test]
fn a_whole_log_needs_no_repair() {
    for recycled in [false, true] {
        let (files, after) = written(true, recycled);
        assert!(find(&disk_with(&files), after).is_none());
    }
    let (mut files, _) = written(false, false);
    let len = files[3].1.len();
    files[3].1.truncate(len - 30);
    assert!(
        find(&disk_with(&files), 0).is_none(),
        "a torn tail is no damage"
    );
}

#[test]
fn what_goes_is_told_before_anything_is_changed() {
    let (files, _) = written(true, false);
    for (name, broken) in damages(&files) {
        let disk = disk_with(&broken);
        let cut = find(&disk, 0).expect(name);
        assert!(all_of(&disk) == broken, "{name}");
        let damage = cut.damage.as_ref().expect(name);
        assert_eq!(damage.from, cut.next, "{name}");
        let last = *cut.lost.as_ref().expect(name).end();
        assert_eq!(cut.lost, Some(cut.next..=last), "{name}");
        // A segment without its header does not tell how far it went.
        assert!(
            last == 60 || (name == "all headers behind" && last > 40),
            "{name}: {last}"
        );
        cut.carry_out(&disk, &lost(0)).unwrap();
        check_open(
            &disk,
            cut.next - 1,
            &broken.iter().skip(3).cloned().collect(),
        );
    }
}

#[test]
fn nothing_is_destroyed_wherever_a_repair_is_interrupted() {
    let (files, _) = written(true, false);
    let mut random = Random(5);
    for (name, broken) in damages(&files) {
        for nth in 1.. {
            let disk = disk_with(&broken);
            let cut = find(&disk, 0).expect(name);
            let kept = cut.next - 1;
            let going = going(name, &broken, &cut);
            let faulty = FaultyDisk::new(Arc::new(disk.clone()));
            faulty.fail(None, nth, Fault::ShortWrite(100));
            let done = cut.carry_out(&faulty, &lost(0)).is_ok();
            for survivor in [
                disk.crash(),
                disk.crash_keeping(&mut |_, unsynced| random.below(unsynced + 1)),
                disk.clone(),
            ] {
                go_on(&survivor, kept, &going);
            }
            if done {
                assert!(nth > 4, "{name}: {nth} steps");
                break;
            }
        }
    }
}

#[test]
fn segments_that_a_checkpoint_covers_go_alone() {
    let (mut files, _) = written(true, false);
    let second = files[1]
        .0
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .parse::<u64>()
        .unwrap();
    files[0].1[700] ^= 1;
    let disk = disk_with(&files);
    let cut = find(&disk, second - 1).unwrap();
    assert!(cut.damage.is_none() && cut.lost.is_none(), "{cut:?}");
    assert_eq!(cut.files, [files[0].0.clone()]);
    cut.carry_out(&disk, &lost(0)).unwrap();
    all_kept(&disk, &files);
    let (_log, recovery, records) = open_after(&disk, plain(), second - 1).unwrap();
    assert_eq!((recovery.first_index, recovery.last_index), (second, 60));
    assert!(records.iter().map(|record| record.index).eq(second..=60));
}

#[test]
fn what_the_checkpoint_holds_is_not_lost() {
    let (mut files, _) = written(true, false);
    let last = files.len() - 1;
    files[last].1[300] ^= 1;
    let disk = disk_with(&files);
    let next = find(&disk, 0).unwrap().next;
    assert!(next > 2 && next < 60, "{next}");
    assert_eq!(find(&disk, next + 1).unwrap().lost, Some(next + 2..=60));
    assert_eq!(find(&disk, 60).unwrap().lost, None);
}

#[test]
fn what_the_disk_does_not_give_stops_a_repair_before_it_changes_anything() {
    let (mut files, _) = written(true, false);
    files[1].1[900] ^= 1;
    let disk = disk_with(&files);
    let cut = find(&disk, 0).unwrap();
    let faulty = FaultyDisk::new(Arc::new(disk.clone()));
    faulty.fail_always(longbow_disk::Operation::Read, Fault::Io);
    assert!(matches!(
        cut.carry_out(&faulty, &lost(0)),
        Err(Error::Disk(_))
    ));
    assert!(segment_files(&disk) == files);
    let found = longbow_log::verify(&faulty, Path::new(DIR), 0, &mut |_| ()).unwrap();
    assert_eq!(found.damages.len(), files.len());
    assert!(
        found
            .damages
            .iter()
            .all(|d| matches!(d.error, Error::Disk(_)))
    );
}
