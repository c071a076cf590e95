//! Rounds: the same queries by each way in turn.

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use longbow_engine::{Engine, SearchRequest};
use serde_json::{Value, json};

use crate::remote::Remote;
use crate::{Asked, Outcome, data};

/// Queries of a round that are asked one by one.
const SINGLE: usize = 1_000;

/// What is measured with, and the figures of each round so far.
pub struct Rounds<'a> {
    engine: &'a Engine,
    remote: Remote,
    queries: Vec<Vec<f32>>,
    messages: Vec<RecordBatch>,
    k: usize,
    ef: usize,
    here: Times,
    there: Times,
    rate_here: Vec<f64>,
    rate_there: Vec<f64>,
}

/// Quantiles of the rounds, in microseconds.
#[derive(Default)]
struct Times {
    p50: Vec<f64>,
    p99: Vec<f64>,
}

/// What is told in the end.
pub struct Figures {
    pub single: Value,
    pub batched: Value,
}

impl<'a> Rounds<'a> {
    /// Connects and makes the queries.
    pub fn new(engine: &'a Engine, uri: &str, asked: &Asked) -> Outcome<Rounds<'a>> {
        let remote = Remote::connect(uri, asked.k, asked.ef)?;
        let queries = data::queries(asked.queries, asked.dim);
        let messages = remote.messages(&queries)?;
        Ok(Rounds {
            engine,
            remote,
            queries,
            messages,
            k: asked.k,
            ef: asked.ef,
            here: Times::default(),
            there: Times::default(),
            rate_here: Vec::new(),
            rate_there: Vec::new(),
        })
    }

    /// A round that is not counted, in which the answers are compared.
    pub fn warm_up(&mut self) -> Outcome<()> {
        let mut expected = Vec::new();
        for query in self.queries.iter().take(SINGLE) {
            let here = self.engine.search(data::DATASET, &self.request(query))?;
            let there = self.remote.one(query)?;
            same(&[here.batch], &[there])?;
        }
        for query in self.queries.chunks(512) {
            let request = self.many(query);
            expected.push(self.engine.search(data::DATASET, &request)?.batch);
        }
        same(&expected, &self.remote.many(&self.messages)?)?;
        self.engine
            .search(data::DATASET, &self.many(&self.queries))?;
        Ok(())
    }

    /// All ways in turn.
    pub fn round(&mut self) -> Outcome<()> {
        let mut times = Vec::new();
        for query in self.queries.iter().take(SINGLE) {
            let started = Instant::now();
            let reply = self.engine.search(data::DATASET, &self.request(query))?;
            times.push(started.elapsed());
            assert_eq!(reply.batch.num_rows(), self.k);
        }
        self.here.take(&mut times);
        for query in self.queries.iter().take(SINGLE) {
            let started = Instant::now();
            let reply = self.remote.one(query)?;
            times.push(started.elapsed());
            assert_eq!(reply.num_rows(), self.k);
        }
        self.there.take(&mut times);
        // The faster of both ways to ask for all here: in one call, or as many a call as the server takes.
        let count = self.queries.len() as f64;
        let rate_here = self.all_at_once(self.queries.len())?;
        self.rate_here.push(rate_here.max(self.all_at_once(512)?));
        let started = Instant::now();
        let replies = self.remote.many(&self.messages)?;
        self.rate_there
            .push(count / started.elapsed().as_secs_f64());
        let rows: usize = replies.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, self.queries.len() * self.k);
        Ok(())
    }

    /// Queries a second that the engine answers, `size` in one call.
    fn all_at_once(&self, size: usize) -> Outcome<f64> {
        let requests: Vec<_> = self
            .queries
            .chunks(size)
            .map(|part| self.many(part))
            .collect();
        let started = Instant::now();
        for request in &requests {
            self.engine.search(data::DATASET, request)?;
        }
        Ok(self.queries.len() as f64 / started.elapsed().as_secs_f64())
    }

    /// The medians of the rounds; differences and ratios are those within a round.
    pub fn figures(&self) -> Figures {
        let pairs = |here: &[f64], there: &[f64], of: fn(f64, f64) -> f64| -> Vec<f64> {
            here.iter().zip(there).map(|(h, t)| of(*h, *t)).collect()
        };
        let more = pairs(&self.here.p50, &self.there.p50, |here, there| there - here);
        let ratios = pairs(&self.rate_here, &self.rate_there, |here, there| {
            there / here
        });
        let tenth = |values: &[f64]| (median(values) * 10.0).round() / 10.0;
        Figures {
            single: json!({
                "p50_in_process": tenth(&self.here.p50), "p99_in_process": tenth(&self.here.p99),
                "p50_do_get": tenth(&self.there.p50), "p99_do_get": tenth(&self.there.p99),
                "p50_more": tenth(&more),
            }),
            batched: json!({
                "in_process": median(&self.rate_here).round(),
                "do_exchange": median(&self.rate_there).round(),
                "ratio": (median(&ratios) * 1000.0).round() / 1000.0,
            }),
        }
    }

    fn request(&self, query: &[f32]) -> SearchRequest {
        SearchRequest {
            ef: Some(self.ef),
            ..SearchRequest::nearest(query.to_vec(), self.k)
        }
    }

    fn many(&self, queries: &[Vec<f32>]) -> SearchRequest {
        SearchRequest {
            ef: Some(self.ef),
            vectors: queries.to_vec(),
            ..SearchRequest::nearest(Vec::new(), self.k)
        }
    }
}

impl Times {
    fn take(&mut self, times: &mut Vec<std::time::Duration>) {
        times.sort_unstable();
        let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
        self.p50.push(at(50));
        self.p99.push(at(99));
        times.clear();
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Refuses answers that are not of the same rows at the same distances, to the bit.
fn same(here: &[RecordBatch], there: &[RecordBatch]) -> Outcome<()> {
    if rows(here) != rows(there) {
        return Err("the server answered otherwise than the engine".into());
    }
    Ok(())
}

fn rows(batches: &[RecordBatch]) -> Vec<(i64, u32)> {
    let of_batch = |batch: &RecordBatch| {
        let ids = batch["id"].as_primitive::<Int64Type>().values();
        let distances = batch["distance"].as_primitive::<Float32Type>().values();
        let pairs = ids.iter().zip(distances);
        pairs
            .map(|(id, distance)| (*id, distance.to_bits()))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}
