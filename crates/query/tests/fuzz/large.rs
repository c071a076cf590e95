//! Requests that are too large, too deep, too slow, or about what is not there: each has its code, and costs little.

use serde_json::json;

use crate::guard::Begin;
use crate::world::{Way, World};

/// A request, and how it is refused: the code and a word of the text; none if it is answered.
type Case = (
    &'static str,
    Way,
    String,
    Option<(&'static str, &'static str)>,
);

fn list(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    numbers.join(",")
}

fn nested(open: &str, inner: &str, close: &str, levels: usize) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

const LEVELS: usize = 10_000;
const MILLION: usize = 1_000_000;

/// Lists of a million values, and as long as they may be.
fn lists() -> Vec<Case> {
    let filter = |count: usize| {
        let values: Vec<usize> = (0..count).collect();
        let filter = json!({"field": "id", "operator": "in", "value": values});
        json!({"search": {"dataset": "docs", "vector": [1, 2], "filters": [filter]}}).to_string()
    };
    let predicate = |count: usize| format!("id IN ({})", list(count));
    let statement =
        |count: usize| format!("SELECT count(*) FROM docs WHERE id IN ({})", list(count));
    let ones = format!(
        "SELECT count(*) FROM docs WHERE id IN ({}1)",
        "1,".repeat(MILLION)
    );
    let ids = json!({"dataset": "docs", "ids": (0..MILLION).collect::<Vec<_>>()}).to_string();
    vec![
        (
            "a list of a filter",
            Way::Ticket,
            filter(MILLION),
            Some(("filter_value", "100000")),
        ),
        (
            "a long list of a filter",
            Way::Ticket,
            filter(100_000),
            None,
        ),
        (
            "a list of a predicate",
            Way::Where,
            predicate(MILLION),
            Some(("predicate_too_large", "bytes")),
        ),
        (
            "a long list of a predicate",
            Way::Where,
            predicate(150_000),
            None,
        ),
        (
            "a list of a statement",
            Way::Statement,
            statement(MILLION),
            Some(("sql_too_long", "parameters")),
        ),
        (
            "a list of ones of a statement",
            Way::Statement,
            ones,
            Some(("sql_too_long", "values")),
        ),
        (
            "a long list of a statement",
            Way::Statement,
            statement(50_000),
            None,
        ),
        (
            "ids to delete",
            Way::Action("delete"),
            ids.clone(),
            Some(("id_not_found", "nothing was changed")),
        ),
        ("examples", Way::Search, ids, Some(("bad_value", "ids"))),
    ]
}

/// Ten thousand levels of JSON and of words.
fn levels() -> Vec<Case> {
    let comparison = r#"{"field":"id","op":"=","value":1}"#;
    let filters = nested(r#"{"filters":["#, comparison, "]}", LEVELS);
    let vector = nested("[", "1", "]", LEVELS);
    let json = Some(("bad_json", "recursion"));
    let words = Some(("bad_text_query", "512 words"));
    let ticket = format!(r#"{{"name":"docs","filters":[{filters}]}}"#);
    let search = format!(r#"{{"dataset":"docs","vector":{vector}}}"#);
    vec![
        ("filters", Way::Ticket, ticket, json),
        ("a vector", Way::Search, search, json),
        ("rows", Way::Rows, vector, json),
        ("words", Way::Words, nested("(", "a", ")", LEVELS), words),
    ]
}

/// Ten thousand levels of SQL; and fewer of those that a parser reads twice, with a mistake in them.
fn levels_of_sql() -> Vec<Case> {
    let predicates = [
        ("brackets", nested("(", "id = 1", ")", LEVELS)),
        ("negations", nested("NOT ", "good", "", LEVELS)),
        ("signs", format!("{}1 = 1", "- ".repeat(LEVELS))),
        (
            "cases",
            nested("CASE WHEN ", "good", " THEN true END", LEVELS),
        ),
    ];
    // What a parser would read twice a level, so that few levels are refused.
    let doubling = [
        ("open casts", "CAST(".repeat(45)),
        ("open positions", "position(".repeat(45)),
        ("open negations", "NOT (".repeat(45)),
        ("named arguments", "f(a := ".repeat(45)),
        ("names", format!("id{} .)", " .id".repeat(45))),
        ("names of functions", "a.f(".repeat(45)),
        ("cases with signs", "CASE - EXCEPT [".repeat(45)),
    ];
    let sql = Some(("sql_too_deep", "; write it"));
    let both_ways = |(what, predicate): (&'static str, String), part: &'static str| {
        let statement = format!("SELECT * FROM docs WHERE {predicate}");
        let deep = Some(("predicate_too_large", part));
        [
            (what, Way::Where, predicate, deep),
            (what, Way::Statement, statement, sql),
        ]
    };
    let predicates = predicates.into_iter();
    let predicates = predicates.flat_map(|case| both_ways(case, "at most"));
    let doubling = doubling.into_iter();
    let doubling = doubling.flat_map(|case| both_ways(case, "nests"));
    let queries = nested("SELECT * FROM (", "SELECT 1", ")", LEVELS);
    let bracketed = "SELECT * FROM (((".repeat(11) + "SELECT *";
    let patterns = format!(
        "SELECT * FROM docs MATCH_RECOGNIZE(PATTERN {}",
        "(".repeat(300_000)
    );
    let intervals = format!("SELECT {}", "INTERVAL ".repeat(1_900));
    let bad = Some(("bad_sql", ""));
    let queries = [
        ("queries in queries", Way::Statement, queries, sql),
        ("queries in brackets", Way::Statement, bracketed, sql),
        ("patterns", Way::Statement, patterns, bad),
        ("intervals", Way::Statement, intervals, bad),
        ("intervals", Way::Where, "INTERVAL ".repeat(900), bad),
    ];
    predicates.chain(doubling).chain(queries).collect()
}

/// Ten megabytes of everything.
fn texts() -> Vec<Case> {
    let long = "x".repeat(10 << 20);
    let quoted = |before: &str, after: &str| format!("{before}{long}{after}");
    let too_long = Some(("sql_too_long", "LONGBOW_SQL_MAX_LENGTH"));
    vec![
        (
            "a statement",
            Way::Statement,
            quoted("SELECT '", "'"),
            too_long,
        ),
        (
            "a statement to describe",
            Way::Describe,
            quoted("SELECT '", "'"),
            too_long,
        ),
        (
            "a predicate",
            Way::Where,
            quoted("word = '", "'"),
            Some(("predicate_too_large", "bytes")),
        ),
        ("words", Way::Words, long.clone(), None),
        (
            "a cursor",
            Way::Cursor,
            long.clone(),
            Some(("bad_value", "cursor")),
        ),
        (
            "a name",
            Way::Ticket,
            long.clone(),
            Some(("bad_name", "xxx")),
        ),
        (
            "a key",
            Way::Ticket,
            quoted("{\"", "\": 1}"),
            Some(("unknown_key", "did you mean")),
        ),
        (
            "a column",
            Way::Ticket,
            quoted("{\"name\":\"docs\",\"columns\":[\"", "\"]}"),
            Some(("column_not_found", "it has")),
        ),
    ]
}

/// What is not there, does not fit, or never ends: request, code, and a word of the text.
const OTHERS: &[(&str, Way, &str, &str, &str)] = &[
    (
        "a column of a predicate",
        Way::Where,
        "wrd = 1",
        "column_not_found",
        "'word'",
    ),
    (
        "a column of a statement",
        Way::Statement,
        "SELECT wrd FROM docs",
        "unknown_column",
        "wrd",
    ),
    (
        "a column of words",
        Way::Search,
        r#"{"dataset": "docs", "vector": [1, 2], "text_query": "a", "text_columns": ["wrd"]}"#,
        "column_not_found",
        "wrd",
    ),
    (
        "a column to search",
        Way::Search,
        r#"{"dataset": "docs", "vector": [1, 2], "column": "word"}"#,
        "not_a_vector_column",
        "vector, other",
    ),
    (
        "a vector for another column",
        Way::Search,
        r#"{"dataset": "docs", "vector": [1, 2], "column": "other"}"#,
        "dimension_mismatch",
        "other",
    ),
    // Without a name it is 'vector' that is searched, though there are two.
    (
        "a vector for none of two columns",
        Way::Search,
        r#"{"dataset": "docs", "vector": [1, 2, 3]}"#,
        "dimension_mismatch",
        "'vector'",
    ),
    (
        "a type of a predicate",
        Way::Where,
        "good + 1 > at",
        "bad_predicate",
        "Boolean",
    ),
    (
        "a type of a statement",
        Way::Statement,
        "SELECT sum(good) FROM docs",
        "bad_sql",
        "Boolean",
    ),
    (
        "a pattern of a predicate",
        Way::Where,
        "word ~ '('",
        "bad_predicate",
        "regex",
    ),
    (
        "a huge pattern of a predicate",
        Way::Where,
        "word ~ '(a{1000}){1000}'",
        "predicate_failed",
        "did not compile: CompiledTooBig(10485760); change",
    ),
    (
        "a pattern of a statement",
        Way::Statement,
        "SELECT id FROM docs WHERE word ~ '('",
        "bad_value",
        "regex",
    ),
    (
        "a huge pattern of a statement",
        Way::Statement,
        "SELECT regexp_replace(word, '(a{1000}){1000}', '') FROM docs",
        "bad_value",
        "size limit",
    ),
    (
        "a long pattern of each row",
        Way::Where,
        "word !~* repeat(lpad(word, id, word), id)",
        "predicate_failed",
        "may have 4000",
    ),
    (
        "a division by zero in a predicate",
        Way::Where,
        "id / (id - 5) = 1",
        "division_by_zero",
        "NULLIF",
    ),
    (
        "a division by zero in a statement",
        Way::Statement,
        "SELECT id / (id - 5) FROM docs",
        "division_by_zero",
        "NULLIF",
    ),
    (
        "a search without time",
        Way::Search,
        r#"{"dataset": "docs", "vector": [1, 2], "timeout_ms": 0}"#,
        "timeout",
        "timeout_ms",
    ),
    (
        "a statement without end",
        Way::Statement,
        "SELECT count(*) FROM docs a, docs b, docs c, docs d WHERE a.id + b.id + c.id < d.id",
        "timeout",
        "LONGBOW_SQL_TIMEOUT",
    ),
    (
        "a series without end",
        Way::Statement,
        "SELECT count(*) FROM generate_series(1, 9223372036854775806) AS t(v) WHERE v = -1",
        "timeout",
        "LONGBOW_SQL_TIMEOUT",
    ),
    (
        "much of a constant",
        Way::Where,
        "word = repeat('x', 1000000000)",
        "predicate_failed",
        "may make",
    ),
    (
        "much of each row",
        Way::Where,
        "length(repeat(word, 1000000)) > 5",
        "predicate_failed",
        "may make",
    ),
    (
        "much in a statement",
        Way::Statement,
        "SELECT lpad(word, 100000000) FROM docs",
        "bad_value",
        "may make",
    ),
];

/// Many calls, each of which may make what it makes.
fn sums() -> Vec<Case> {
    let calls = |times: usize, between| vec![format!("repeat(word, {times})"); 200].join(between);
    let sums = |times| {
        [
            format!("length({}) > 5", calls(times, " || ")),
            format!("length(concat({})) > 5", calls(times, ", ")),
            format!("cardinality(make_array({})) = 200", calls(times, ", ")),
        ]
    };
    let too_much = Some(("predicate_failed", "may make"));
    let small = sums(20).map(|sum| ("a sum", Way::Where, sum, None));
    let large = sums(20_000).map(|sum| ("a large sum", Way::Where, sum, too_much));
    small.into_iter().chain(large).collect()
}

fn others() -> Vec<Case> {
    let case = |(what, way, request, code, word): &(&'static str, Way, &str, &'static str, _)| {
        (*what, *way, (*request).to_owned(), Some((*code, *word)))
    };
    OTHERS.iter().map(case).collect()
}

/// Makes all of these requests, and says all that is not as it must be.
pub fn check(world: &World) -> Vec<String> {
    let mut complaints = Vec::new();
    for (what, way, request, expected) in [
        lists(),
        levels(),
        levels_of_sql(),
        texts(),
        sums(),
        others(),
    ]
    .concat()
    {
        let before = world.engine.log_indices().0;
        let begin = Begin::now();
        let answer = world.ask(way, request.as_bytes());
        if let Err(cost) = begin.check() {
            complaints.push(format!("{what} ({way:?}) costs {cost}"));
        }
        if world.engine.log_indices().0 != before {
            complaints.push(format!("{what} ({way:?}) wrote something"));
        }
        let told = answer
            .as_ref()
            .err()
            .map(|refusal| (refusal.code, refusal.text.as_str()));
        let good = match (told, expected) {
            (None, None) => true,
            (Some((code, text)), Some((expected, word))) => code == expected && text.contains(word),
            _ => false,
        };
        if !good {
            let told = told.map(|(code, text)| (code, text.chars().take(300).collect::<String>()));
            complaints.push(format!("{what} ({way:?}): {told:?}, expected {expected:?}"));
        }
    }
    complaints
}
