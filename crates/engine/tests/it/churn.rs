//! Graphs of codes whose rows come and go, and which are there before they are read.

use std::sync::Arc;

use arrow_schema::DataType;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Id, Options, SearchRequest};

use crate::quantized::{
    check_recall, delete, found, open, options, put, rows, schema, settle, vector,
    wait_for_the_index,
};

#[test]
fn rows_that_died_leave_the_graph_and_others_take_their_place() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let schema = schema("cosine", DataType::Float32, None);
    put(&engine, &schema, 0..4_000, 0);
    wait_for_the_index(&engine);
    engine.tidy().expect("a sound disk");
    let graph = || engine.dataset("d").expect("it exists").indexes()[0].graph();
    let (first, bytes) = (graph(), graph().memory_bytes());
    for version in 1..6 {
        // A quarter comes anew, and a quarter goes and comes back.
        put(&engine, &schema, 0..1_000, version * 10_000);
        delete(&engine, 1_000..2_000);
        put(&engine, &schema, 1_000..2_000, version * 10_000);
        wait_for_the_index(&engine);
        settle(&engine);
        check_recall(&engine, "graph");
        if version == 3 {
            engine.checkpoint().expect("a sound disk");
        }
    }
    assert!(Arc::ptr_eq(&first, &graph()), "not rebuilt");
    // While rows of one version came, those of the last were still there.
    assert!(graph().memory_bytes() < bytes * 17 / 10);
    drop(first);
    engine.close().expect("a sound disk");
    drop(engine);
    let engine = open(&disk);
    wait_for_the_index(&engine);
    check_recall(&engine, "graph");
    settle(&engine);
    check_recall(&engine, "graph");
}

#[test]
fn places_that_dead_rows_left_count_as_room() {
    let disk = MemoryDisk::new();
    let options = Options {
        memory_limit: 8 << 20,
        ..options()
    };
    let engine = Engine::open(Arc::new(disk), options).expect("a new folder");
    let schema = schema("euclidean", DataType::Int8, None);
    put(&engine, &schema, 0..5_500, 0);
    wait_for_the_index(&engine);
    let mut session = engine.put("d", &schema).expect("a good schema");
    let more = rows(&schema, 10_000..13_000, 0);
    assert!(session.record_batch(&more).is_err(), "beyond the limit");
    delete(&engine, 0..4_000);
    settle(&engine);
    session
        .record_batch(&more)
        .expect("room")
        .wait()
        .expect("acknowledged");
    wait_for_the_index(&engine);
    assert!(engine.memory().total() <= 8 << 20);
    check_recall(&engine, "graph");
}

#[test]
fn a_start_answers_before_its_graphs_are_read_and_a_checkpoint_keeps_them() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..6_000, 0);
    wait_for_the_index(&engine);
    engine.checkpoint().expect("a checkpoint");
    engine.close().expect("closed");
    drop(engine);
    for round in [0, 5, 6, 7, 1] {
        let engine = open(&disk);
        let request = SearchRequest::nearest(vector(17), 1);
        let reply = engine.search("d", &request).expect("a search");
        assert_eq!(found(&reply), [(Id::Int(17), 0)]);
        // At once, whether the graph was read by now or not; and closed so in the end.
        engine.checkpoint().expect("a checkpoint");
        if round < 5 {
            wait_for_the_index(&engine);
            let graph = engine.dataset("d").expect("it exists").indexes()[0].graph();
            assert_eq!((graph.len(), engine.rebuilt_graphs()), (6_000, 0));
        }
        engine.close().expect("closed");
    }
}

/// Each row gets the same code as its own dead version, behind whose node it hangs.
#[test]
fn rows_put_anew_as_they_are_leave_nothing_behind() {
    let engine = open(&MemoryDisk::new());
    let schema = schema("euclidean", DataType::Float32, None);
    for _ in 0..3 {
        put(&engine, &schema, 0..4_000, 0);
        wait_for_the_index(&engine);
        settle(&engine);
        check_recall(&engine, "graph");
    }
}
