//! Builds a graph over a seeded mixture of Gaussians and measures build, recall and speed, as one JSON object.
//!
//! ```text
//! hnsw_bench [--rows 100000] [--dim 128] [--centres 1000] [--deviation 0.7] [--metric euclidean|cosine|dot]
//!            [--scalar f32|f16|i8|u8] [--m 16] [--ef-construction 200] [--threads 1] [--queries 1000]
//!            [--seed 42] [--rounds 5] [--graph FILE] [--dump PREFIX]
//! ```
//!
//! `--graph` loads the graph from a file, or builds it and writes the file if there is none.
//!
//! Times are those that the measuring thread was on a processor, from `/proc/thread-self/schedstat`, so that other
//! load disturbs them little; where there is no such file, they are wall times.
//!
//! `--dump` writes base vectors, queries and the exact ten nearest as raw little-endian arrays (float32, float32,
//! int64) to `PREFIX.base`, `PREFIX.queries` and `PREFIX.truth`, so that other programs can be measured on the same.

mod clock;

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::time::Instant;

use longbow_index::{
    Hnsw, HnswParams, Metric, Neighbor, Query, Scalar, SearchStats, Space, TopK, VectorSource, flat,
};

use crate::clock::thread_seconds;

const K: usize = 10;
/// Times that all queries are run between two looks at the clock, which may tick as slowly as every 4 ms.
const PASSES: usize = 5;
const EFS: [usize; 9] = [10, 12, 16, 24, 32, 48, 64, 96, 128];

/// Deterministic generator (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Normal with deviation 1 (Box and Muller).
    fn normal(&mut self) -> f32 {
        let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (u, v) = (uniform(self.next()), uniform(self.next()));
        ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
    }
}

struct Options(HashMap<String, String>);

impl Options {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut options = HashMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let Some(key) = name.strip_prefix("--") else {
                return Err(format!("unexpected {name}").into());
            };
            let value = arguments
                .next()
                .ok_or_else(|| format!("{name} needs a value"))?;
            options.insert(key.to_string(), value);
        }
        Ok(Options(options))
    }

    fn get<T: std::str::FromStr<Err: Error + 'static>>(
        &self,
        name: &str,
        default: T,
    ) -> Result<T, Box<dyn Error>> {
        self.0
            .get(name)
            .map_or(Ok(default), |value| Ok(value.parse()?))
    }

    fn space(&self) -> Result<Space, Box<dyn Error>> {
        let metric = match self.get("metric", "euclidean".to_string())?.as_str() {
            "euclidean" => Metric::Euclidean,
            "cosine" => Metric::Cosine,
            "dot" => Metric::Dot,
            other => return Err(format!("metric {other} is none of euclidean, cosine, dot").into()),
        };
        let scalar = match self.get("scalar", "f32".to_string())?.as_str() {
            "f32" => Scalar::F32,
            "f16" => Scalar::F16,
            "i8" => Scalar::I8,
            "u8" => Scalar::U8,
            other => return Err(format!("scalar {other} is none of f32, f16, i8, u8").into()),
        };
        Ok(Space {
            scalar,
            metric,
            dim: self.get("dim", 128)?,
        })
    }
}

fn encode(scalar: Scalar, values: &[f32]) -> Vec<u8> {
    match scalar {
        Scalar::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Scalar::F16 => values
            .iter()
            .flat_map(|x| half::f16::from_f32(*x).to_le_bytes())
            .collect(),
        Scalar::I8 => values.iter().map(|x| (x * 25.0) as i8 as u8).collect(),
        Scalar::U8 => values.iter().map(|x| (x * 25.0 + 128.0) as u8).collect(),
    }
}

struct Data {
    row_bytes: usize,
    base: Vec<u8>,
    queries: Vec<Vec<f32>>,
}

impl VectorSource for Data {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.base
            .chunks_exact(self.row_bytes)
            .nth(usize::try_from(row).ok()?)
    }
}

fn generate(space: Space, options: &Options) -> Result<Data, Box<dyn Error>> {
    let mut dice = Dice(options.get("seed", 42)?);
    let deviation: f32 = options.get("deviation", 0.7)?;
    let centres: Vec<Vec<f32>> = (0..options.get("centres", 1000usize)?)
        .map(|_| (0..space.dim).map(|_| dice.normal()).collect())
        .collect();
    let mut point = || -> Vec<f32> {
        let centre = &centres[(dice.next() % centres.len() as u64) as usize];
        centre
            .iter()
            .map(|x| x + deviation * dice.normal())
            .collect()
    };
    let base = (0..options.get("rows", 100_000usize)?)
        .flat_map(|_| encode(space.scalar, &point()))
        .collect();
    let mut queries: Vec<Vec<f32>> = (0..options.get("queries", 1000usize)?)
        .map(|_| point())
        .collect();
    let (scale, shift) = match space.scalar {
        Scalar::F32 | Scalar::F16 => (1.0, 0.0),
        Scalar::I8 => (25.0, 0.0),
        Scalar::U8 => (25.0, 128.0),
    };
    queries
        .iter_mut()
        .flatten()
        .for_each(|x| *x = *x * scale + shift);
    Ok(Data {
        row_bytes: space.row_bytes(),
        base,
        queries,
    })
}

fn build(index: &Hnsw, data: &Data, threads: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let row_bytes = index.space().row_bytes();
    let rows = data.base.len() / row_bytes;
    let started = Instant::now();
    let done: Result<Vec<f64>, longbow_index::Error> = std::thread::scope(|scope| {
        let insert_share = |thread: usize| -> Result<f64, longbow_index::Error> {
            let mut rows = (thread..rows).step_by(threads);
            rows.try_for_each(|row| {
                index.insert(row as u64, &data.base[row * row_bytes..][..row_bytes])
            })?;
            Ok(thread_seconds())
        };
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || insert_share(thread)))
            .collect();
        workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
            .collect()
    });
    Ok((started.elapsed().as_secs_f64(), done?.iter().sum()))
}

fn dump(prefix: &str, data: &Data, truth: &[Vec<u64>]) -> Result<(), Box<dyn Error>> {
    std::fs::write(format!("{prefix}.base"), &data.base)?;
    let queries: Vec<u8> = data
        .queries
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    std::fs::write(format!("{prefix}.queries"), queries)?;
    let truth: Vec<u8> = truth
        .iter()
        .flatten()
        .flat_map(|row| (*row as i64).to_le_bytes())
        .collect();
    Ok(std::fs::write(format!("{prefix}.truth"), truth)?)
}

/// The index, and the wall and processor seconds that it took to get.
fn obtain(
    space: Space,
    data: &Data,
    options: &Options,
) -> Result<(Hnsw, (f64, f64)), Box<dyn Error>> {
    let params = HnswParams {
        m: options.get("m", 16)?,
        ef_construction: options.get("ef-construction", 200)?,
        seed: options.get("seed", 42)?,
    };
    let saved = options.0.get("graph");
    if let Some(bytes) = saved.and_then(|file| std::fs::read(file).ok()) {
        let (started, wall) = (thread_seconds(), Instant::now());
        let index = Hnsw::load(space, params, &bytes, data)?;
        return Ok((
            index,
            (wall.elapsed().as_secs_f64(), thread_seconds() - started),
        ));
    }
    let index = Hnsw::new(space, params)?;
    let times = build(&index, data, options.get("threads", 1)?)?;
    if let Some(file) = saved {
        index.save(&mut std::fs::File::create(file)?)?;
    }
    Ok((index, times))
}

/// Recall and speed at one `ef`, as a JSON object.
fn measure(
    index: &Hnsw,
    queries: &[Query],
    truth: &[Vec<u64>],
    ef: usize,
    rounds: usize,
) -> String {
    let mut stats = SearchStats::default();
    let mut search = |q| index.search(q, K, ef, &|_| true, &mut stats);
    let found: Vec<_> = queries.iter().map(&mut search).collect();
    let hit = |(f, t): (&Vec<Neighbor>, &Vec<u64>)| f.iter().filter(|n| t.contains(&n.row)).count();
    let hits: usize = found.iter().zip(truth).map(hit).sum();
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..rounds {
        let started = thread_seconds();
        for _ in 0..PASSES {
            queries.iter().for_each(|q| drop(search(q)));
        }
        times.push((thread_seconds() - started) / PASSES as f64);
    }
    times.sort_by(f64::total_cmp);
    let count = queries.len() as f64;
    let (qps, middle) = (count / times[0], count / times[times.len() / 2]);
    let recall = hits as f64 / (K as f64 * count);
    let computed = stats.distance_computations as f64 / (count * (1 + rounds * PASSES) as f64);
    format!(
        "{{\"ef\": {ef}, \"recall\": {recall:.4}, \"qps\": {qps:.0}, \"qps_median\": {middle:.0}, \
         \"distances\": {computed:.0}}}"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read()?;
    let space = options.space()?;
    let data = generate(space, &options)?;
    let queries: Result<Vec<Query>, _> =
        data.queries.iter().map(|q| Query::new(space, q)).collect();
    let queries = queries?;
    let exact = |query: &Query| -> Vec<u64> {
        let (mut top, mut stats) = (TopK::new(K), SearchStats::default());
        flat::scan(query, 0, &data.base, &|_| true, &mut top, &mut stats);
        top.into_sorted().iter().map(|n| n.row).collect()
    };
    let started = thread_seconds();
    let truth: Vec<Vec<u64>> = queries.iter().map(exact).collect();
    let scanned = (data.base.len() * queries.len()) as f64 / 1e9 / (thread_seconds() - started);
    if let Some(prefix) = options.0.get("dump") {
        dump(prefix, &data, &truth)?;
    }
    let (index, (wall_s, cpu_s)) = obtain(space, &data, &options)?;
    let (rows, rounds) = (index.len(), options.get("rounds", 5usize)?.max(1));
    let (per_s, per_row) = (
        rows as f64 / cpu_s,
        index.memory_bytes() as f64 / rows as f64,
    );
    let Space {
        scalar,
        metric,
        dim,
    } = space;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{{\"rows\": {rows}, \"dim\": {dim}, \"scalar\": \"{scalar}\", \"metric\": \"{metric}\","
    )?;
    writeln!(
        out,
        " \"build_wall_s\": {wall_s:.2}, \"build_cpu_s\": {cpu_s:.2}, \"rows_per_cpu_s\": {per_s:.0},"
    )?;
    writeln!(
        out,
        " \"bytes_per_row\": {per_row:.0}, \"scan_gb_per_s\": {scanned:.2}, \"search\": ["
    )?;
    for (i, ef) in EFS.into_iter().enumerate() {
        let comma = if i + 1 < EFS.len() { "," } else { "]}" };
        writeln!(
            out,
            "  {}{comma}",
            measure(&index, &queries, &truth, ef, rounds)
        )?;
    }
    Ok(())
}
