//! Replaces the rows of a dataset again and again, at random and by a window that slides over all of them, and measures
//! recall, speed and memory of its index as it goes. Prints JSON, one line a measurement, and one for each kind of change
//! at its end that says what fell.
//!
//! Machines change their speed by more than what is looked for. So another dataset stands beside, of the rows at first,
//! which never change; both are asked in turns, and `by_still` is how many queries a second the changed one answers for
//! one of the other.
//!
//! ```text
//! churn BASE.npy QUERIES.npy [--metric cosine] [--ef 32] [--rounds 20] [--rows 1000000]
//! ```
//!
//! Base and queries are arrays of float32. At random: of half of the base, in each round a tenth dies and as many of the
//! other half come. The window: the half moves over the whole set twice, in tenths. The first change puts more places into
//! a graph, for the rows that come before the dead ones have left; what memory grows after that is told.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longbow_engine::{Engine, Id, Options, SearchRequest};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const K: usize = 10;
const QUERIES: usize = 500;
/// The dataset whose rows change, and the one whose rows do not.
const CHURNED: &str = "churned";
const STILL: &str = "still";
/// How often each of both is asked all queries.
const TURNS: usize = 8;

/// The floats of an npy file of two dimensions, and how many a row has.
fn read(path: &str) -> Result<(Vec<f32>, usize)> {
    let bytes = fs::read(path)?;
    if !bytes.starts_with(b"\x93NUMPY\x01") {
        return Err(format!("{path} is no npy file of version 1").into());
    }
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = std::str::from_utf8(&bytes[10..10 + header])?;
    let shape = text
        .split_once("'shape': (")
        .and_then(|(_, rest)| rest.split_once(')'));
    let dim = shape.and_then(|(shape, _)| shape.split(',').nth(1));
    let dim = dim.ok_or("no shape")?.trim().parse()?;
    if !text.contains("'<f4'") || text.contains("'fortran_order': True") {
        return Err(format!("{path} holds no rows of float32: {text}").into());
    }
    let (floats, _) = bytes[10 + header..].as_chunks::<4>();
    Ok((floats.iter().map(|x| f32::from_le_bytes(*x)).collect(), dim))
}

struct Churn {
    engine: Engine,
    schema: SchemaRef,
    base: Vec<f32>,
    queries: Vec<f32>,
    dim: usize,
    ef: usize,
}

impl Churn {
    fn rows(&self) -> usize {
        self.base.len() / self.dim
    }

    fn vector(&self, row: usize) -> &[f32] {
        &self.base[row * self.dim..][..self.dim]
    }

    fn put(&self, dataset: &str, rows: &[usize]) -> Result<()> {
        let DataType::FixedSizeList(item, dim) = self.schema.field(1).data_type() else {
            return Err("the second column has vectors".into());
        };
        let mut session = self.engine.put(dataset, &self.schema)?;
        for rows in rows.chunks(1_000) {
            let numbers: Vec<f32> = rows
                .iter()
                .flat_map(|row| self.vector(*row))
                .copied()
                .collect();
            let numbers = Arc::new(Float32Array::from(numbers));
            let vectors = FixedSizeListArray::try_new(Arc::clone(item), *dim, numbers, None)?;
            let ids = Int64Array::from_iter_values(rows.iter().map(|row| *row as i64));
            let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(vectors)];
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
            session.record_batch(&batch)?.wait()?;
        }
        Ok(())
    }

    fn delete(&self, rows: &[usize]) -> Result<()> {
        let ids = rows.iter().map(|row| Id::Int(*row as i64)).collect();
        self.engine.delete_ids(CHURNED, ids)?.wait()?;
        Ok(())
    }

    /// Waits until new rows are in the graph and dead ones are not.
    fn settle(&self) -> Result<()> {
        let dataset = self.engine.dataset(CHURNED)?;
        if !dataset.wait_for_index(Duration::from_secs(3_600)) {
            return Err("the index was not ready within an hour".into());
        }
        // Searches that see dead rows hold them for a moment.
        while dataset.indexes()[0].graph().len() as u64 > dataset.view().live * 51 / 50 + 64 {
            self.engine.tidy()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    fn request(&self, at: usize) -> SearchRequest {
        let at = at * self.dim % self.queries.len();
        let query = self.queries[at..at + self.dim].to_vec();
        SearchRequest {
            ef: Some(self.ef),
            ..SearchRequest::nearest(query, K)
        }
    }

    /// Times of searches in microseconds until told to end or all queries were asked.
    fn times(&self, dataset: &str, done: &AtomicBool, most: usize) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for at in 0..most {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let request = self.request(at);
            let started = Instant::now();
            self.engine.search(dataset, &request)?;
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    }

    /// The share of the true neighbours that searches find.
    fn recall(&self) -> Result<f64> {
        let mut hits = 0;
        for at in 0..QUERIES {
            let request = self.request(at);
            let exact = SearchRequest {
                exact: true,
                ..request.clone()
            };
            let exact = self.engine.search(CHURNED, &exact)?.ids()?;
            let found = self.engine.search(CHURNED, &request)?.ids()?;
            hits += found.iter().filter(|id| exact.contains(id)).count();
        }
        Ok(hits as f64 / (QUERIES * K) as f64)
    }

    fn report(&self, kind: &str, round: usize, changed: Duration) -> Result<Round> {
        let recall = self.recall()?;
        let (mut churned, mut still) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let mut both = [(CHURNED, &mut churned), (STILL, &mut still)];
            both.rotate_left(turn % 2);
            for (dataset, times) in both {
                times.append(&mut self.times(dataset, &AtomicBool::new(false), QUERIES)?);
            }
        }
        churned.sort_unstable_by(f64::total_cmp);
        let graph = self.engine.dataset(CHURNED)?.indexes()[0].graph();
        let (ours, theirs) = (churned.iter().sum::<f64>(), still.iter().sum::<f64>());
        let found = Round {
            recall,
            by_still: theirs / ours,
            graph_bytes: graph.memory_bytes(),
        };
        println!(
            "{{\"kind\": \"{kind}\", \"round\": {round}, \"recall\": {recall:.4}, \"by_still\": {:.3}, \"qps\": {:.0}, \
             \"p99_us\": {:.0}, \"rows_in_graph\": {}, \"graph_bytes\": {}, \"change_s\": {:.2}}}",
            found.by_still,
            1e6 * churned.len() as f64 / ours,
            churned[churned.len() * 99 / 100],
            graph.len(),
            found.graph_bytes,
            changed.as_secs_f64(),
        );
        Ok(found)
    }

    /// Times of searches until told to end: of the dataset that changes, and of the other.
    fn beside(&self, done: &AtomicBool) -> Result<[Vec<f64>; 2]> {
        let mut both = [Vec::new(), Vec::new()];
        while !done.load(Ordering::Relaxed) {
            for (times, dataset) in both.iter_mut().zip([CHURNED, STILL]) {
                times.append(&mut self.times(dataset, done, QUERIES)?);
            }
        }
        Ok(both)
    }

    /// Deletes some rows and puts others, while searches run, and says how long these took.
    fn replace(&self, dying: &[usize], coming: &[usize]) -> Result<(Duration, [Vec<f64>; 2])> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let searches = scope.spawn(|| self.beside(&done).map_err(|e| e.to_string()));
            let started = Instant::now();
            let changed = self
                .delete(dying)
                .and_then(|()| self.put(CHURNED, coming))
                .and_then(|()| self.settle());
            let took = started.elapsed();
            done.store(true, Ordering::Relaxed);
            changed?;
            let times = searches.join().map_err(|_| "a search panicked")??;
            Ok((took, times))
        })
    }

    fn run(&self, rounds: usize) -> Result<()> {
        let half = self.rows() / 2;
        let tenth = half / 10;
        let mut alive: Vec<usize> = (0..half).collect();
        let mut others: Vec<usize> = (half..2 * half).collect();
        self.put(STILL, &alive)?;
        self.put(CHURNED, &alive)?;
        let still = self.engine.dataset(STILL)?;
        if !still.wait_for_index(Duration::from_secs(3_600)) {
            return Err("the index was not ready within an hour".into());
        }
        self.settle()?;
        let mut found = vec![self.report("random", 0, Duration::ZERO)?];
        let mut state = 1u64;
        let mut dice = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 1..=rounds {
            for at in 0..tenth {
                let (a, b) = (dice(half - at) + at, dice(half - at) + at);
                alive.swap(at, a);
                others.swap(at, b);
            }
            let (took, times) = self.replace(&alive[..tenth], &others[..tenth])?;
            alive[..tenth].swap_with_slice(&mut others[..tenth]);
            found.push(self.report("random", round, took)?);
            beside(times);
        }
        fell("random", &found);
        self.window(half, tenth, alive)
    }

    /// Lets the first half live, and moves on.
    fn window(&self, half: usize, tenth: usize, alive: Vec<usize>) -> Result<()> {
        let (stay, go): (Vec<usize>, Vec<usize>) = alive.into_iter().partition(|row| *row < half);
        let mut lives = vec![false; half];
        stay.iter().for_each(|row| lives[*row] = true);
        let missing: Vec<usize> = (0..half).filter(|row| !lives[*row]).collect();
        self.replace(&go, &missing)?;
        let mut found = vec![self.report("window", 0, Duration::ZERO)?];
        for step in 0..40 {
            let moved = |from: usize| -> Vec<usize> {
                (from..from + tenth).map(|row| row % (20 * tenth)).collect()
            };
            let begin = step * tenth;
            let (took, times) = self.replace(&moved(begin), &moved(begin + 10 * tenth))?;
            found.push(self.report("window", step + 1, took)?);
            beside(times);
        }
        fell("window", &found);
        Ok(())
    }
}

/// What was found after a change.
struct Round {
    recall: f64,
    by_still: f64,
    graph_bytes: usize,
}

/// Prints the first round beside the mean of the last five and the least of all.
fn fell(kind: &str, rounds: &[Round]) {
    let [first, second, ..] = rounds else {
        return;
    };
    let last = &rounds[rounds.len().saturating_sub(5).max(1)..];
    let recalls = |rounds: &[Round]| rounds.iter().map(|x| x.recall).collect::<Vec<_>>();
    let rates = |rounds: &[Round]| rounds.iter().map(|x| x.by_still).collect::<Vec<_>>();
    let least = |of: Vec<f64>| of.into_iter().fold(f64::MAX, f64::min);
    let mean = |of: Vec<f64>| of.iter().sum::<f64>() / of.len() as f64;
    println!(
        "{{\"kind\": \"{kind}_fell\", \"rounds\": {}, \"recall_first\": {:.4}, \"recall_last_five\": {:.4}, \
         \"recall_least\": {:.4}, \"by_still_first\": {:.3}, \"by_still_last_five\": {:.3}, \"by_still_least\": {:.3}, \
         \"graph_bytes_first\": {}, \"graph_bytes_second\": {}, \"graph_bytes_last\": {}}}",
        rounds.len() - 1,
        first.recall,
        mean(recalls(last)),
        least(recalls(rounds)),
        first.by_still,
        mean(rates(last)),
        least(rates(rounds)),
        first.graph_bytes,
        second.graph_bytes,
        rounds[rounds.len() - 1].graph_bytes,
    );
}

/// Prints how long searches took beside the changes.
fn beside(both: [Vec<f64>; 2]) {
    if both.iter().any(Vec::is_empty) {
        return;
    }
    let [churned, still] = both.map(|mut times| {
        times.sort_unstable_by(f64::total_cmp);
        times
    });
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    println!(
        "{{\"kind\": \"beside\", \"searches\": {}, \"by_still\": {:.3}, \"p50_us\": {:.0}, \"p99_us\": {:.0}, \
         \"still_p50_us\": {:.0}}}",
        churned.len(),
        mean(&still) / mean(&churned),
        churned[churned.len() / 2],
        churned[churned.len() * 99 / 100],
        still[still.len() / 2],
    );
}

fn main() -> Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        given
            .iter()
            .position(|x| x == name)
            .and_then(|at| given.get(at + 1))
    };
    let [base, queries, ..] = &given[..] else {
        return Err(
            "churn BASE.npy QUERIES.npy [--metric cosine] [--ef 32] [--rounds 20] [--rows 1000000]"
                .into(),
        );
    };
    let number = |name, default| option(name).map_or(Ok(default), |text| text.parse::<usize>());
    let (mut base, dim) = read(base)?;
    base.truncate(number("--rows", 1_000_000)? * dim);
    let folder = tempfile::tempdir()?;
    let metric = option("--metric").map_or("euclidean", String::as_str);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let fields = vec![
        Field::new("id", DataType::Int64, true),
        Field::new(
            "vector",
            DataType::FixedSizeList(item, i32::try_from(dim)?),
            true,
        ),
    ];
    let metadata = [("longbow.metric".to_owned(), metric.to_owned())];
    let churn = Churn {
        engine: Engine::open_folder(Options::new(folder.path()))?,
        schema: Arc::new(Schema::new_with_metadata(fields, metadata.into())),
        base,
        queries: read(queries)?.0,
        dim,
        ef: number("--ef", 32)?,
    };
    churn.run(number("--rounds", 20)?)?;
    Ok(churn.engine.close()?)
}
