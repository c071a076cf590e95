//! Measures how long the engine takes to find the rows that pass a filter it has not seen, beside DataFusion's evaluation of
//! the same predicate over the bare columns, as one JSON object a line.
//!
//! ```text
//! filter_bench [ROWS [ROUNDS]]
//! ```
//!
//! Both on one thread. Each round has other constants, so that nothing is remembered; times are the least of the rounds,
//! in microseconds. `ratio` is the engine's time by DataFusion's.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{
    ArrayRef, AsArray, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{Float32Type, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::prelude::SessionContext;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options, SearchRequest};
use longbow_query::Conditions;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Rows of a batch, as a client sends them.
const BATCH: i64 = 65_536;
/// Predicates; `?` is a number that differs from round to round.
const PREDICATES: [&str; 6] = [
    "n < 50000?",
    "price > 100.? AND price < 300.?",
    "n % 1? = 3 OR price > 990.0",
    "tag = 'tag 7?'",
    "tag LIKE '%7?'",
    "n IN (1?, 2?, 3?, 400000, 500000)",
];

/// Rows with the shortest vectors, so that the index, for which all wait, is soon built.
fn batch(first: i64, rows: i64) -> Result<RecordBatch> {
    let ids = || first..first + rows;
    let mixed = |n: i64| n.wrapping_mul(0x9E37_79B9) & 0xF_FFFF;
    let vectors = ids().map(|n| Some([n, n * n].map(|n| Some(mixed(n) as f32))));
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids()))),
        (
            "vector",
            Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2)),
        ),
        (
            "n",
            Arc::new(Int64Array::from_iter_values(ids().map(mixed))),
        ),
        (
            "price",
            Arc::new(Float64Array::from_iter_values(
                ids().map(|n| mixed(n) as f64 / 1_048.576),
            )),
        ),
        (
            "tag",
            Arc::new(StringArray::from_iter_values(
                ids().map(|n| format!("tag {}", mixed(n) % 1_000)),
            )),
        ),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, true)),
    )?)
}

/// Microseconds of DataFusion's evaluation, and how many rows pass.
fn bare(context: &SessionContext, batches: &[RecordBatch], predicate: &str) -> Result<(u64, u64)> {
    let schema: SchemaRef = batches[0].schema();
    let schema = DFSchema::try_from(schema)?;
    let begun = Instant::now();
    let expression = context.parse_sql_expr(predicate, &schema)?;
    let expression = context.create_physical_expr(expression, &schema)?;
    let mut passing = 0;
    for batch in batches {
        let mask = expression.evaluate(batch)?.into_array(batch.num_rows())?;
        passing += mask.as_boolean().true_count() as u64;
    }
    Ok((begun.elapsed().as_micros() as u64, passing))
}

/// The same of the engine's.
fn engine(engine: &Engine, predicate: &str) -> Result<(u64, u64)> {
    let request = SearchRequest {
        filter: Conditions::shared(None, Some(predicate.to_owned()))
            .map_err(|refusal| refusal.to_string())?,
        explain: true,
        ..SearchRequest::nearest(vec![0.0, 0.0], 1)
    };
    let info = engine.search("d", &request)?.info;
    let filter = info.explain.and_then(|explain| explain.filter);
    let filter = filter.ok_or("no filter was explained")?;
    Ok((filter.filter_us, filter.rows_passing))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rows: i64 = arguments
        .next()
        .map_or(Ok(1_000_000), |rows| rows.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(7), |rounds| rounds.parse())?;
    let all = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"))?;
    let mut batches = Vec::new();
    let mut put = None;
    for first in (0..rows).step_by(BATCH as usize) {
        let batch = batch(first, BATCH.min(rows - first))?;
        let session = match &mut put {
            Some(session) => session,
            none => none.insert(all.put("d", &batch.schema())?),
        };
        session.record_batch(&batch)?.wait()?;
        batches.push(batch);
    }
    if !all.dataset("d")?.wait_for_index(Duration::from_secs(300)) {
        return Err("the index is not built".into());
    }
    let context = SessionContext::new();
    for predicate in PREDICATES {
        let (mut ours, mut theirs, mut passing) = (u64::MAX, u64::MAX, 0);
        for round in 0..rounds {
            let predicate = predicate.replace('?', &(round + 1).to_string());
            let (time, expected) = bare(&context, &batches, &predicate)?;
            theirs = theirs.min(time);
            let (time, found) = engine(&all, &predicate)?;
            ours = ours.min(time);
            if found != expected {
                return Err(format!("{predicate}: {found} rows pass, not {expected}").into());
            }
            passing = found;
        }
        println!(
            "{{\"predicate\": \"{predicate}\", \"rows\": {rows}, \"passing\": {passing}, \"engine_us\": {ours}, \"bare_us\": {theirs}, \"ratio\": {:.2}}}",
            ours as f64 / theirs.max(1) as f64
        );
    }
    Ok(())
}
