//! Requests by their grammars, mostly good ones with something odd in them.

use std::sync::LazyLock;

use datafusion::execution::session_state::SessionStateBuilder;
use serde_json::{Map, Value, json};

use crate::mutate::any_number;
use crate::random::{Random, mix};
use crate::typed;

const COLUMNS: [&str; 14] = [
    "id",
    "vector",
    "other",
    "n",
    "x",
    "word",
    "kind",
    "good",
    "at",
    "list",
    "a.b",
    "a['b']",
    "\"Big Name\"",
    "wrd",
];

const OPERATORS: [&str; 24] = [
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "AND",
    "OR",
    "~",
    "!~*",
    "LIKE",
    "ILIKE",
    "SIMILAR TO",
    "IS DISTINCT FROM",
    "&",
    "<<",
    "@>",
    "BETWEEN 1 AND",
];

const TYPES: [&str; 12] = [
    "INT",
    "BIGINT",
    "DOUBLE",
    "TEXT",
    "DATE",
    "TIMESTAMP",
    "INTERVAL",
    "DECIMAL(38, 10)",
    "BOOLEAN",
    "BYTEA",
    "INT[]",
    "DECIMAL(99, 99)",
];

/// Literals of texts that are more than texts to somebody.
pub const TEXTS: [&str; 15] = [
    "''",
    "'a'",
    "'apple'",
    "'%e'",
    "'('",
    "'(a{1000}){1000}'",
    "'^(a+)+$'",
    "'2023-11-20'",
    "'1 day'",
    "'{}'",
    "'g'",
    "'\\'",
    "'grün'",
    "'\u{202e}'",
    "'%_%_%_%'",
];

/// Names of all scalar functions that statements may call.
static FUNCTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let state = SessionStateBuilder::new().with_default_features().build();
    let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
    names.extend(["distance", "l2_distance", "cosine_distance"].map(str::to_owned));
    names.sort();
    names
});

/// Those that make much of little, which a random choice would seldom meet.
const GREEDY: [&str; 10] = [
    "repeat",
    "lpad",
    "rpad",
    "range",
    "generate_series",
    "array_repeat",
    "array_resize",
    "replace",
    "regexp_replace",
    "concat",
];

/// An expression of SQL: one whose types fit, or, less often, of anything.
fn expression(random: &mut Random, depth: u64) -> String {
    match random.below(4) {
        0 => anything(random, depth),
        1 => typed::number(random, depth),
        2 => typed::text(random, depth),
        _ => typed::condition(random, depth),
    }
}

/// An expression of any parts.
fn anything(random: &mut Random, depth: u64) -> String {
    let part = |random: &mut Random| anything(random, depth.saturating_sub(1));
    if depth == 0 {
        return match random.below(5) {
            0 | 1 => (*random.pick(&COLUMNS)).to_owned(),
            2 => any_number(random),
            3 => (*random.pick(&TEXTS)).to_owned(),
            _ => (*random.pick(&[
                "NULL",
                "true",
                "interval '1 day'",
                "[1, 2, 3]",
                "$1",
                "?",
                "x'ff'",
            ]))
            .to_owned(),
        };
    }
    match random.below(12) {
        0..4 => {
            let operator = *random.pick(&OPERATORS);
            format!("{} {operator} {}", part(random), part(random))
        }
        4..7 => {
            let name = match random.once_in(4) {
                true => (*random.pick(&GREEDY)).to_owned(),
                false => random.pick(&FUNCTIONS).clone(),
            };
            let count = random.below(4);
            let arguments: Vec<String> = (0..count).map(|_| part(random)).collect();
            format!("{name}({})", arguments.join(", "))
        }
        7 => format!("({})", part(random)),
        8 => format!("NOT {}", part(random)),
        9 => format!("CAST({} AS {})", part(random), random.pick(&TYPES)),
        10 => format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            part(random),
            part(random),
            part(random)
        ),
        _ => format!("{} IN ({}, {})", part(random), part(random), part(random)),
    }
}

/// A condition of a `where`.
pub fn predicate(random: &mut Random) -> String {
    let depth = 1 + random.below(4);
    if !random.once_in(4) {
        return typed::condition(random, depth);
    }
    let left = expression(random, depth);
    match random.below(4) {
        0 => left,
        1 => format!("{left} IS NOT NULL"),
        2 => format!("{left} = {}", expression(random, depth - 1)),
        _ => format!("id < {} OR {left}", any_number(random)),
    }
}

/// A statement.
pub fn statement(random: &mut Random) -> String {
    let depth = 1 + random.below(3);
    let one = expression(random, depth);
    let other = typed::condition(random, 1);
    let vector = "[1.0, 0.5]";
    match random.below(14) {
        0 => format!("SELECT {one}, {other} FROM docs"),
        1 => format!(
            "SELECT {one} FROM docs WHERE {} LIMIT {}",
            predicate(random),
            any_number(random)
        ),
        2 => format!("SELECT kind, count(*), sum({one}) FROM docs GROUP BY kind HAVING {other}"),
        3 => format!("SELECT id FROM docs ORDER BY distance(vector, {vector}), {one} LIMIT 3"),
        4 => format!(
            "SELECT * FROM docs WHERE {} ORDER BY distance(vector, {vector}) LIMIT {}",
            predicate(random),
            any_number(random)
        ),
        5 => format!(
            "SELECT * FROM vector_search('docs', {vector}, k => {}, \"where\" => 'id > 3') WHERE {other}",
            any_number(random)
        ),
        6 => format!("SELECT {one} FROM docs a JOIN docs b ON a.id = b.id + {other}"),
        7 => format!(
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE {other}) SELECT * FROM t"
        ),
        8 => format!(
            "DELETE FROM docs WHERE {} AND id > {}",
            predicate(random),
            any_number(random)
        ),
        9 => format!("INSERT INTO docs (id, vector, other) VALUES ({one}, {vector}, [1, 2, 3])"),
        10 => format!("EXPLAIN SELECT {one} FROM docs"),
        11 => format!("SELECT {one} OVER (PARTITION BY kind ORDER BY {other}) FROM docs"),
        12 => format!(
            "SELECT * FROM generate_series({}, {}) AS t(v) WHERE v = {other}",
            any_number(random),
            any_number(random)
        ),
        _ => format!(
            "SELECT array_agg({one}), string_agg(word, {other}) FROM docs, longbow.config UNION SELECT 1, 2"
        ),
    }
}

/// A query of words.
pub fn words(random: &mut Random) -> String {
    const PARTS: [&str; 26] = [
        "apple",
        "zebra",
        "gr*",
        "*",
        "a?e",
        "\"apple pie\"",
        "\"a b\"~3",
        "+",
        "-",
        "NOT",
        "AND",
        "OR",
        "(",
        ")",
        "~1",
        "~2",
        "apple~",
        "word:",
        "\"",
        "grün",
        "naïve",
        "\u{0}",
        "😀",
        "^2",
        "[a TO b]",
        "/a+/",
    ];
    let count = 1 + random.below(*random.clone().pick(&[3, 12, 700]));
    let parts: Vec<&str> = (0..count).map(|_| *random.pick(&PARTS)).collect();
    parts.join(*random.clone().pick(&[" ", " ", ""]))
}

/// A value of a request, often of a type that does not suit.
fn value(random: &mut Random, good: Value) -> Value {
    if !random.once_in(20) {
        return good;
    }
    match random.below(10) {
        0 => Value::Null,
        1 => json!(-1),
        2 => json!(u64::MAX),
        3 => json!(1e308),
        4 => json!(""),
        5 => json!([]),
        6 => json!({"a": 1}),
        7 => json!("x".repeat(random.below(5_000) as usize)),
        8 => json!(true),
        _ => json!(vec![0.5; random.below(3_000) as usize]),
    }
}

/// A filter object.
fn filter(random: &mut Random, depth: usize) -> Value {
    if depth > 0 && random.once_in(3) {
        let parts: Vec<Value> = (0..random.below(4))
            .map(|_| filter(random, depth - 1))
            .collect();
        let logic = *random.pick(&["AND", "or", "NOT", "XOR", ""]);
        return json!({"logic": logic, "filters": value(random, parts.into())});
    }
    let operator = *random.pick(&[
        "=", "!=", "<", ">", "<=", ">=", "in", "not_in", "like", "contains", "is_null", "not_null",
        "~",
    ]);
    let good = match random.below(4) {
        0 => json!(random.below(20)),
        1 => json!("apple"),
        2 => json!(random.share()),
        _ => json!([random.below(20), "apple", 5]),
    };
    json!({"field": random.pick(&COLUMNS), "operator": operator, "value": value(random, good)})
}

/// A key of a search with a value that may suit.
fn of_search(random: &mut Random) -> (&'static str, Value) {
    let vector = |random: &mut Random| json!([random.share() * 10.0, random.share()]);
    match random.below(31) {
        0 | 1 => ("vector", vector(random)),
        2 => ("vectors", json!([vector(random), vector(random)])),
        3 => ("ids", json!([random.below(320), random.below(320)])),
        4 => ("negative_ids", json!([random.below(320)])),
        5 => (
            "beside",
            json!([{"column": "other", "vector": [1, 2, 3], "weight": random.share()}]),
        ),
        6 => ("column", json!(random.pick(&COLUMNS))),
        7 | 8 => ("k", json!(random.below(40))),
        9 => ("offset", json!(random.below(400))),
        10 => ("cursor", json!(cursor(random))),
        11 => ("group_by", json!(random.pick(&COLUMNS))),
        12 => ("group_size", json!(random.below(5))),
        13 => ("mmr", json!(random.share())),
        14 | 15 => ("filters", json!([filter(random, 3)])),
        16 | 17 => ("where", json!(predicate(random))),
        18 | 19 => ("text_query", json!(words(random))),
        20 => ("text_columns", json!([random.pick(&COLUMNS)])),
        21 => ("alpha", json!(random.share())),
        22 => (
            "fusion",
            json!(random.pick(&["rrf", "weighted", "relative_score", "x"])),
        ),
        23 => ("ef", json!(random.below(1_000))),
        24 => ("recall_target", json!(random.share())),
        25 => ("max_distance", json!(random.share() * 100.0)),
        26 => (
            "columns",
            json!([random.pick(&COLUMNS), random.pick(&COLUMNS)]),
        ),
        27 => ("include_vectors", json!(random.once_in(2))),
        28 => ("score_parts", json!(random.once_in(2))),
        29 => ("budget_ms", json!(random.below(3))),
        _ => ("explain", json!(random.once_in(2))),
    }
}

/// What a search asks for.
pub fn search(random: &mut Random) -> Value {
    let mut object = Map::new();
    object.insert("dataset".into(), value(random, json!("docs")));
    object.insert("vector".into(), json!([1.0, 2.0]));
    for _ in 0..random.below(6) {
        let (key, good) = of_search(random);
        object.insert(key.into(), value(random, good));
    }
    if random.once_in(3) {
        object.remove("vector");
    }
    object.into()
}

/// A ticket.
pub fn ticket(random: &mut Random) -> Value {
    if random.once_in(2) {
        return json!({"search": search(random)});
    }
    let mut object = Map::new();
    object.insert("name".into(), value(random, json!("docs")));
    for _ in 0..random.below(4) {
        let (key, good) = match random.below(5) {
            0 => ("limit", json!(random.below(50))),
            1 => ("offset", json!(random.below(400))),
            2 => ("columns", json!([random.pick(&COLUMNS), "id"])),
            3 => ("filters", json!([filter(random, 3)])),
            _ => ("where", json!(predicate(random))),
        };
        object.insert(key.into(), value(random, good));
    }
    object.into()
}

/// The body of an action.
pub fn action(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({"dataset": "docs", "id": value(random, json!(random.clone().below(320)))}),
        1 => {
            json!({"dataset": "docs", "ids": value(random, json!([random.clone().below(320), 7]))})
        }
        2 => json!({"dataset": "docs", "filters": [filter(random, 2)]}),
        3 => json!({"dataset": "docs", "where": predicate(random)}),
        4 => json!({"name": value(random, json!("team"))}),
        _ => {
            json!({"dataset": value(random, json!("docs")), "id": 5, "k": value(random, json!(3))})
        }
    }
}

/// What may stand for a place in an answer.
pub fn cursor(random: &mut Random) -> String {
    match random.below(4) {
        0 => String::new(),
        1 => format!(
            "{:08x}-{:08x}-{:016x}",
            random.next() as u32,
            f32::NAN.to_bits(),
            random.next()
        ),
        2 => format!(
            "{:08x}-{:08x}-{:016x}",
            random.below(9),
            random.next() as u32,
            random.below(400)
        ),
        _ => format!(
            "{:08x}-{:08x}-{:016x}",
            u32::MAX,
            mix(random.next()) as u32,
            u64::MAX
        ),
    }
}

/// Rows as JSON.
pub fn rows(random: &mut Random) -> Value {
    let row = |random: &mut Random| {
        let mut row = Map::new();
        row.insert("id".into(), value(random, json!(random.clone().below(50))));
        row.insert(
            "vector".into(),
            value(random, json!([0.5, random.clone().share()])),
        );
        row.insert("other".into(), value(random, json!([1, 2, 3])));
        for (name, good) in [
            ("word", json!("x")),
            ("n", json!(7)),
            ("list", json!([1, 2])),
        ] {
            if random.once_in(2) {
                row.insert(name.into(), value(random, good));
            }
        }
        Value::Object(row)
    };
    let count = random.below(6);
    (0..count).map(|_| row(random)).collect()
}
