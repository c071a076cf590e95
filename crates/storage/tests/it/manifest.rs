//! [`Manifest`]: comes back, is replaced whole, and damage never panics.

use std::path::{Path, PathBuf};

use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk, Operation};
use longbow_storage::{DatasetManifest, Error, FileRef, IndexRef, Manifest, SegmentMeta, TextRef};
use proptest::prelude::*;

use crate::common::usual;

fn sample() -> Manifest {
    let segment = |first_row, last_row| SegmentMeta {
        file: format!("rows-{first_row}.arrow"),
        rows: last_row - first_row + 1,
        bytes: 4_096,
        crc32c: 0xDEAD_BEEF,
        first_row,
        last_row,
    };
    let options = serde_json::json!({"ef": 50, "recall_target": 0.95});
    let dataset = DatasetManifest {
        number: 3,
        name: "articles".into(),
        schema: usual(0, 1, 4).schema(),
        schema_version: 2,
        options: options.as_object().cloned().unwrap(),
        applied: 41,
        next_row: 120,
        segments: vec![segment(0, 99), segment(100, 119)],
        tombstones: Some(FileRef {
            file: "tombstones-41".into(),
            bytes: 80,
            crc32c: 7,
        }),
        indexes: vec![IndexRef {
            column: "vector".into(),
            file: "index-vector-41".into(),
            bytes: 9_000,
            crc32c: 8,
            rows_end: 110,
            blocks: Some("index-vector-41.blocks".into()),
        }],
        text: Some(TextRef {
            columns: vec![("title".into(), "en".into())],
            pieces: vec![FileRef {
                file: "text-41".into(),
                bytes: 700,
                crc32c: 9,
            }],
            rows_end: 100,
        }),
    };
    Manifest {
        checkpoint: 42,
        catalog_index: 40,
        next_dataset: 4,
        namespaces: vec!["news".into()],
        datasets: vec![dataset],
    }
}

fn path() -> PathBuf {
    PathBuf::from("MANIFEST")
}

fn resealed(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let length = (file.len() - 24) as u64;
    file[16..24].copy_from_slice(&length.to_le_bytes());
    let summed = [&file[8..12], &file[16..24], &file[24..]].concat();
    let crc = longbow_storage::crc32c(&summed);
    file[12..16].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn it_comes_back() {
    let disk = MemoryDisk::new();
    assert_eq!(Manifest::read(&disk, &path()).unwrap(), None);
    sample().write(&disk, &path()).unwrap();
    assert_eq!(
        Manifest::read(&disk.crash(), &path()).unwrap(),
        Some(sample())
    );
}

#[test]
fn the_first_version_opens() {
    let golden = include_bytes!("../golden/manifest-1");
    let mut expected = sample();
    expected.datasets[0].text = None;
    expected.datasets[0].indexes[0].blocks = None;
    assert_eq!(Manifest::decode(&path(), golden).unwrap(), expected);
    assert_eq!(
        resealed(golden),
        golden,
        "the fixture is written as the diagram says"
    );
}

#[test]
fn the_second_version_opens() {
    let golden = include_bytes!("../golden/manifest-2");
    let mut expected = sample();
    expected.datasets[0].indexes[0].blocks = None;
    assert_eq!(Manifest::decode(&path(), golden).unwrap(), expected);
}

#[test]
fn the_third_version_opens_and_is_what_is_written() {
    let golden = include_bytes!("../golden/manifest-3");
    assert_eq!(Manifest::decode(&path(), golden).unwrap(), sample());
    assert_eq!(sample().encode().unwrap(), golden);
}

#[test]
fn a_failed_replacement_leaves_the_old_one() {
    for operation in [
        Operation::Create,
        Operation::Write,
        Operation::Sync,
        Operation::Rename,
    ] {
        let memory = MemoryDisk::new();
        Manifest::default().write(&memory, &path()).unwrap();
        let disk = FaultyDisk::new(std::sync::Arc::new(memory.clone()));
        disk.fail(operation, 0, Fault::Io);
        assert!(sample().write(&disk, &path()).is_err());
        let left = Manifest::read(&memory.crash(), &path()).unwrap();
        assert_eq!(left, Some(Manifest::default()), "{operation}");
    }
}

#[test]
fn a_newer_version_is_refused() {
    let mut file = sample().encode().unwrap();
    file[8..12].copy_from_slice(&4_u32.to_le_bytes());
    let error = Manifest::decode(&path(), &file).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("MANIFEST was written by a newer version"),
        "{error}"
    );
}

#[test]
fn contradictions_are_refused() {
    let mut twice = sample();
    twice.datasets.push(twice.datasets[0].clone());
    assert!(matches!(twice.encode(), Err(Error::Manifest { .. })));
    let mut disorder = sample();
    disorder.datasets[0].segments.reverse();
    assert!(matches!(disorder.encode(), Err(Error::Manifest { .. })));
    let mut reused = sample();
    reused.next_dataset = 3;
    assert!(matches!(reused.encode(), Err(Error::Manifest { .. })));
    let mut beyond = sample();
    beyond.datasets[0].next_row = 100;
    assert!(matches!(beyond.encode(), Err(Error::Manifest { .. })));
}

proptest! {
    #[test]
    fn mutated_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5), cut in prop::option::of(any::<prop::sample::Index>())) {
        let original = sample().encode().unwrap();
        let mut file = original.clone();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        prop_assert_eq!(Manifest::decode(&path(), &file).is_ok(), file == original);
        if file.len() >= 24 {
            drop(Manifest::decode(&path(), &resealed(&file)));
        }
    }
}

#[test]
fn a_missing_folder_is_the_disks_error() {
    let error = sample()
        .write(&MemoryDisk::new(), Path::new("no/MANIFEST"))
        .unwrap_err();
    assert!(matches!(error, Error::Disk(_)), "{error}");
    assert!(!MemoryDisk::new().exists(Path::new("no")).unwrap());
}
