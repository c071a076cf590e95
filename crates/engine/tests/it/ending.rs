//! A disk that ends with the process: what only another start would need is not kept on it.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::DataType;
use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{Engine, Options};

use crate::damage::files_below;
use crate::quantized::{DIM, check_recall, open, options, put, schema, wait_for_the_index};

const ROWS: i64 = 2_000;
/// Of the vectors alone.
const BYTES: u64 = ROWS as u64 * DIM as u64 * 4;

fn files(disk: &MemoryDisk, folder: &str) -> Vec<String> {
    disk.list(Path::new(folder)).expect("a folder")
}

fn bytes(disk: &MemoryDisk, folder: &str) -> u64 {
    let files = files_below(disk, Path::new(folder));
    files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

#[test]
fn a_checkpoint_lets_the_log_go_and_holds_no_index() {
    let disk = MemoryDisk::new();
    let options = Options {
        log_segment_bytes: 64 << 10,
        seal_bytes: 128 << 10,
        ..options()
    };
    let engine = Engine::open(Arc::new(disk.clone()), options.in_memory()).expect("a folder");
    let schema = schema("euclidean", DataType::Float32, None);
    for part in 0..10 {
        put(
            &engine,
            &schema,
            part * ROWS / 10..(part + 1) * ROWS / 10,
            0,
        );
    }
    wait_for_the_index(&engine);
    engine.checkpoint().expect("a checkpoint");
    let log = bytes(&disk, "data/log");
    assert!(
        log <= BYTES / 2,
        "{log} bytes of log beside {BYTES} of rows"
    );
    let kept = files(&disk, "data/datasets/1");
    assert!(kept.iter().all(|name| name.starts_with("rows")), "{kept:?}");
    check_recall(&engine, "graph");
    engine.close().expect("closed");
    drop(engine);
    // Nobody does this, but the manifest says what is there.
    let engine = open(&disk);
    assert_eq!(engine.recovered().rows, ROWS as u64);
    wait_for_the_index(&engine);
    check_recall(&engine, "graph");
    engine.close().expect("closed");
}
