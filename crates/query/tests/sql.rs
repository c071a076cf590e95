//! SQL against an engine in memory.

use std::sync::Arc;

use datafusion::arrow::array::{
    FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Float32Type};
use datafusion::arrow::util::pretty::pretty_format_batches;
use longbow_disk::MemoryDisk;
use longbow_engine::{Class, Engine, Options};
use longbow_query::Refusal;
use longbow_query::sql::{Limits, Session};

fn engine() -> Engine {
    Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data")).expect("an engine")
}

/// `rows` rows, each at `[n, 0]`, of the year 2000 + n.
fn fill(engine: &Engine, dataset: &str, rows: i64) {
    let vectors = (0..rows).map(|n| Some([Some(n as f32), Some(0.0)]));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    let titles = StringArray::from_iter_values((0..rows).map(|n| format!("book {n}")));
    let columns = [
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as _),
        ("vector", Arc::new(vectors) as _),
        ("title", Arc::new(titles) as _),
        (
            "year",
            Arc::new(Int64Array::from_iter_values(2000..2000 + rows)) as _,
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut put = engine.put(dataset, &batch.schema()).expect("a put");
    put.record_batch(&batch)
        .expect("taken")
        .wait()
        .expect("acknowledged");
}

fn session(engine: &Engine, limits: Limits) -> Session {
    Session::new(engine, limits, Vec::new()).expect("a session")
}

fn rows(
    session: &Session,
    text: &str,
    parameters: Option<RecordBatch>,
) -> Result<Vec<RecordBatch>, Refusal> {
    let mut answer = session.run_blocking(text, parameters)?;
    let mut batches = vec![RecordBatch::new_empty(Arc::clone(answer.schema()))];
    while let Some(batch) = answer.next_blocking() {
        batches.push(batch?);
    }
    Ok(batches)
}

fn told(session: &Session, text: &str) -> String {
    let batches = rows(session, text, None).unwrap_or_else(|error| panic!("{text}: {error}"));
    pretty_format_batches(&batches)
        .expect("a table")
        .to_string()
}

fn refused(session: &Session, text: &str) -> Refusal {
    match rows(session, text, None) {
        Ok(_) => panic!("{text} is no good"),
        Err(refusal) => refusal,
    }
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn a_dataset_made_after_the_session_is_a_table() {
    let engine = engine();
    let session = session(&engine, Limits::default());
    assert_eq!(
        refused(&session, "SELECT * FROM docs").code,
        "unknown_table"
    );
    fill(&engine, "docs", 3);
    assert!(told(&session, "SELECT title FROM docs WHERE id = 2").contains("book 2"));
    fill(&engine, "Team/Docs", 3);
    assert!(told(&session, "SELECT count(*) AS n FROM \"Team/Docs\"").contains("| 3 |"));
}

#[test]
fn the_nearest_rows_come_from_the_index_and_are_those_of_a_scan() {
    let engine = engine();
    fill(&engine, "docs", 1_000);
    let session = session(&engine, Limits::default());
    for text in [
        "SELECT id FROM docs ORDER BY distance(vector, [7.2, 0.0]) LIMIT 3",
        "SELECT id, distance([7.2, 0], vector) AS d FROM docs ORDER BY d LIMIT 3",
        "SELECT id FROM (SELECT id, l2_distance(vector, [7.2, 0]) AS d FROM docs) ORDER BY d ASC LIMIT 3",
        "SELECT id FROM docs WHERE year < 2500 AND title <> 'x' ORDER BY distance(vector, [7.2, 0.0]) LIMIT 3",
        "SELECT id, title FROM vector_search('docs', [7.2, 0.0], k => 3)",
        "SELECT id, title FROM vector_search('docs', [7.2, 0.0]) ORDER BY distance LIMIT 3",
    ] {
        let plan = told(&session, &format!("EXPLAIN {text}"));
        assert!(
            plan.contains("Nearest: dataset=docs, column=vector, k="),
            "{plan}"
        );
        let batches = rows(&session, text, None).expect("rows");
        let ids: Vec<i64> = batches
            .iter()
            .flat_map(|batch| {
                let ids = batch.column(0).as_any().downcast_ref::<Int64Array>();
                ids.expect("ids").values().to_vec()
            })
            .collect();
        assert_eq!(ids, [7, 8, 6], "{text}");
    }
    for text in [
        // The farthest, another metric, a second key, and all rows.
        "SELECT id FROM docs ORDER BY distance(vector, [7.2, 0.0]) DESC LIMIT 3",
        "SELECT id FROM docs ORDER BY cosine_distance(vector, [7.2, 0.0]) LIMIT 3",
        "SELECT id FROM docs ORDER BY distance(vector, [7.2, 0.0]), id LIMIT 3",
        "SELECT id FROM docs ORDER BY distance(vector, [7.2, 0.0])",
    ] {
        let plan = told(&session, &format!("EXPLAIN {text}"));
        assert!(
            plan.contains("DatasetScan") && !plan.contains("Nearest"),
            "{plan}"
        );
    }
}

#[test]
fn counting_all_rows_reads_none() {
    let engine = engine();
    fill(&engine, "docs", 100);
    let session = session(&engine, Limits::default());
    let plan = told(&session, "EXPLAIN SELECT count(*) FROM docs");
    assert!(!plan.contains("DatasetScan"), "{plan}");
}

#[test]
fn parameters_are_values_and_vectors() {
    let engine = engine();
    fill(&engine, "docs", 100);
    let session = session(&engine, Limits::default());
    let vector = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        [Some([Some(7.2), Some(0.0)])],
        2,
    );
    let parameters = RecordBatch::try_from_iter([
        ("1", Arc::new(vector) as _),
        ("2", Arc::new(Int64Array::from(vec![3])) as _),
    ])
    .expect("a batch");
    for text in [
        "SELECT id, distance(vector, $1) AS d FROM docs ORDER BY d LIMIT $2",
        "SELECT id FROM docs ORDER BY distance(vector, ?) LIMIT ?",
        "SELECT id FROM vector_search('docs', $1, $2)",
        "SELECT id FROM docs WHERE distance(vector, $1) < 50 AND id <> $2 LIMIT 3",
    ] {
        let batches = rows(&session, text, Some(parameters.clone()))
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(count(&batches), 3, "{text}");
    }
    let few = refused(&session, "SELECT $1");
    assert_eq!(few.code, "bad_parameters");
    let many = rows(&session, "SELECT 1", Some(parameters)).expect_err("none are asked for");
    assert_eq!(many.code, "bad_parameters");
}

#[test]
fn a_statement_is_described_without_values() {
    let engine = engine();
    fill(&engine, "docs", 10);
    let session = session(&engine, Limits::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let describe = |text: &str| runtime.block_on(session.describe(text, None));
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Float32, true)));
    let told = describe(
        "SELECT id, distance(vector, $1) AS d FROM docs WHERE year > $2 ORDER BY d LIMIT 5",
    )
    .expect("described");
    let schema = told.schema.expect("columns");
    assert_eq!(schema.field(1).name(), "d");
    assert_eq!(told.parameters.field(0).data_type(), &list);
    assert_eq!(told.parameters.field(1).data_type(), &DataType::Int64);
    let told = describe("SELECT id FROM vector_search('docs', $1, $2)").expect("described");
    assert_eq!((told.parameters.fields().len(), told.writes), (2, false));
    assert_eq!(told.parameters.field(0).data_type(), &list);
    let told = describe("DELETE FROM docs WHERE id = $1").expect("described");
    assert!(told.writes);
    assert_eq!(told.schema.expect("a count").field(0).name(), "count");
    assert_eq!(told.parameters.field(0).data_type(), &DataType::Int64);
    assert_eq!(
        describe("SELECT nothing FROM docs")
            .expect_err("no column")
            .code,
        "unknown_column"
    );
}

#[test]
fn rows_are_inserted_and_deleted() {
    let engine = engine();
    fill(&engine, "docs", 10);
    let session = session(&engine, Limits::default());
    told(
        &session,
        "INSERT INTO docs (id, vector, title) VALUES (10, [1, 2], 'new'), (3, [3, 3], 'again')",
    );
    assert!(
        told(&session, "SELECT title, year FROM docs WHERE id = 3").contains("| again |      |")
    );
    let deleted = told(
        &session,
        "DELETE FROM docs WHERE id IN (SELECT id FROM docs WHERE year > 2007)",
    );
    assert!(deleted.contains("| 2     |"), "{deleted}");
    assert!(told(&session, "SELECT count(*) AS n FROM docs").contains("| 9 |"));
    let deleted = told(&session, "DELETE FROM docs WHERE id > 100");
    assert!(deleted.contains("| 0     |"), "{deleted}");
    assert_eq!(
        refused(
            &session,
            "INSERT INTO docs (id, vector) VALUES (1, [1, 2, 3])"
        )
        .code,
        "bad_cast"
    );
    assert_eq!(
        refused(&session, "INSERT INTO docs (id, title) VALUES (1, 'x')").code,
        "null_value"
    );
    assert!(told(&session, "DELETE FROM docs").contains("| 9     |"));
}

/// Checks that each statement is refused with its class and code.
fn all_refused(session: &Session, expected: &[(&str, Class, &str)]) {
    for (text, class, code) in expected {
        let refusal = refused(session, text);
        assert_eq!(
            (refusal.class, refusal.code),
            (*class, *code),
            "{text}: {refusal}"
        );
    }
}

#[test]
fn what_is_wrong_is_said() {
    use Class::{InvalidArgument, NotFound};
    let engine = engine();
    fill(&engine, "docs", 10);
    let expected = [
        ("SELEC 1", InvalidArgument, "bad_sql"),
        ("SELECT * FROM nothing", NotFound, "unknown_table"),
        ("SELECT * FROM docs.docs.docs", NotFound, "unknown_table"),
        (
            "SELECT nothing FROM docs",
            InvalidArgument,
            "unknown_column",
        ),
        ("SELECT f(1)", InvalidArgument, "unknown_function"),
        ("SELECT * FROM f(1)", InvalidArgument, "unknown_function"),
        (
            "SELECT id / 0 FROM docs",
            InvalidArgument,
            "division_by_zero",
        ),
        (
            "SELECT CAST(title AS INT) FROM docs",
            InvalidArgument,
            "bad_cast",
        ),
        (
            "SELECT distance(vector, [1]) FROM docs",
            InvalidArgument,
            "dimension_mismatch",
        ),
        (
            "SELECT distance(vector, 'x') FROM docs",
            InvalidArgument,
            "not_a_vector",
        ),
        (
            "SELECT id FROM docs ORDER BY distance(vector, [1]) LIMIT 2",
            InvalidArgument,
            "dimension_mismatch",
        ),
        (
            "SELECT * FROM vector_search('docs', [1, 2], 0)",
            InvalidArgument,
            "bad_k",
        ),
        (
            "SELECT * FROM vector_search('docs', [1, 2], many => 1)",
            InvalidArgument,
            "unknown_argument",
        ),
        (
            "SELECT * FROM vector_search('nothing', [1, 2])",
            NotFound,
            "dataset_not_found",
        ),
        (
            "DELETE FROM longbow.datasets",
            InvalidArgument,
            "read_only_table",
        ),
    ];
    all_refused(&session(&engine, Limits::default()), &expected);
}

#[test]
fn what_a_node_does_not_do_is_refused() {
    let engine = engine();
    fill(&engine, "docs", 10);
    let session = session(&engine, Limits::default());
    for text in [
        "SELECT 1; SELECT 2",
        "CREATE TABLE t (id INT)",
        "COPY docs TO '/nowhere/x.csv'",
        "EXPLAIN ANALYZE COPY docs TO '/nowhere/x.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "SET datafusion.execution.batch_size = 1",
        "UPDATE docs SET title = 'x'",
        "EXPLAIN ANALYZE DELETE FROM docs",
    ] {
        all_refused(&session, &[(text, Class::Unimplemented, "unimplemented")]);
    }
    assert_eq!(
        refused(&session, "SELECT * FROM '/etc/passwd'").code,
        "unknown_table"
    );
    assert!(told(&session, "SELECT count(*) AS n FROM docs").contains("| 10 |"));
}

#[test]
fn limits_hold() {
    let engine = engine();
    fill(&engine, "docs", 1_000);
    let small = session(
        &engine,
        Limits {
            memory: 1 << 20,
            ..Limits::default()
        },
    );
    let text = "SELECT a.id, b.id, a.title FROM docs a, docs b ORDER BY a.title, b.title";
    let refusal = refused(&small, text);
    assert_eq!(
        (refusal.class, refusal.code),
        (Class::ResourceExhausted, "sql_memory")
    );
    // What was held is free again.
    assert_eq!(
        count(&rows(&small, "SELECT id FROM docs", None).expect("rows")),
        1_000
    );
    let limits = Limits {
        timeout: std::time::Duration::from_millis(50),
        ..Limits::default()
    };
    let hasty = session(&engine, limits);
    let endless = "SELECT count(*) FROM docs a, docs b, docs c WHERE a.id + b.id + c.id < 0";
    let refusal = refused(&hasty, endless);
    assert_eq!(
        (refusal.class, refusal.code),
        (Class::DeadlineExceeded, "timeout")
    );
    let short = session(
        &engine,
        Limits {
            length: 10,
            ..Limits::default()
        },
    );
    assert_eq!(refused(&short, "SELECT 1234567").code, "sql_too_long");
}

#[test]
fn deep_statements_do_not_overflow_a_stack() {
    let engine = engine();
    fill(&engine, "docs", 10);
    let session = session(&engine, Limits::default());
    let chain = format!(
        "SELECT count(*) AS n FROM docs WHERE id = 0{}",
        " OR id = 1".repeat(450)
    );
    assert!(told(&session, &chain).contains("| 2 |"));
    let sum = format!("SELECT 1{}", " + 1".repeat(950));
    assert!(told(&session, &sum).contains("951"));
    for deep in [
        format!("SELECT {}1{}", "(".repeat(3_000), ")".repeat(3_000)),
        format!("SELECT {}1", "-".to_owned() + &"NOT ".repeat(3_000)),
        format!("SELECT {}1{}", "[".repeat(3_000), "]".repeat(3_000)),
        format!(
            "{}SELECT 1{}",
            "SELECT * FROM (".repeat(1_000),
            ")".repeat(1_000)
        ),
        "(".repeat(1_000_000),
    ] {
        let refusal = refused(&session, &deep);
        assert_eq!(refusal.class, Class::InvalidArgument, "{refusal}");
    }
}

#[test]
fn the_node_tells_of_itself() {
    let engine = engine();
    fill(&engine, "docs", 10);
    let session = session(&engine, Limits::default());
    let datasets = told(&session, "SELECT name, rows, metric FROM longbow.datasets");
    assert!(
        datasets.contains("| docs | 10   | euclidean |"),
        "{datasets}"
    );
    for table in [
        "config", "datasets", "indexes", "log", "queries", "segments",
    ] {
        told(&session, &format!("SELECT * FROM longbow.{table}"));
    }
    let queries = told(&session, "SELECT statement FROM longbow.queries");
    assert!(
        queries.contains("SELECT statement FROM longbow.queries"),
        "{queries}"
    );
    assert!(told(&session, "SHOW TABLES").contains("docs"));
    assert!(told(&session, "DESCRIBE docs").contains("vector"));
}

#[test]
fn an_answer_that_nobody_takes_ends() {
    let engine = engine();
    fill(&engine, "docs", 1_000);
    let session = session(&engine, Limits::default());
    let answer = session
        .run_blocking("SELECT a.id FROM docs a, docs b, docs c", None)
        .expect("rows");
    drop(answer);
    let mine = "SELECT number FROM longbow.queries";
    let ended = || count(&rows(&session, mine, None).expect("rows")) == 1;
    let begun = std::time::Instant::now();
    while !ended() {
        assert!(begun.elapsed().as_secs() < 60, "the statement still runs");
    }
}

#[test]
fn distances_are_those_of_the_definitions() {
    let engine = engine();
    let session = session(&engine, Limits::default());
    for (text, expected) in [
        ("l2_distance([1, 2], [4, 6])", 5.0),
        ("cosine_distance([1, 0], [0, 1])", 1.0),
        ("inner_product([1, 2], [3, 4])", 11.0),
        ("distance([1, 2], [4, 6])", 5.0),
    ] {
        let batches = rows(&session, &format!("SELECT {text}"), None).expect("a row");
        let value = batches
            .iter()
            .find(|batch| batch.num_rows() == 1)
            .expect("a row")
            .column(0)
            .clone();
        let value = value
            .as_any()
            .downcast_ref::<Float32Array>()
            .expect("a float")
            .value(0);
        assert!((value - expected).abs() < 1e-6, "{text} is {value}");
    }
    assert!(told(&session, "SELECT l2_distance([1, 2], NULL) IS NULL AS n").contains("true"));
}
