//! Columns of `float32` whose elements are whole numbers: graphs keep copies of them, while there is room.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::DataType;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Error, Options, SearchRequest};

use crate::quantized::{DIM, delete, found, open, options, schema, vector, wait_for_the_index};

const ROWS: i64 = 4_000;

/// Whole numbers around 60, and `odd` more in the first place of each row.
fn rows(ids: Range<i64>, odd: f32) -> RecordBatch {
    let schema = schema("euclidean", DataType::Float32, None);
    let numbers = ids.clone().flat_map(|id| vector(id as u64));
    let mut numbers: Vec<f32> = numbers
        .map(|x| (12.0 * x).round().clamp(0.0, 255.0))
        .collect();
    numbers.iter_mut().step_by(DIM).for_each(|x| *x += odd);
    let DataType::FixedSizeList(item, _) = schema.field(1).data_type() else {
        panic!("the second column has vectors");
    };
    let numbers = Arc::new(Float32Array::from(numbers));
    let vectors = FixedSizeListArray::try_new(Arc::clone(item), DIM as i32, numbers, None);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let columns = vec![ids, Arc::new(vectors.expect("whole vectors")) as _];
    RecordBatch::try_new(schema, columns).expect("columns of one length")
}

fn put(engine: &Engine, batch: &RecordBatch) {
    let mut session = engine.put("d", &batch.schema()).expect("a good schema");
    let pending = session.record_batch(batch).expect("good rows");
    pending.wait().expect("acknowledged");
}

/// Checks what searches find, to the last bit, and whether there are copies.
fn check(engine: &Engine, copied: bool) {
    wait_for_the_index(engine);
    let kept = engine.memory().kept_bytes;
    match copied {
        true => assert!(kept >= (ROWS - 500) as u64 * DIM as u64, "{kept}"),
        false => assert_eq!(kept, 0),
    }
    let mut hits = 0;
    for seed in 0..40u64 {
        let query = vector((1 << 40) | seed).iter().map(|x| 12.0 * x).collect();
        let request = SearchRequest::nearest(query, 10);
        let all = SearchRequest {
            exact: true,
            k: 8_000,
            ..request.clone()
        };
        let exact = found(&engine.search("d", &all).expect("a search"));
        let reply = engine.search("d", &request).expect("a search");
        assert_eq!(reply.info.strategy, "graph");
        let got = found(&reply);
        let every: HashMap<_, _> = exact.iter().cloned().collect();
        for (id, bits) in &got {
            assert_eq!(every.get(id), Some(bits), "distance of {id}");
        }
        hits += got.iter().filter(|one| exact[..10].contains(one)).count();
    }
    assert!(hits >= 380, "{hits} of 400");
}

/// An engine with rows of whole numbers, of which there are copies.
fn begun() -> (MemoryDisk, Engine) {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put(&engine, &rows(0..ROWS, 0.0));
    check(&engine, true);
    (disk, engine)
}

#[test]
fn copies_stay_through_changes_and_restarts_until_many_vectors_have_fractions() {
    let (disk, engine) = begun();
    delete(&engine, 0..500);
    put(&engine, &rows(1_000..1_500, 0.0));
    check(&engine, true);
    engine.checkpoint().expect("a checkpoint");

    let disk = disk.crash();
    let engine = open(&disk);
    wait_for_the_index(&engine);
    assert_eq!(engine.rebuilt_graphs(), 0);
    check(&engine, true);
    put(&engine, &rows(ROWS..ROWS + 500, 0.5));
    check(&engine, true);
    engine.checkpoint().expect("a checkpoint");

    let disk = disk.crash();
    let engine = open(&disk);
    check(&engine, true);
    put(&engine, &rows(ROWS + 500..ROWS + 2_000, 0.5));
    check(&engine, false);
    engine.checkpoint().expect("a checkpoint");
    check(&open(&disk.crash()), false);
}

#[test]
fn they_give_way_to_rows_and_come_back_at_the_next_start() {
    let (disk, engine) = begun();
    engine.checkpoint().expect("a checkpoint");
    let memory = engine.memory();
    engine.close().expect("closed");
    drop(engine);
    let open = |memory_limit| {
        let options = Options {
            memory_limit,
            process_bytes: || 0,
            ..options()
        };
        let engine = Engine::open(Arc::new(disk.clone()), options).expect("a sound folder");
        wait_for_the_index(&engine);
        engine.tidy().expect("a sound disk");
        engine
    };

    // They do not fit.
    let engine = open(memory.needed() + memory.kept_bytes / 2);
    check(&engine, false);
    engine.close().expect("closed");
    drop(engine);

    // They fit until rows come, of which each takes eight times as much as its copy.
    let engine = open(memory.needed() + memory.kept_bytes * 5);
    check(&engine, true);
    for part in 0..4 {
        let first = ROWS + part * ROWS / 8;
        put(&engine, &rows(first..first + ROWS / 8, 0.0));
        wait_for_the_index(&engine);
    }
    engine.tidy().expect("a sound disk");
    check(&engine, false);
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    check(&open(memory.needed() * 4), true);
}

/// Also while rows are on their way into the graph, where each takes its copy beside what was promised to it.
#[test]
fn rows_and_their_copies_stay_within_the_limit() {
    const LIMIT: u64 = 4 << 20;
    let options = Options {
        memory_limit: LIMIT,
        seal_bytes: u64::MAX,
        process_bytes: || 0,
        ..options()
    };
    let engine = Engine::open(Arc::new(MemoryDisk::new()), options).expect("a new folder");
    let mut end = 0;
    let refused = loop {
        let batch = rows(end..end + 100, 0.0);
        let mut session = engine.put("d", &batch.schema()).expect("a good schema");
        match session.record_batch(&batch) {
            Ok(pending) => pending.wait().expect("acknowledged"),
            Err(refused) => break refused,
        };
        end += 100;
        assert!(engine.memory().total() <= LIMIT);
    };
    assert!(matches!(refused, Error::MemoryLimit { .. }), "{refused}");
    wait_for_the_index(&engine);
    let memory = engine.memory();
    assert!(memory.total() <= LIMIT / 100 * 102, "{memory:?}");
    assert!(
        memory.needed() > LIMIT / 100 * 85,
        "{memory:?} of {end} rows"
    );
}
