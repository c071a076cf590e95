//! Backups: data folders of their own, with what was acknowledged, however the node and the disks fare meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float32Type;
use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk, Operation};
use longbow_engine::{
    Backup, Class, Engine, Error, IndexKind, IndexPolicy, Options, Quantization, ScanRequest,
    SyncMode,
};

use crate::compare::scan;
use crate::damage::{check_damaged, harm_rows};
use crate::drive::{Step, World};
use crate::lives::{Left, background, options, reopened};
use crate::plain::{put, put_with};
use crate::random::Random;
use crate::rounds::rounds;
use crate::rows::{Element, IdKind, Shape};

const BACKUPS: &str = "backups";

fn backup(engine: &Engine, disk: &MemoryDisk, name: &str) -> Result<Backup, Error> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    engine.backup_to(&disk, Path::new(BACKUPS), name)
}

/// The options of a node on a backup.
fn on(backup: &Path, options: &Options) -> Options {
    Options {
        path: backup.to_path_buf(),
        ..options.clone()
    }
}

fn opened(disk: &MemoryDisk) -> Engine {
    let options = options(SyncMode::EveryAck);
    Engine::open(Arc::new(disk.clone()), options).expect("a new folder, or a sound one")
}

/// A life with backups, on each of which another life goes on, although its machine lost power when it was made.
fn check(seed: u64) {
    let mut random = Random(seed);
    let mut options = options(*random.pick(&[SyncMode::EveryAck, background()]));
    let kinds = [Quantization::None, Quantization::Rabitq];
    options.graphs.quantization = Some(*random.pick(&kinds));
    let [flat, hnsw, spfresh] = IndexKind::ALL.map(IndexPolicy::Fixed);
    options.graphs.kind = *random.pick(&[flat, hnsw, spfresh, IndexPolicy::Auto]);
    if random.once_in(4) {
        options = options.in_memory();
    }
    let mut world = World::new(Shape {
        id: *random.pick(&[IdKind::Int, IdKind::Text]),
        element: *random.pick(&Element::ALL),
        metric: "euclidean",
    });
    let (own, others) = (MemoryDisk::new(), MemoryDisk::new());
    let engine = Engine::open(Arc::new(own), options.clone()).expect("an empty folder");
    for number in 0..3 {
        for _ in 0..random.below(14) {
            world.step(&engine, Step::random(&mut random));
        }
        let made = backup(&engine, &others, &format!("n{number}")).expect("nothing fails");
        assert!(made.offset >= world.acknowledged, "{made:?}");
        let rows: usize = world.models.iter().map(|model| model.len()).sum();
        assert_eq!(made.rows, rows as u64);
        let left = Left {
            world: world.clone(),
            maybe: Vec::new(),
            refused: None,
        };
        let after = Arc::new(others.crash());
        let options = Options {
            is_reopened: true,
            ..on(&made.path, &options)
        };
        reopened(after, &options, left, world.acknowledged, &mut random);
        // The node goes on as if nothing had been.
        world.check(&engine, &mut random);
    }
    engine.close().expect("nothing fails");
}

#[test]
fn a_backup_is_the_node_as_it_was() {
    for seed in 0..rounds(12) as u64 {
        check(6_000_000 + seed);
    }
}

#[test]
fn what_is_put_meanwhile_is_in_it_up_to_some_entry() {
    let (own, others) = (MemoryDisk::new(), MemoryDisk::new());
    let engine = opened(&own);
    put(&engine, "a", 0..50);
    let (acknowledged, goes_on) = (AtomicI64::new(50), AtomicBool::new(true));
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in (50..).step_by(10) {
                put(&engine, "a", at..at + 10);
                acknowledged.store(at + 10, Ordering::SeqCst);
                if !goes_on.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for number in 0..8 {
            let before = acknowledged.load(Ordering::SeqCst);
            made.push((before, backup(&engine, &others, &format!("n{number}"))));
        }
        goes_on.store(false, Ordering::SeqCst);
    });
    for (before, made) in made {
        let made = made.expect("nothing fails");
        let options = on(&made.path, engine.options());
        let copy = Engine::open(Arc::new(others.clone()), options).expect("it opens");
        let ids = scan(&copy, "a", &ScanRequest::default()).expect("it is there");
        let rows = ids.num_rows() as i64;
        assert!(
            rows >= before && rows % 10 == 0,
            "{rows} of {before} and more"
        );
        assert_eq!(made.rows, rows as u64);
        for id in [0, rows - 1] {
            let dataset = copy.dataset("a").expect("it is there");
            assert!(
                dataset.find(&longbow_engine::Id::Int(id)).is_some(),
                "{id} of {rows}"
            );
        }
        copy.close().expect("nothing fails");
    }
}

#[test]
fn a_disk_that_fails_leaves_no_backup_and_the_node_as_it_was() {
    let mut random = Random(7_000_000);
    let operations = [
        Operation::Write,
        Operation::Sync,
        Operation::Create,
        Operation::CreateDir,
        Operation::Rename,
        Operation::SyncDir,
        Operation::Read,
        Operation::Map,
    ];
    let engine = opened(&MemoryDisk::new());
    put(&engine, "a", 0..60);
    let mut refused = 0;
    for round in 0..rounds(12) * operations.len() {
        let others = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(others.clone()));
        let operation = operations[round % operations.len()];
        let fault = *random.pick(&[Fault::Io, Fault::NoSpace]);
        faulty.fail(operation, 1 + random.below(12), fault);
        let disk: Arc<dyn Disk> = Arc::new(faulty);
        let made = engine.backup_to(&disk, Path::new(BACKUPS), "n");
        let is_there = others
            .exists(&Path::new(BACKUPS).join("n"))
            .expect("memory");
        match made {
            Ok(made) => {
                let options = on(&made.path, engine.options());
                let copy = Engine::open(Arc::new(others.crash()), options).expect("it opens");
                assert_eq!(copy.dataset("a").expect("it is there").view().live, 60);
            }
            Err(error) => {
                let codes = ["backup_refused", "disk_space"];
                assert!(codes.contains(&error.code()), "{operation}: {error}");
                assert!(!is_there, "{operation}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
    put(&engine, "a", 0..90);
    engine.checkpoint().expect("its own disk is sound");
    engine.close().expect("its own disk is sound");
}

#[test]
fn a_file_that_is_damaged_is_not_copied_as_if_it_were_sound() {
    let (own, others) = (MemoryDisk::new(), MemoryDisk::new());
    let engine = opened(&own);
    put(&engine, "a", 0..60);
    engine.checkpoint().expect("nothing fails");
    let (path, _) = harm_rows(&own);
    let error = backup(&engine, &others, "n").expect_err("a wrong byte");
    assert_eq!(error.class(), Class::Internal);
    check_damaged(&error, &path);
    assert_eq!(
        others.list(Path::new(BACKUPS)).expect("made"),
        Vec::<String>::new()
    );
}

#[test]
fn names_are_told_apart_from_paths_and_from_what_is_there() {
    let others = MemoryDisk::new();
    let engine = opened(&MemoryDisk::new());
    let long = "x".repeat(129);
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "/a",
        ".a",
        "a b",
        "ä",
        "a.partial",
        "-a",
        &long,
    ] {
        let error = backup(&engine, &others, name).expect_err("no name");
        assert_eq!(error.code(), "bad_backup_name", "{name:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
    // What a process left that ended meanwhile.
    let partial = Path::new(BACKUPS).join("n.partial");
    others
        .create_dir_all(&partial.join("datasets/7"))
        .expect("memory");
    // That is no data folder, even if nothing was written yet that one would miss.
    let opened = Engine::open(Arc::new(others.clone()), on(&partial, engine.options()));
    let error = opened.expect_err("no backup");
    assert_eq!(
        (error.code(), error.class()),
        ("backup_unfinished", Class::FailedPrecondition)
    );
    assert_eq!(others.list(&partial).expect("memory"), ["datasets"]);
    let made = backup(&engine, &others, "n").expect("nothing fails");
    assert_eq!((made.datasets, made.rows), (0, 0));
    assert_eq!(others.list(Path::new(BACKUPS)).expect("made"), ["n"]);
    let error = backup(&engine, &others, "n").expect_err("it is there");
    assert_eq!(
        (error.code(), error.class()),
        ("backup_exists", Class::FailedPrecondition)
    );
    let empty = Engine::open(Arc::new(others), on(&made.path, engine.options()));
    assert!(empty.expect("it opens").catalog().datasets().is_empty());
}

#[test]
fn a_backup_that_another_process_makes_is_left_alone() {
    let others = MemoryDisk::new();
    let engine = opened(&MemoryDisk::new());
    let partial = Path::new(BACKUPS).join("n.partial");
    others
        .create_dir_all(&partial.join("datasets/1"))
        .expect("memory");
    let held = others.lock(&partial.join("LOCK"), "another").expect("free");
    let error = backup(&engine, &others, "n").expect_err("it is held");
    let meaning = (error.code(), error.class());
    assert_eq!(meaning, ("backup_under_way", Class::Unavailable));
    assert!(error.to_string().contains("another"), "{error}");
    assert!(others.exists(&partial.join("datasets/1")).expect("memory"));
    drop(held);
    backup(&engine, &others, "n").expect("it is free");
}

#[test]
fn who_closes_the_engine_ends_its_backups() {
    let others = MemoryDisk::new();
    let engine = opened(&MemoryDisk::new());
    put(&engine, "a", 0..60);
    engine.close().expect("nothing fails");
    let error = backup(&engine, &others, "n").expect_err("it is closed");
    assert_eq!(error.class(), Class::Unavailable, "{error}");
    assert_eq!(
        others.list(Path::new(BACKUPS)).expect("made"),
        Vec::<String>::new()
    );
}

#[test]
fn no_backup_is_made_within_the_data_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).expect("a folder");
    std::os::unix::fs::symlink(&data, folder.path().join("link")).expect("a link");
    let backup = |path: &str, data: &Path| {
        let options = Options {
            backup_path: folder.path().join(path),
            ..Options::new(data)
        };
        Engine::open_folder(options)
            .expect("it opens")
            .backup("log")
    };
    let within = [
        "data",
        "data/datasets",
        "data/log/backups",
        "./data",
        "away/../data",
        "away/../data/backups",
        "link",
        "link/backups",
        "away/../link/a/../b",
    ];
    for path in within {
        for data in [&data, &folder.path().join("link")] {
            let error = backup(path, data).expect_err(path);
            assert_eq!(
                (error.code(), error.class()),
                ("backup_refused", Class::FailedPrecondition)
            );
        }
    }
    // Nor is what looks like another folder, and is an unfinished backup.
    let partial = folder.path().join("a.partial");
    std::fs::create_dir_all(&partial).expect("a folder");
    std::os::unix::fs::symlink(&partial, folder.path().join("latest")).expect("a link");
    for path in ["latest", "latest/.", "latest/b/.."] {
        let opened = Engine::open_folder(Options::new(folder.path().join(path)));
        let error = opened.expect_err(path);
        assert_eq!(error.code(), "backup_unfinished", "{path}");
    }
    backup("data/../backups", &data).expect("beside it");
    backup("database", &data).expect("beside it");
}

/// While backups are made, rows are replaced again and again, and checkpoints, compactions and the index remove what they replace.
fn check_beside(index: IndexKind, quantization: Quantization) {
    let (own, others) = (MemoryDisk::new(), MemoryDisk::new());
    let mut options = options(SyncMode::EveryAck);
    options.graphs.kind = IndexPolicy::Fixed(index);
    options.graphs.quantization = Some(quantization);
    let engine = Engine::open(Arc::new(own), options).expect("a new folder");
    versions(&engine, 1);
    let (acknowledged, goes_on) = (AtomicI64::new(1), AtomicBool::new(true));
    let mut made = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 2.. {
                versions(&engine, version);
                acknowledged.store(version, Ordering::SeqCst);
                engine.tidy().expect("nothing fails");
                engine.checkpoint().expect("nothing fails");
                if !goes_on.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for number in 0..rounds(12) {
            let before = acknowledged.load(Ordering::SeqCst);
            made.push((before, backup(&engine, &others, &format!("n{number}"))));
        }
        goes_on.store(false, Ordering::SeqCst);
    });
    for (before, made) in made {
        let made = made.unwrap_or_else(|error| panic!("{index:?}: {error}"));
        assert_eq!(made.rows, ROWS as u64);
        let options = on(&made.path, engine.options());
        let copy = Engine::open(Arc::new(others.clone()), options).expect("it opens");
        let rows = scan(&copy, "a", &ScanRequest::default()).expect("it is there");
        let vectors = rows["vector"].as_fixed_size_list().values();
        let elements = vectors.as_primitive::<Float32Type>().values();
        let oldest = elements.iter().skip(1).step_by(2).copied();
        assert!(oldest.fold(f32::INFINITY, f32::min) >= before as f32);
        let dataset = copy.dataset("a").expect("it is there");
        assert!(dataset.wait_for_index(Duration::from_secs(300)));
        assert_eq!(copy.rebuilt_graphs(), 0);
        copy.close().expect("nothing fails");
    }
}

/// Rows of [`versions`].
const ROWS: i64 = 200;

/// Puts all rows anew: of each its number and its version.
fn versions(engine: &Engine, version: i64) {
    for ids in [0..ROWS / 2, ROWS / 2..ROWS] {
        put_with(engine, "a", ids, |id| [id as f32, version as f32]);
    }
}

#[test]
fn files_stay_that_a_backup_copies() {
    check_beside(IndexKind::Hnsw, Quantization::Rabitq);
}

#[test]
fn blocks_stay_that_a_backup_copies() {
    check_beside(IndexKind::SpFresh, Quantization::None);
}
