//! Some of the queries that were answered, for their recall to be measured.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::answer::Answered;
use crate::column_index::Reached;
use crate::dice::Dice;
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
    /// Rows of the graph then.
    pub rows: u64,
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
        answers: &[Answered],
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
                answered: answers[at].hits.iter().map(|hit| hit.key).collect(),
                view: Arc::clone(view),
                reached: reached.without_visit(),
                rows: reached.graph.len() as u64,
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

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::dataset::Dataset;
    use crate::hit::Hit;
    use crate::options::Options;
    use crate::schema::DatasetSchema;
    use crate::search::Found;
    use crate::strategy::Strategy;

    fn dataset() -> Dataset {
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let fields = vec![
            Field::new("id", DataType::Int64, true),
            Field::new("v", DataType::FixedSizeList(item, 2), true),
        ];
        let schema = DatasetSchema::new(&Arc::new(Schema::new(fields)), 1).expect("a schema");
        Dataset::new(1, "d", schema, 1, &Options::new("").graphs).expect("good parameters")
    }

    /// The answer to each of some queries, whose distance is its place.
    fn answers(count: usize) -> (Vec<Vec<f32>>, Vec<Answered>) {
        let vectors = (0..count).map(|at| vec![at as f32; 2]).collect();
        let answer = |at: usize| Answered {
            found: Found::new(Strategy::Graph),
            hits: vec![Hit {
                row: 0,
                key: at as f32,
                score: 0.0,
                distance: None,
            }],
            parts: Vec::new(),
        };
        (vectors, (0..count).map(answer).collect())
    }

    #[test]
    fn queries_from_all_over_a_request_are_taken_while_there_is_room() {
        let dataset = dataset();
        let (view, index) = (dataset.view(), Arc::clone(&dataset.indexes()[0]));
        let (samples, reached) = (Samples::default(), index.reached());
        let offer = |count: usize| {
            let (vectors, found) = answers(count);
            samples.offer(&vectors, &found, (1, &view, &reached));
        };
        let taken = |most| -> Vec<f32> {
            let taken = samples.take(most).into_iter();
            taken
                .map(|one| {
                    assert_eq!(one.vector[0], one.answered[0]);
                    one.vector[0]
                })
                .collect()
        };
        offer(160);
        let first = taken(WAITING);
        let part = |at: &f32| (*at as usize) / 10;
        assert_eq!(
            first.iter().map(part).collect::<Vec<_>>(),
            (0..16).collect::<Vec<_>>()
        );
        // Not always the first of each part.
        assert!(first.iter().any(|at| at % 10.0 > 0.0));
        offer(3);
        offer(160);
        offer(160);
        assert_eq!(
            (taken(8).len(), taken(100).len(), taken(8).len()),
            (8, 8, 0)
        );
    }

    #[test]
    fn samples_are_taken_together_only_if_they_are_of_one_view() {
        let dataset = dataset();
        let (index, samples) = (Arc::clone(&dataset.indexes()[0]), Samples::default());
        let (vectors, found) = answers(2);
        let offer = |view: &Arc<View>| {
            samples.offer(&vectors, &found, (1, view, &index.reached()));
        };
        let (one, another) = (dataset.view(), Arc::new((*dataset.view()).clone()));
        offer(&one);
        offer(&one);
        offer(&another);
        assert_eq!([samples.take(8).len(), samples.take(8).len()], [4, 2]);
        assert!(samples.take(8).is_empty());
    }
}
