//! Range searches that go by an index.
//!
//! A walk ends where nothing is nearer than its `ef` best, so that it finds the nearest of those; of as many as it holds it passes some
//! by, and an answer shorter than `k` does not show it. So where fewer than `k` rows are within the distance that is asked
//! for, and they are a fair part of what the walk held, it is made again to hold some times as many, as long as that adds some; or all
//! rows are compared, if that is less work. One who chose `ef` gets that walk alone.

use longbow_index::{FilterCost, Neighbor, Query, TopK};

use crate::column_index::Reached;
use crate::error::Result;
use crate::graph::Graph;
use crate::search::{Found, MAX_EF, Searcher};
use crate::strategy::Strategy;

/// A walk that holds so many rows for each that is within the distance passes few of them by.
const HELD: usize = 4;
/// How many times as many rows a walk holds that is made again.
const WIDER: usize = 4;

impl Searcher<'_> {
    /// Looks for more, where fewer rows than asked for are within the distance. What was found stays.
    pub fn widen(&self, index: &Reached, queries: &[Query], all: &mut [Found]) -> Result<()> {
        let (Some(max), true) = (self.max_distance, self.may_widen) else {
            return Ok(());
        };
        let efs = all.iter().map(|found| self.wider(max, found));
        let efs = efs.enumerate().filter_map(|(at, ef)| Some((ef?, at)));
        let mut again: Vec<(usize, usize)> = efs.collect();
        while !again.is_empty() {
            again.sort_unstable();
            let mut more = Vec::new();
            for alike in again.chunk_by(|a, b| a.0 == b.0) {
                self.limits.check()?;
                let ef = alike[0].0;
                if self.is_scan_better(index, ef) {
                    for (_, at) in alike {
                        self.scan_beside(index, &queries[*at], &mut all[*at])?;
                    }
                    continue;
                }
                let answers = self.walk_again(alike, (index, queries), all)?;
                for ((_, at), answer) in alike.iter().zip(answers) {
                    let found = &mut all[*at];
                    let before = self.within(max, found);
                    self.merge(answer, found);
                    let now = self.within(max, found);
                    let is_over = found.is_partial || now >= self.wanted() || ef >= MAX_EF;
                    if now > before && !is_over {
                        more.push(((WIDER * ef).min(MAX_EF), *at));
                    }
                }
            }
            again = more;
        }
        Ok(())
    }

    /// With what effort it is to be walked for again, if it is.
    fn wider(&self, max: f32, found: &Found) -> Option<usize> {
        let by_walk = matches!(
            found.strategy,
            Strategy::Graph | Strategy::GraphAndTail | Strategy::GraphFiltered
        );
        // Where there are too few of whatever distance, a scan follows.
        if !by_walk || found.is_partial || found.neighbors.len() < self.wanted() {
            return None;
        }
        let (ef, within) = (found.ef?, self.within(max, found));
        let is_short = within < self.wanted() && HELD * within > ef && ef < MAX_EF;
        is_short.then(|| (WIDER * ef).min(MAX_EF))
    }

    fn within(&self, max: f32, found: &Found) -> usize {
        let space = self.column.space;
        let distance = |of: &Neighbor| space.to_distance_and_score(of.distance).0;
        let within = found.neighbors.iter().filter(|of| distance(of) <= max);
        within.count()
    }

    /// Whether it is less work to compare all rows than to walk; postings are read in any case. Where whole vectors are compared both take longer.
    fn is_scan_better(&self, index: &Reached, ef: usize) -> bool {
        if matches!(&*index.graph, Graph::SpFresh { .. }) {
            return false;
        }
        let passing = match &self.rows.matching {
            Some(_) => self.rows.passing,
            None => self.view.live,
        };
        let rows = (passing, passing.max(index.graph.len() as u64));
        FilterCost::new(rows, self.column.space.dim, (self.k, ef)).is_scan()
    }

    /// Compares all rows, by their codes if the index has them, and adds what is nearer. Where numbers would have to be cast for that, which
    /// takes many times as long, it stays at what was found.
    fn scan_beside(&self, index: &Reached, query: &Query, found: &mut Found) -> Result<()> {
        if self.limits.are_spent() {
            found.is_partial = true;
            return Ok(());
        }
        let mut top = TopK::new(self.k);
        match (&*index.graph, &self.rows.matching) {
            (Graph::Quantized(_), Some(rows)) => {
                self.scan_those(rows, query, 0, &mut top, found)?;
            }
            (Graph::Quantized(graph), None) => {
                self.offer_living((graph, index), query, &mut top, found)?;
            }
            _ if self.column.native => self.scan_from(query, 0, &mut top, found)?,
            _ => return Ok(()),
        }
        self.merge(top.into_sorted(), found);
        Ok(())
    }

    /// Keeps the best of both, each row once: its distance is the same in both.
    fn merge(&self, more: Vec<Neighbor>, found: &mut Found) {
        found.neighbors.extend(more);
        found.neighbors.sort_unstable();
        found.neighbors.dedup_by_key(|of| of.row);
        found.neighbors.truncate(self.k);
    }
}
