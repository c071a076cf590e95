//! Answers that are more than the nearest k: pages, groups, diverse ones, by example, of several columns.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use longbow_disk::MemoryDisk;
use longbow_engine::{
    Beside, Cursor, Engine, Error, Examples, Fusion, Grouping, Id, SCORE_PARTS, SearchReply,
    SearchRequest, Shape,
};

use crate::condition::{Comparison, Condition};
use crate::quantized::open;

/// Points on a line, the nearer to 0 the smaller the id; `back` has them the other way round, `kind` is the id modulo 7.
fn fill(engine: &Engine, ids: std::ops::Range<i64>) {
    let vectors = |at: &dyn Fn(i64) -> f32| -> ArrayRef {
        let numbers: Float32Array = ids.clone().flat_map(|id| [at(id), 0.0]).collect();
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        Arc::new(FixedSizeListArray::new(item, 2, Arc::new(numbers), None))
    };
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
        (
            "kind",
            Arc::new(
                ids.clone()
                    .map(|id| (id % 7 != 6).then_some(id % 7))
                    .collect::<Int64Array>(),
            ),
        ),
        ("vector", vectors(&|id| id as f32)),
        ("back", vectors(&|id| 1_000.0 - id as f32)),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut put = engine.put("d", &batch.schema()).expect("a put");
    put.record_batch(&batch)
        .and_then(|put| put.wait())
        .expect("acknowledged");
}

fn ids(reply: &SearchReply) -> Vec<i64> {
    let ids = reply.batch.column_by_name("id").expect("a column");
    ids.as_primitive::<Int64Type>().values().to_vec()
}

fn ask(k: usize, shape: Shape) -> SearchRequest {
    SearchRequest {
        shape,
        ..SearchRequest::nearest(vec![0.0, 0.0], k)
    }
}

fn code(engine: &Engine, request: &SearchRequest) -> (&'static str, String) {
    let refused = engine.search("d", request).expect_err("a wrong request");
    (refused.code(), refused.to_string())
}

#[test]
fn pages_follow_each_other_without_gap_while_rows_come_and_go() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..300);
    let search = |page: Option<Cursor>| {
        let shape = Shape {
            page: Some(page),
            ..Shape::default()
        };
        engine.search("d", &ask(40, shape)).expect("a page")
    };
    let (mut all, mut next) = (Vec::new(), None);
    for page in 0.. {
        let reply = search(next);
        all.extend(ids(&reply));
        let Some(cursor) = &reply.info.cursor else {
            assert!(reply.info.short_because.is_some(), "{:?}", reply.info);
            break;
        };
        next = Some(Cursor::parse(cursor).expect("what a reply said"));
        if page == 1 {
            let gone = engine.delete_ids("d", (70..120).map(Id::Int).collect());
            gone.and_then(|gone| gone.wait()).expect("acknowledged");
        }
    }
    assert_eq!(all, Vec::from_iter((0..80).chain(120..300)));
    let offset = |offset| {
        ask(
            5,
            Shape {
                offset,
                ..Shape::default()
            },
        )
    };
    let reply = engine.search("d", &offset(68)).expect("a good request");
    assert_eq!(
        (ids(&reply), reply.info.asked),
        (vec![68, 69, 120, 121, 122], 5)
    );
    let reply = engine.search("d", &offset(1_000)).expect("a good request");
    assert!(ids(&reply).is_empty());
    assert!(reply.info.short_because.is_some());
    assert_eq!(code(&engine, &offset(16_380)).0, "bad_value");
}

#[test]
fn pages_end_where_they_say_so() {
    const MOST: usize = 16_384;
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..16_500);
    let (mut all, mut next) = (Vec::new(), None);
    let last = loop {
        let shape = Shape {
            page: Some(next),
            ..Shape::default()
        };
        let reply = engine.search("d", &ask(1_000, shape)).expect("a page");
        all.extend(ids(&reply));
        let Some(cursor) = &reply.info.cursor else {
            break reply;
        };
        assert_eq!(reply.info.short_because, None);
        next = Some(Cursor::parse(cursor).expect("what a reply said"));
    };
    assert_eq!(all, Vec::from_iter(0..MOST as i64));
    assert_eq!((last.info.returned, last.info.asked), (MOST % 1_000, 1_000));
    let why = last.info.short_because.expect("there are more rows");
    assert!(why.contains("16384"), "{why}");
}

#[test]
fn pages_of_a_fused_answer_hold_each_row_once() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..600);
    for fusion in [Fusion::ReciprocalRank, Fusion::Weighted] {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let shape = Shape {
                page: Some(next),
                ..Shape::default()
            };
            let request = SearchRequest {
                fusion,
                beside: vec![Beside {
                    column: "back".into(),
                    vector: vec![700.0, 0.0],
                    weight: 0.7,
                }],
                ..ask(40, shape)
            };
            let reply = engine.search("d", &request).expect("a page");
            all.extend(ids(&reply));
            let Some(cursor) = &reply.info.cursor else {
                break;
            };
            next = Some(Cursor::parse(cursor).expect("what a reply said"));
        }
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..600), "{fusion:?}");
    }
}

#[test]
fn groups_are_whole_and_in_the_order_of_their_best() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..500);
    let group = |k, size, offset| {
        let group = Some(Grouping {
            column: "kind".into(),
            size,
        });
        ask(
            k,
            Shape {
                group,
                offset,
                ..Shape::default()
            },
        )
    };
    let reply = engine.search("d", &group(3, 2, 0)).expect("groups");
    assert_eq!(ids(&reply), [0, 7, 1, 8, 2, 9]);
    let reply = engine.search("d", &group(2, 1, 5)).expect("groups");
    // Null is a group.
    assert_eq!(ids(&reply), [5, 6]);
    let reply = engine.search("d", &group(8, 1, 0)).expect("groups");
    assert_eq!(ids(&reply), [0, 1, 2, 3, 4, 5, 6]);
    assert!(reply.info.short_because.is_some());
    // Most of a group is behind rows of others.
    let reply = engine.search("d", &group(1, 5, 0)).expect("groups");
    assert_eq!(ids(&reply), [0, 7, 14, 21, 28]);
    let reply = engine.search("d", &group(2, 60, 0)).expect("groups");
    let each = |kind: i64| (0..60).map(move |at| kind + 7 * at);
    assert_eq!(ids(&reply), Vec::from_iter(each(0).chain(each(1))));
    assert_eq!(reply.info.short_because, None);
    // These are all that there are.
    let reply = engine.search("d", &group(1, 100, 6)).expect("groups");
    assert_eq!(ids(&reply), Vec::from_iter((6..500).step_by(7)));
    assert_eq!(reply.info.short_because, None);
    // The second value is far behind the first rows.
    let far = SearchRequest {
        filter: Some(Condition::new("id", Comparison::Ge, 480).shared()),
        ..group(7, 100, 0)
    };
    assert_eq!(
        engine.search("d", &far).expect("groups").batch.num_rows(),
        20
    );
    let mut unknown = group(3, 2, 0);
    unknown.shape.group = Some(Grouping {
        column: "sort".into(),
        size: 1,
    });
    assert_eq!(code(&engine, &unknown).0, "column_not_found");
    assert_eq!(code(&engine, &group(3, 0, 0)).0, "bad_value");
}

#[test]
fn a_diverse_answer_spreads() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..100);
    let choose = |lambda| {
        let shape = Shape {
            diversity: Some(lambda),
            ..Shape::default()
        };
        engine.search("d", &ask(5, shape)).map(|reply| ids(&reply))
    };
    assert_eq!(choose(1.0).expect("a good request"), [0, 1, 2, 3, 4]);
    let diverse = choose(0.3).expect("a good request");
    assert_eq!(diverse[0], 0, "the best is the best");
    let span = diverse.iter().max().expect("rows") - diverse.iter().min().expect("rows");
    assert!(span > 20, "{diverse:?}");
    assert_eq!(diverse.iter().collect::<BTreeSet<_>>().len(), 5);
    assert!(matches!(
        choose(1.5),
        Err(Error::BadValue { field: "mmr", .. })
    ));
}

#[test]
fn examples_lead_to_rows_like_them() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..100);
    let like = |like: &[i64], unlike: &[i64]| {
        let ids = |ids: &[i64]| ids.iter().copied().map(Id::Int).collect();
        SearchRequest {
            examples: Some(Examples {
                like: ids(like),
                unlike: ids(unlike),
            }),
            vectors: Vec::new(),
            ..SearchRequest::nearest(Vec::new(), 4)
        }
    };
    let found = |request| ids(&engine.search("d", &request).expect("a good request"));
    assert_eq!(found(like(&[50], &[])), [49, 51, 48, 52]);
    assert_eq!(found(like(&[49, 51], &[])), [50, 48, 52, 47]);
    assert_eq!(found(like(&[50], &[40])), [60, 59, 61, 58]);
    let all = SearchRequest {
        k: 100,
        ..like(&[50], &[40])
    };
    let reply = engine.search("d", &all).expect("a good request");
    assert_eq!(reply.batch.num_rows(), 98);
    assert!(reply.info.short_because.is_some(), "{:?}", reply.info);
    assert_eq!(code(&engine, &like(&[50, 7_000], &[])).0, "id_not_found");
    assert_eq!(code(&engine, &like(&[], &[3])).0, "bad_value");
}

#[test]
fn columns_are_searched_together() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..200);
    let together = |weight, fusion| SearchRequest {
        beside: vec![Beside {
            column: "back".into(),
            vector: vec![900.0, 0.0],
            weight,
        }],
        fusion,
        ..SearchRequest::nearest(vec![60.0, 0.0], 3)
    };
    let reply = engine
        .search("d", &together(1.0, Fusion::ReciprocalRank))
        .expect("a good request");
    // Each side's best, of rank 1 there and about rank 80 on the other side; then those between, which are alike on both.
    let best = ids(&reply);
    assert!(best.contains(&60) && best.contains(&100), "{best:?}");
    let heavy = engine
        .search("d", &together(9.0, Fusion::Weighted))
        .expect("a good request");
    assert_eq!(ids(&heavy)[0], 100);
    let scores: HashMap<i64, f32> = ids(&heavy)
        .into_iter()
        .zip(heavy.scores().iter().copied())
        .collect();
    assert!(scores[&100] > 8.0, "{scores:?}");
    let distances = heavy.batch.column_by_name("distance").expect("a column");
    assert!(
        distances
            .as_primitive::<Float32Type>()
            .iter()
            .all(|one| one.is_none_or(|one| one >= 0.0))
    );
    assert_eq!(
        code(&engine, &together(-1.0, Fusion::Weighted)).0,
        "bad_value"
    );
    // A distance is from the first vector: what the other column finds is near by that, however far by its own.
    let mut within = together(9.0, Fusion::ReciprocalRank);
    within.beside[0].vector[0] = 2_000.0;
    within.max_distance = Some(45.0);
    let reply = engine.search("d", &within).expect("a good request");
    assert_eq!(ids(&reply), [15, 16, 17]);
    let mut wrong = together(1.0, Fusion::Weighted);
    wrong.beside[0].vector.pop();
    assert_eq!(code(&engine, &wrong).0, "dimension_mismatch");
}

/// Rank, score and contribution that a search gave each row of a reply.
fn parts(reply: &SearchReply, name: &str) -> Vec<Option<(i32, f32, f32)>> {
    let parts = reply.batch.column_by_name(SCORE_PARTS).expect("a column");
    let of_search = parts.as_struct().column_by_name(name).expect("a search");
    let of_search = of_search.as_struct();
    let ranks = of_search.column(0).as_primitive::<Int32Type>();
    let floats = |at: usize| of_search.column(at).as_primitive::<Float32Type>();
    let part = |row: usize| {
        of_search.is_valid(row).then(|| {
            let rank = ranks.value(row);
            (rank, floats(1).value(row), floats(2).value(row))
        })
    };
    (0..reply.batch.num_rows()).map(part).collect()
}

#[test]
fn a_score_is_told_in_its_parts() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..200);
    let search = |beside: &[(&str, f32)], shape: Shape| {
        let of_column = |(column, weight): &(&str, f32)| Beside {
            column: (*column).into(),
            vector: vec![900.0, 0.0],
            weight: *weight,
        };
        let request = SearchRequest {
            beside: beside.iter().map(of_column).collect(),
            score_parts: true,
            shape,
            ..SearchRequest::nearest(vec![60.0, 0.0], 200)
        };
        engine.search("d", &request).expect("a good request")
    };
    // Two of the searches are of the same column.
    let reply = search(&[("back", 3.0), ("back", 1.0)], Shape::default());
    let names = ["vector", "back", "back_2"].map(|name| parts(&reply, name));
    for (row, (id, score)) in ids(&reply).iter().zip(reply.scores()).enumerate() {
        let [near, far, again] = names.each_ref().map(|parts| parts[row].expect("all found"));
        let distance = |from: i64| (id - from).abs() as f32;
        assert!(
            (near.1 - 1.0 / (1.0 + distance(60))).abs() < 1e-6,
            "{id}: {near:?}"
        );
        assert_eq!((far.0, far.1), (again.0, again.1));
        let closer = (0..200).filter(|other: &i64| (other - 60).abs() < (id - 60).abs());
        let first = closer.count() as i32 + 1;
        assert!((first..=first + 1).contains(&near.0), "{id}: {near:?}");
        assert!((near.2 - 1.0 / (60.0 + near.0 as f32)).abs() < 1e-6);
        assert!((far.2 - 3.0 * again.2).abs() < 1e-6);
        assert!((near.2 + far.2 + again.2 - score).abs() < 1e-6);
    }
    // What one search found alone is its own, before anything was left out.
    let offset = Shape {
        offset: 5,
        ..Shape::default()
    };
    for (shape, first) in [(Shape::default(), 1), (offset, 6)] {
        let reply = search(&[], shape);
        let parts = parts(&reply, "vector");
        for ((part, score), rank) in parts.iter().zip(reply.scores()).zip(first..) {
            assert_eq!(*part, Some((rank, *score, *score)));
        }
    }
    let plain = engine.search("d", &ask(3, Shape::default()));
    let plain = plain.expect("a good request").batch;
    assert!(plain.column_by_name(SCORE_PARTS).is_none());
}

#[test]
fn a_row_that_a_search_did_not_find_has_no_part_of_it() {
    let engine = open(&MemoryDisk::new());
    fill(&engine, 0..500);
    let request = SearchRequest {
        beside: vec![Beside {
            column: "back".into(),
            vector: vec![600.0, 0.0],
            weight: 1.0,
        }],
        score_parts: true,
        ..SearchRequest::nearest(vec![0.0, 0.0], 10)
    };
    let reply = engine.search("d", &request).expect("a good request");
    let (near, far) = (parts(&reply, "vector"), parts(&reply, "back"));
    for (row, id) in ids(&reply).into_iter().enumerate() {
        // Each search gives a hundred rows: those of the smallest ids, and those around 400.
        assert_eq!(
            (near[row].is_some(), far[row].is_some()),
            (id < 100, id > 300),
            "{id}"
        );
    }
}
