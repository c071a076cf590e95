use super::*;
use arrow_schema::{DataType, Field, Schema};

use crate::options::Options;
use crate::schema::DatasetSchema;

fn index(dim: i32) -> ColumnIndex {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let fields = vec![
        Field::new("id", DataType::Int64, true),
        Field::new("v", DataType::FixedSizeList(item, dim), true),
    ];
    let schema = DatasetSchema::new(&Arc::new(Schema::new(fields)), 1).expect("a schema");
    let graphs = Options::new("").graphs;
    let column = &schema.vectors[0];
    ColumnIndex::new(column, IndexKind::Hnsw, &graphs, 0).expect("good parameters")
}

#[test]
fn codes_wait_for_the_rows_that_their_origin_is_taken_from() {
    let index = index(128);
    assert!(index.claim(255).is_none());
    assert_eq!((index.waiting(255), index.waiting(256)), (0, 256));
    assert!(index.claim(256).is_some());
}

#[test]
fn the_watermark_waits_for_the_slowest_job() {
    let index = index(2);
    let (a, a_end, _first) = index.claim(1_000).expect("rows wait");
    let (b, b_end, _second) = index.claim(1_000).expect("rows wait");
    assert_eq!((a, a_end, b, b_end), (0, 64, 64, 128));
    index.finish(b, b_end);
    assert_eq!(index.watermark(), 0);
    index.finish(a, a_end);
    assert_eq!(index.watermark(), 128);
}

#[test]
fn what_a_job_gives_back_is_claimed_again() {
    let index = index(2);
    let (first, _, failing) = index.claim(1_000).expect("rows wait");
    index.finish(first, 10);
    index.give_back(10, 64);
    drop(failing);
    assert_eq!((index.watermark(), index.waiting(1_000)), (10, 990));
    let (first, last, _again) = index.claim(1_000).expect("rows wait");
    assert_eq!((first, last), (10, 64));
    index.finish(first, last);
    assert_eq!(index.watermark(), 64);
    assert_eq!(index.claim(1_000).map(|(first, ..)| first), Some(64));
}

#[test]
fn nothing_is_claimed_beyond_the_end_or_while_held_still() {
    let index = index(2);
    assert!(index.claim(0).is_none());
    let still = index.hold_still();
    assert!(index.claim(10).is_none());
    drop(still);
    assert_eq!(
        index.claim(10).map(|(first, last, _)| (first, last)),
        Some((0, 10))
    );
}
