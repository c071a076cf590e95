//! Measures whether recall targets are reached, of queries in the distribution of the rows and out of it, as one line of
//! JSON for each: first with what the index tells of itself (`"traffic":false`), then with samples of such queries. Between the two, the
//! gauge stands beside the true recall of the answers that it was made from.
//!
//! ```text
//! recall_target BASE.npy QUERIES.npy [--metric euclidean|cosine] [--queries 200]
//! ```
//!
//! Both files hold float32 in C order. Half of the queries are traffic, half are measured. Those out of the distribution:
//! `range` is noise in the range of each element, `mean` are queries moved by 0.7 of the way to the mean of all rows,
//! `permuted` are queries with their elements in another order.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use longbow_engine::{Engine, METRIC_KEY, Options, SearchRequest};

type Outcome<T> = Result<T, Box<dyn Error>>;

const K: usize = 10;
const BATCH: usize = 1_000;
/// Answers of which the gauge is the mean.
const GAUGED: usize = 500;
const TARGETS: [f32; 4] = [0.8, 0.9, 0.95, 0.99];

/// The rows of a file.
fn read(path: &str) -> Outcome<Vec<Vec<f32>>> {
    let file = std::fs::read(path)?;
    let [b'\x93', b'N', b'U', b'M', b'P', b'Y', 1, _, low, high, ..] = file[..] else {
        return Err(format!("{path} is no .npy file of version 1").into());
    };
    let end = 10 + usize::from(u16::from_le_bytes([low, high]));
    let header = std::str::from_utf8(file.get(10..end).ok_or("the header is cut")?)?;
    let shape = header
        .split_once("'shape': (")
        .and_then(|(_, rest)| rest.split_once(", "));
    let columns = shape.and_then(|(_, rest)| rest.split_once(')'));
    if !header.contains("'<f4'") || header.contains("'fortran_order': True") {
        return Err(format!("{path} holds no float32 in C order").into());
    }
    let columns: usize = columns.ok_or("there are not two dimensions")?.0.parse()?;
    let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let numbers: Vec<f32> = file[end..].chunks_exact(4).map(number).collect();
    Ok(numbers.chunks_exact(columns).map(<[f32]>::to_vec).collect())
}

fn batch(first: usize, rows: &[Vec<f32>], metric: &str) -> Outcome<RecordBatch> {
    let dim = i32::try_from(rows[0].len())?;
    let numbers: Float32Array = rows.iter().flatten().copied().collect();
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vectors = FixedSizeListArray::try_new(item, dim, Arc::new(numbers), None)?;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(
        first as i64..(first + rows.len()) as i64,
    ));
    let columns = [("id", ids), ("vector", Arc::new(vectors) as ArrayRef)];
    let plain = RecordBatch::try_from_iter(columns)?;
    let metadata = HashMap::from([(METRIC_KEY.to_owned(), metric.to_owned())]);
    let fields = plain.schema().fields().clone();
    Ok(plain.with_schema(Arc::new(Schema::new_with_metadata(fields, metadata)))?)
}

/// A number from 0 to 1, by splitmix64.
fn number(seed: u64) -> f32 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 40) as f32 / (1 << 24) as f32
}

/// Queries by kind.
fn kinds(base: &[Vec<f32>], queries: &[Vec<f32>]) -> Vec<(&'static str, Vec<Vec<f32>>)> {
    let dim = base[0].len();
    let some: Vec<&Vec<f32>> = base.iter().step_by(base.len().div_ceil(1_000)).collect();
    let column = |at: usize| some.iter().map(move |row| row[at]);
    let of = |f: &dyn Fn(usize) -> f32| (0..dim).map(f).collect::<Vec<f32>>();
    let least = of(&|at| column(at).fold(f32::INFINITY, f32::min));
    let greatest = of(&|at| column(at).fold(f32::NEG_INFINITY, f32::max));
    let mean = of(&|at| column(at).sum::<f32>() / some.len() as f32);
    let make = |f: &dyn Fn(usize, usize) -> f32| -> Vec<Vec<f32>> {
        (0..queries.len()).map(|q| of(&|at| f(q, at))).collect()
    };
    let within = |q: usize, at: usize| {
        least[at] + (greatest[at] - least[at]) * number((q as u64) << 20 | at as u64)
    };
    let moved = |q: usize, at: usize| queries[q][at] + 0.7 * (mean[at] - queries[q][at]);
    let permuted = |q: usize, at: usize| queries[q][(at * 101 + 13) % dim];
    vec![
        ("in", queries.to_vec()),
        ("range", make(&within)),
        ("mean", make(&moved)),
        ("permuted", make(&permuted)),
    ]
}

/// Distances of the true neighbours that bound what counts.
fn truth(engine: &Engine, queries: &[Vec<f32>]) -> Outcome<Vec<f32>> {
    let request = SearchRequest {
        exact: true,
        vectors: queries.to_vec(),
        ..SearchRequest::nearest(Vec::new(), K)
    };
    let reply = engine.search("d", &request)?;
    Ok(distances(&reply.batch)?
        .chunks(K)
        .map(|of| of[K - 1])
        .collect())
}

fn distances(batch: &RecordBatch) -> Outcome<Vec<f32>> {
    let column = batch.column_by_name("distance").ok_or("no distances")?;
    let floats = column.as_any().downcast_ref::<Float32Array>();
    Ok(floats.ok_or("distances are float32")?.values().to_vec())
}

/// How many of an answer are as near as the true neighbours.
fn hits((found, bound): (&[f32], &f32)) -> usize {
    found.iter().filter(|d| *d <= bound).count().min(K)
}

/// Asks one by one, and prints what came of it.
fn ask(engine: &Engine, traffic: bool, kind: &str, queries: &[Vec<f32>]) -> Outcome<()> {
    let bounds = truth(engine, queries)?;
    for target in TARGETS {
        let (mut right, mut efforts, mut expected) = (0, 0, 0.0);
        let (mut took, mut slowest, mut scans) = (Duration::ZERO, 0, 0);
        for (query, bound) in queries.iter().zip(&bounds) {
            let request = SearchRequest {
                recall_target: Some(target),
                ..SearchRequest::nearest(query.clone(), K)
            };
            let started = Instant::now();
            let reply = engine.search("d", &request)?;
            took += started.elapsed();
            right += hits((&distances(&reply.batch)?, bound));
            let ef = reply.info.ef.unwrap_or(0);
            efforts += ef;
            slowest = slowest.max(ef);
            scans += usize::from(reply.info.ef.is_none());
            expected += f64::from(reply.info.recall_expected.unwrap_or(0.0));
        }
        let n = queries.len() as f64;
        let recall = right as f64 / (n * K as f64);
        println!(
            "{{\"traffic\":{traffic},\"queries\":\"{kind}\",\"target\":{target},\"recall\":{recall:.4},\"expected\":{:.4},\"ef\":{:.1},\"largest_ef\":{slowest},\"scans\":{scans},\"qps\":{:.0}}}",
            expected / n,
            efforts as f64 / n,
            n / took.as_secs_f64(),
        );
    }
    // What the smallest effort is that reaches each.
    for ef in [10, 14, 20, 28, 40, 57, 80, 113, 160, 320, 640, 1280, 2560] {
        let request = SearchRequest {
            ef: Some(ef),
            vectors: queries.to_vec(),
            ..SearchRequest::nearest(Vec::new(), K)
        };
        let found = distances(&engine.search("d", &request)?.batch)?;
        let right: usize = found.chunks(K).zip(&bounds).map(hits).sum();
        let recall = right as f64 / (queries.len() * K) as f64;
        if !traffic {
            println!("{{\"queries\":\"{kind}\",\"fixed_ef\":{ef},\"recall\":{recall:.4}}}");
        }
        if recall > 0.995 {
            break;
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let mut given = std::env::args().skip(1);
    let usage = "recall_target BASE.npy QUERIES.npy [--metric euclidean|cosine] [--queries 200]";
    let (base, queries) = (given.next().ok_or(usage)?, given.next().ok_or(usage)?);
    let rest: Vec<String> = given.collect();
    let flag = |name: &str, or: &str| {
        let at = rest.iter().position(|text| text == name);
        at.and_then(|at| rest.get(at + 1))
            .map_or(or.to_owned(), Clone::clone)
    };
    let (metric, count) = (
        flag("--metric", "euclidean"),
        flag("--queries", "200").parse::<usize>()?,
    );
    let (base, mut queries) = (read(&base)?, read(&queries)?);
    queries.truncate(2 * count);
    let folder = tempfile::tempdir()?;
    let engine = Engine::open_folder(Options::new(folder.path()))?;
    let mut session = engine.put("d", &batch(0, &base[..1], &metric)?.schema())?;
    for (at, rows) in base.chunks(BATCH).enumerate() {
        session
            .record_batch(&batch(at * BATCH, rows, &metric)?)?
            .wait()?;
    }
    let dataset = engine.dataset("d")?;
    if !dataset.wait_for_index(Duration::from_secs(3_600)) {
        return Err("the index was not ready within an hour".into());
    }
    let started = Instant::now();
    engine.calibrate("d")?;
    println!(
        "{{\"rows\":{},\"calibration_s\":{:.2}}}",
        base.len(),
        started.elapsed().as_secs_f64()
    );
    let kinds = kinds(&base, &queries);
    for (kind, queries) in &kinds {
        ask(&engine, false, kind, &queries[queries.len() / 2..])?;
    }
    let mut answered = Vec::new();
    for (_, queries) in &kinds {
        let traffic = &queries[..queries.len() / 2];
        let bounds = truth(&engine, traffic)?;
        for (some, bounds) in traffic.chunks(8).zip(bounds.chunks(8)) {
            let request = SearchRequest {
                recall_target: Some(0.95),
                vectors: some.to_vec(),
                ..SearchRequest::nearest(Vec::new(), K)
            };
            let found = distances(&engine.search("d", &request)?.batch)?;
            answered.extend(found.chunks(K).zip(bounds).map(hits));
            engine.measure_recall("d")?;
        }
        let last = &answered[answered.len().saturating_sub(GAUGED)..];
        println!(
            "{{\"gauge\":{:.4},\"truth\":{:.4}}}",
            dataset.indexes()[0].recall().unwrap_or(f64::NAN),
            last.iter().sum::<usize>() as f64 / (last.len() * K) as f64
        );
    }
    for (kind, queries) in &kinds {
        ask(&engine, true, kind, &queries[queries.len() / 2..])?;
    }
    Ok(engine.close()?)
}
