//! One search after the other, timed.

use std::time::{Duration, Instant};

use longbow_engine::SearchRequest;

use super::error::Error;
use super::store::Store;
use crate::histogram::Histogram;

/// What came of one search for each query.
pub struct Pass {
    /// The ids that were found, in order of the queries.
    pub found: Vec<Vec<i64>>,
    /// How long searches took.
    pub latencies: Histogram,
    /// How long all of them took.
    pub took: Duration,
}

impl Pass {
    /// Asks each request once, one after the other.
    pub fn run(store: &Store, requests: &[SearchRequest]) -> Result<Pass, Error> {
        let mut found = Vec::with_capacity(requests.len());
        let mut latencies = Histogram::new();
        let began = Instant::now();
        for request in requests {
            let asked = Instant::now();
            found.push(store.search(request)?);
            latencies.note(asked.elapsed());
        }
        Ok(Pass {
            found,
            latencies,
            took: began.elapsed(),
        })
    }

    /// Searches a second.
    pub fn rate(&self) -> f64 {
        self.found.len() as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// A request for each query: of this effort, or for a comparison with all rows.
pub fn requests(queries: &[Vec<f32>], k: usize, effort: Option<usize>) -> Vec<SearchRequest> {
    let request = |query: &Vec<f32>| SearchRequest {
        ef: effort,
        exact: effort.is_none(),
        ..SearchRequest::nearest(query.clone(), k)
    };
    queries.iter().map(request).collect()
}
