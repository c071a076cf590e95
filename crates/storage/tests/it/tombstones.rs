//! [`Tombstones`]: a set that comes back, and damage never panics.

use std::collections::BTreeSet;
use std::path::Path;

use longbow_disk::MemoryDisk;
use longbow_storage::{Error, Tombstones};
use proptest::prelude::*;

const PATH: &str = "tombstones";

fn sample() -> Tombstones {
    let far = 5 << 40;
    (0..10)
        .chain(100..20_000)
        .chain([far, far + 7, u64::MAX])
        .collect()
}

fn decode(file: &[u8]) -> Result<Tombstones, Error> {
    Tombstones::decode(Path::new(PATH), file)
}

#[test]
fn the_first_version_opens() {
    assert_eq!(
        decode(include_bytes!("../golden/tombstones-1")).unwrap(),
        sample()
    );
}

#[test]
fn it_comes_back_from_disk() {
    let disk = MemoryDisk::new();
    let file = sample().save(&disk, Path::new(PATH)).unwrap();
    assert_eq!(file.file, PATH);
    let disk = disk.crash();
    assert_eq!(
        Tombstones::load(&disk, Path::new(PATH), &file).unwrap(),
        sample()
    );
    let mut other = file;
    other.crc32c ^= 1;
    let error = Tombstones::load(&disk, Path::new(PATH), &other).unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
}

#[test]
fn a_newer_version_is_refused() {
    let mut file = sample().encode();
    file[8] = 9;
    let error = decode(&file).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NewerVersion {
                found: 9,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn it_is_a_set(rows in prop::collection::vec(prop_oneof![0..200_u64, any::<u64>()], 0..300), gone in prop::collection::vec(0..200_u64, 0..20)) {
        let mut model: BTreeSet<u64> = BTreeSet::new();
        let mut dead = Tombstones::default();
        for row in &rows {
            prop_assert_eq!(dead.insert(*row), model.insert(*row));
        }
        for row in gone {
            prop_assert_eq!(dead.remove(row), model.remove(&row));
            prop_assert!(!dead.contains(row));
        }
        let again = decode(&dead.encode()).unwrap();
        prop_assert_eq!(again.len(), model.len() as u64);
        prop_assert_eq!(again.is_empty(), model.is_empty());
        prop_assert!(again.iter().eq(model.iter().copied()));
        prop_assert!(model.iter().all(|row| again.contains(*row)));
    }

    #[test]
    fn mutated_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5), cut in prop::option::of(any::<prop::sample::Index>())) {
        let original = sample().encode();
        let mut file = original.clone();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        prop_assert_eq!(decode(&file).is_ok(), file == original);
        if file.len() >= 24 {
            let length = (file.len() - 24) as u64;
            file[16..24].copy_from_slice(&length.to_le_bytes());
            let crc = longbow_storage::crc32c(&[&file[8..12], &file[16..24], &file[24..]].concat());
            file[12..16].copy_from_slice(&crc.to_le_bytes());
            if let Ok(dead) = decode(&file) {
                prop_assert_eq!(dead.iter().count() as u64, dead.len());
            }
        }
    }
}
