//! Repairs of folders on a disk in memory: what is written after one is there after the next start, too.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk};
use longbow_engine::{Class, Engine, Error, Folder, Options, Repair, SyncMode, Verification};
use longbow_storage::Manifest;

use crate::plain::put;

const DATA: &str = "data";

fn options() -> Options {
    Options {
        sync: SyncMode::EveryAck,
        ..Options::new(DATA)
    }
}

fn open(disk: &MemoryDisk) -> Result<Engine, Error> {
    Engine::open(Arc::new(disk.clone()), options())
}

/// Puts one row and returns its place in the log.
fn put_row(engine: &Engine, dataset: &str, id: i64) -> u64 {
    put(engine, dataset, id..id + 1);
    engine.log_indices().0
}

fn rows(engine: &Engine, dataset: &str) -> u64 {
    engine.dataset(dataset).expect("it is there").view().live
}

fn folder(disk: &dyn Disk) -> PathBuf {
    let log = Path::new(DATA).join("log");
    let names = disk.list(&log).expect("a log");
    let last = names.iter().rfind(|name| name.ends_with(".log"));
    log.join(last.expect("a segment"))
}

fn look(disk: Arc<dyn Disk>) -> (Folder, Verification, Repair) {
    let folder = Folder::open(disk, Path::new(DATA), "a test").expect("nobody has it");
    let found = folder
        .verify(&mut |_| Ok(()))
        .expect("it can be looked over");
    let repair = folder.plan_repair(&found).expect("it can be planned");
    (folder, found, repair)
}

/// A folder with two datasets whose log is damaged where entry `at` is, counted from the checkpoint. The manifest says
/// of dataset `b` that it holds ten entries of the log more than the others, as a checkpoint has it that was made under
/// load; all of them are about `a`.
fn damaged(at: u64) -> (MemoryDisk, u64) {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    put_row(&engine, "a", 1);
    put_row(&engine, "b", 1);
    engine.checkpoint().expect("a checkpoint");
    let covered = engine.log_indices().0;
    for id in 2..22 {
        put_row(&engine, "a", id);
    }
    engine.close().expect("closed");
    drop(engine);
    let path = Path::new(DATA).join("MANIFEST");
    let read = Manifest::read(&disk, &path).expect("sound");
    let mut manifest = read.expect("there");
    manifest.datasets[1].applied = covered + 10;
    manifest.write(&disk, &path).expect("written");
    let file = folder(&disk);
    let whole = disk.read(&file, u64::MAX).expect("a segment");
    for place in (40..whole.len()).step_by(40) {
        let mut broken = whole.clone();
        broken[place] ^= 1;
        disk.write_atomic(&file, &broken).expect("written");
        let (_, _, repair) = look(Arc::new(disk.clone()));
        if repair.cut.is_some_and(|cut| cut.next == covered + at) {
            return (disk, covered);
        }
    }
    panic!("no byte of entry {at} was flipped");
}

/// Opens the folder, and checks that a put is not only acknowledged but there after the next start.
fn check(disk: &MemoryDisk, covered: u64, at: u64) {
    let engine = open(disk).expect("a repaired folder");
    assert_eq!(rows(&engine, "a"), at);
    assert_eq!(rows(&engine, "b"), 1);
    for id in 100..103 {
        put_row(&engine, "b", id);
    }
    assert_eq!(engine.log_indices().0, covered + at + 2);
    engine.close().expect("closed");
    drop(engine);
    let engine = open(disk).expect("a sound folder");
    assert_eq!((rows(&engine, "a"), rows(&engine, "b")), (at, 4));
}

#[test]
fn indexes_that_are_given_again_are_replayed_again() {
    for at in [1, 5, 10, 15] {
        let (disk, covered) = damaged(at);
        let refused = open(&disk).expect_err("damaged");
        assert_eq!(refused.code(), "data_damaged");
        let (held, found, repair) = look(Arc::new(disk.clone()));
        assert_eq!(found.damages.len(), 1, "{found:?}");
        assert!(found.covered <= covered, "{found:?}");
        let lost = repair.cut.as_ref().and_then(|cut| cut.lost.clone());
        assert_eq!(lost, Some(covered + at..=covered + 20));
        held.repair(&repair, "now").expect("repaired");
        let again = held.verify(&mut |_| Ok(())).expect("it can be looked over");
        assert!(again.is_whole(), "{again:?}");
        drop(held);
        check(&disk, covered, at);
    }
}

#[test]
fn a_repair_that_is_interrupted_is_begun_again() {
    let (at, mut done) = (5, false);
    for nth in 1.. {
        let (disk, covered) = damaged(at);
        let faulty = FaultyDisk::new(Arc::new(disk.clone()));
        let (held, _, repair) = look(Arc::new(faulty.clone()));
        faulty.fail(None, nth, Fault::ShortWrite(20));
        done |= held.repair(&repair, "now").is_ok();
        drop(held);
        let disk = disk.crash();
        // A node that is started meanwhile finds the damage, or what the repair would have left.
        match open(&disk.crash()) {
            Err(error) => assert_eq!(error.code(), "data_damaged", "{error}"),
            Ok(engine) => assert_eq!(rows(&engine, "a"), at),
        }
        let (held, found, repair) = look(Arc::new(disk.clone()));
        if !found.is_whole() {
            assert!(repair.beyond.is_empty(), "{nth}: {:?}", repair.beyond);
            let lost = held.repair(&repair, "now").expect("repaired");
            assert!(lost.starts_with(Path::new(DATA).join("lost")));
        }
        drop(held);
        check(&disk, covered, at);
        if done {
            assert!(nth > 8, "{nth} steps");
            break;
        }
    }
}

#[test]
fn a_folder_without_its_log_is_not_whole_and_cannot_be_repaired() {
    let (disk, _) = damaged(5);
    for name in disk.list(&Path::new(DATA).join("log")).expect("a log") {
        let path = Path::new(DATA).join("log").join(name);
        // Files that were made ahead hold nothing, and are no log.
        if path.extension().is_some_and(|ending| ending == "log") {
            disk.remove(&path).expect("removed");
        }
    }
    assert!(matches!(open(&disk), Err(Error::LogMissing { .. })));
    let (_, found, repair) = look(Arc::new(disk.clone()));
    assert_eq!(found.damages[0].error.code(), "data_damaged");
    assert_eq!(repair.beyond, [Path::new(DATA).join("log")]);
}

#[test]
fn a_held_folder_and_no_folder_are_told_apart() {
    let disk = MemoryDisk::new();
    let open_folder = || Folder::open(Arc::new(disk.clone()), Path::new(DATA), "a test");
    let error = open_folder().expect_err("nothing there");
    assert_eq!(
        (error.code(), error.class()),
        ("no_data_folder", Class::FailedPrecondition)
    );
    assert!(!disk.exists(Path::new(DATA)).expect("asked"));
    let engine = open(&disk).expect("an empty folder");
    assert_eq!(
        open_folder().expect_err("held").code(),
        "data_folder_locked"
    );
    engine.close().expect("closed");
    drop(engine);
    let held = open_folder().expect("free");
    let refused = open(&disk).expect_err("held");
    assert!(refused.to_string().contains("a test"), "{refused}");
    drop(held);
    assert!(open(&disk).is_ok());
}
