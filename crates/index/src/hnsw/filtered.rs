//! Searches of the rows that pass a filter.

use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;

use super::Hnsw;
use super::vectors::Probe;
use super::walk::{Admit, Found, Passes, take};
use crate::candidate::Candidate;
use crate::filter_cost::FilterCost;
use crate::filtered::Filtered;
use crate::narrow::Narrow;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::Neighbor;

/// How many times as many nodes as by chance a walk meets that do not pass, before it gives up: more even than a scan costs.
const OFF: f64 = 4.0;
/// How many times as much a walk holds where what passes lies elsewhere than around the query.
const WIDER: usize = 8;

/// Takes nodes and their twins, of rows that pass, and gives up where too few do.
struct Passing<'a> {
    filtered: &'a Filtered<'a>,
    /// Nodes that may yet be met and not pass.
    left: Cell<usize>,
    /// The nearest of those that were met, one more than may be nearer than all that pass by chance.
    others: RefCell<BinaryHeap<Candidate>>,
    by_chance: usize,
    ended: Cell<Option<Ended>>,
}

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was told to.
    Over,
    /// Too little passes around the query.
    InVain,
}

impl<'a> Passing<'a> {
    /// `scan` is how many nodes may be looked at for what a scan costs.
    fn new(filtered: &'a Filtered<'a>, rows: usize, scan: usize, ef: usize) -> Self {
        let entries = filtered.entries;
        // Where it is not known how many pass, or only that the dead are in the way, what a scan would cost is not, either.
        let share = entries.share(rows).filter(|_| !entries.rows.is_empty());
        let expected = |share: f64| OFF * ef as f64 * (1.0 - share) / share;
        let left = share.map_or(usize::MAX, |share| scan.max(expected(share) as usize));
        Passing {
            filtered,
            left: Cell::new(left),
            others: RefCell::default(),
            by_chance: share.map_or(usize::MAX, |_| entries.nearer_by_chance(rows)),
            ended: Cell::new(None),
        }
    }

    /// Whether more of those that do not pass are nearer than all that were found, than by chance.
    fn is_opposed(&self, found: &[Neighbor]) -> bool {
        let nearest = found.first().map_or(f32::INFINITY, |found| found.distance);
        let others = self.others.borrow();
        let farthest = others.peek().filter(|_| others.len() > self.by_chance);
        farthest.is_some_and(|farthest| farthest.distance() < nearest)
    }
}

impl Admit for Passing<'_> {
    #[inline(always)]
    unsafe fn admit(&self, graph: &Hnsw, probe: Probe<'_>, node: Candidate, found: &mut Found<'_>) {
        // SAFETY: the caller vouches for the node.
        if unsafe { take(self.filtered.passes, graph, probe, node, found) } {
            return;
        }
        self.left.set(self.left.get().saturating_sub(1));
        if self.by_chance < usize::MAX {
            let mut others = self.others.borrow_mut();
            if others.len() <= self.by_chance {
                others.push(node);
            } else if let Some(mut farthest) = others.peek_mut()
                && node < *farthest
            {
                *farthest = node;
            }
        }
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        let ended = if self.filtered.is_over.is_some_and(|is_over| is_over()) {
            Some(Ended::Over)
        } else {
            (self.left.get() == 0).then_some(Ended::InVain)
        };
        self.ended.set(ended);
        ended.is_some()
    }
}

impl Passes for Passing<'_> {
    fn passes(&self, row: u64) -> bool {
        (self.filtered.passes)(row)
    }
}

impl Hnsw {
    /// As [`Hnsw::search`] for the rows that pass a filter. What passes around the query is found as without one. Where other
    /// rows are nearer than all that pass, more than by chance, a second walk holds more.
    ///
    /// The answer is empty if that would cost more than a scan of those that pass, or if a walk has cost as much in vain: then a
    /// scan tells.
    ///
    /// # Panics
    /// If `query` was prepared for another space.
    #[must_use]
    pub fn search_filtered(
        &self,
        query: &Query,
        filtered: Filtered<'_>,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let ef = filtered.ef.max(filtered.k);
        let wide = ef.saturating_mul(WIDER);
        let passing = filtered.entries.passing.unwrap_or(u64::MAX);
        let cost = FilterCost::elsewhere_whole(passing, self.space.dim, wide);
        let search = |(ef, narrow): (usize, Narrow), stats: &mut SearchStats| {
            let passing = Passing::new(&filtered, self.len(), cost.looks(), ef);
            let found = self.search_for(query, (filtered.k, ef), narrow, &passing, stats);
            let is_opposed = passing.is_opposed(&found);
            (found, passing.ended.get(), is_opposed)
        };
        let narrow = Narrow::new(self.space.metric, filtered.k, ef);
        let mut found = match search((ef, narrow), stats) {
            (_, Some(Ended::InVain), _) => return Vec::new(),
            (found, Some(Ended::Over), _) | (found, None, false) => return found,
            (_, None, true) if cost.is_scan() => return Vec::new(),
            (found, None, true) => found,
        };
        // However far: what passes lies behind much that does not.
        let (more, ended, _) = search((wide, Narrow::not(wide)), stats);
        if ended == Some(Ended::InVain) {
            return Vec::new();
        }
        found.extend(more);
        found.sort_unstable();
        found.dedup_by_key(|found| found.row);
        found.truncate(filtered.k);
        found
    }
}
