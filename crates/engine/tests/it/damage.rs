//! Folders with a random wrong byte or a missing file: what a look over them says is what a start on them does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{
    Engine, Error, FileDamage, FileKind, Folder, Id, Options, SyncMode, Verification,
};

use crate::plain::put;
use crate::random::Random;
use crate::rounds::rounds;
use crate::text::put_many;

const DATA: &str = "data";

type Files = Vec<(PathBuf, Vec<u8>)>;

fn options() -> Options {
    Options {
        sync: SyncMode::EveryAck,
        log_segment_bytes: 4096,
        index_workers: 1,
        ..Options::new(DATA)
    }
}

fn open(disk: &MemoryDisk) -> Result<Engine, Error> {
    Engine::open(Arc::new(disk.clone()), options())
}

/// A folder with every kind of file, and more in the log than the checkpoint holds.
fn written() -> Files {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    for dataset in ["a", "b"] {
        put(&engine, dataset, 0..60);
        let dead = engine.delete_ids(dataset, (0..9).map(Id::Int).collect());
        dead.and_then(|dead| dead.wait()).expect("known ids");
    }
    put_many(&engine, "words", 0..80);
    let words = engine.dataset("words").expect("it is there");
    assert!(words.wait_for_index(Duration::from_secs(300)));
    engine.checkpoint().expect("a checkpoint");
    for start in 0..30 {
        put(&engine, "a", 100 + start * 10..110 + start * 10);
    }
    engine.close().expect("closed");
    drop(engine);
    files_below(&disk, Path::new(DATA))
}

pub fn files_below(disk: &MemoryDisk, folder: &Path) -> Files {
    let mut files = Files::new();
    for name in disk.list(folder).expect("a folder") {
        let path = folder.join(name);
        match disk.read(&path, u64::MAX) {
            Ok(bytes) => files.push((path, bytes)),
            Err(_) => files.extend(files_below(disk, &path)),
        }
    }
    files
}

fn disk_with(files: &Files) -> MemoryDisk {
    let disk = MemoryDisk::new();
    for (path, bytes) in files {
        let folder = path.parent().expect("a folder");
        disk.create_dir_all(folder).expect("made");
        disk.write_atomic(path, bytes).expect("written");
    }
    disk
}

fn look(disk: &MemoryDisk) -> Result<(Folder, Verification), Error> {
    let folder = Folder::open(Arc::new(disk.clone()), Path::new(DATA), "a test")?;
    let found = folder.verify(&mut |_| Ok(()))?;
    Ok((folder, found))
}

/// Whether a start cannot do without what is damaged: a graph that is there, but broken, is built anew, and so is a text
/// index whose files are broken or gone.
fn stops_a_start(found: &Verification) -> bool {
    let rebuilt = |damage: &FileDamage| {
        damage.kind == FileKind::Texts || matches!(damage.error, Error::BadGraph { .. })
    };
    !found.damages.iter().all(rebuilt)
}

#[test]
fn what_is_said_of_a_folder_is_what_a_start_does() {
    let files = written();
    let mut random = Random(11);
    let mut seen = [0; FileKind::ALL.len()];
    let (mut repaired, mut torn) = (0, 0);
    for _ in 0..rounds(300) {
        let mut broken = files.clone();
        let file = random.below(broken.len() as u64) as usize;
        let len = broken[file].1.len() as u64;
        match random.below(4) {
            0 => drop(broken.remove(file)),
            1 => broken[file].1.truncate(random.below(len + 1) as usize),
            _ if len == 0 => {}
            _ => broken[file].1[random.below(len) as usize] ^= 1 << random.below(8),
        }
        let disk = disk_with(&broken);
        let (folder, found) = match look(&disk) {
            Ok(looked) => looked,
            Err(error) => {
                // The number of the version of the manifest is wrong, which nobody can tell from a newer one.
                assert_eq!(error.code(), "newer_version", "{error}");
                assert_eq!(open(&disk).expect_err("the same").code(), "newer_version");
                continue;
            }
        };
        let untouched = files_below(&disk, Path::new(DATA));
        assert!(untouched == broken, "looking changed something");
        for damage in &found.damages {
            seen[damage.kind as usize] += 1;
        }
        torn += usize::from(found.torn.is_some());
        let repair = folder.plan_repair(&found).expect("planned");
        drop(folder);
        let started = open(&disk_with(&broken)).map(drop);
        let name = &files[file].0;
        assert_eq!(
            started.is_err(),
            stops_a_start(&found),
            "{name:?}: {started:?}, {found:?}"
        );
        if found.is_whole() || !repair.beyond.is_empty() {
            continue;
        }
        let (folder, _) = look(&disk).expect("looked over");
        folder.repair(&repair, "now").expect("repaired");
        drop(folder);
        let (folder, found) = look(&disk).expect("looked over");
        assert!(found.is_whole(), "{name:?}: {found:?}");
        drop(folder);
        let engine = open(&disk).expect("a repaired folder");
        put(&engine, "a", 5000..5003);
        repaired += 1;
    }
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
    assert!(
        repaired > 20 && torn + repaired < rounds(300),
        "{repaired} repaired, {torn} torn"
    );
}

/// Makes a byte in a file of rows wrong; which file that is, and what is in it now.
pub fn harm_rows(disk: &MemoryDisk) -> (PathBuf, Vec<u8>) {
    let is_rows =
        |file: &(PathBuf, Vec<u8>)| file.0.extension().is_some_and(|ends| ends == "arrow");
    let mut files = files_below(disk, Path::new(DATA)).into_iter();
    let (path, mut bytes) = files.find(is_rows).expect("rows in a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    disk.write_atomic(&path, &bytes).expect("memory");
    (path, bytes)
}

/// Fails unless an error is about damage in a file.
pub fn check_damaged(error: &Error, path: &Path) {
    assert_eq!(error.code(), "data_damaged", "{error}");
    let name = path.file_name().expect("a name").to_string_lossy();
    assert!(error.to_string().contains(&*name), "{error}");
}

/// A wrong byte in rows that nobody reads: to write them anew would give it a checksum of its own.
#[test]
fn damaged_rows_are_not_written_anew() {
    let disk = MemoryDisk::new();
    let engine = open(&disk).expect("an empty folder");
    put(&engine, "a", 0..60);
    engine.checkpoint().expect("a checkpoint");
    let (path, bytes) = harm_rows(&disk);
    let dead = engine.delete_ids("a", (0..40).map(Id::Int).collect());
    dead.and_then(|dead| dead.wait()).expect("known ids");
    let error = engine.tidy().expect_err("a wrong byte");
    check_damaged(&error, &path);
    engine.checkpoint().expect("nothing of it was written");
    assert_eq!(disk.read(&path, u64::MAX).expect("it stays"), bytes);
    // Where nothing lives, nothing is written, and nothing compared.
    let dead = engine.delete_ids("a", (40..60).map(Id::Int).collect());
    dead.and_then(|dead| dead.wait()).expect("known ids");
    assert_eq!(engine.tidy().expect("nothing is copied"), 1);
}
