//! Indexes in postings whose file of blocks is damaged, or longer than what is in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_schema::DataType;
use longbow_disk::{Disk, MemoryDisk};
use longbow_engine::{Engine, Folder, Graph, GraphOptions, IndexKind, Options};

use crate::damage::files_below;
use crate::quantized::{delete, options, put, recall, schema, wait_for_the_index};

fn open(disk: &MemoryDisk) -> Engine {
    let options = Options {
        graphs: GraphOptions {
            kind: IndexKind::SpFresh.into(),
            ..options().graphs
        },
        ..options()
    };
    Engine::open(Arc::new(disk.clone()), options).expect("a sound folder")
}

/// An engine with rows, and a checkpoint of them.
fn filled(disk: &MemoryDisk, rows: i64) -> Engine {
    let engine = open(disk);
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..rows, 0);
    wait_for_the_index(&engine);
    engine.checkpoint().expect("a checkpoint");
    engine
}

/// Rows in the index, bytes of its file, and those of them that are free.
fn size(engine: &Engine) -> (usize, u64, u64) {
    let graph = engine.dataset("d").expect("it exists").indexes()[0].graph();
    let Graph::SpFresh { index, .. } = &*graph else {
        panic!("not in postings: {graph:?}");
    };
    let (bytes, free) = index.file_bytes();
    (index.len(), bytes, free)
}

/// At the default effort a new index of these rows gives 0.96.
fn check_recall(engine: &Engine) {
    let recall = recall(engine, "graph", None);
    assert!(recall > 0.93, "{recall}");
}

fn blocks(disk: &MemoryDisk) -> (PathBuf, Vec<u8>) {
    let mut files = files_below(disk, "data".as_ref());
    files.retain(|(path, _)| path.to_string_lossy().contains("blocks-"));
    assert_eq!(files.len(), 1, "one file of blocks");
    files.remove(0)
}

/// Changes bytes of the file of blocks, and tells whether a look over the folder finds that. Once more takes it back.
fn damages(disk: &MemoryDisk, places: &[usize]) -> bool {
    let (path, mut bytes) = blocks(disk);
    places.iter().for_each(|at| bytes[*at] ^= 1);
    disk.write_atomic(&path, &bytes).expect("written");
    let folder = Folder::open(Arc::new(disk.clone()), "data".as_ref(), "a test");
    let found = folder.expect("nobody has it").verify(&mut |_| Ok(()));
    let found = found.expect("it can be looked over");
    for damage in &found.damages {
        let offset = damage.offset.expect("a block begins somewhere") as usize;
        assert!(offset < bytes.len(), "{damage:?} {places:?}");
    }
    !found.is_whole()
}

/// Places all over the file of blocks that are in blocks which the checkpoint names.
fn in_blocks(disk: &MemoryDisk) -> Vec<usize> {
    let len = blocks(disk).1.len();
    let places = (0..40).map(|at| len * (2 * at + 1) / 80);
    let is_in_one = |at: &usize| {
        let found = damages(disk, &[*at]);
        assert!(!damages(disk, &[*at]), "it is as it was");
        found
    };
    let places: Vec<usize> = places.filter(is_in_one).collect();
    assert!(places.len() > 15, "most of the file is in use: {places:?}");
    places
}

#[test]
fn a_posting_with_a_damaged_block_is_made_again_alone() {
    let disk = MemoryDisk::new();
    let engine = filled(&disk, 3_000);
    delete(&engine, 0..100);
    engine.close().expect("closed");
    drop(engine);
    assert!(damages(&disk, &in_blocks(&disk)[..1]));
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 0, "its other postings are read");
    // The rows that were deleted since the checkpoint may be in it.
    let rows = size(&engine).0;
    assert!((2_900..=3_000).contains(&rows), "{rows} rows");
    check_recall(&engine);
    engine.close().expect("closed");
    drop(engine);
    assert!(
        !damages(&disk, &[]),
        "no checkpoint names the damaged block"
    );
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!((engine.rebuilt_graphs(), size(&engine).0), (0, rows));
    check_recall(&engine);
    // Most of them are more than one thread should insert before the index is of use.
    engine.close().expect("closed");
    drop(engine);
    assert!(damages(&disk, &in_blocks(&disk)));
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 1);
    check_recall(&engine);
    engine.close().expect("closed");
    drop(engine);
    assert!(!damages(&disk, &[]), "nor the damaged file");
}

#[test]
fn a_file_of_blocks_gives_back_the_space_of_rows_that_left() {
    let disk = MemoryDisk::new();
    let engine = filled(&disk, 8_000);
    let before = blocks(&disk).1.len() as u64;
    delete(&engine, 1_000..8_000);
    // Another thread may be at it.
    let deadline = Instant::now() + Duration::from_secs(300);
    while {
        assert!(Instant::now() < deadline, "{:?}", size(&engine));
        engine.tidy().expect("a sound disk");
        let (rows, bytes, free) = size(&engine);
        // Some blocks that are free are left alone.
        let is_sparse = free > 32 * 4_096 && 5 * free >= bytes;
        rows >= 1_100 || 4 * bytes >= before || is_sparse
    } {
        std::thread::yield_now();
    }
    assert_eq!(blocks(&disk).1.len() as u64, size(&engine).1);
    check_recall(&engine);
    engine.close().expect("closed");
    drop(engine);
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 0);
    check_recall(&engine);
    put(
        &engine,
        &schema("euclidean", DataType::Float32, None),
        8_000..10_000,
        0,
    );
    wait_for_the_index(&engine);
    check_recall(&engine);
}
