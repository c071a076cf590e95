//! Many queries in one request: the same answers as one by one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_schema::DataType;
use longbow_disk::MemoryDisk;
use longbow_engine::{Class, Engine, Filter, Quantization, SearchReply, SearchRequest};

use crate::condition::{Comparison, Condition};
use crate::quantized::{delete, found, open_with, put, schema, vector, wait_for_the_index};

const ROWS: i64 = 21_500;

/// Rows in the graph, dead ones among them, and rows that it does not have.
fn fill(engine: &Engine) {
    let schema = schema("euclidean", DataType::Float32, None);
    put(engine, &schema, 0..ROWS - 500, 0);
    wait_for_the_index(engine);
    delete(engine, 300..700);
}

fn below(id: i64) -> Option<Arc<dyn Filter>> {
    Some(Condition::new("id", Comparison::Lt, id).shared())
}

fn query_index(reply: &SearchReply) -> Vec<i32> {
    let column = reply.batch.column_by_name("query_index").expect("a column");
    column.as_primitive::<Int32Type>().values().to_vec()
}

/// Asks together and one by one, and compares all that is said.
fn check(engine: &Engine, strategy: &str, request: &SearchRequest) {
    let together = engine.search("d", request).expect("a search");
    assert_eq!(together.info.strategy, strategy);
    let (mut rows, mut indices) = (Vec::new(), Vec::new());
    let (mut scanned, mut computed, mut popped, mut short) = (0, 0, 0, None);
    for (index, vector) in request.vectors.iter().enumerate() {
        let one = SearchRequest {
            vectors: vec![vector.clone()],
            ..request.clone()
        };
        let reply = engine.search("d", &one).expect("a search");
        assert_eq!(reply.info.strategy, strategy);
        let found = found(&reply);
        indices.extend(vec![index as i32; found.len()]);
        rows.extend(found);
        scanned += reply.info.rows_scanned;
        computed += reply.info.distance_computations;
        popped += reply.info.nodes_popped;
        short = short.or(reply.info.short_because);
    }
    assert!(found(&together) == rows, "{strategy}: other rows");
    assert!(
        query_index(&together) == indices,
        "{strategy}: other places"
    );
    let info = &together.info;
    assert_eq!(
        (info.rows_scanned, info.distance_computations),
        (scanned, computed)
    );
    assert_eq!((info.nodes_popped, &info.short_because), (popped, &short));
    let asked = request.k * request.vectors.len();
    assert_eq!((info.returned, info.asked), (rows.len(), asked));
}

fn ask(queries: u64, k: usize, filter: Option<Arc<dyn Filter>>) -> SearchRequest {
    SearchRequest {
        vectors: (0..queries).map(|seed| vector(1 << 40 | seed)).collect(),
        filter,
        ..SearchRequest::nearest(Vec::new(), k)
    }
}

#[test]
fn queries_in_one_request_are_answered_as_one_by_one() {
    for quantization in [Quantization::Rabitq, Quantization::None] {
        let disk = MemoryDisk::new();
        let engine = open_with(&disk, Some(quantization));
        fill(&engine);
        check(&engine, "graph", &ask(150, 10, None));
        check(&engine, "graph", &ask(2, 1, None));
        let near = SearchRequest {
            max_distance: Some(12.0),
            ..ask(70, 10, None)
        };
        check(&engine, "graph", &near);

        let dataset = engine.dataset("d").expect("it exists");
        let index = std::sync::Arc::clone(&dataset.indexes()[0]);
        let still = index.hold_still();
        let schema = schema("euclidean", DataType::Float32, None);
        put(&engine, &schema, ROWS - 500..ROWS, 0);
        // Rows of the graph and of the tail that are replaced and deleted since.
        put(&engine, &schema, 0..50, 70_000);
        delete(&engine, ROWS - 100..ROWS - 20);
        check(&engine, "graph_and_tail", &ask(150, 10, None));
        check(&engine, "graph_filtered", &ask(100, 10, below(11_000)));
        check(&engine, "exact_filtered", &ask(40, 10, below(500)));
        check(&engine, "exact_filtered", &ask(40, 10, below(5)));
        let exact = SearchRequest {
            exact: true,
            ..ask(9, 10, None)
        };
        check(&engine, "exact", &exact);
        drop(still);
    }
}

#[test]
fn one_wrong_query_or_no_time_refuses_all() {
    let disk = MemoryDisk::new();
    let engine = open_with(&disk, None);
    put(
        &engine,
        &schema("euclidean", DataType::Float32, None),
        0..2_000,
        0,
    );
    wait_for_the_index(&engine);
    let mut wrong = ask(100, 10, None);
    wrong.vectors[97].pop();
    let error = engine.search("d", &wrong).expect_err("a short vector");
    assert_eq!(error.class(), Class::InvalidArgument);
    let late = SearchRequest {
        timeout: Some(Duration::ZERO),
        ..ask(100, 10, None)
    };
    let error = engine.search("d", &late).expect_err("no time");
    assert_eq!(error.class(), Class::DeadlineExceeded);
}

#[test]
fn pieces_are_the_whole_as_of_its_beginning() {
    let engine = open_with(&MemoryDisk::new(), None);
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..2_000, 0);
    wait_for_the_index(&engine);
    let request = SearchRequest {
        vectors: (0..25).map(vector).collect(),
        filter: below(1_500),
        ..SearchRequest::nearest(Vec::new(), 4)
    };
    let whole = engine.search("d", &request).expect("a search");
    let mut pieces = Vec::new();
    let each = |reply: SearchReply| {
        // What later queries would find, were they not of the same moment.
        delete(
            &engine,
            pieces.len() as i64 * 100..pieces.len() as i64 * 100 + 20,
        );
        pieces.push(reply);
        ControlFlow::Continue(())
    };
    let searched = engine.search_in_pieces("d", &request, 10, each);
    searched.expect("a search");
    let indices: Vec<_> = pieces.iter().map(query_index).collect();
    assert_eq!(indices.concat(), query_index(&whole));
    assert_eq!(
        indices.iter().map(Vec::len).collect::<Vec<_>>(),
        [40, 40, 20]
    );
    let rows: Vec<_> = pieces.iter().flat_map(found).collect();
    assert!(rows == found(&whole));
    let rows: usize = pieces.iter().map(|piece| piece.info.returned).sum();
    assert_eq!(rows, whole.info.returned);

    let mut calls = 0;
    let once = engine.search_in_pieces("d", &request, 10, |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    once.expect("a search that was broken off");
    assert_eq!(calls, 1);
    let wrong = SearchRequest {
        vectors: vec![vector(1), vec![0.0]],
        ..request
    };
    let refused = engine.search_in_pieces("d", &wrong, 1, |_| panic!("answered"));
    assert_eq!(
        refused.expect_err("a wrong vector").class(),
        Class::InvalidArgument
    );
}

#[test]
fn only_a_walk_with_little_beside_it_is_brief() {
    let engine = open_with(&MemoryDisk::new(), None);
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..4_000, 0);
    wait_for_the_index(&engine);
    let one = SearchRequest::nearest(vector(7), 10);
    assert_eq!(engine.brief("d", &one), Some(0));
    let long = [
        SearchRequest {
            exact: true,
            ..one.clone()
        },
        SearchRequest {
            filter: below(9),
            ..one.clone()
        },
        SearchRequest {
            ef: Some(5_000),
            ..one.clone()
        },
        SearchRequest {
            k: 5_000,
            ..one.clone()
        },
        SearchRequest {
            vectors: vec![vector(7), vector(8)],
            ..one.clone()
        },
        SearchRequest {
            column: Some("id".into()),
            ..one.clone()
        },
    ];
    for request in &long {
        assert_eq!(engine.brief("d", request), None, "{request:?}");
    }
    assert_eq!(engine.brief("none", &one), None);
}
