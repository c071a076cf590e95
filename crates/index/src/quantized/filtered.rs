//! Searches of the rows that pass a filter.

use super::QuantizedGraph;
use super::ahead::Ahead;
use super::filtered_walk::FilteredWalk;
use super::front::Front;
use super::level::{LEVELS, Level};
use super::passing::Passing;
use super::scratch::Scratch;
use super::search::{Steps, TWINS, Until};
use super::through::{self, Through};
use super::walk::{Admit, Walk};
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::filtered::{Entries, Filtered};
use crate::narrow::Narrow;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::Neighbor;

/// Takes nodes of the level above the lowest: the nearest is where the walk begins.
struct Above;

impl Admit for Above {
    #[inline(always)]
    unsafe fn admit(
        &self,
        _: &Level,
        _: (&mut Front, &mut Front),
        found: &mut Vec<Candidate>,
        node: Candidate,
    ) {
        found.push(node);
    }
}

/// A walk through all nodes, or first through the levels above, then along what passes of the lowest.
enum Phase<'a> {
    Through(Walk<'a, Through<'a>>),
    Above(Walk<'a, Above>),
    Below(FilteredWalk<'a>),
    /// Between two of them.
    Between(Box<Scratch>),
}

impl Phase<'_> {
    fn into_scratch(self) -> Box<Scratch> {
        match self {
            Phase::Through(walk) => walk.scratch,
            Phase::Above(walk) => walk.scratch,
            Phase::Below(walk) => walk.scratch,
            Phase::Between(scratch) => scratch,
        }
    }
}

/// A search of a batch.
struct FilteredSearch<'a> {
    passing: Passing<'a>,
    k: usize,
    ef: usize,
    entries: Entries<'a>,
    ahead: Ahead<'a>,
    /// Whether it may go through all nodes, which it tries once.
    may_go_through: bool,
    /// Whether what passes lies elsewhere than around the query, once a walk has found that out;
    is_opposed: Option<bool>,
    /// what that walk found,
    before: Vec<Candidate>,
    /// and how many nodes may not pass and be nearer than all that do by chance.
    by_chance: usize,
    phase: Phase<'a>,
}

impl Steps for FilteredSearch<'_> {
    #[inline(always)]
    fn step(&mut self) -> bool {
        match &mut self.phase {
            Phase::Below(walk) => {
                if walk.step() {
                    return true;
                }
                if let Some(start) = walk.through.take() {
                    // SAFETY: walks find nodes that were written.
                    unsafe { self.go_through(Some(start)) };
                    return true;
                }
                // Once: what it finds is of the search that has ended.
                if self.is_opposed.is_none() {
                    let is_opposed = walk.is_opposed(self.by_chance);
                    self.is_opposed = Some(is_opposed);
                    if is_opposed {
                        self.go_elsewhere();
                        return true;
                    }
                } else if walk.is_left {
                    self.before.clear();
                }
                self.keep();
                false
            }
            Phase::Through(walk) => {
                if walk.step() {
                    return true;
                }
                let is_opposed = walk.admit.is_opposed(&walk.scratch);
                if is_opposed {
                    self.is_opposed = Some(true);
                    self.go_elsewhere();
                }
                is_opposed
            }
            Phase::Above(walk) => {
                if !walk.step() {
                    self.go_down();
                }
                true
            }
            Phase::Between(_) => false,
        }
    }

    fn cut(&mut self) {
        match &mut self.phase {
            // Not nodes of the lowest level.
            Phase::Above(walk) => walk.scratch.found.clear(),
            Phase::Through(walk) => walk.cut(),
            Phase::Below(_) | Phase::Between(_) => {}
        }
        self.keep();
    }

    #[inline(always)]
    fn scratch(&mut self) -> &mut Scratch {
        match &mut self.phase {
            Phase::Above(walk) => &mut walk.scratch,
            Phase::Through(walk) => &mut walk.scratch,
            Phase::Below(walk) => &mut walk.scratch,
            Phase::Between(scratch) => scratch,
        }
    }
}

impl FilteredSearch<'_> {
    /// What it is in, which it leaves.
    fn leave(&mut self) -> Box<Scratch> {
        let between = Phase::Between(Box::default());
        std::mem::replace(&mut self.phase, between).into_scratch()
    }

    /// Begins a walk for what lies elsewhere, and keeps what was found.
    fn go_elsewhere(&mut self) {
        self.before = std::mem::take(&mut self.scratch().found);
        self.go_along();
    }

    /// Adds to what was found what an earlier walk had found.
    fn keep(&mut self) {
        if self.before.is_empty() {
            return;
        }
        let before = std::mem::take(&mut self.before);
        let graph = self.passing.graph;
        let found = &mut self.scratch().found;
        found.extend(before);
        found.sort_unstable();
        found.dedup();
        graph.keep_each_row_once(found);
    }

    /// Begins a walk through all nodes, from a node of the lowest level or anew.
    ///
    /// # Safety
    /// The start was written, and the write happened before.
    unsafe fn go_through(&mut self, start: Option<Candidate>) {
        let scratch = self.leave();
        self.may_go_through = false;
        let narrow = Narrow::new(self.passing.graph.space.metric, self.k, self.ef);
        let how = (self.by_chance, narrow, self.ahead.clone());
        // SAFETY: the caller vouches for the start.
        let walk = unsafe { Through::walk(self.passing, how, start, scratch) };
        self.phase = walk.map_or_else(Phase::Between, Phase::Through);
    }

    /// Begins a walk along the nodes that pass.
    fn go_along(&mut self) {
        let scratch = self.leave();
        let graph = self.passing.graph;
        let breadth = (graph.breadth(), graph.breadth());
        match Walk::new(graph, (1, LEVELS - 1), breadth, Above, scratch) {
            Ok(walk) => self.phase = Phase::Above(walk),
            Err(scratch) => {
                self.phase = Phase::Between(scratch);
                // SAFETY: there is no start.
                unsafe { self.begin_below(None) };
            }
        }
    }

    /// Begins on the lowest level, below the nearest node of the level above.
    fn go_down(&mut self) {
        let graph = self.passing.graph;
        let found = &self.scratch().found;
        let blocks = &graph.levels[1].blocks;
        // SAFETY: walks find nodes that were written, and those stand for nodes of the level below that were.
        unsafe {
            let staying = found
                .iter()
                .filter(|found| !blocks.is_leaving(found.node()));
            let nearest = staying.min().or_else(|| found.iter().min()).copied();
            let nearest =
                nearest.map(|c| Candidate::new(c.distance(), blocks.row(c.node()) as u32));
            self.begin_below(nearest);
        }
    }

    /// # Safety
    /// `start` was written, and the write happened before.
    unsafe fn begin_below(&mut self, start: Option<Candidate>) {
        let graph = self.passing.graph;
        let scratch = self.leave();
        let start = start.or_else(|| {
            let entry = graph.ground().entry()?;
            let (blocks, encoder) = (&graph.ground().blocks, graph.encoder());
            // SAFETY: an entry was written before it became one.
            let distance = unsafe { blocks.distance(encoder, &scratch.query, entry) };
            Some(Candidate::new(distance, entry))
        });
        self.phase = match start {
            // SAFETY: the caller vouches for the start.
            Some(start) => unsafe {
                let at = (start, self.entries);
                let how = (self.ef, self.ahead.clone());
                let mut walk = FilteredWalk::new(self.passing, how, at, scratch);
                walk.may_go_through = self.may_go_through;
                walk.is_opposed = self.is_opposed == Some(true);
                Phase::Below(walk)
            },
            None => Phase::Between(scratch),
        };
    }
}

impl QuantizedGraph {
    /// The `k` nearest of the rows that pass, nearest first, by exact distances, as far as a walk along those that pass
    /// finds them. Of few rows, [`QuantizedGraph::scan_rows`] finds the nearest in less time, and for sure:
    /// [`crate::FilterCost`] tells.
    ///
    /// The answer is shorter than `k` if the walk finds no more, and empty if what passes lies elsewhere than around the
    /// query, and is so little that a scan of it is the better way: then a scan tells whether there are more.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    #[must_use]
    pub fn search_filtered(
        &self,
        query: &Query,
        filtered: Filtered<'_>,
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let _visit = self.enter();
        let ahead = self.ahead(originals, filtered.k);
        let Some(search) = self.begin_filtered(query, filtered, ahead) else {
            return Vec::new();
        };
        let mut search = Until::new(search, filtered.is_over);
        while search.step() {}
        self.ask_originals(filtered.k, originals, search.scratch());
        self.end_filtered(query, filtered.k, originals, search.walk, stats)
    }

    /// As [`QuantizedGraph::search_filtered`] for each of many queries, in less time than one by one. `stats` are those of
    /// each.
    ///
    /// # Panics
    /// If a query was prepared for another space, or there are fewer `stats` than queries.
    #[must_use]
    pub fn search_filtered_each(
        &self,
        queries: &[Query],
        filtered: Filtered<'_>,
        originals: &dyn VectorSource,
        stats: &mut [SearchStats],
    ) -> Vec<Vec<Neighbor>> {
        let _visit = self.enter();
        let mut answers = vec![Vec::new(); queries.len()];
        let k = if queries.len() == 1 { filtered.k } else { 0 };
        self.in_turns(
            (queries.len(), filtered.k, originals),
            |place| {
                let ahead = self.ahead(originals, k);
                let search = self.begin_filtered(&queries[place], filtered, ahead)?;
                Some(Until::new(search, filtered.is_over))
            },
            |place, Until { walk: search, .. }| {
                let (query, stats) = (&queries[place], &mut stats[place]);
                answers[place] = self.end_filtered(query, filtered.k, originals, search, stats);
            },
        );
        answers
    }

    /// Begins a search; `None` if nothing can be found.
    fn begin_filtered<'a>(
        &'a self,
        query: &Query,
        filtered: Filtered<'a>,
        ahead: Ahead<'a>,
    ) -> Option<FilteredSearch<'a>> {
        if filtered.k == 0 {
            return None;
        }
        let mut scratch = self.prepare_query(query)?;
        self.fill_lut(&mut scratch);
        let passing = Passing {
            graph: self,
            row: filtered.passes,
            twins: filtered.k.max(TWINS),
        };
        let mut search = FilteredSearch {
            passing,
            k: filtered.k,
            ef: filtered.ef.max(filtered.k),
            entries: filtered.entries,
            ahead,
            may_go_through: true,
            is_opposed: None,
            before: Vec::new(),
            by_chance: match filtered.entries.rows {
                // With nowhere else to begin, another walk would find the same.
                [] => usize::MAX,
                _ => filtered.entries.nearer_by_chance(self.len()),
            },
            phase: Phase::Between(scratch),
        };
        let most = |passing| through::is_for(passing, self.len());
        if filtered.entries.passing.is_some_and(most) {
            // SAFETY: there is no start.
            unsafe { search.go_through(None) };
        } else {
            search.go_along();
        }
        Some(search)
    }

    /// Ends a search whose walk has ended.
    fn end_filtered(
        &self,
        query: &Query,
        k: usize,
        originals: &dyn VectorSource,
        search: FilteredSearch<'_>,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let mut scratch = search.phase.into_scratch();
        let found = self.rerank(query, k, originals, &mut scratch);
        *stats += scratch.stats;
        self.pool.give(scratch);
        found
    }
}
