//! A map made before the bytes are there.

use longbow_disk::{Disk, RealDisk};
use std::io::IoSlice;

#[test]
fn a_map_shows_what_is_appended_after_it_was_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let file = RealDisk.create(&path).expect("a new file");
    file.append_vectored(&[IoSlice::new(b"first ")])
        .expect("room");
    let map = file.map_ahead(1 << 20).expect("this disk maps");
    assert_eq!(map.len(), 1 << 20);
    assert_eq!(map.slice(..6), "first ");
    let second = vec![7_u8; 100_000];
    file.append_vectored(&[IoSlice::new(&second)])
        .expect("room");
    assert_eq!(map.slice(6..6 + second.len()), second);
    RealDisk.remove(&path).expect("the file is there");
    drop(file);
    assert_eq!(
        map.slice(6..6 + second.len()),
        second,
        "a held map outlives its file"
    );
}
