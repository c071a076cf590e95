//! Rows that are written again and again: what died is not kept, on the disk as in memory.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{DataType, SchemaRef};
use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{Engine, Options};

use crate::quantized::{options, put, schema};

const ROWS: i64 = 500;

fn open(disk: &MemoryDisk) -> Engine {
    let options = Options {
        // Only the tests seal and compact.
        tidy_interval: Duration::from_secs(3_600),
        checkpoint_interval: Duration::ZERO,
        seal_bytes: u64::MAX,
        ..options()
    };
    Engine::open(Arc::new(disk.clone()), options).expect("a folder")
}

fn begun() -> (MemoryDisk, Engine, SchemaRef) {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    (disk, engine, schema("euclidean", DataType::Float32, None))
}

/// The rows of each segment.
fn segments(engine: &Engine) -> Vec<u64> {
    let view = engine.dataset("d").expect("a dataset").view();
    view.segments.iter().map(|segment| segment.rows()).collect()
}

fn check_rows(engine: &Engine) {
    let view = engine.dataset("d").expect("a dataset").view();
    assert_eq!((view.live, view.next_row % ROWS as u64), (ROWS as u64, 0));
}

#[test]
fn a_tail_is_sealed_without_what_was_replaced_in_it() {
    let (disk, engine, schema) = begun();
    for _ in 0..20 {
        put(&engine, &schema, 0..ROWS, 0);
    }
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(segments(&engine), [ROWS as u64]);
    check_rows(&engine);
    engine.close().expect("closed");
    drop(engine);
    // What was left out stays dead, and no number is given twice.
    let engine = open(&disk);
    check_rows(&engine);
    put(&engine, &schema, 0..ROWS / 10, 0);
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(segments(&engine), [ROWS as u64, ROWS as u64 / 10]);
    engine.close().expect("closed");
}

#[test]
fn a_batch_of_which_few_rows_died_is_sealed_as_it_is() {
    let (_, engine, schema) = begun();
    put(&engine, &schema, 0..ROWS, 0);
    put(&engine, &schema, 0..ROWS / 10, 0);
    engine.checkpoint().expect("a checkpoint");
    assert_eq!(segments(&engine), [ROWS as u64 + ROWS as u64 / 10]);
    engine.close().expect("closed");
}

#[test]
fn segments_in_which_nothing_lives_go_together() {
    let (disk, engine, schema) = begun();
    for _ in 0..8 {
        put(&engine, &schema, 0..ROWS, 0);
        engine.checkpoint().expect("a checkpoint");
    }
    assert_eq!(segments(&engine), [ROWS as u64; 8]);
    assert_eq!(engine.tidy().expect("a sound disk"), 1);
    assert_eq!(segments(&engine), [ROWS as u64]);
    check_rows(&engine);
    engine.checkpoint().expect("a checkpoint");
    engine.checkpoint().expect("a checkpoint");
    let folder = std::path::Path::new("data/datasets/1");
    let files = disk.list(folder).expect("a folder");
    let rows = files.iter().filter(|name| name.contains("rows"));
    assert_eq!(rows.count(), 1, "{files:?}");
    engine.close().expect("closed");
}
