//! Small datasets are searched exactly: a walk would look at most of their rows anyway.

use arrow_schema::DataType;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Quantization, SearchRequest};

use crate::quantized::{found, open_with, put, schema, vector, wait_for_the_index};

/// So many rows in a graph.
fn of(rows: i64, quantization: Quantization, metric: &str) -> Engine {
    let engine = open_with(&MemoryDisk::new(), Some(quantization));
    put(
        &engine,
        &schema(metric, DataType::Float32, None),
        0..rows,
        0,
    );
    wait_for_the_index(&engine);
    engine
}

/// Searches go this way, and find what is nearest.
#[track_caller]
fn check(engine: &Engine, (k, ef): (usize, usize), strategy: &str) {
    for seed in 0..20 {
        let request = SearchRequest {
            ef: Some(ef),
            ..SearchRequest::nearest(vector((1 << 40) | seed), k)
        };
        let exact = SearchRequest {
            exact: true,
            ..request.clone()
        };
        let reply = engine.search("d", &request).expect("a search");
        assert_eq!(reply.info.strategy, strategy, "k {k}, ef {ef}");
        if strategy != "graph" {
            let exact = engine.search("d", &exact).expect("a search");
            assert_eq!(found(&reply), found(&exact), "k {k}, ef {ef}");
        }
    }
}

fn check_all(quantization: Quantization, strategy: &str) {
    for metric in ["euclidean", "cosine"] {
        let engine = of(300, quantization, metric);
        check(&engine, (10, 75), strategy);
        check(&engine, (10, 74), "graph");
        // What asks for many of the rows does not walk, whatever its effort.
        check(&engine, (100, 10), strategy);
    }
}

#[test]
fn small_datasets_are_compared_by_their_vectors() {
    check_all(Quantization::None, "exact");
}

#[test]
fn small_datasets_are_compared_by_their_codes_and_vectors() {
    check_all(Quantization::Rabitq, "codes");
    check_all(Quantization::Sq8, "codes");
}

#[test]
fn few_bytes_are_compared_whatever_the_effort() {
    // Of 512 bytes a row.
    check(&of(128, Quantization::None, "euclidean"), (10, 10), "exact");
    check(&of(129, Quantization::None, "euclidean"), (10, 10), "graph");
}

/// Rows that are put anew again and again leave versions that a scan would go past.
#[test]
fn many_versions_of_few_rows_are_walked() {
    let engine = of(100, Quantization::None, "euclidean");
    check(&engine, (10, 25), "exact");
    for version in 1..4 {
        put(
            &engine,
            &schema("euclidean", DataType::Float32, None),
            0..100,
            version * 1_000,
        );
    }
    wait_for_the_index(&engine);
    let reply = engine.search(
        "d",
        &SearchRequest {
            ef: Some(25),
            ..SearchRequest::nearest(vector(3), 10)
        },
    );
    let strategy = reply.expect("a search").info.strategy;
    assert!(strategy.starts_with("graph"), "{strategy}");
}

/// As numpy's arrays are by default.
#[test]
fn few_bytes_are_compared_of_every_type() {
    for element in [DataType::Float64, DataType::Float16, DataType::Int8] {
        let engine = open_with(&MemoryDisk::new(), Some(Quantization::None));
        put(&engine, &schema("euclidean", element, None), 0..100, 0);
        wait_for_the_index(&engine);
        check(&engine, (10, 10), "exact");
    }
}
