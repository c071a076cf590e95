//! Full text over a file of texts, one a line: how fast they are indexed and searched.
//!
//! `cargo run --release -p longbow-engine --example text -- TEXTS.txt [QUERIES.txt] > FOUND.tsv`: tells figures, and writes
//! the ten best rows of each query with their scores; rows are counted from 0.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::types::Float32Type;
use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options, TextQuery};

/// Rows of a put.
const ROWS: usize = 8_192;
const QUERIES: &str = "the act of moving\nlarge animal\na genus of plants in the family\nchemical compound\n+river -europe\n\"member of the\"\ncapi*\nphilosophr~2";

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let texts = std::fs::read_to_string(files.first().ok_or("give a file of texts")?)?;
    let texts: Vec<&str> = texts.lines().collect();
    let queries = match files.get(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => QUERIES.to_owned(),
    };
    let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("data"))?;
    let started = Instant::now();
    for (at, part) in texts.chunks(ROWS).enumerate() {
        let ids = (at * ROWS) as i64..(at * ROWS + part.len()) as i64;
        let vectors = ids.clone().map(|_| Some(vec![Some(1.0)]));
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 1);
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from_iter_values(ids)) as _),
            ("vector", Arc::new(vectors) as _),
            ("text", Arc::new(StringArray::from_iter_values(part)) as _),
        ])?;
        let mut session = engine.put("texts", &batch.schema())?;
        session.record_batch(&batch)?.wait()?;
    }
    let indexed = engine
        .dataset("texts")?
        .wait_for_index(Duration::from_secs(3_600));
    assert!(indexed, "an hour suffices");
    let took = started.elapsed();
    // Merging may still be under way: these are the pieces that the queries below ask.
    let (pieces, rows, bytes) = engine.text_pieces("texts")?;
    let rate = rows as f64 / took.as_secs_f64();
    eprintln!(
        "{rows} rows, {rate:.0} a second beside everything else; {pieces} pieces, {bytes} bytes"
    );
    let mut out = std::io::stdout().lock();
    for text in queries.lines() {
        let query = TextQuery {
            text: text.to_owned(),
            columns: None,
        };
        let found = engine.text_search("texts", &query, 10)?;
        for (id, score) in &found {
            writeln!(out, "{text}\t{id}\t{score}")?;
        }
        let mut times: Vec<Duration> = Vec::new();
        while times.len() < 50 {
            let began = Instant::now();
            engine.text_search("texts", &query, 10)?;
            times.push(began.elapsed());
        }
        times.sort();
        eprintln!("{:>8} µs  {text}", times[25].as_micros());
    }
    engine.close()?;
    Ok(())
}
