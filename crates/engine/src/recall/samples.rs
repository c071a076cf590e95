//! Some of the queries that were answered, for their recall to be measured.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::column_index::Reached;
use crate::dice::Dice;
use crate::search::Found;
use crate::view::View;

/// Samples that wait at most. Each holds its view, so they must not become old.
const WAITING: usize = 16;

/// A query that was answered.
#[derive(Debug)]
pub(crate) struct Sample {
    pub vector: Vec<f32>,
    pub k: usize,
    /// Distances of the answer, as the index has them, ascending.
    pub answered: Vec<f32>,
    /// What it was answered from.
    pub view: Arc<View>,
    pub reached: Reached,
}

/// The queue of samples: while it is full, nothing is taken.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    waiting: Mutex<VecDeque<Sample>>,
    full: AtomicBool,
    /// Seed of the next choice.
    choices: AtomicU64,
}

impl Samples {
    /// Takes some of a request's queries, chosen at random, if there is room. All were answered by the graph.
    pub fn offer(
        &self,
        vectors: &[Vec<f32>],
        found: &[Found],
        (k, view, reached): (usize, &Arc<View>, &Reached),
    ) {
        if self.full.load(Ordering::Relaxed) {
            return;
        }
        // A writer of the queue is not waited for: another request will do as well.
        let Some(mut waiting) = self.waiting.try_lock() else {
            return;
        };
        let mut dice = Dice::new(self.choices.fetch_add(1, Ordering::Relaxed));
        let room = (WAITING - waiting.len()).min(vectors.len());
        for part in 0..room {
            // One of each of as many even parts.
            let (first, end) = (
                part * vectors.len() / room,
                (part + 1) * vectors.len() / room,
            );
            let at = first + dice.below(end - first);
            waiting.push_back(Sample {
                vector: vectors[at].clone(),
                k,
                answered: found[at].neighbors.iter().map(|one| one.distance).collect(),
                view: Arc::clone(view),
                reached: Reached {
                    graph: Arc::clone(&reached.graph),
                    watermark: reached.watermark,
                },
            });
        }
        self.full.store(waiting.len() >= WAITING, Ordering::Relaxed);
    }

    /// The oldest samples, up to `most` of one view.
    pub fn take(&self, most: usize) -> Vec<Sample> {
        let mut waiting = self.waiting.lock();
        let mut taken: Vec<Sample> = Vec::new();
        while let Some(next) = waiting.front() {
            let same = taken.first().is_none_or(|first| {
                Arc::ptr_eq(&first.view, &next.view)
                    && first.reached.watermark == next.reached.watermark
                    && Arc::ptr_eq(&first.reached.graph, &next.reached.graph)
            });
            if taken.len() >= most || !same {
                break;
            }
            taken.extend(waiting.pop_front());
        }
        self.full.store(waiting.len() >= WAITING, Ordering::Relaxed);
        taken
    }
}
