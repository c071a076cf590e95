//! Filters on a real engine: what passes, and what is refused in which words.

mod sorted;
#[path = "../common/table.rs"]
mod table;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options, Piece};
use longbow_query::{Refusal, Ticket};
use serde_json::json;

use crate::table::table;

/// Ten rows; of row 7 all but the id and the vector is null.
fn ten() -> RecordBatch {
    table(10, &[("vector", 2)])
}

fn engine() -> Engine {
    let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"));
    let engine = engine.expect("an engine");
    let batch = ten();
    let mut put = engine.put("d", &batch.schema()).expect("a put");
    put.record_batch(&batch)
        .and_then(|put| put.wait())
        .expect("acknowledged");
    engine
}

/// Ids of the rows that a request for all rows gives, and of those that a search gives, in order of the ids.
fn passing(engine: &Engine, body: serde_json::Value) -> Result<Vec<i64>, Refusal> {
    let mut scan = body.clone();
    scan["name"] = "d".into();
    let Ticket::Scan { dataset, request } = Ticket::parse(scan.to_string().as_bytes())? else {
        panic!("a scan");
    };
    let mut batches = Vec::new();
    for pieces in engine.scan(&dataset, &request)? {
        for piece in pieces? {
            match piece {
                Piece::Slice(batch) | Piece::Picked(batch) => batches.push(batch),
                Piece::Kept { .. } => batches.push(ten()),
            }
        }
    }
    let ids = |batch: &RecordBatch| {
        let ids = batch.column_by_name("id").expect("a column");
        ids.as_primitive::<Int64Type>().values().to_vec()
    };
    let scanned: Vec<i64> = batches.iter().flat_map(ids).collect();
    let mut search = body;
    search["dataset"] = "d".into();
    search["vector"] = json!([0, 0]);
    let search = json!({"search": search}).to_string();
    let Ticket::Search { dataset, request } = Ticket::parse(search.as_bytes())? else {
        panic!("a search");
    };
    for _ in 0..2 {
        // The second time it is remembered.
        let found = engine.search(&dataset, &request)?;
        assert_eq!(
            ids(&found.batch),
            scanned,
            "a search finds what a scan gives"
        );
    }
    Ok(scanned)
}

fn check(engine: &Engine, filters: serde_json::Value, expected: &[i64]) {
    let got = passing(engine, json!({"filters": filters}));
    assert_eq!(got.as_deref(), Ok(expected), "{filters}");
}

fn check_where(engine: &Engine, predicate: &str, expected: &[i64]) {
    let got = passing(engine, json!({"where": predicate}));
    assert_eq!(got.as_deref(), Ok(expected), "{predicate}");
}

#[test]
fn every_operator_in_every_spelling() {
    let engine = engine();
    let one = |field: &str, operator: &str, value: serde_json::Value| json!([{"field": field, "op": operator, "value": value}]);
    for (spellings, expected) in [
        (&["=", "==", "eq", "EQ"][..], &[4][..]),
        (&["!=", "<>", "ne", "neq"], &[0, 1, 2, 3, 5, 6, 8, 9]),
        (&[">", "gt", "GT"], &[5, 6, 8, 9]),
        (&[">=", "ge", "gte"], &[4, 5, 6, 8, 9]),
        (&["<", "lt"], &[0, 1, 2, 3]),
        (&["<=", "le", "lte"], &[0, 1, 2, 3, 4]),
    ] {
        for spelling in spellings {
            // As a number, and as a text that is cast.
            check(&engine, one("n", spelling, json!(-1)), expected);
            check(&engine, one("n", spelling, json!("-1")), expected);
        }
    }
    check(&engine, one("id", "in", json!([3, "5", 77])), &[3, 5]);
    check(
        &engine,
        one("id", "not_in", json!([0, 1, 2, 3, 4, 5, 6])),
        &[7, 8, 9],
    );
    check(&engine, one("n", "in", json!([])), &[]);
    check(
        &engine,
        one("n", "Not_In", json!([])),
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    check(&engine, one("word", "contains", json!("pp")), &[0, 1]);
    check(&engine, one("word", "contains", json!("%")), &[2]);
    check(&engine, one("word", "like", json!("%e")), &[0, 1, 2, 6]);
    check(&engine, one("word", "like", json!("a_b")), &[3]);
    check(&engine, one("kind", "like", json!("ev%")), &[0, 2, 4, 6, 8]);
    check(&engine, one("list", "contains", json!(6)), &[8, 9]);
    check(&engine, one("word", "is_null", json!(null)), &[7]);
    check(
        &engine,
        json!([{"field": "vector", "operator": "not_null"}]),
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    check(&engine, one("kind", "=", json!("odd")), &[1, 3, 5, 9]);
    check(&engine, one("good", "=", json!(true)), &[0, 1, 2]);
    check(
        &engine,
        one("at", ">=", json!("2023-11-20T00:00:00")),
        &[6, 8, 9],
    );
    check(
        &engine,
        one("at", "<", json!(1_700_000_000_000i64 + 2 * 86_400_000)),
        &[0, 1],
    );
    check(&engine, one("a.b", ">", json!(60)), &[8, 9]);
    check(&engine, one("Big Name", "<", json!(2)), &[0, 1]);
}

#[test]
fn filters_nest() {
    let engine = engine();
    let is = |field: &str, value: i64| json!({"field": field, "operator": "=", "value": value});
    check(
        &engine,
        json!([{"logic": "OR", "filters": [is("id", 1), is("id", 4)]}]),
        &[1, 4],
    );
    check(
        &engine,
        json!([{"logic": "not", "filters": [{"logic": "OR", "filters": [is("id", 1), is("n", 0)]}]}]),
        &[0, 2, 3, 4, 6, 8, 9],
    );
    check(
        &engine,
        json!([{"field": "n", "op": ">", "value": 0, "logic": "NOT"}]),
        &[0, 1, 2, 3, 4, 5],
    );
    check(
        &engine,
        json!([{"filters": [is("id", 1), is("n", -4)]}, is("id", 1)]),
        &[1],
    );
    check(&engine, json!([{"logic": "OR", "filters": []}]), &[]);
    let many: Vec<_> = (0..900).map(|id| is("id", id * 3)).collect();
    check(
        &engine,
        json!([{"logic": "OR", "filters": many}]),
        &[0, 3, 6, 9],
    );
    let both = json!({"filters": [{"field": "id", "op": ">", "value": 3}], "where": "id < 6"});
    assert_eq!(passing(&engine, both).as_deref(), Ok(&[4, 5][..]));
}

#[test]
fn predicates_are_sql() {
    let engine = engine();
    for (predicate, expected) in [
        ("id < 3 OR id = 9", &[0, 1, 2, 9][..]),
        ("NOT (n > 0) AND id BETWEEN 2 AND 5", &[2, 3, 4, 5]),
        ("word LIKE '%e' AND word NOT LIKE 'App%'", &[0, 2, 6]),
        ("word ILIKE 'APPLE%'", &[0, 1]),
        ("word = 'x''y'", &[8]),
        ("word ~ '^[a-z]+$'", &[0, 9]),
        ("word IS NULL", &[7]),
        (
            "upper(word) = 'APPLE' OR character_length(word) = 0",
            &[0, 4],
        ),
        ("x * 4 = id AND id % 2 = 1", &[1, 3, 5, 9]),
        ("abs(n) = 2", &[3]),
        ("at >= '2023-11-20' AND at < timestamp '2023-11-22'", &[6]),
        ("date_part('day', at) = 14", &[0]),
        ("array_has(list, 6)", &[8, 9]),
        ("cardinality(list) = 3", &[3]),
        ("a['b'] = 20 OR a.b = 30", &[2, 3]),
        ("\"Big Name\" = 5", &[5]),
        ("kind IN ('odd') AND good", &[1]),
        ("coalesce(n, 100) = 100", &[7]),
        ("CASE WHEN n <> 0 THEN 10 / n ELSE 0 END = 10", &[6]),
        ("substr(word, 1, 1) = 'a' AND nullif(n, 0) < 0", &[0, 3]),
        ("true", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("1 = 2", &[]),
        ("at < now()", &[0, 1, 2, 3, 4, 5, 6, 8, 9]),
    ] {
        check_where(&engine, predicate, expected);
    }
}

/// A predicate, the code of its refusal, and a word of the text.
const WRONG_PREDICATES: &[(&str, &str, &str)] = &[
    ("price > 3", "column_not_found", "no column 'price'"),
    ("wrd = 'a'", "column_not_found", "did you mean 'word'"),
    ("id >", "bad_sql", "is not SQL"),
    ("id = 1; DROP TABLE d", "bad_sql", "is not SQL"),
    ("", "bad_sql", "is not SQL"),
    ("id + 1", "not_boolean", "Int64"),
    ("NULL", "not_boolean", "Null"),
    ("count(*) > 1", "bad_predicate", "an aggregate"),
    ("id IN (SELECT 1)", "bad_predicate", "query"),
    ("row_number() OVER () = 1", "bad_predicate", "window"),
    ("id = $1", "bad_predicate", "a parameter"),
    ("nofunction(id) = 1", "bad_predicate", "nofunction"),
    ("id / 0 = 1", "division_by_zero", "guard"),
    ("10 / n > 1", "division_by_zero", "NULLIF"),
    ("word ~ '('", "bad_predicate", "regex"),
    ("vector = 1", "bad_predicate", "FixedSizeList"),
    (
        "word = repeat('x', 2000000000)",
        "predicate_failed",
        "would make",
    ),
    (
        "cardinality(range(n, 1000000000)) > 3",
        "predicate_failed",
        "would make",
    ),
];

/// A filter, the code of its refusal, and a word of the text.
const WRONG_FILTERS: &[(&str, &str, &str)] = &[
    (
        r#"{"field": "wrd", "op": "=", "value": 1}"#,
        "column_not_found",
        "did you mean 'word'",
    ),
    (
        r#"{"field": "a.c", "op": "=", "value": 1}"#,
        "column_not_found",
        "a.c",
    ),
    (
        r#"{"field": "n", "op": "=", "value": "x"}"#,
        "filter_value",
        "'x'",
    ),
    (
        r#"{"field": "n", "op": "<", "value": 1000}"#,
        "filter_value",
        "1000",
    ),
    (
        r#"{"field": "n", "op": "<", "value": 2.5}"#,
        "filter_value",
        "2.5",
    ),
    (
        r#"{"field": "n", "op": "=", "value": null}"#,
        "filter_value",
        "is_null",
    ),
    (
        r#"{"field": "n", "op": "=", "value": [1]}"#,
        "filter_value",
        "[1]",
    ),
    (
        r#"{"field": "n", "op": "in", "value": 1}"#,
        "filter_value",
        "list",
    ),
    (
        r#"{"field": "n", "op": "in", "value": [1, "x"]}"#,
        "filter_value",
        "'x'",
    ),
    (
        r#"{"field": "good", "op": "=", "value": "maybe"}"#,
        "filter_value",
        "maybe",
    ),
    (
        r#"{"field": "at", "op": "=", "value": "noon"}"#,
        "filter_value",
        "noon",
    ),
    (
        r#"{"field": "vector", "op": "=", "value": 1}"#,
        "filter_value",
        "1",
    ),
    (
        r#"{"field": "n", "op": "like", "value": "1"}"#,
        "filter_operator",
        "Int8",
    ),
    (
        r#"{"field": "n", "op": "contains", "value": "1"}"#,
        "filter_operator",
        "Int8",
    ),
    (
        r#"{"field": "n", "op": "~", "value": "1"}"#,
        "unknown_operator",
        "is_null",
    ),
    (r#"{"field": "n", "value": "1"}"#, "bad_filter", "operator"),
    (r#"{"op": "=", "value": "1"}"#, "bad_filter", "field"),
    (
        r#"{"field": "n", "op": "=", "value": 1, "logic": "XOR"}"#,
        "bad_filter",
        "XOR",
    ),
    (
        r#"{"field": "n", "op": "=", "value": 1, "logic": "OR"}"#,
        "bad_filter",
        "group",
    ),
    (
        r#"{"field": "n", "op": "=", "value": 1, "filters": []}"#,
        "bad_filter",
        "beside",
    ),
    (
        r#"{"feld": "n", "op": "=", "value": 1}"#,
        "unknown_key",
        "field",
    ),
    ("3", "bad_json", "object"),
];

fn check_refused(engine: &Engine, body: serde_json::Value, code: &str, words: &str) {
    let shown: String = body.to_string().chars().take(90).collect();
    let refused = passing(engine, body).expect_err(&shown);
    assert_eq!(refused.code, code, "{shown}: {refused}");
    let text = refused.text.to_lowercase();
    assert!(text.contains(&words.to_lowercase()), "{shown}: {refused}");
}

#[test]
fn what_is_wrong_is_said() {
    let engine = engine();
    for (predicate, code, words) in WRONG_PREDICATES {
        check_refused(&engine, json!({"where": predicate}), code, words);
    }
    for (filter, code, words) in WRONG_FILTERS {
        let filter: serde_json::Value = serde_json::from_str(filter).expect("JSON");
        check_refused(&engine, json!({"filters": [filter]}), code, words);
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let engine = engine();
    let long = format!("id IN ({})", "1,".repeat(600_000));
    check_refused(
        &engine,
        json!({"where": long}),
        "predicate_too_large",
        "bytes",
    );
    let deep = format!("{}id = 1{}", "(".repeat(400), ")".repeat(400));
    check_refused(
        &engine,
        json!({"where": deep}),
        "predicate_too_large",
        "nests",
    );
    let chain = vec!["id = 1"; 2_000].join(" OR ");
    check_refused(
        &engine,
        json!({"where": chain}),
        "predicate_too_large",
        "operators",
    );
    let many = vec![json!({"field": "n", "op": "=", "value": 1}); 1_001];
    check_refused(
        &engine,
        json!({"filters": many}),
        "too_many_filters",
        "1000",
    );
}
