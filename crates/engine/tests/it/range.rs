//! Rows within a distance, by a graph: about all of them, unless the caller says how far to walk.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Quantization, SearchReply, SearchRequest};

use crate::condition::{Comparison, Condition};
use crate::quantized::{found, open_with, wait_for_the_index};
use crate::random::mix;

const ROWS: u64 = 22_000;
const DIM: u64 = 96;
/// More than are within the distance, which is that of the last of so many.
const K: usize = 100;
const WITHIN: usize = 60;
const QUERIES: u64 = 30;

/// Noise: its neighbours are hardly nearer than any row, so that walks pass some by.
fn vector(seed: u64) -> Vec<f32> {
    let element = |at: u64| (mix(seed << 8 | at) >> 40) as f32 / (1 << 24) as f32;
    (0..DIM).map(element).collect()
}

fn put(engine: &Engine) {
    for first in (0..ROWS).step_by(2_000) {
        let ids: Vec<u64> = (first..first + 2_000).collect();
        let vectors = ids.iter().map(|id| Some(vector(*id).into_iter().map(Some)));
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 96);
        let columns = [
            (
                "id",
                Arc::new(Int64Array::from_iter_values(
                    ids.iter().map(|id| *id as i64),
                )) as _,
            ),
            ("vector", Arc::new(vectors) as _),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let mut session = engine.put("d", &batch.schema()).expect("a put");
        let ack = session.record_batch(&batch).expect("a batch");
        ack.wait().expect("it is written");
    }
    wait_for_the_index(engine);
}

fn search(engine: &Engine, request: &SearchRequest) -> SearchReply {
    engine.search("d", request).expect("a search")
}

/// How many of the rows within a distance are found, of all queries together.
fn share(engine: &Engine, asked: &SearchRequest, strategy: &str) -> f64 {
    let mut got = 0;
    for query in 0..QUERIES {
        let asked = SearchRequest {
            vectors: vec![vector(1 << 40 | query)],
            ..asked.clone()
        };
        let exact = SearchRequest {
            exact: true,
            ef: None,
            ..asked.clone()
        };
        let nearest = search(engine, &exact);
        let last = Some(f32::from_bits(found(&nearest)[WITHIN - 1].1));
        let near = |request: SearchRequest| SearchRequest {
            max_distance: last,
            ..request
        };
        let all = search(engine, &near(exact)).ids().expect("ids");
        assert_eq!(all.len(), WITHIN);
        let reply = search(engine, &near(asked));
        assert_eq!(reply.info.strategy, strategy);
        let ids = reply.ids().expect("ids");
        assert!(ids.iter().all(|id| all.contains(id)));
        let why = reply.info.short_because.expect("it is short");
        assert!(why.contains(&format!("only {} of", ids.len())), "{why}");
        got += ids.len();
    }
    got as f64 / (QUERIES as usize * WITHIN) as f64
}

#[test]
fn rows_within_a_distance_are_found_unless_the_effort_is_given() {
    for quantization in [Quantization::Rabitq, Quantization::None] {
        let engine = open_with(&MemoryDisk::new(), Some(quantization));
        put(&engine);
        let request = SearchRequest::nearest(Vec::new(), K);
        let found = share(&engine, &request, "graph");
        assert!(found >= 0.99, "{quantization:?}: {found}");
        let below = Condition::new("id", Comparison::Lt, ROWS as i64 * 3 / 4).shared();
        let filtered = SearchRequest {
            filter: Some(below),
            ..request.clone()
        };
        let found = share(&engine, &filtered, "graph_filtered");
        assert!(found >= 0.99, "{quantization:?}, filtered: {found}");
        // One who says how far to walk is believed: less is found.
        let told = SearchRequest {
            ef: Some(K),
            ..request
        };
        let found = share(&engine, &told, "graph");
        assert!(found < 0.97, "{quantization:?}, by ef: {found}");
    }
}
