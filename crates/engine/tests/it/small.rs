//! Small datasets are searched exactly: a walk would look at most of their rows anyway.

use arrow_schema::DataType;
use longbow_disk::MemoryDisk;
use longbow_engine::{Quantization, SearchRequest};

use crate::quantized::{found, open_with, put, recall, schema, vector, wait_for_the_index};

/// Below four rows for each that a walk holds, which are 100 by default.
const SMALL: i64 = 400;

fn check(quantization: Quantization, strategy: &str) {
    for metric in ["euclidean", "cosine"] {
        let engine = open_with(&MemoryDisk::new(), Some(quantization));
        let schema = schema(metric, DataType::Float32, None);
        put(&engine, &schema, 0..SMALL, 0);
        wait_for_the_index(&engine);
        assert!(recall(&engine, strategy, None) >= 1.0, "by {metric}");
        // What asks for less effort walks.
        let few = SearchRequest {
            ef: Some(50),
            ..SearchRequest::nearest(vector(1 << 41), 10)
        };
        assert_eq!(
            engine.search("d", &few).expect("a search").info.strategy,
            "graph"
        );
        // What asks for most of the rows does not, whatever its effort.
        let most = SearchRequest { k: 300, ..few };
        let reply = engine.search("d", &most).expect("a search");
        assert_eq!((reply.info.strategy, found(&reply).len()), (strategy, 300));

        put(&engine, &schema, SMALL..2 * SMALL, 0);
        wait_for_the_index(&engine);
        assert!(recall(&engine, "graph", None) > 0.95, "by {metric}");
    }
}

#[test]
fn small_datasets_are_compared_by_their_vectors() {
    check(Quantization::None, "exact");
}

#[test]
fn small_datasets_are_compared_by_their_codes_and_vectors() {
    check(Quantization::Rabitq, "codes");
    check(Quantization::Sq8, "codes");
}
