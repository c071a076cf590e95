//! Puts seeded clusters into an engine and measures build and search of each kind of graph, as one line each.
//!
//! ```text
//! search_latency [ROWS 100000] [DIM 128] [ROWS A BATCH 1000]
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use longbow_engine::{Engine, GraphOptions, Options, Quantization, SearchReply, SearchRequest};

const QUERIES: usize = 1_000;
const ROUNDS: usize = 3;
const K: usize = 10;
const CLUSTERS: u64 = 1_000;

/// A number from -1 to 1, by splitmix64.
fn number(seed: u64) -> f32 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn vector(row: u64, dim: usize) -> Vec<f32> {
    let cluster = row % CLUSTERS;
    let element = |at: u64| number(cluster << 20 | at) + 0.7 * number((row + 1) << 24 | at);
    (0..dim as u64).map(element).collect()
}

fn batch(first: u64, rows: u64, dim: usize) -> Result<RecordBatch, Box<dyn Error>> {
    let numbers: Vec<f32> = (first..first + rows)
        .flat_map(|row| vector(row, dim))
        .collect();
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let numbers = Arc::new(Float32Array::from(numbers));
    let vectors = FixedSizeListArray::try_new(item, i32::try_from(dim)?, numbers, None)?;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(
        first as i64..(first + rows) as i64,
    ));
    Ok(RecordBatch::try_from_iter([
        ("id", ids),
        ("vector", Arc::new(vectors) as _),
    ])?)
}

fn hits(reply: &SearchReply, exact: &SearchReply) -> Result<usize, Box<dyn Error>> {
    let exact = exact.ids()?;
    Ok(reply.ids()?.iter().filter(|id| exact.contains(id)).count())
}

/// Searches with several efforts; `place` says where the rows are.
fn ask(engine: &Engine, place: &str, dim: usize) -> Result<(), Box<dyn Error>> {
    let graph = engine.dataset("d")?.indexes()[0].graph();
    let queries: Vec<Vec<f32>> = (0..QUERIES as u64)
        .map(|at| vector((1 << 32) + at, dim))
        .collect();
    let mut truth = Vec::new();
    for query in &queries[..100] {
        let exact = SearchRequest {
            exact: true,
            ..SearchRequest::nearest(query.clone(), K)
        };
        truth.push(engine.search("d", &exact)?);
    }
    for ef in [20, 50, 100] {
        let (mut times, mut found) = (Vec::new(), 0);
        for round in 0..ROUNDS {
            for (at, query) in queries.iter().enumerate() {
                let request = SearchRequest {
                    ef: Some(ef),
                    ..SearchRequest::nearest(query.clone(), K)
                };
                let started = Instant::now();
                let reply = engine.search("d", &request)?;
                times.push(started.elapsed());
                if let (0, Some(exact)) = (round, truth.get(at)) {
                    found += hits(&reply, exact)?;
                }
            }
        }
        times.sort_unstable();
        let recall = found as f64 / (truth.len() * K) as f64;
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        let name = graph.quantization().name();
        println!(
            "{name:<6} {place}  ef {ef:>3}  recall {recall:.4}  p50 {p50:>8.1?}  p99 {p99:>8.1?}"
        );
    }
    Ok(())
}

fn measure(quantization: Quantization, [rows, dim, step]: [u64; 3]) -> Result<(), Box<dyn Error>> {
    let dim = usize::try_from(dim)?;
    let folder = tempfile::tempdir()?;
    let defaults = Options::new(folder.path());
    let graphs = GraphOptions {
        quantization: Some(quantization),
        ..defaults.graphs
    };
    let engine = Engine::open_folder(Options { graphs, ..defaults })?;
    let started = Instant::now();
    let mut session = engine.put("d", &batch(0, 1, dim)?.schema())?;
    for first in (0..rows).step_by(usize::try_from(step)?) {
        session
            .record_batch(&batch(first, step.min(rows - first), dim)?)?
            .wait()?;
    }
    let dataset = engine.dataset("d")?;
    if !dataset.wait_for_index(Duration::from_secs(3_600)) {
        return Err("the index was not ready within an hour".into());
    }
    let bytes = dataset.indexes()[0].graph().memory_bytes() as u64 / rows;
    println!(
        "{:<6} built in {:.1?}, {bytes} bytes a row",
        quantization.name(),
        started.elapsed()
    );
    ask(&engine, "tail ", dim)?;
    engine.checkpoint()?;
    ask(&engine, "files", dim)?;
    Ok(engine.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let or = |at: usize, default| given.get(at).copied().unwrap_or(default);
    let sizes = [or(0, 100_000), or(1, 128), or(2, 1_000)];
    measure(Quantization::None, sizes)?;
    measure(Quantization::Rabitq, sizes)
}
