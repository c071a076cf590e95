//! Recall targets: reached on rows that are hard to search, for more effort where more is asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longbow_disk::MemoryDisk;
use longbow_engine::{
    Engine, GraphOptions, Options, Quantization, RECALL_TARGET_KEY, SearchReply, SearchRequest,
};

use crate::condition::{Comparison, Condition};
use crate::random::mix;

const DIM: usize = 64;
const ROWS: u64 = 4_000;
const K: usize = 10;

/// Noise in all dimensions: every row is about as far from a query as every other.
fn vector(seed: u64) -> Vec<f32> {
    let number = |at: u64| (mix(seed << 8 | at) >> 40) as f32 / (1 << 23) as f32 - 1.0;
    let element = |at: u64| number(2 * at) + number(2 * at + 1);
    (0..DIM as u64).map(element).collect()
}

fn schema(target: Option<&str>) -> SchemaRef {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let said = target.map(|said| (RECALL_TARGET_KEY.to_owned(), said.to_owned()));
    let vectors = Field::new("vector", DataType::FixedSizeList(item, DIM as i32), true);
    let fields = vec![
        Field::new("id", DataType::Int64, true),
        vectors.with_metadata(said.into_iter().collect::<HashMap<_, _>>()),
    ];
    Arc::new(Schema::new(fields))
}

fn put(engine: &Engine, schema: &SchemaRef, rows: std::ops::Range<u64>) {
    let numbers: Float32Array = rows.clone().flat_map(vector).collect();
    let DataType::FixedSizeList(item, dim) = schema.field(1).data_type() else {
        panic!("the second column has vectors");
    };
    let vectors = FixedSizeListArray::try_new(Arc::clone(item), *dim, Arc::new(numbers), None);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64)));
    let columns = vec![ids, Arc::new(vectors.expect("whole vectors")) as _];
    let batch = RecordBatch::try_new(Arc::clone(schema), columns).expect("columns of one length");
    let mut session = engine.put("d", schema).expect("a good schema");
    let pending = session.record_batch(&batch).expect("good rows");
    pending.wait().expect("acknowledged");
    let dataset = engine.dataset("d").expect("it was put");
    assert!(dataset.wait_for_index(Duration::from_secs(600)));
}

/// An engine that measures nothing by itself, so that nothing depends on time.
fn open(quantization: Quantization) -> Engine {
    let defaults = Options::new("data");
    let options = Options {
        recall_share: 0.0,
        index_workers: 1,
        graphs: GraphOptions {
            quantization: Some(quantization),
            ..defaults.graphs
        },
        ..defaults
    };
    Engine::open(Arc::new(MemoryDisk::new()), options).expect("a sound folder")
}

fn request(target: Option<f32>) -> SearchRequest {
    let queries = (1 << 40..(1 << 40) + 100).map(vector);
    SearchRequest {
        vectors: queries.collect(),
        recall_target: target,
        ..SearchRequest::nearest(Vec::new(), K)
    }
}

fn recall(reply: &SearchReply, truth: &SearchReply) -> f64 {
    let (ids, truth) = (reply.ids().expect("ids"), truth.ids().expect("ids"));
    let pairs = ids.chunks(K).zip(truth.chunks(K));
    let hits: usize = pairs
        .map(|(ids, truth)| ids.iter().filter(|id| truth.contains(id)).count())
        .sum();
    hits as f64 / truth.len() as f64
}

#[test]
fn targets_are_reached_and_higher_ones_take_more_effort() {
    for quantization in [Quantization::None, Quantization::Rabitq] {
        let engine = open(quantization);
        put(&engine, &schema(None), 0..ROWS);
        let search = |request| engine.search("d", &request).expect("a good request");
        let truth = search(SearchRequest {
            exact: true,
            ..request(None)
        });
        // Before it is known what an effort reaches, so few rows are scanned.
        let scanned = search(request(Some(0.9)));
        assert_eq!(scanned.ids().expect("ids"), truth.ids().expect("ids"));
        let info = scanned.info;
        assert_eq!(
            (info.strategy, info.ef, info.recall_expected),
            (truth.info.strategy, None, Some(1.0))
        );
        engine.calibrate("d").expect("rows that can be read");
        let mut before = 0;
        for target in [0.5, 0.8, 0.95] {
            let reply = search(request(Some(target)));
            let (info, recall) = (&reply.info, recall(&reply, &truth));
            assert!(
                recall >= f64::from(target) - 0.03,
                "{quantization:?}, {target}: {recall}, {info:?}"
            );
            let (ef, expected) = (info.ef.expect("a walk"), info.recall_expected);
            assert!(ef > before, "{quantization:?}: {ef} after {before}");
            assert!(
                expected.is_some_and(|expected| expected >= target),
                "{info:?}"
            );
            assert_eq!(info.recall_target, Some(target));
            before = ef;
        }
        let all = search(request(Some(1.0)));
        assert_eq!(all.ids().expect("ids"), truth.ids().expect("ids"));
        let info = all.info;
        assert_eq!(
            (info.strategy, info.ef, info.recall_expected),
            ("exact", None, Some(1.0))
        );
        // An effort that is said goes before a target.
        let info = search(SearchRequest {
            ef: Some(33),
            ..request(Some(0.95))
        })
        .info;
        assert_eq!(
            (info.ef, info.recall_target, info.recall_expected),
            (Some(33), None, None)
        );
    }
}

#[test]
fn a_query_unlike_the_rows_gets_more_effort() {
    let engine = open(Quantization::None);
    put(&engine, &schema(None), 0..ROWS);
    engine.calibrate("d").expect("rows that can be read");
    let effort = |vector: Vec<f32>| {
        let request = SearchRequest {
            recall_target: Some(0.9),
            ..SearchRequest::nearest(vector, K)
        };
        let info = engine.search("d", &request).expect("a good request").info;
        info.ef.unwrap_or(usize::MAX)
    };
    // A row itself, and the one corner of the space that is far from all.
    assert!(effort(vector(7)) < effort(vec![3.0; DIM]));
}

#[test]
fn a_target_of_the_column_holds_for_searches_that_say_nothing() {
    let engine = open(Quantization::None);
    put(&engine, &schema(Some("0.8")), 0..ROWS);
    engine.calibrate("d").expect("rows that can be read");
    let info = |request| engine.search("d", &request).expect("a good request").info;
    let (by_column, by_request) = (info(request(None)), info(request(Some(0.8))));
    assert_eq!(
        (by_column.recall_target, by_column.ef),
        (Some(0.8), by_request.ef)
    );
    assert_eq!(info(request(Some(0.5))).recall_target, Some(0.5));
    // A later put may repeat it, in other words, or leave it out, and not change it.
    put(&engine, &schema(Some("0.80")), ROWS..ROWS + 1);
    put(&engine, &schema(None), ROWS..ROWS + 1);
    let refused = engine.put("d", &schema(Some("0.9"))).expect_err("another");
    assert_eq!(refused.code(), "recall_target_changed");
}

#[test]
fn few_rows_are_scanned_and_filters_keep_the_target() {
    let engine = open(Quantization::None);
    put(&engine, &schema(None), 0..500);
    engine.calibrate("d").expect("rows that can be read");
    let found = engine
        .search("d", &request(Some(0.9)))
        .expect("a good request")
        .info;
    assert_eq!(
        (found.strategy, found.recall_expected),
        ("exact", Some(1.0))
    );
    put(&engine, &schema(None), 500..12_000);
    engine.calibrate("d").expect("rows that can be read");
    let filtered = |target| SearchRequest {
        filter: Some(Condition::new("id", Comparison::Ge, 1_000).shared()),
        ..request(target)
    };
    let found = engine
        .search("d", &filtered(Some(0.7)))
        .expect("a good request");
    let exact = SearchRequest {
        exact: true,
        ..filtered(None)
    };
    let truth = engine.search("d", &exact).expect("a good request");
    assert_eq!(found.info.strategy, "graph_filtered");
    let recall = recall(&found, &truth);
    assert!(recall >= 0.67, "{recall}: {:?}", found.info);
    // That was measured without a filter.
    assert_eq!(found.info.recall_expected, None);
    assert!(
        found
            .info
            .recall_note
            .is_some_and(|note| note.contains("filter"))
    );
}

#[test]
fn calibration_comes_while_searches_go_on() {
    let options = Options {
        recall_share: 0.02,
        ..Options::new("data")
    };
    let engine = Engine::open(Arc::new(MemoryDisk::new()), options).expect("a sound folder");
    put(&engine, &schema(None), 0..1_500);
    let until = Instant::now() + Duration::from_secs(600);
    let calibrated = (0..).take_while(|_| Instant::now() < until).any(|at| {
        let request = SearchRequest {
            recall_target: Some(0.9),
            ..SearchRequest::nearest(vector((1 << 40) + at % 100), K)
        };
        let info = engine.search("d", &request).expect("a good request").info;
        info.recall_expected.is_some()
    });
    assert!(calibrated);
    engine.close().expect("a sound engine");
}
