//! Searches for each row of a table, beside what `slt/lateral.slt` tells of them: many rows, one moment, their plan.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Int64Type};
use datafusion::arrow::util::pretty::pretty_format_batches;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options};
use longbow_query::Refusal;
use longbow_query::sql::{Answer, Limits, Session};

const ROWS: i64 = 12_000;
/// Each row with itself and the two beside it.
const NEIGHBOURS: &str =
    "SELECT q.id, n.id AS found FROM docs q, LATERAL vector_search('docs', q.vector, 3) n";

/// Rows at `[id + shift, 0]`.
fn put(engine: &Engine, ids: Range<i64>, shift: f32) {
    let vectors = ids
        .clone()
        .map(|id| Some([Some(id as f32 + shift), Some(0.0)]));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    let titles = StringArray::from_iter_values(ids.clone().map(|id| format!("book {id}")));
    let columns = [
        ("id", Arc::new(Int64Array::from_iter_values(ids)) as _),
        ("vector", Arc::new(vectors) as _),
        ("title", Arc::new(titles) as _),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut put = engine.put("docs", &batch.schema()).expect("a put");
    let pending = put.record_batch(&batch).expect("taken");
    pending.wait().expect("acknowledged");
}

fn filled() -> Engine {
    let engine =
        Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data")).expect("an engine");
    for start in (0..ROWS).step_by(3_000) {
        put(&engine, start..start + 3_000, 0.0);
    }
    engine
}

fn session(engine: &Engine, limits: Limits) -> Session {
    Session::new(engine, limits, Vec::new()).expect("a session")
}

fn rest(answer: &mut Answer) -> Result<Vec<RecordBatch>, Refusal> {
    std::iter::from_fn(|| answer.next_blocking()).collect()
}

/// The pairs of the first two columns.
fn pairs(batches: &[RecordBatch]) -> Vec<(i64, i64)> {
    let of_batch = |batch: &RecordBatch| {
        let column = |at: usize| {
            batch
                .column(at)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        };
        column(0).into_iter().zip(column(1)).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}

fn told(session: &Session, text: &str) -> String {
    let mut answer = session.run_blocking(text, None).expect("a statement");
    let batches = rest(&mut answer).expect("rows");
    let table = pretty_format_batches(&batches);
    table.expect("values that can be shown").to_string()
}

#[test]
fn many_rows_are_searched_for_and_those_written_meanwhile_are_not_found() {
    let engine = filled();
    let session = session(&engine, Limits::default());
    let mut answer = session.run_blocking(NEIGHBOURS, None).expect("a statement");
    let first = answer.next_blocking().expect("rows").expect("rows");
    // More is to come than is made ahead of the reader.
    assert!(first.num_rows() < ROWS as usize / 2);
    // Nearer to every row than the one beside it; and all that was there is gone.
    put(&engine, ROWS..2 * ROWS, 0.25 - ROWS as f32);
    let gone = engine.delete_ids("docs", (0..ROWS).map(longbow_engine::Id::Int).collect());
    gone.and_then(|gone| gone.wait()).expect("acknowledged");
    let mut batches = vec![first];
    batches.extend(rest(&mut answer).expect("rows"));
    let mut found = pairs(&batches);
    found.sort_unstable();
    let beside = |id: i64| match id {
        0 => [0, 1, 2],
        id if id == ROWS - 1 => [id - 2, id - 1, id],
        id => [id - 1, id, id + 1],
    };
    let expected = (0..ROWS).flat_map(|id| beside(id).map(|found| (id, found)));
    assert!(found.into_iter().eq(expected));
    let now = told(
        &session,
        "SELECT min(id) AS low, count(*) AS rows FROM docs",
    );
    assert!(now.contains(&format!("| {ROWS} | {ROWS} |")), "{now}");
}

#[test]
fn only_the_columns_that_are_asked_for_are_fetched() {
    let engine = filled();
    let session = session(&engine, Limits::default());
    let from = "FROM docs q, LATERAL vector_search('docs', q.vector, 3) n";
    for (columns, found, read) in [
        ("n.id", "columns=[id]", "columns=[vector]"),
        ("q.id, n.title", "columns=[title]", "columns=[id, vector]"),
        ("count(*)", "columns=[]", "columns=[vector]"),
        (
            "n.vector, n.score",
            "columns=[score, vector]",
            "columns=[vector]",
        ),
    ] {
        let plan = told(&session, &format!("EXPLAIN SELECT {columns} {from}"));
        let search = "dataset=docs, column=vector, k=3, ";
        assert!(plan.contains(&format!("{search}{found}")), "{plan}");
        assert!(
            plan.contains(&format!("DatasetScan: dataset=docs, {read}")),
            "{plan}"
        );
    }
    // What is asked of the row before is asked before it is searched for.
    let named = "FROM (SELECT vector AS v, title AS name FROM docs) q, LATERAL vector_search('docs', q.v, 3) n";
    let few = format!("EXPLAIN ANALYZE SELECT n.id {named} WHERE q.name = 'book 7'");
    let few = told(&session, &few);
    assert!(few.contains("searches=1]"), "{few}");
}

#[test]
fn the_other_arguments_may_be_parameters() {
    let engine = filled();
    let session = session(&engine, Limits::default());
    let text = "SELECT n.id FROM docs q, LATERAL vector_search('docs', q.vector, $1, filter => $2) n WHERE q.id = 50";
    let values = RecordBatch::try_from_iter([
        ("1", Arc::new(Int64Array::from(vec![2])) as _),
        ("2", Arc::new(StringArray::from(vec!["id < 40"])) as _),
    ]);
    let mut answer = session
        .run_blocking(text, Some(values.expect("a batch")))
        .expect("a statement");
    let batches = rest(&mut answer).expect("rows");
    let ids: Vec<i64> = batches
        .iter()
        .flat_map(|batch| {
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(ids, [39, 38]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let described = runtime.block_on(session.describe(text, None));
    let described = described.expect("described");
    assert_eq!(described.parameters.fields().len(), 2);
    let schema = described.schema.expect("columns");
    assert_eq!(schema.field(0).data_type(), &DataType::Int64);
}

#[test]
fn what_it_holds_is_counted() {
    let engine = filled();
    let limits = Limits {
        memory: 16 << 10,
        ..Limits::default()
    };
    let session = session(&engine, limits);
    let mut answer = session.run_blocking(NEIGHBOURS, None);
    let refused = match &mut answer {
        Ok(answer) => rest(answer).err(),
        Err(refused) => Some(refused.clone()),
    };
    assert_eq!(refused.map(|refused| refused.code), Some("sql_memory"));
}
