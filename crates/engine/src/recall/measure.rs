//! Queries of which it is known what walks of each effort find.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use longbow_disk::{ReadOnce, reads};
use longbow_index::{Neighbor, Query, SearchStats, TopK, flat};
use longbow_kernels::Metric;

use super::middle::Middle;
use crate::column_index::Reached;
use crate::error::Result;
use crate::graph::Wanted;
use crate::schema::VectorColumn;
use crate::turn::Turn;
use crate::vectors::Vectors;
use crate::view::View;

/// Efforts that are measured, in steps of the square root of two. Where they are more than a quarter of the rows, a scan
/// is as fast.
pub(crate) const LADDER: [usize; 19] = [
    5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 320, 453, 640, 905, 1280, 1810, 2560,
];
/// Numbers of neighbours that recall is measured for; the ones between count as the next larger.
pub(crate) const CLASSES: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];
/// The largest of them.
pub(crate) const MOST: usize = CLASSES[CLASSES.len() - 1];
/// Rows that are compared with all queries before the next ones are read: they stay in the cache.
const BLOCK: usize = 64;

/// What is seen of a query and its walk without knowing the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look(pub [f32; 4]);

impl Look {
    /// Of a query so far from the middle of the rows ([`Middle::away`]), whose walk made so many comparisons and found these,
    /// nearest first.
    pub fn new(metric: Metric, away: f32, comparisons: u64, found: &[Neighbor]) -> Self {
        let (Some(first), Some(last)) = (found.first(), found.last()) else {
            return Look([0.0; 4]);
        };
        let compared = (comparisons.max(1) as f32).ln();
        let (near, far) = (first.distance, last.distance);
        if metric == Metric::Dot {
            // May be negative, so there is no logarithm to take.
            return Look([compared, far, far - near, away]);
        }
        let far = far.max(f32::MIN_POSITIVE);
        // A row that is almost the query itself says no more than one that is near.
        Look([compared, far.ln(), (far / near.max(1e-3 * far)).ln(), away])
    }
}

/// A query with what each effort finds of its neighbours.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub vector: Vec<f32>,
    /// By class and rung: the share found.
    recall: [[f32; LADDER.len()]; CLASSES.len()],
    look: [[Look; LADDER.len()]; CLASSES.len()],
}

impl Measured {
    pub fn recall(&self, class: usize, rung: usize) -> f32 {
        self.recall[class][rung]
    }

    pub fn look(&self, class: usize, rung: usize) -> Look {
        self.look[class][rung]
    }

    /// Without its vector, which only real ones are measured by again.
    pub fn nameless(mut self) -> Self {
        self.vector = Vec::new();
        self
    }

    /// As if it had missed `times` as much.
    pub fn missing(mut self, times: f32) -> Self {
        for recall in self.recall.iter_mut().flatten() {
            *recall = (1.0 - times * (1.0 - *recall)).max(0.0);
        }
        self
    }

    #[cfg(test)]
    pub fn of(recall: impl Fn(usize) -> f32, look: Look) -> Self {
        Measured {
            vector: Vec::new(),
            recall: [std::array::from_fn(recall); CLASSES.len()],
            look: [[look; LADDER.len()]; CLASSES.len()],
        }
    }
}

/// The exact nearest rows of a view for each query. Every half a megabyte `pause` is told when the last ones began, and how much this
/// thread had had read from the disk before; where it says to end, there is nothing.
pub(crate) fn truth(
    queries: &[Query],
    k: usize,
    (view, column): (&View, &VectorColumn),
    pause: &dyn Fn(Instant, u64) -> ControlFlow<()>,
) -> Result<Option<Vec<Vec<Neighbor>>>> {
    let mut tops: Vec<TopK> = queries.iter().map(|_| TopK::new(k)).collect();
    let mut stats = SearchStats::default();
    let (mut began, mut before) = (Instant::now(), reads());
    let turn = Turn::begin();
    for part in view.parts(0) {
        let Some(vectors) = Vectors::of(part.batch, column)? else {
            continue;
        };
        // Where rows are not in memory, what is there is what searches need.
        let mut once = ReadOnce::new(vectors.bytes());
        let stride = vectors.stride();
        for run in &part.runs {
            let is_there = |row: u64| {
                let at = run.start + (row - run.first_row) as usize;
                view.is_visible(row) && (vectors.is_dense() || vectors.row(at).is_some())
            };
            for first in (0..run.len).step_by(BLOCK) {
                if once.reach((run.start + first) * stride) {
                    if pause(began, before).is_break() {
                        return Ok(None);
                    }
                    (began, before) = (Instant::now(), reads());
                }
                let bytes = vectors.rows(run.start + first, BLOCK.min(run.len - first));
                let row = run.first_row + first as u64;
                turn.give_way();
                for (query, top) in queries.iter().zip(&mut tops) {
                    flat::scan(query, row, bytes, &is_there, top, &mut stats);
                }
            }
        }
    }
    Ok(Some(tops.into_iter().map(TopK::into_sorted).collect()))
}

/// The share of the nearest `k` that is in an answer; rows as near as the last of them are as good.
pub(crate) fn share(
    truth: &[Neighbor],
    k: usize,
    answered: impl Iterator<Item = f32>,
) -> Option<f32> {
    let k = k.min(truth.len());
    let bound = truth.get(k.checked_sub(1)?)?.distance;
    let hits = answered.filter(|distance| *distance <= bound).count();
    Some(hits.min(k) as f32 / k as f32)
}

/// A query whose nearest rows are known, and what is searched for them.
pub(crate) struct Climb<'a> {
    pub query: &'a Query,
    pub middle: &'a Middle,
    pub truth: &'a [Neighbor],
    pub reached: &'a Reached,
    pub view: &'a View,
    pub column: &'a VectorColumn,
    /// Whether it is to end with nothing.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Climb<'_> {
    /// Walks for the query with the efforts of the ladder, for each number of neighbours, since walks go by that, too. Rows from the watermark
    /// on are scanned by a search, and so found. Nothing if it was to end.
    pub(crate) fn measure(&self, vector: Vec<f32>) -> Result<Option<Measured>> {
        let tail: Vec<Neighbor> = self
            .truth
            .iter()
            .filter(|one| one.row >= self.reached.watermark)
            .copied()
            .collect();
        let mut measured = Measured {
            vector,
            recall: [[0.0; LADDER.len()]; CLASSES.len()],
            look: [[Look([0.0; 4]); LADDER.len()]; CLASSES.len()],
        };
        let away = self.middle.away(self.query.floats());
        let goes_by_k = self.reached.graph.goes_by_k();
        let mut shared: [Option<(Vec<Neighbor>, u64)>; LADDER.len()] = Default::default();
        for (class, k) in CLASSES.into_iter().enumerate() {
            let (recalls, looks) = (&mut measured.recall[class], &mut measured.look[class]);
            let turn = Turn::begin();
            let mut all_found = 0;
            for (rung, ef) in LADDER.into_iter().enumerate().filter(|(_, ef)| *ef >= k) {
                if all_found > 1 {
                    // More effort finds no less, and compares as much more as it did last: in some data as much as the effort, in some hardly.
                    let Look([compared, far, spread, _]) = looks[rung - 1];
                    let more = compared - looks[rung - 2].0[0];
                    recalls[rung] = recalls[rung - 1];
                    looks[rung] = Look([compared + more, far, spread, away]);
                    continue;
                }
                // One walk tells of all numbers, unless they say how it goes.
                let most = if goes_by_k { k } else { MOST.min(ef) };
                let walk = match shared[rung].take().filter(|_| !goes_by_k) {
                    Some(walk) => walk,
                    None => match self.walk((most, ef), &turn)? {
                        Some(walk) => walk,
                        None => return Ok(None),
                    },
                };
                let (found, comparisons) = shared[rung].insert(walk);
                let found = &found[..k.min(found.len())];
                let answered = found.iter().chain(&tail).map(|one| one.distance);
                recalls[rung] = share(self.truth, k, answered).unwrap_or(1.0);
                looks[rung] = Look::new(self.column.space.metric, away, *comparisons, found);
                all_found += u32::from(recalls[rung] >= 1.0);
            }
        }
        Ok(Some(measured))
    }

    /// What a walk of an effort finds of `k` rows, and how many it compares; nothing if it was cut.
    fn walk(&self, (k, ef): (usize, usize), turn: &Turn) -> Result<Option<(Vec<Neighbor>, u64)>> {
        let visible = |row: u64| row < self.reached.watermark && self.view.is_visible(row);
        let is_cut = AtomicBool::new(false);
        let give_way = || {
            turn.give_way();
            let is_over = (self.is_over)();
            is_cut.fetch_or(is_over, Ordering::Relaxed);
            is_over
        };
        let wanted = Wanted {
            is_over: Some(&give_way),
            ..Wanted::visible(&visible)
        };
        let mut stats = [SearchStats::default()];
        let found = self.reached.graph.search(
            std::slice::from_ref(self.query),
            (k, ef),
            wanted,
            (self.view, self.column),
            &mut stats,
        )?;
        let found = found.into_iter().next().unwrap_or_default();
        // Whatever it would say now: a walk that was cut has not found all.
        let is_whole = !is_cut.into_inner();
        Ok(is_whole.then_some((found, stats[0].distance_computations)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(distances: &[f32]) -> Vec<Neighbor> {
        let one = |(row, distance): (usize, &f32)| Neighbor {
            row: row as u64,
            distance: *distance,
        };
        distances.iter().enumerate().map(one).collect()
    }

    #[test]
    fn rows_as_near_as_the_last_true_neighbour_count_and_others_do_not() {
        let truth = at(&[1.0, 2.0, 2.0, 3.0]);
        let share = |k, answered: &[f32]| share(&truth, k, answered.iter().copied());
        assert_eq!(share(2, &[1.0, 2.0]), Some(1.0));
        assert_eq!(share(2, &[2.0, 2.0]), Some(1.0));
        assert_eq!(share(2, &[1.0, 2.5]), Some(0.5));
        assert_eq!(share(3, &[1.0, 2.0, 2.0, 2.0]), Some(1.0));
        // There are only four.
        assert_eq!(share(10, &[1.0, 2.0]), Some(0.5));
        assert_eq!(share(0, &[]), None);
        assert_eq!(super::share(&[], 3, [].into_iter()), None);
    }

    #[test]
    fn a_look_is_finite_whatever_was_found() {
        for metric in [Metric::Euclidean, Metric::Cosine, Metric::Dot] {
            for found in [&[][..], &[0.0], &[0.0, 0.0], &[0.0, 1.0], &[-2.0, -1.0]] {
                let Look(numbers) = Look::new(metric, 0.0, 0, &at(found));
                assert!(
                    numbers.iter().all(|x| x.is_finite()),
                    "{metric:?} {found:?}"
                );
            }
        }
    }
}
