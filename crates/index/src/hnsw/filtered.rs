//! Searches of the rows that pass a filter.

use std::cell::{Cell, RefCell};

use super::Hnsw;
use super::vectors::Probe;
use super::walk::{Admit, Found, take};
use crate::candidate::Candidate;
use crate::filter_cost::FilterCost;
use crate::filtered::Filtered;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::Neighbor;

/// Nodes that do not pass, for each that is to be held, after which a walk gives up, besides
const IN_VAIN: usize = 16;
/// as many times those that it meets if which pass has nothing to do with the query.
const OFF: f64 = 4.0;
/// Such nodes for any effort.
const FEWEST_IN_VAIN: usize = 64;
/// How many times as much a walk holds where what passes lies elsewhere than around the query.
const WIDER: usize = 8;

/// Takes nodes and their twins, of rows that pass, and gives up where too few do.
struct Passing<'a> {
    filtered: &'a Filtered<'a>,
    /// Nodes that may yet be met and not pass.
    left: Cell<usize>,
    /// How far those were that did not.
    others: RefCell<Vec<f32>>,
}

impl<'a> Passing<'a> {
    fn new(filtered: &'a Filtered<'a>, share: Option<f64>, ef: usize) -> Self {
        // In between, for each that passes.
        let others = share.map_or(f64::INFINITY, |share| (1.0 - share) / share);
        let expected = OFF * ef as f64 * others;
        let more = ef.saturating_mul(IN_VAIN).saturating_add(FEWEST_IN_VAIN);
        Passing {
            filtered,
            left: Cell::new((expected as usize).saturating_add(more)),
            others: RefCell::default(),
        }
    }

    fn gave_up(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether more of those that do not pass are nearer than all that were found, than by chance.
    fn is_opposed(&self, found: &[Neighbor], by_chance: usize) -> bool {
        let nearest = found.first().map_or(f32::INFINITY, |found| found.distance);
        let others = self.others.borrow();
        others.iter().filter(|other| **other < nearest).count() > by_chance
    }
}

impl Admit for Passing<'_> {
    #[inline(always)]
    unsafe fn admit(&self, graph: &Hnsw, probe: Probe<'_>, node: Candidate, found: &mut Found<'_>) {
        // SAFETY: the caller vouches for the node.
        if !unsafe { take(self.filtered.passes, graph, probe, node, found) } {
            self.left.set(self.left.get().saturating_sub(1));
            self.others.borrow_mut().push(node.distance());
        }
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.gave_up() || self.filtered.is_over.is_some_and(|is_over| is_over())
    }
}

impl Hnsw {
    /// As [`Hnsw::search`] for the rows that pass a filter. What passes around the query is found as without one. Where other
    /// rows are nearer than all that pass, more than by chance, the walk holds more, or gives up.
    ///
    /// The answer is empty if the walk gave up: then a scan of those that pass tells.
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
        let (k, entries) = (filtered.k, filtered.entries);
        let by_chance = entries.nearer_by_chance(self.len());
        let search = |ef: usize, stats: &mut SearchStats| {
            let passing = Passing::new(&filtered, entries.share(self.len()), ef);
            let found = self.search_for(query, (k, ef), &passing, stats);
            let is_opposed = passing.is_opposed(&found, by_chance);
            (found, passing.gave_up(), is_opposed)
        };
        let ef = filtered.ef.max(k);
        let (found, gave_up, is_opposed) = search(ef, stats);
        let wide = ef.saturating_mul(WIDER);
        let is_scan = |passing| FilterCost::elsewhere(passing, self.space.dim, wide).is_scan();
        if gave_up || is_opposed && entries.passing.is_some_and(is_scan) {
            return Vec::new();
        }
        if !is_opposed {
            return found;
        }
        match search(wide, stats) {
            (_, true, _) => Vec::new(),
            (found, ..) => found,
        }
    }
}
