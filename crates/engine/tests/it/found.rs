//! Faults that were found, each with the test that found it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{FixedSizeListArray, RecordBatch, StringArray, types::Float32Type};
use longbow_disk::{Disk, Fault, FaultyDisk, MemoryDisk, Operation};
use longbow_engine::{Class, Engine, Options, Pending, SyncMode};

use crate::compare::difference;
use crate::model::{Model, Op};
use crate::rows::{Element, Extra, IdKind, Row, Shape};

const SHAPE: Shape = Shape {
    id: IdKind::Int,
    element: Element::F32,
    metric: "euclidean",
};

fn rows(versions: std::ops::Range<u32>) -> Vec<Row> {
    let row = |version| Row {
        key: version,
        version,
        tag: None,
        extras: [Some(version); 4],
    };
    versions.map(row).collect()
}

fn put(engine: &Engine, name: &str, extras: &[Extra], rows: &[Row]) {
    let mut session = engine
        .put(name, &SHAPE.schema(extras))
        .expect("a good schema");
    let pending = session
        .record_batch(&SHAPE.batch(extras, rows))
        .expect("good rows");
    pending.wait().expect("an acknowledgement");
}

/// A put of an id that is too long was logged before it was refused, and refused again when the log was replayed:
/// the folder did not open any more.
#[test]
fn an_id_that_is_too_long_is_refused_before_the_log_has_it() {
    let disk = Arc::new(MemoryDisk::new());
    let engine = Engine::open(disk.clone(), Options::new("data")).expect("opens");
    let id = "x".repeat(longbow_storage::MAX_ID_BYTES + 1);
    let vectors = [Some(vec![Some(1.0), Some(2.0)])];
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    let columns = [
        ("id", Arc::new(StringArray::from(vec![id])) as _),
        ("vector", Arc::new(vectors) as _),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut session = engine.put("d", &batch.schema()).expect("a good schema");
    let refused = session
        .record_batch(&batch)
        .and_then(Pending::wait)
        .expect_err("too long");
    assert_eq!(refused.class(), Class::InvalidArgument);
    assert!(refused.to_string().contains("65537"), "{refused}");
    engine.close().expect("closes");
    drop((session, engine));
    Engine::open(disk, Options::new("data")).expect("opens again");
}

/// After a restart, puts were checked against the schema of the last checkpoint, not the one that the log had grown
/// it to: rows were logged under a schema that the dataset no longer had.
#[test]
fn a_schema_that_the_log_grew_holds_for_puts_after_a_restart() {
    let disk = Arc::new(MemoryDisk::new());
    let mut model = Model::default();
    let open = || Engine::open(disk.clone(), Options::new("data")).expect("opens");
    let engine = open();
    put(&engine, "d", &[], &rows(0..5));
    engine.checkpoint().expect("a checkpoint");
    put(&engine, "d", &[Extra::Real], &rows(5..10));
    engine.close().expect("closes");
    drop(engine);
    let engine = open();
    put(&engine, "d", &[], &rows(10..15));
    put(&engine, "d", &[Extra::Number], &rows(15..20));
    engine.close().expect("closes");
    drop(engine);
    let with = |versions, extras: &[Extra]| {
        let mut rows = rows(versions);
        for row in &mut rows {
            for extra in Extra::ALL.iter().filter(|extra| !extras.contains(extra)) {
                row.extras[*extra as usize] = None;
            }
        }
        Op::Put(rows)
    };
    model.apply(&Op::Create(vec![Extra::Real, Extra::Number]));
    model.apply(&with(0..5, &[]));
    model.apply(&with(5..10, &[Extra::Real]));
    model.apply(&with(10..15, &[]));
    model.apply(&with(15..20, &[Extra::Number]));
    assert_eq!(difference(&open(), "d", &SHAPE, &model), None);
}

/// A dataset whose drop the log had refused was neither dropped nor written to: puts waited for its end for ever.
#[test]
fn a_refused_drop_leaves_the_dataset_writable() {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let options = Options {
        sync: SyncMode::EveryAck,
        ..Options::new("data")
    };
    let engine = Engine::open(Arc::new(disk.clone()), options).expect("opens");
    put(&engine, "d", &[], &rows(0..5));
    disk.fail(Operation::Write, 1, Fault::NoSpace);
    engine.drop_dataset("d").expect_err("the disk is full");
    put(&engine, "d", &[], &rows(5..10));
    assert_eq!(engine.dataset("d").expect("it is there").view().live, 10);
}

/// A checkpoint beside the creation of datasets could write down a dataset whose number was not yet taken, and
/// failed.
#[test]
fn checkpoints_beside_the_creation_of_datasets_do_not_fail() {
    let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("data")).expect("opens");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..200 {
                put(&engine, &format!("d{number}"), &[], &rows(0..1));
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            engine.checkpoint().expect("a checkpoint");
        }
    });
}

/// What a failed checkpoint had written stayed, and each of the attempts that follow left as much again.
#[test]
fn failed_checkpoints_and_compactions_leave_no_files() {
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let options = Options {
        tidy_interval: std::time::Duration::from_secs(3600),
        ..Options::new("data")
    };
    let engine = Engine::open(Arc::new(disk.clone()), options).expect("opens");
    let folder = std::path::Path::new("data/datasets/1");
    for part in 0..4 {
        put(&engine, "d", &[], &rows(part * 100..part * 100 + 100));
        engine.checkpoint().expect("a checkpoint");
    }
    for row in 0..50 {
        let gone = engine
            .delete_ids("d", vec![SHAPE.id(row)])
            .and_then(Pending::wait);
        gone.expect("deleted");
    }
    let before = disk.list(folder).expect("a folder");
    for _ in 0..3 {
        disk.fail(Operation::Rename, 1, Fault::NoSpace);
        engine
            .checkpoint()
            .expect_err("the manifest is not replaced");
        for nth in 1..4 {
            disk.fail(Operation::Write, nth, Fault::ShortWrite(1));
            engine.tidy().expect_err("the disk is full");
        }
    }
    assert_eq!(disk.list(folder).expect("a folder"), before);
    assert_eq!(engine.tidy().expect("there is space again"), 1);
    engine.checkpoint().expect("a checkpoint");
}

/// Rows that were put while a checkpoint sealed the rows before them were in none of its files, and were not replayed
/// either.
#[test]
fn rows_put_beside_a_checkpoint_are_there_after_a_restart() {
    let disk = Arc::new(MemoryDisk::new());
    let engine = Engine::open(disk.clone(), Options::new("data")).expect("opens");
    let done = AtomicBool::new(false);
    const WRITERS: u32 = 2;
    const BATCHES: u32 = 300;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (engine, done) = (&engine, &done);
            scope.spawn(move || {
                for batch in 0..BATCHES {
                    let first = (batch * WRITERS + writer) * 10;
                    put(engine, "d", &[], &rows(first..first + 10));
                }
                done.store(true, Ordering::Release);
            });
        }
        while !done.load(Ordering::Acquire) {
            engine.checkpoint().expect("a checkpoint");
        }
    });
    engine.close().expect("closes");
    drop(engine);
    let engine = Engine::open(disk, Options::new("data")).expect("opens again");
    let dataset = engine.dataset("d").expect("it is there");
    let missing = (0..WRITERS * BATCHES * 10).filter(|key| dataset.find(&SHAPE.id(*key)).is_none());
    assert_eq!(missing.count(), 0);
}

/// Every dataset that was ever dropped left an empty folder, which each checkpoint looked into.
#[test]
fn dropped_datasets_leave_no_folders() {
    let disk = Arc::new(MemoryDisk::new());
    let engine = Engine::open(disk.clone(), Options::new("data")).expect("opens");
    for number in 0..4 {
        put(&engine, &format!("d{number}"), &[], &rows(0..3));
    }
    engine.checkpoint().expect("a checkpoint");
    engine.drop_dataset("d0").expect("dropped");
    engine.drop_dataset("d2").expect("dropped");
    engine.checkpoint().expect("a checkpoint");
    let folders = || disk.list("data/datasets".as_ref()).expect("a folder");
    assert_eq!(folders(), ["2", "4"]);
    put(&engine, "d0", &[], &rows(0..3));
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(folders(), ["2", "4", "5"]);
}
