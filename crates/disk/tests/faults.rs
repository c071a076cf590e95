//! The faulty disk fails what it is told to, and nothing else.

use longbow_disk::{Disk, Fault, FaultyDisk, File, MemoryDisk, Operation};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

fn disk_and_file() -> (FaultyDisk, Box<dyn File>) {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let file = disk.create(Path::new("f")).unwrap();
    (disk, file)
}

fn append(file: &dyn File) -> longbow_disk::Result<u64> {
    file.append_vectored(&[IoSlice::new(b"abc"), IoSlice::new(b"def")])
}

#[test]
fn the_nth_call_fails_once() {
    let (disk, file) = disk_and_file();
    disk.fail(Operation::Write, 2, Fault::Io);
    append(&*file).unwrap();
    let error = append(&*file).unwrap_err();
    assert!(!error.is_no_space(), "{error}");
    assert_eq!(append(&*file).unwrap(), 6, "the failed write did nothing");
    assert_eq!(disk.calls(Operation::Write), 3);
    assert_eq!(disk.calls(Operation::Create), 1);
    assert_eq!(disk.calls(None), 4);
}

#[test]
fn a_short_write_leaves_its_beginning() {
    let (disk, file) = disk_and_file();
    disk.fail(Operation::Write, 1, Fault::ShortWrite(4));
    let error = append(&*file).unwrap_err();
    assert!(error.is_no_space(), "{error}");
    assert_eq!(disk.read(Path::new("f"), 10).unwrap(), b"abcd");
}

#[test]
fn a_failed_sync_syncs_nothing() {
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    let file = disk.create(Path::new("f")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    append(&*file).unwrap();
    disk.fail_always(Operation::Sync, Fault::NoSpace);
    assert!(file.sync_data().unwrap_err().is_no_space());
    assert!(file.sync_data().is_err());
    assert!(memory.crash().read(Path::new("f"), 10).unwrap().is_empty());
    disk.heal();
    file.sync_data().unwrap();
    assert_eq!(memory.crash().read(Path::new("f"), 10).unwrap().len(), 6);
}

#[test]
fn any_call_can_be_chosen_by_number_and_every_kind_can_fail() {
    let path = Path::new("f");
    let calls: [&dyn Fn(&FaultyDisk) -> bool; 13] = [
        &|d| d.create_dir_all(Path::new("d")).is_ok(),
        &|d| d.list(Path::new("d")).is_ok(),
        &|d| d.create(path).is_ok(),
        &|d| d.open(path).is_ok(),
        &|d| d.map(path).is_ok(),
        &|d| d.read(path, 9).is_ok(),
        &|d| d.write_atomic(path, b"x").is_ok(),
        &|d| d.sync_dir(Path::new("d")).is_ok(),
        &|d| d.exists(path).is_ok(),
        &|d| d.free_space(path).is_ok(),
        &|d| d.lock(Path::new("LOCK"), "test").is_ok(),
        &|d| d.rename(path, path).is_ok(),
        &|d| d.remove(path).is_ok() && d.remove_dir_all(Path::new("d")).is_ok(),
    ];
    let run = |disk: &FaultyDisk| calls.iter().filter(|call| !call(disk)).count();
    let whole = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    assert_eq!(run(&whole), 0, "without rules nothing fails");
    for nth in 1..=whole.calls(None) {
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        disk.fail(None, nth, Fault::Io);
        assert!(run(&disk) >= 1, "call {nth} did not fail");
    }
}

#[test]
fn random_faults_repeat_with_their_seed() {
    let pattern = |seed| {
        let (disk, file) = disk_and_file();
        disk.fail_randomly(Operation::Sync, seed, 4, Fault::Io);
        (0..200)
            .map(|_| file.sync_data().is_err())
            .collect::<Vec<_>>()
    };
    assert_eq!(pattern(7), pattern(7));
    assert_ne!(pattern(7), pattern(8));
    let failed = pattern(7).iter().filter(|f| **f).count();
    assert!((20..=90).contains(&failed), "{failed} of 200 failed");
}
