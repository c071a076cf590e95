//! What a disk in memory forgets when it loses power.

use longbow_disk::{Disk, MemoryDisk};
use std::io::IoSlice;
use std::path::Path;

fn append(disk: &MemoryDisk, path: &str, bytes: &[u8], sync: bool) {
    let path = Path::new(path);
    let file = if disk.exists(path).unwrap() {
        disk.open(path).unwrap()
    } else {
        disk.create(path).unwrap()
    };
    file.append_vectored(&[IoSlice::new(bytes)]).unwrap();
    if sync {
        file.sync_data().unwrap();
    }
}

fn contents(disk: &MemoryDisk, path: &str) -> Option<Vec<u8>> {
    disk.read(Path::new(path), 1000).ok()
}

#[test]
fn unsynced_bytes_are_forgotten_and_synced_ones_stay() {
    let disk = MemoryDisk::new();
    append(&disk, "f", b"one", true);
    disk.sync_dir(Path::new("")).unwrap();
    append(&disk, "f", b"two", false);
    let crashed = disk.crash();
    assert_eq!(contents(&crashed, "f").unwrap(), b"one");
    assert_eq!(
        contents(&disk, "f").unwrap(),
        b"onetwo",
        "the old disk goes on"
    );
    append(&crashed, "f", b"three", true);
    assert_eq!(contents(&crashed.crash(), "f").unwrap(), b"onethree");
}

#[test]
fn a_chosen_part_of_the_unsynced_bytes_may_survive() {
    let disk = MemoryDisk::new();
    append(&disk, "f", b"one", true);
    disk.sync_dir(Path::new("/")).unwrap();
    append(&disk, "f", b"two", false);
    let mut asked = Vec::new();
    let crashed = disk.crash_keeping(&mut |path, unsynced| {
        asked.push((path.to_path_buf(), unsynced));
        2
    });
    assert_eq!(contents(&crashed, "f").unwrap(), b"onetw");
    assert_eq!(asked, [(Path::new("f").to_path_buf(), 3)]);
}

#[test]
fn a_new_name_needs_its_folder_synced() {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("d/e")).unwrap();
    append(&disk, "d/e/f", b"synced contents", true);
    assert_eq!(contents(&disk.crash(), "d/e/f"), None);
    assert!(disk.crash().exists(Path::new("d/e")).unwrap());
    disk.sync_dir(Path::new("d")).unwrap();
    assert_eq!(contents(&disk.crash(), "d/e/f"), None, "the wrong folder");
    disk.sync_dir(Path::new("d/e")).unwrap();
    assert!(contents(&disk.crash(), "d/e/f").is_some());
}

#[test]
fn renames_and_removals_need_their_folder_synced() {
    let disk = MemoryDisk::new();
    append(&disk, "a", b"a", true);
    append(&disk, "b", b"b", true);
    disk.sync_dir(Path::new("")).unwrap();
    disk.rename(Path::new("a"), Path::new("c")).unwrap();
    disk.remove(Path::new("b")).unwrap();
    let crashed = disk.crash();
    assert_eq!(crashed.list(Path::new("")).unwrap(), ["a", "b"]);
    disk.sync_dir(Path::new("")).unwrap();
    let crashed = disk.crash();
    assert_eq!(crashed.list(Path::new("")).unwrap(), ["c"]);
    assert_eq!(contents(&crashed, "c").unwrap(), b"a");
}

#[test]
fn a_truncation_is_undone_unless_synced() {
    let disk = MemoryDisk::new();
    append(&disk, "f", b"abcdef", true);
    disk.sync_dir(Path::new("")).unwrap();
    let file = disk.open(Path::new("f")).unwrap();
    file.append_vectored(&[IoSlice::new(b"unsynced")]).unwrap();
    file.truncate(4).unwrap();
    file.append_vectored(&[IoSlice::new(b"X")]).unwrap();
    file.truncate(2).unwrap();
    file.append_vectored(&[IoSlice::new(b"Y")]).unwrap();
    assert_eq!(contents(&disk, "f").unwrap(), b"abY");
    assert_eq!(contents(&disk.crash(), "f").unwrap(), b"abcdef");
    file.sync_data().unwrap();
    assert_eq!(contents(&disk.crash(), "f").unwrap(), b"abY");
}

#[test]
fn atomic_writes_survive_and_locks_do_not() {
    let disk = MemoryDisk::new();
    disk.write_atomic(Path::new("m"), b"1").unwrap();
    let _held = disk.lock(Path::new("LOCK"), "first").unwrap();
    assert!(disk.clone().lock(Path::new("./LOCK"), "second").is_err());
    let crashed = disk.crash();
    assert_eq!(contents(&crashed, "m").unwrap(), b"1");
    crashed.lock(Path::new("LOCK"), "after the crash").unwrap();
}

#[test]
fn a_full_disk_takes_what_fits_and_space_comes_back() {
    let disk = MemoryDisk::with_capacity(10);
    append(&disk, "f", b"12345678", true);
    disk.sync_dir(Path::new("")).unwrap();
    let file = disk.open(Path::new("f")).unwrap();
    let error = file.append_vectored(&[IoSlice::new(b"abcd")]).unwrap_err();
    assert!(error.is_no_space(), "{error}");
    assert_eq!(file.len().unwrap(), 10);
    assert_eq!(disk.free_space(Path::new("/")).unwrap(), 0);
    assert_eq!(disk.crash().free_space(Path::new("/")).unwrap(), 2);
    file.truncate(1).unwrap();
    assert_eq!(disk.free_space(Path::new("/")).unwrap(), 9);
    drop(file);
    disk.remove(Path::new("f")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    assert_eq!(disk.free_space(Path::new("/")).unwrap(), 10);
}

#[test]
fn a_map_does_not_change_under_its_reader() {
    let disk = MemoryDisk::new();
    append(&disk, "f", b"before", true);
    let map = disk.map(Path::new("f")).unwrap();
    append(&disk, "f", b" and after", true);
    assert_eq!(&map[..], b"before");
    assert_eq!(contents(&disk, "f").unwrap(), b"before and after");
}

#[test]
fn paths_upwards_are_refused() {
    let disk = MemoryDisk::new();
    assert!(disk.create(Path::new("../f")).is_err());
    assert!(disk.create(Path::new("/")).is_err());
}
