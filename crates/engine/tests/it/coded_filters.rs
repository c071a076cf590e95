//! Filters that are asked for often: their rows get codes, by which searches find as much, through all changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Filter, Id, SearchReply, SearchRequest};

use crate::condition::{Comparison, Condition};
use crate::quantized::{
    delete, found, open, put, recall, rows, schema, vector, wait_for_the_index,
};

const CODED: &str = "clusters_filtered";

fn below(id: i64) -> Arc<dyn Filter> {
    Condition::new("id", Comparison::Lt, id).shared()
}

fn ask(engine: &Engine, filter: &Arc<dyn Filter>, seed: u64, k: usize) -> SearchReply {
    let request = SearchRequest {
        filter: Some(Arc::clone(filter)),
        ..SearchRequest::nearest(vector(seed), k)
    };
    engine.search("d", &request).expect("a search")
}

fn ids(reply: &SearchReply) -> Vec<Id> {
    found(reply).into_iter().map(|(id, _)| id).collect()
}

/// An engine with these rows in its graph.
fn holding(ids: std::ops::Range<i64>) -> (Engine, SchemaRef) {
    let engine = open(&MemoryDisk::new());
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, ids, 0);
    wait_for_the_index(&engine);
    (engine, schema)
}

/// Asks until there are codes.
fn ask_often(engine: &Engine, filter: &Arc<dyn Filter>) {
    let deadline = Instant::now() + Duration::from_secs(100);
    for seed in 0.. {
        if ask(engine, filter, seed, 10).info.strategy == CODED {
            return;
        }
        assert!(Instant::now() < deadline, "no codes after {seed} searches");
        std::thread::yield_now();
    }
}

#[test]
fn a_filter_that_is_asked_for_often_gets_codes_that_find_as_much() {
    for (metric, element) in [
        ("euclidean", DataType::Float32),
        ("cosine", DataType::Float16),
        ("dot_product", DataType::Float32),
    ] {
        let disk = MemoryDisk::new();
        let engine = open(&disk);
        let schema = schema(metric, element, Some("rabitq"));
        put(&engine, &schema, 0..6_000, 0);
        wait_for_the_index(&engine);
        let filter = below(3_000);
        let before = ask(&engine, &filter, 1, 10).info.strategy;
        assert!(["graph_filtered", "exact_filtered"].contains(&before));
        let memory = engine.dataset("d").expect("it exists").bookkeeping_bytes();
        // Codes may have come right behind the first search, and are counted before then.
        let came_at_once = ask(&engine, &filter, 2, 10).info.strategy == CODED;
        ask_often(&engine, &filter);
        let more = engine.dataset("d").expect("it exists").bookkeeping_bytes() - memory;
        assert!(
            came_at_once || (3_000 * 24..3_000 * 64).contains(&more),
            "{more} bytes of codes"
        );
        let recall = recall(&engine, CODED, Some(Arc::clone(&filter)));
        assert!(recall >= 0.97, "{metric}: recall {recall}");
        // More than the nearest clusters have, and more than there are.
        for (k, expected) in [(1_500, 1_500), (3_000, 3_000), (4_000, 3_000)] {
            let reply = ask(&engine, &filter, 7, k);
            let got: HashSet<Id> = ids(&reply).into_iter().collect();
            assert_eq!(got.len(), expected, "{:?}", reply.info);
            assert!(got.iter().all(|id| (0..3_000).any(|of| *id == Id::Int(of))));
        }
    }
}

#[test]
fn codes_follow_every_change() {
    let (engine, schema) = holding(0..6_000);
    let filter = below(3_000);
    ask_often(&engine, &filter);

    let nearest = |seed: u64| {
        let reply = ask(&engine, &filter, seed, 10);
        assert_eq!(reply.info.returned, 10);
        ids(&reply)
    };
    assert_eq!(nearest(1_234)[0], Id::Int(1_234));
    // Dead.
    delete(&engine, 1_200..1_300);
    for seed in 1_200..1_300 {
        assert!(!nearest(seed).contains(&Id::Int(seed as i64)));
    }
    // Replaced, so that each is elsewhere now.
    put(&engine, &schema, 0..60, 70_000);
    for seed in 0..60 {
        assert_eq!(nearest(70_000 + seed)[0], Id::Int(seed as i64));
        let request = SearchRequest {
            filter: Some(Arc::clone(&filter)),
            max_distance: Some(1e-3),
            ..SearchRequest::nearest(vector(seed), 1)
        };
        let there = engine.search("d", &request).expect("a search");
        assert_eq!(there.info.returned, 0, "the vector before is gone");
    }
    // New, before they are in the graph and after.
    put(&engine, &schema, 1_200..1_300, 0);
    assert_eq!(nearest(1_250)[0], Id::Int(1_250));
    wait_for_the_index(&engine);
    assert_eq!(nearest(1_250)[0], Id::Int(1_250));
    assert_eq!(ask(&engine, &filter, 5, 10).info.strategy, CODED);
    // So many that others are made.
    put(&engine, &schema, 0..2_500, 90_000);
    wait_for_the_index(&engine);
    ask_often(&engine, &filter);
    let recall = recall(&engine, CODED, Some(Arc::clone(&filter)));
    assert!(recall >= 0.97, "recall {recall}");
    engine.checkpoint().expect("a checkpoint");
    while engine.tidy().expect("a sound disk") > 0 {}
    for seed in (90_000..92_500).step_by(50) {
        assert_eq!(nearest(seed)[0], Id::Int(seed as i64 - 90_000));
    }
}

/// While rows are replaced and deleted, each answer has all that it can have, and nothing else.
#[test]
fn answers_are_whole_while_rows_change() {
    let (engine, schema) = holding(0..5_000);
    let filter = below(1_000);
    ask_often(&engine, &filter);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=20 {
                put(&engine, &schema, 0..300, round * 10_000);
                // These never pass at the same time as all others.
                delete(&engine, 300..350);
                put(&engine, &schema, 300..350, round * 10_000);
            }
            is_over.store(true, Ordering::Release);
        });
        let mut seed = 0;
        while !is_over.load(Ordering::Acquire) || seed < 500 {
            seed += 1;
            let k = if seed % 50 == 0 { 950 } else { 10 };
            let reply = ask(&engine, &filter, seed, k);
            let got = ids(&reply);
            let unique: HashSet<&Id> = got.iter().collect();
            assert_eq!((got.len(), unique.len()), (k, k), "{:?}", reply.info);
            assert!(
                got.iter()
                    .all(|id| matches!(id, Id::Int(id) if *id < 1_000))
            );
        }
    });
    // Whoever makes codes may have got no processor time beside all this; they come, or were kept.
    ask_often(&engine, &filter);
}

/// The rows that pass lie elsewhere than around the query, and some of them wait for their turn: those are no answer for all.
#[test]
fn rows_that_wait_do_not_stand_for_those_that_a_walk_leaves_to_a_scan() {
    let (engine, schema) = holding(3_000..6_000);
    let mut session = engine.put("d", &schema).expect("a good schema");
    let mut put_far = |ids: std::ops::Range<i64>| {
        let batch = far(&schema, ids);
        let pending = session.record_batch(&batch).expect("good rows");
        pending.wait().expect("acknowledged");
    };
    put_far(0..2_900);
    wait_for_the_index(&engine);
    let dataset = engine.dataset("d").expect("it exists");
    let index = Arc::clone(&dataset.indexes()[0]);
    let still = index.hold_still();
    put_far(2_900..3_000);
    assert!(dataset.unindexed() > 0);
    let filter = below(3_000);
    let share = |ef| {
        let mut hits = 0;
        for seed in 0..40 {
            let request = SearchRequest {
                filter: Some(Arc::clone(&filter)),
                ef,
                ..SearchRequest::nearest(vector(3_000 + 70 * seed), 10)
            };
            let exact = SearchRequest {
                exact: true,
                ..request.clone()
            };
            let got = ids(&engine.search("d", &request).expect("a search"));
            let exact = ids(&engine.search("d", &exact).expect("a search"));
            assert_eq!(got.len(), 10);
            hits += got.iter().filter(|id| exact.contains(id)).count();
        }
        hits as f64 / 400.0
    };
    let before = share(Some(10));
    assert!(before >= 0.9, "by the graph: {before}");
    drop(still);
    ask_often(&engine, &filter);
    let after = share(None);
    assert!(after >= 0.95, "by codes: {after}");
}

/// Rows with these ids, far from all others.
fn far(schema: &SchemaRef, ids: std::ops::Range<i64>) -> RecordBatch {
    let near = rows(schema, ids, 0);
    let vectors = near.column(1).as_fixed_size_list();
    let numbers = vectors.values().as_primitive::<Float32Type>();
    let moved: Float32Array = numbers.unary(|x| x + 40.0);
    let DataType::FixedSizeList(item, width) = vectors.data_type() else {
        panic!("the second column has vectors");
    };
    let moved = FixedSizeListArray::new(Arc::clone(item), *width, Arc::new(moved), None);
    let columns = vec![Arc::clone(near.column(0)), Arc::new(moved) as ArrayRef];
    RecordBatch::try_new(Arc::clone(schema), columns).expect("columns of one length")
}
