//! Rows that are found by the order of a column are those that comparing all of them finds.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampSecondArray,
};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Id, Options, Piece};
use longbow_query::Ticket;
use serde_json::json;

/// More than one block of rows.
const ROWS: i64 = 70_000;
/// Filters of a shape after which a segment of two blocks is sorted.
const UNTIL_SORTED: i64 = 6;

fn mix(number: i64) -> i64 {
    let mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20) as i64
}

/// The rows of these ids in a version: tenants, prices and names at random, some of them null, or no number.
fn rows(ids: std::ops::Range<i64>, version: i64) -> RecordBatch {
    let some = |salt: i64| {
        let number = move |id: i64| mix(id * 7 + salt + version * 1_000_003);
        let number = move |id| Some(number(id)).filter(|number| number % 11 != 0);
        ids.clone().map(number)
    };
    let tenants: Int64Array = some(1).map(|n| Some(n? % 1_000)).collect();
    let price = |n: i64| match n % 97 {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        _ => (n % 100_000) as f64 / 1_000.0,
    };
    let prices: Float64Array = some(2).map(|n| n.map(price)).collect();
    let names: StringArray = some(3)
        .map(|n| Some(format!("user-{}", n? % 1_000)))
        .collect();
    let at: TimestampSecondArray = some(4).map(|n| Some(n? % 1_000_000)).collect();
    let vector = |id| Some([Some(id as f32), Some(0.0)]);
    let vectors =
        FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(ids.clone().map(vector), 2);
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
        ("vector", Arc::new(vectors)),
        ("tenant", Arc::new(tenants)),
        ("price", Arc::new(prices)),
        ("name", Arc::new(names)),
        ("at", Arc::new(at)),
    ];
    let columns = columns.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("a batch")
}

fn put(engine: &Engine, ids: std::ops::Range<i64>, version: i64) {
    let mut put = engine.put("d", &rows(0..1, 0).schema()).expect("a put");
    for first in ids.clone().step_by(9_000) {
        let batch = rows(first..ids.end.min(first + 9_000), version);
        let pending = put.record_batch(&batch).expect("good rows");
        pending.wait().expect("acknowledged");
    }
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    let ids = batch.column_by_name("id").expect("a column");
    ids.as_primitive::<Int64Type>().values().to_vec()
}

/// Ids of the rows that pass by a scan, which compares all.
fn scanned(engine: &Engine, predicate: &str) -> Vec<i64> {
    let scan = json!({"name": "d", "where": predicate, "columns": ["id"]});
    let Ok(Ticket::Scan { dataset, request }) = Ticket::parse(scan.to_string().as_bytes()) else {
        panic!("a scan");
    };
    let mut all = Vec::new();
    for pieces in engine.scan(&dataset, &request).expect(predicate) {
        for piece in pieces.expect(predicate) {
            let (Piece::Slice(batch) | Piece::Picked(batch)) = piece else {
                panic!("of all columns one was asked for");
            };
            all.extend(ids(&batch));
        }
    }
    all.sort_unstable();
    all
}

/// Checks what a search finds by a predicate, and says for how many rows it was evaluated.
fn check(engine: &Engine, predicate: &str) -> u64 {
    let search =
        json!({"dataset": "d", "vector": [0, 0], "k": 10_000, "where": predicate, "explain": true});
    let search = json!({"search": search}).to_string();
    let Ok(Ticket::Search { dataset, request }) = Ticket::parse(search.as_bytes()) else {
        panic!("a search");
    };
    let reply = engine.search(&dataset, &request).expect(predicate);
    let mut found = ids(&reply.batch);
    found.sort_unstable();
    assert!(found == scanned(engine, predicate), "{predicate}");
    let explained = reply.info.explain.and_then(|explain| explain.filter);
    explained.expect("it was asked for").rows_evaluated
}

/// Predicates of one shape each, by a number; none lets more than one row in sixteen pass.
const SHAPES: [fn(i64) -> String; 9] = [
    |n| format!("tenant = {n}"),
    |n| format!("tenant IN ({n}, {}, {})", n + 400, n + 900),
    |n| format!("price > {n} AND price <= {n}.5"),
    |n| format!("price = 0 AND tenant > {n}"),
    |n| format!("price >= {}", 95 + n),
    |n| format!("name = 'user-{n}' OR name LIKE 'user-7{n}%'"),
    |n| format!("tenant < {} AND name <> 'user-3'", n + 1),
    |n| format!("at BETWEEN to_timestamp_seconds({n}) AND to_timestamp_seconds({n} + 30000)"),
    |n| format!("tenant = {n} AND price % 2 < 1"),
];

/// Asks in all shapes, `times` each, and then says for how many rows each was evaluated at last.
fn ask(engine: &Engine, from: i64, times: i64) -> Vec<u64> {
    let last = |shape: &fn(i64) -> String| {
        let evaluated = (from..from + times).map(|n| check(engine, &shape(n)));
        let evaluated: Vec<u64> = evaluated.collect();
        evaluated[evaluated.len() - 1]
    };
    SHAPES.iter().map(last).collect()
}

#[test]
fn rows_are_found_by_the_order_of_a_column() {
    let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"));
    let engine = engine.expect("an engine");
    put(&engine, 0..ROWS, 0);
    let all = ROWS as u64;
    // Rows that are not sealed are compared.
    assert_eq!(ask(&engine, 20, UNTIL_SORTED + 1), vec![all; SHAPES.len()]);
    engine.checkpoint().expect("a sound disk");
    assert!(
        ask(&engine, 0, UNTIL_SORTED + 1)
            .iter()
            .all(|evaluated| *evaluated < all / 10)
    );
    // Dead rows are not named, those that came since are compared.
    put(&engine, 30_000..31_000, 1);
    let dead = engine.delete_ids("d", (60_000..61_000).map(Id::Int).collect());
    dead.and_then(|dead| dead.wait()).expect("known ids");
    assert!(
        ask(&engine, 10, 2)
            .iter()
            .all(|evaluated| *evaluated < all / 10)
    );
    // What is remembered is right, too: those with the numbers of before.
    assert!(ask(&engine, 10, 2).iter().all(|evaluated| *evaluated == 0));
    // A range of most rows is compared.
    assert_eq!(check(&engine, "price >= 50 AND price < 62"), all + 1_000);
}
