//! Searches that end with what they have when their budget runs out, and say so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use longbow_disk::MemoryDisk;
use longbow_engine::{
    Beside, Engine, Error, Filter, FilterError, Grouping, Predicate, Quantization, SearchReply,
    SearchRequest, Shape, TextQuery,
};

use crate::condition::{Comparison, Condition};
use crate::quantized::{found, open_with, put, schema, vector, wait_for_the_index};
use crate::text::put_many;

const ROWS: i64 = 12_500;
const AMPLE: Option<Duration> = Some(Duration::from_secs(3_600));

fn filled(quantization: Quantization) -> Engine {
    let engine = open_with(&MemoryDisk::new(), Some(quantization));
    let schema = schema("euclidean", DataType::Float32, None);
    put(&engine, &schema, 0..ROWS, 0);
    wait_for_the_index(&engine);
    engine
}

fn search(engine: &Engine, request: &SearchRequest, budget: Option<Duration>) -> SearchReply {
    let request = SearchRequest {
        budget,
        ..request.clone()
    };
    engine.search("d", &request).expect("a good request")
}

/// Without a budget, with an ample one and with none at all.
fn check(engine: &Engine, request: &SearchRequest) {
    let whole = search(engine, request, None);
    assert_eq!(whole.info.partial_because, None);
    let ample = search(engine, request, AMPLE);
    assert_eq!(found(&ample), found(&whole), "{:?}", ample.info);
    assert_eq!(ample.info.partial_because, None);
    assert_eq!(ample.info.strategy, whole.info.strategy);
    let spent = search(engine, request, Some(Duration::ZERO)).info;
    let queries = request.vectors.len();
    let why = format!("the budget of 0 ms ran out before {queries} of {queries} queries had ended");
    assert_eq!(spent.partial_because, Some(why));
    assert_eq!((spent.returned, spent.rows_scanned), (0, 0));
    let short = spent.short_because.as_deref();
    assert_eq!(short, Some("the budget ran out with 0 rows found"));
    assert_eq!(spent.recall_expected, None);
}

#[test]
fn a_search_of_any_way_ends_with_its_budget() {
    for quantization in [Quantization::Rabitq, Quantization::None] {
        let engine = filled(quantization);
        let plain = SearchRequest::nearest(vector(1 << 40), 10);
        let below = |id| SearchRequest {
            filter: Some(Condition::new("id", Comparison::Lt, id).shared()),
            ..plain.clone()
        };
        let many = SearchRequest {
            vectors: (0..70).map(|seed| vector(1 << 40 | seed)).collect(),
            ..plain.clone()
        };
        let exact = SearchRequest {
            exact: true,
            ..plain.clone()
        };
        let exact_below = SearchRequest {
            exact: true,
            ..below(ROWS / 2)
        };
        let sure = SearchRequest {
            recall_target: Some(1.0),
            ..plain.clone()
        };
        let cautious = SearchRequest {
            recall_target: Some(0.9),
            ..plain.clone()
        };
        for request in [
            &plain,
            &exact,
            &below(50),
            &below(ROWS - 10),
            &exact_below,
            &many,
        ] {
            check(&engine, request);
        }
        for request in [&sure, &cautious] {
            check(&engine, request);
        }
    }
}

#[test]
fn an_answer_of_any_shape_ends_with_its_budget() {
    let engine = filled(Quantization::None);
    let plain = SearchRequest::nearest(vector(1 << 40), 10);
    let shaped = |shape| SearchRequest {
        shape,
        ..plain.clone()
    };
    let groups = shaped(Shape {
        group: Some(Grouping {
            column: "id".into(),
            size: 1,
        }),
        ..Shape::default()
    });
    let diverse = shaped(Shape {
        diversity: Some(0.5),
        ..Shape::default()
    });
    let fused = SearchRequest {
        beside: vec![Beside {
            column: "vector".into(),
            vector: vector(7),
            weight: 1.0,
        }],
        ..plain.clone()
    };
    for request in [&groups, &diverse, &fused] {
        check(&engine, request);
    }
    let page = SearchRequest {
        budget: AMPLE,
        ..shaped(Shape {
            page: Some(None),
            ..Shape::default()
        })
    };
    let refused = engine.search("d", &page).expect_err("a page may lack rows");
    let is_budget = |field| field == "budget_ms";
    assert!(matches!(refused, Error::BadValue { field, .. } if is_budget(field)));
}

#[test]
fn a_timeout_is_an_error_beside_a_budget() {
    let engine = filled(Quantization::None);
    let request = SearchRequest {
        timeout: Some(Duration::ZERO),
        budget: AMPLE,
        ..SearchRequest::nearest(vector(1), 10)
    };
    let refused = engine.search("d", &request).expect_err("no time");
    assert!(matches!(refused, Error::Timeout(_)));
}

/// A filter that all rows pass, each piece of rows in no less time than there is.
#[derive(Debug)]
struct Slow(Instant);

impl Filter for Slow {
    fn key(&self) -> Option<&str> {
        None
    }

    fn bind(&self, _: &str, _: &SchemaRef) -> Result<Box<dyn Predicate>, Box<dyn FilterError>> {
        Ok(Box::new(Slow(self.0)))
    }
}

impl Predicate for Slow {
    fn columns(&self) -> &[usize] {
        &[0]
    }

    fn mask(&self, rows: &RecordBatch) -> Result<BooleanArray, Box<dyn FilterError>> {
        while Instant::now() <= self.0 {
            std::hint::spin_loop();
        }
        Ok(vec![true; rows.num_rows().min(1)].into())
    }
}

#[test]
fn the_evaluation_of_a_filter_ends_with_the_budget() {
    let engine = filled(Quantization::Rabitq);
    let request = |time: Duration| SearchRequest {
        filter: Some(Arc::new(Slow(Instant::now() + time))),
        explain: true,
        ..SearchRequest::nearest(vector(1), 10)
    };
    let time = Duration::from_millis(20);
    let cut = search(&engine, &request(2 * time), Some(time)).info;
    assert_eq!(cut.returned, 0);
    assert!(cut.partial_because.is_some(), "{cut:?}");
    let short = cut.short_because.as_deref();
    assert_eq!(short, Some("the budget ran out with 0 rows found"));
    let steps = cut.explain.expect("it was asked for").steps;
    assert!(steps[0].contains("the budget ran out"), "{steps:?}");
    let whole = search(&engine, &request(Duration::ZERO), AMPLE).info;
    assert_eq!((whole.returned, whole.partial_because), (10, None));
    let refused = SearchRequest {
        timeout: Some(time),
        ..request(2 * time)
    };
    let refused = engine.search("d", &refused).expect_err("no time");
    assert!(matches!(refused, Error::Timeout(_)));
}

#[test]
fn a_search_for_words_ends_with_its_budget() {
    let engine = open_with(&MemoryDisk::new(), None);
    put_many(&engine, "d", 0..30);
    let words = SearchRequest {
        vectors: Vec::new(),
        text: Some(TextQuery {
            text: "of3".into(),
            columns: None,
        }),
        ..SearchRequest::nearest(Vec::new(), 2)
    };
    let ask = |budget| search(&engine, &words, budget).info;
    let (ample, spent) = (ask(AMPLE), ask(Some(Duration::ZERO)));
    assert_eq!((ample.returned, ample.partial_because), (2, None));
    assert_eq!(spent.returned, 0);
    assert!(spent.partial_because.is_some() && spent.short_because.is_some());
}
