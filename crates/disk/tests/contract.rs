//! What every disk promises, held against the real one, the one in memory, and the faulty one without faults.

use longbow_disk::{Disk, Error, FaultyDisk, MemoryDisk, RealDisk};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs `test` on each kind of disk in a fresh folder.
fn on_each_disk(test: fn(&dyn Disk, &Path)) {
    let real = tempfile::tempdir().unwrap();
    test(&RealDisk, real.path());
    let memory = MemoryDisk::new();
    let dir = PathBuf::from("a/b");
    memory.create_dir_all(&dir).unwrap();
    test(&memory, &dir);
    let faulty = FaultyDisk::new(Arc::new(RealDisk));
    let behind = tempfile::tempdir().unwrap();
    test(&faulty, behind.path());
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let file = disk.create(path).unwrap();
    file.append_vectored(&[IoSlice::new(bytes)]).unwrap();
}

#[test]
fn appends_go_to_the_end_and_tell_where_they_began() {
    on_each_disk(|disk, dir| {
        let path = dir.join("f");
        let file = disk.create(&path).unwrap();
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"c")];
        assert_eq!(file.append_vectored(&parts).unwrap(), 0);
        assert_eq!(file.append_vectored(&[]).unwrap(), 3);
        assert_eq!(file.append_vectored(&[IoSlice::new(b"de")]).unwrap(), 3);
        file.sync_data().unwrap();
        assert_eq!(disk.read(&path, 5).unwrap(), b"abcde");
        let again = disk.open(&path).unwrap();
        assert_eq!(again.append_vectored(&[IoSlice::new(b"f")]).unwrap(), 5);
        assert_eq!(again.len().unwrap(), 6);
        assert!(!again.is_empty().unwrap());
    });
}

#[test]
fn more_parts_than_one_call_takes_are_all_written() {
    on_each_disk(|disk, dir| {
        let path = dir.join("many");
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i % 251) as u8).collect();
        let parts: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
        let file = disk.create(&path).unwrap();
        file.append_vectored(&parts).unwrap();
        assert_eq!(disk.read(&path, 5000).unwrap(), bytes);
    });
}

#[test]
fn truncation_cuts_and_appends_go_on_there() {
    on_each_disk(|disk, dir| {
        let path = dir.join("f");
        let file = disk.create(&path).unwrap();
        file.append_vectored(&[IoSlice::new(b"abcdef")]).unwrap();
        file.truncate(2).unwrap();
        assert!(file.truncate(3).is_err(), "beyond the end");
        assert_eq!(file.append_vectored(&[IoSlice::new(b"x")]).unwrap(), 2);
        assert_eq!(disk.read(&path, 10).unwrap(), b"abx");
    });
}

#[test]
fn reads_are_short_only_at_the_end() {
    on_each_disk(|disk, dir| {
        let path = dir.join("f");
        put(disk, &path, b"abcdef");
        let file = disk.open(&path).unwrap();
        let mut buf = [0; 4];
        assert_eq!(file.read_at(1, &mut buf).unwrap(), 4);
        assert_eq!(&buf, b"bcde");
        assert_eq!(file.read_at(4, &mut buf).unwrap(), 2);
        assert_eq!(file.read_at(7, &mut buf).unwrap(), 0);
    });
}

#[test]
fn maps_hold_the_whole_file_and_outlive_its_removal() {
    on_each_disk(|disk, dir| {
        let path = dir.join("f");
        put(disk, &path, b"mapped");
        let map = disk.map(&path).unwrap();
        assert_eq!(map, disk.read(&path, 100).unwrap(), "mapped and read alike");
        disk.remove(&path).unwrap();
        assert_eq!(&map[..], b"mapped");
        put(disk, &path, b"");
        assert!(disk.map(&path).unwrap().is_empty());
    });
}

#[test]
fn a_file_over_the_limit_is_refused_with_figures() {
    on_each_disk(|disk, dir| {
        let path = dir.join("f");
        put(disk, &path, b"12345");
        let error = disk.read(&path, 4).unwrap_err();
        assert!(
            matches!(
                error,
                Error::TooLong {
                    len: 5,
                    limit: 4,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn atomic_writes_replace() {
    on_each_disk(|disk, dir| {
        let path = dir.join("manifest");
        disk.write_atomic(&path, b"one").unwrap();
        disk.write_atomic(&path, b"two").unwrap();
        assert_eq!(disk.read(&path, 10).unwrap(), b"two");
        assert_eq!(disk.list(dir).unwrap(), ["manifest"]);
    });
}

#[test]
fn names_are_listed_renamed_and_removed() {
    on_each_disk(|disk, dir| {
        disk.create_dir_all(&dir.join("sub/deep")).unwrap();
        disk.create_dir_all(&dir.join("sub/deep")).unwrap();
        put(disk, &dir.join("sub/deep/f"), b"1");
        put(disk, &dir.join("z"), b"2");
        put(disk, &dir.join("y"), b"3");
        assert_eq!(disk.list(dir).unwrap(), ["sub", "y", "z"]);
        disk.rename(&dir.join("z"), &dir.join("y")).unwrap();
        assert_eq!(disk.read(&dir.join("y"), 9).unwrap(), b"2");
        disk.rename(&dir.join("sub/deep"), &dir.join("moved"))
            .unwrap();
        assert_eq!(disk.read(&dir.join("moved/f"), 9).unwrap(), b"1");
        disk.remove_dir_all(&dir.join("moved")).unwrap();
        disk.sync_dir(dir).unwrap();
        assert!(!disk.exists(&dir.join("moved/f")).unwrap());
        assert!(disk.exists(&dir.join("y")).unwrap());
        assert!(
            disk.remove(&dir.join("sub")).is_err(),
            "a folder is not a file"
        );
    });
}

#[test]
fn missing_things_are_not_found() {
    on_each_disk(|disk, dir| {
        let no = dir.join("no");
        assert!(disk.open(&no).unwrap_err().is_not_found());
        assert!(disk.map(&no).unwrap_err().is_not_found());
        assert!(disk.read(&no, 1).unwrap_err().is_not_found());
        assert!(disk.list(&no).unwrap_err().is_not_found());
        assert!(disk.remove(&no).unwrap_err().is_not_found());
        assert!(disk.sync_dir(&no).unwrap_err().is_not_found());
        assert!(disk.rename(&no, &dir.join("x")).unwrap_err().is_not_found());
        assert!(disk.create(&no.join("f")).unwrap_err().is_not_found());
        assert!(!disk.exists(&no).unwrap());
        let said = disk.open(&no).unwrap_err().to_string();
        assert!(
            said.starts_with("cannot open file ") && said.contains("no"),
            "{said}"
        );
    });
}

#[test]
fn a_lock_is_held_once_and_names_its_holder() {
    on_each_disk(|disk, dir| {
        let path = dir.join("LOCK");
        let held = disk.lock(&path, "serve on port 3000").unwrap();
        let error = disk.lock(&path, "second").unwrap_err();
        let Error::Held { holder, .. } = &error else {
            panic!("{error}")
        };
        let expected = format!("pid {} serve on port 3000", std::process::id());
        assert_eq!(holder, &expected);
        drop(held);
        disk.lock(&path, "third").unwrap();
    });
}

#[test]
fn free_space_is_told() {
    on_each_disk(|disk, dir| assert!(disk.free_space(dir).unwrap() > 0));
}

#[test]
fn appends_of_several_threads_do_not_interleave() {
    on_each_disk(|disk, dir| {
        let path = dir.join("shared");
        let file = disk.create(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let part = [thread; 7];
                        let parts = [IoSlice::new(&part), IoSlice::new(&part)];
                        let start = file.append_vectored(&parts).unwrap();
                        assert_eq!(start % 14, 0);
                    }
                });
            }
        });
        let bytes = disk.read(&path, 14 * 400).unwrap();
        assert_eq!(bytes.len(), 14 * 400);
        assert!(bytes.chunks(14).all(|c| c.iter().all(|b| *b == c[0])));
    });
}
