//! The best rows so far.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A row and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number.
    pub row: u64,
    /// Higher is better.
    pub score: f32,
}

/// The better one is greater; of equals the one of the smaller number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ranked(Hit);

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.0.score.total_cmp(&other.0.score);
        by_score.then(other.0.row.cmp(&self.0.row))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Keeps the `k` best.
#[derive(Debug)]
pub(crate) struct Top {
    k: usize,
    heap: BinaryHeap<Reverse<Ranked>>,
}

impl Top {
    pub fn new(k: usize) -> Self {
        Top {
            k,
            heap: BinaryHeap::new(),
        }
    }

    /// Whether a hit would be kept.
    #[inline]
    pub fn wants(&self, hit: Hit) -> bool {
        self.heap.len() < self.k
            || self
                .heap
                .peek()
                .is_some_and(|Reverse(worst)| Ranked(hit) > *worst)
    }

    pub fn push(&mut self, hit: Hit) {
        self.heap.push(Reverse(Ranked(hit)));
        if self.heap.len() > self.k {
            self.heap.pop();
        }
    }

    /// Best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse(Ranked(hit))| hit).collect()
    }
}
