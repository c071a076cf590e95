//! Checkpoints for the sake of the work of the indexers: none of it is done twice.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::DataType;
use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{Engine, Options};

use crate::quantized::{check_recall, open, options, rows, schema, wait_for_the_index};

/// An engine that saves so much work on indexes, with so many rows that came at once.
fn filled(disk: &MemoryDisk, count: i64, index_work: Duration) -> Engine {
    let options = Options {
        index_work,
        ..options()
    };
    let engine = Engine::open(Arc::new(disk.clone()), options).expect("a new folder");
    let schema = schema("euclidean", DataType::Float32, None);
    let mut session = engine.put("d", &schema).expect("a good schema");
    let put = session.record_batch(&rows(&schema, 0..count, 0));
    put.and_then(|put| put.wait()).expect("acknowledged");
    drop(session);
    engine
}

/// Waits for something that comes by itself.
fn wait_for(is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(300), "it never came");
        std::thread::yield_now();
    }
}

#[test]
fn a_complete_index_is_saved() {
    let disk = MemoryDisk::new();
    let engine = filled(&disk, 5_000, Duration::ZERO);
    wait_for(|| {
        disk.exists(Path::new("data/MANIFEST"))
            .expect("a sound disk")
    });
    assert_eq!(engine.dataset("d").expect("it exists").unindexed(), 0);
    engine.close().expect("closed");
    drop(engine);
    let engine = open(&disk);
    assert_eq!(engine.recovered().replayed, 0);
    wait_for_the_index(&engine);
    check_recall(&engine, "graph");
}

#[test]
fn what_is_indexed_by_the_end_is_saved() {
    let disk = MemoryDisk::new();
    let engine = filled(&disk, 20_000, Duration::ZERO);
    let indexed =
        |engine: &Engine| engine.dataset("d").expect("it exists").indexes()[0].watermark();
    wait_for(|| indexed(&engine) > 0);
    engine.close().expect("closed");
    drop(engine);
    let engine = open(&disk);
    let recovered = engine.recovered();
    assert!(recovered.checkpoint > 0 && recovered.replayed == 0);
}

#[test]
fn little_work_is_not_saved() {
    let disk = MemoryDisk::new();
    let engine = filled(&disk, 500, Duration::from_secs(3600));
    wait_for_the_index(&engine);
    engine.close().expect("closed");
    assert!(
        !disk
            .exists(Path::new("data/MANIFEST"))
            .expect("a sound disk")
    );
}
