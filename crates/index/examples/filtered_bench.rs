//! Measures searches of the rows that pass a filter beside searches of all rows, as one JSON object a line. By such figures
//! the constants of `FilterCost` and the width of filtered walks were chosen.
//!
//! ```text
//! filtered_bench BASE.npy QUERIES.npy [ROUNDS [EF,EF,... [SHARE,SHARE,... [rabitq|sq8]]]]
//! ```
//!
//! The files hold float32 matrices. Ten rows are anchors, and each row and query belongs to the nearest. Rows pass at random
//! with each probability (`random`), if they belong to another anchor than the query (`opposed`), or if they are of a
//! share of the rows that is farthest from the query's anchor (`far`). `us` is the time of one query on this thread's processor, the least of the
//! rounds; `relative` is the time of the search of all rows with that effort, divided by it.

mod clock;

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use longbow_index::{
    Entries, FilterCost, Filtered, Metric, Neighbor, QuantizedGraph, QuantizedParams, Query,
    Scalar, SearchStats, Space, TopK, VectorIndex as _, VectorSource,
};

use crate::clock::thread_seconds;

const K: usize = 10;
/// Clusters of the opposed filter.
const CLUSTERS: usize = 10;
/// Rows that pass, at which a walk may begin.
const ENTRIES: usize = 128;
/// Shares of the rows that are far.
const FAR: [f64; 3] = [0.1, 0.3, 0.5];

/// Times that all queries are run between two looks at the clock, which may tick as slowly as every 4 ms.
const PASSES: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Vectors, one after another.
struct Matrix {
    bytes: Vec<u8>,
    dim: usize,
}

impl Matrix {
    fn read(path: &str) -> Result<Self> {
        let mut bytes = std::fs::read(path)?;
        let length = bytes.get(8..10).ok_or("no npy file")?;
        let head = 10 + usize::from(u16::from_le_bytes([length[0], length[1]]));
        let header = String::from_utf8_lossy(bytes.get(10..head).ok_or("no npy file")?);
        if !header.contains("<f4") {
            return Err(format!("{path} does not hold float32").into());
        }
        let shape = header.split(['(', ')']).nth(1).ok_or("no shape")?;
        let dim = shape.split(',').nth(1).ok_or("no matrix")?.trim().parse()?;
        bytes.drain(..head);
        Ok(Matrix { bytes, dim })
    }

    fn rows(&self) -> usize {
        self.bytes.len() / (4 * self.dim)
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * 4 * self.dim..(row + 1) * 4 * self.dim]
    }

    fn query(&self, space: Space, row: usize) -> Result<Query> {
        let four = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let values: Vec<f32> = self.row(row).chunks_exact(4).map(four).collect();
        Ok(Query::new(space, &values)?)
    }
}

impl VectorSource for Matrix {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        let row = usize::try_from(row).ok()?;
        (row < self.rows()).then(|| self.row(row))
    }
}

/// A row's number between 0 and 1, unlike any other's.
fn dice(row: u64) -> f64 {
    let mixed = (row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

struct Bench {
    base: Matrix,
    queries: Vec<Query>,
    graph: QuantizedGraph,
    /// Of each row, and of each query.
    clusters: (Vec<u8>, Vec<u8>),
    anchors: Vec<Query>,
    rounds: usize,
}

/// Rows that pass for a query, one bit each, and some of them.
struct Set {
    bits: Vec<u64>,
    rows: Vec<u64>,
    entries: Vec<u64>,
}

impl Set {
    fn new(rows: usize, passes: impl Fn(u64) -> bool) -> Self {
        let passing: Vec<u64> = (0..rows as u64).filter(|row| passes(*row)).collect();
        let mut bits = vec![0; rows.div_ceil(64)];
        for row in &passing {
            bits[*row as usize / 64] |= 1 << (row % 64);
        }
        let step = (passing.len() / ENTRIES).max(1);
        Set {
            bits,
            entries: passing.iter().copied().step_by(step).collect(),
            rows: passing,
        }
    }

    fn has(&self, row: u64) -> bool {
        self.bits[row as usize / 64] >> (row % 64) & 1 == 1
    }
}

impl Bench {
    fn new(base: Matrix, queries: &Matrix, rounds: usize, edge_codes: bool) -> Result<Self> {
        let space = Space {
            scalar: Scalar::F32,
            metric: Metric::Euclidean,
            dim: base.dim,
        };
        let params = QuantizedParams {
            edge_codes,
            ..QuantizedParams::default()
        };
        let graph = QuantizedGraph::new(space, params)?;
        graph.prepare((0..base.rows().min(1_000)).map(|row| base.row(row)));
        let next = AtomicU64::new(0);
        let insert = || -> longbow_index::Result<()> {
            loop {
                let row = next.fetch_add(1, Ordering::Relaxed);
                match base.vector(row) {
                    Some(vector) => graph.insert(row, vector)?,
                    None => return Ok(()),
                }
            }
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(insert);
            insert().and(other.join().unwrap_or(Ok(())))
        })?;
        let count = queries.rows().min(400);
        let prepared = (0..count).map(|row| queries.query(space, row));
        let queries = prepared.collect::<Result<Vec<_>>>()?;
        let step = base.rows() / CLUSTERS;
        let anchors = (0..CLUSTERS).map(|at| base.query(space, at * step));
        let anchors = anchors.collect::<Result<Vec<_>>>()?;
        let nearest = |distance: &dyn Fn(&Query) -> f32| {
            let by =
                |a: &usize, b: &usize| distance(&anchors[*a]).total_cmp(&distance(&anchors[*b]));
            (0..CLUSTERS).min_by(by).unwrap_or(0) as u8
        };
        let of_rows: Vec<u8> = (0..base.rows())
            .map(|row| nearest(&|anchor| anchor.distance(base.row(row))))
            .collect();
        // A query's cluster is its nearest row's.
        let of_queries = queries.iter().map(|query| {
            let distance = |row: &usize| query.distance(base.row(*row));
            let by = |a: &usize, b: &usize| distance(a).total_cmp(&distance(b));
            of_rows[(0..base.rows()).min_by(by).unwrap_or(0)]
        });
        let of_queries = of_queries.collect();
        Ok(Bench {
            base,
            queries,
            graph,
            clusters: (of_rows, of_queries),
            anchors,
            rounds,
        })
    }

    /// This share of the rows, the farthest from an anchor.
    fn far(&self, anchor: usize, share: f64) -> Set {
        let anchor = &self.anchors[anchor];
        let distance = |row: u64| anchor.distance(self.base.row(row as usize));
        let mut all: Vec<f32> = (0..self.base.rows() as u64).map(distance).collect();
        let place = (all.len() as f64 * (1.0 - share)) as usize;
        let (_, least, _) = all.select_nth_unstable_by(place, f32::total_cmp);
        let least = *least;
        Set::new(self.base.rows(), |row| distance(row) >= least)
    }

    /// The distance of the farthest of the true answers, and how many there are.
    fn truth(&self, query: &Query, set: &Set) -> (f32, usize) {
        let mut top = TopK::new(K);
        for row in &set.rows {
            let distance = query.distance(self.base.row(*row as usize));
            top.push(Neighbor {
                row: *row,
                distance,
            });
        }
        let all = top.into_sorted();
        (all.last().map_or(0.0, |one| one.distance), all.len())
    }

    /// Microseconds a query, recall, and nodes popped and distances a query.
    fn run(
        &self,
        truth: &[(f32, usize)],
        mut search: impl FnMut(usize, &mut SearchStats) -> Vec<Neighbor>,
    ) -> (f64, f64, [u64; 2]) {
        let (mut least, mut hits, mut wanted) = (f64::INFINITY, 0, 0);
        let mut stats = SearchStats::default();
        for (at, (farthest, count)) in truth.iter().enumerate() {
            let found = search(at, &mut stats);
            let hit = |one: &&Neighbor| one.distance <= farthest * (1.0 + 1e-6);
            hits += found.iter().filter(hit).count();
            wanted += count;
        }
        for _ in 0..self.rounds {
            let begun = thread_seconds();
            for at in (0..PASSES).flat_map(|_| 0..truth.len()) {
                search(at, &mut SearchStats::default());
            }
            least = least.min((thread_seconds() - begun) / PASSES as f64);
        }
        let each = truth.len() as u64;
        let work = [
            stats.nodes_popped / each,
            stats.distance_computations / each,
        ];
        let recall = hits as f64 / wanted.max(1) as f64;
        (least * 1e6 / truth.len() as f64, recall, work)
    }

    fn measure(&self, name: &str, sets: &[Set], of: impl Fn(usize) -> usize, efs: &[usize]) {
        let queries = || self.queries.iter().enumerate();
        let truth: Vec<_> = queries()
            .map(|(at, query)| self.truth(query, &sets[of(at)]))
            .collect();
        let everything = |_: u64| true;
        for ef in efs {
            let (all_us, ..) = self.run(&truth, |at, stats| {
                let query = &self.queries[at];
                let base = &self.base;
                self.graph.search(query, K, *ef, &everything, base, stats)
            });
            let (us, recall, [popped, compared]) = self.run(&truth, |at, stats| {
                let set = &sets[of(at)];
                let passes = |row| set.has(row);
                let filtered = Filtered {
                    k: K,
                    ef: *ef,
                    passes: &passes,
                    entries: Entries {
                        rows: &set.entries,
                        passing: Some(set.rows.len() as u64),
                        coded: None,
                    },
                    is_over: None,
                };
                let query = &self.queries[at];
                self.graph
                    .search_filtered(query, filtered, &self.base, stats)
            });
            println!(
                "{{\"filter\": \"{name}\", \"ef\": {ef}, \"way\": \"walk\", \"us\": {us:.1}, \"recall\": {recall:.4}, \"popped\": {popped}, \"compared\": {compared}, \"relative\": {:.3}}}",
                all_us / us
            );
        }
        let (us, recall, [_, compared]) = self.run(&truth, |at, stats| {
            let rows = sets[of(at)].rows.iter().copied();
            let mut missing = Vec::new();
            let told = (&mut missing, stats);
            self.graph
                .scan_rows(&self.queries[at], K, rows, &self.base, told)
        });
        let passing = sets[0].rows.len() as u64;
        let rows = self.base.rows() as u64;
        let cost = FilterCost::new((passing, rows), self.base.dim, (K, efs[0]));
        println!(
            "{{\"filter\": \"{name}\", \"rows\": {passing}, \"way\": \"scan\", \"us\": {us:.1}, \"recall\": {recall:.4}, \"compared\": {compared}, \"scan_chosen\": {}}}",
            cost.is_scan()
        );
    }

    /// Searches of all rows.
    fn measure_all(&self, efs: &[usize]) {
        let set = Set::new(self.base.rows(), |_| true);
        let queries = self.queries.iter();
        let truth: Vec<_> = queries.map(|query| self.truth(query, &set)).collect();
        for ef in efs {
            let (us, recall, [popped, compared]) = self.run(&truth, |at, stats| {
                let query = &self.queries[at];
                self.graph
                    .search(query, K, *ef, &|_| true, &self.base, stats)
            });
            println!(
                "{{\"filter\": \"none\", \"ef\": {ef}, \"us\": {us:.1}, \"recall\": {recall:.4}, \"popped\": {popped}, \"compared\": {compared}}}"
            );
        }
    }
}

fn numbers<T: std::str::FromStr<Err: Error + 'static>>(text: &str) -> Result<Vec<T>> {
    text.split(',').map(|one| Ok(one.trim().parse()?)).collect()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &str| {
        arguments
            .get(at)
            .cloned()
            .unwrap_or_else(|| default.to_owned())
    };
    let (base, queries) = (argument(0, ""), argument(1, ""));
    let rounds = argument(2, "5").parse()?;
    let efs: Vec<usize> = numbers(&argument(3, "10,16,24"))?;
    let shares: Vec<f64> = numbers(&argument(4, "0.001,0.01,0.1,0.3,0.5,0.9"))?;
    let edge_codes = match argument(5, "rabitq").as_str() {
        "rabitq" => true,
        "sq8" => false,
        other => return Err(format!("{other} is neither rabitq nor sq8").into()),
    };
    let (base, queries) = (Matrix::read(&base)?, Matrix::read(&queries)?);
    let bench = Bench::new(base, &queries, rounds, edge_codes)?;
    bench.measure_all(&efs);
    let rows = bench.base.rows();
    for share in shares {
        let set = Set::new(rows, |row| dice(row) < share);
        bench.measure(&format!("random {share}"), &[set], |_| 0, &efs);
    }
    let (of_rows, of_queries) = &bench.clusters;
    let cluster = |cluster| Set::new(rows, move |row| of_rows[row as usize] == cluster);
    let sets: Vec<Set> = (0..CLUSTERS as u8).map(cluster).collect();
    let opposed = |at: usize| {
        let own = usize::from(of_queries[at]);
        let others = (1..CLUSTERS).map(|step| (own + step) % CLUSTERS);
        // The next that has rows.
        others
            .clone()
            .find(|other| sets[*other].rows.len() > K)
            .unwrap_or(own)
    };
    bench.measure("opposed", &sets, opposed, &efs);
    for share in FAR {
        let sets: Vec<Set> = (0..CLUSTERS)
            .map(|anchor| bench.far(anchor, share))
            .collect();
        let own = |at: usize| usize::from(of_queries[at]);
        bench.measure(&format!("far {share}"), &sets, own, &efs);
    }
    Ok(())
}
