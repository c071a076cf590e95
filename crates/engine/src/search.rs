//! The read path: nearest neighbours of a vector, never silently fewer than asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::FieldRef;
use longbow_index::{CodedRun, Entries, FilterCost, Neighbor, Query, SearchStats, TopK};

use crate::column_index::Reached;
use crate::effort::Effort;
use crate::error::{Error, Result};
use crate::filter::Made;
use crate::graph::{Graph, Wanted};
use crate::helpers::Helpers;
use crate::rows::{Rows, about};
use crate::schema::VectorColumn;
use crate::strategy::Strategy;
use crate::time_limits::TimeLimits;
use crate::view::View;

/// Most neighbours that one query may ask for.
pub const MAX_K: usize = 16_384;
/// Greatest effort that one query may ask for.
pub const MAX_EF: usize = 65_536;
/// Up to this share of rows passing a filter, those rows are scanned exactly instead of walking a graph of vectors.
const SCAN_SHARE: f64 = 0.05;
/// Up to this many rows passing a filter, they are scanned whatever their share.
const SCAN_ROWS: u64 = 10_000;
/// Of so many rows for each that is asked for, a walk finds enough.
const ENOUGH: usize = 4;
/// Queries that one thread takes at a time: between them it looks at the time limit.
const PIECE: usize = 32;
/// A thread is not worth fewer that walk the graph: several are under way at a time.
const LEAST_PIECE: usize = 8;

/// Codes of the rows that pass, and how they are searched.
#[derive(Clone, Copy)]
pub(crate) struct Coded<'a> {
    pub made: &'a Made,
    /// How many clusters are read.
    pub clusters: usize,
    /// What that costs, as [`FilterCost`] tells it.
    cost: f64,
}

impl Coded<'_> {
    /// Whether all clusters are read.
    pub fn is_whole(&self) -> bool {
        self.clusters >= self.made.codes.clusters()
    }
}

/// A recall half as far from all.
fn half_way_up(recall: f32) -> f32 {
    0.5 + 0.5 * recall
}

/// The neighbours of one query and what finding them took.
#[derive(Debug)]
pub struct Found {
    /// Best first.
    pub neighbors: Vec<Neighbor>,
    /// How they were found.
    pub strategy: Strategy,
    /// Rows that were compared one after the other, by their vectors or first by codes.
    pub rows_scanned: u64,
    /// Distances computed, and nodes of the graph visited.
    pub stats: SearchStats,
    /// The effort of the walk, or of the one in whose place rows were compared; none if there was neither.
    pub ef: Option<usize>,
    /// The recall that the effort was chosen for, as the index was measured.
    pub expected: Option<f32>,
    /// Why there are fewer than `k`, in figures.
    pub short_because: Option<String>,
    /// Whether the search ended before it had looked everywhere, since its budget ran out.
    pub is_partial: bool,
}

impl Found {
    /// Counts what a search beside it took.
    pub(crate) fn add(&mut self, other: &Found) {
        self.rows_scanned += other.rows_scanned;
        self.stats += other.stats;
        self.is_partial |= other.is_partial;
    }

    pub(crate) fn new(strategy: Strategy) -> Self {
        Found {
            neighbors: Vec::new(),
            strategy,
            rows_scanned: 0,
            stats: SearchStats::default(),
            ef: None,
            expected: None,
            short_because: None,
            is_partial: false,
        }
    }
}

/// Queries that ask alike, on one moment of a dataset.
pub(crate) struct Searcher<'a> {
    pub view: &'a View,
    pub column: &'a VectorColumn,
    /// Taken before the view.
    pub index: Option<Reached>,
    pub rows: Rows,
    pub k: usize,
    pub effort: Effort,
    /// The recall that is asked for, if one is.
    pub target: Option<f32>,
    pub exact: bool,
    pub max_distance: Option<f32>,
    /// Whether a walk that finds too few within that distance is made again, wider.
    pub may_widen: bool,
    pub limits: TimeLimits,
    /// The columns that the reply has of what is found.
    pub reply: &'a [FieldRef],
}

impl<'a> Searcher<'a> {
    /// With codes of the rows that pass, if they are asked for often: who searches by words has no use for them.
    pub fn with_codes(mut self) -> Self {
        let index = self.index.as_ref().filter(|_| !self.exact);
        if index.is_some_and(|index| index.graph.has_coded_tail()) {
            let matching = self.rows.matching.as_ref();
            self.rows.coded = matching.and_then(|of| of.codes(self.column, self.view));
        }
        self
    }

    /// Refuses vectors that the column cannot be searched for.
    pub fn check_vectors(&self, vectors: &[Vec<f32>]) -> Result<()> {
        vectors
            .iter()
            .try_for_each(|vector| self.check_vector(vector))
    }

    /// Finds the neighbours of each vector, which were checked, in pieces that the helpers share.
    pub fn find_all(&self, vectors: &[Vec<f32>], helpers: &Helpers) -> Result<Vec<Found>> {
        let is_little = self.is_by_graph() || self.are_small();
        let least = if is_little { LEAST_PIECE } else { 1 };
        let even = vectors.len().div_ceil(helpers.threads());
        helpers.map(vectors, even.clamp(least, PIECE), |piece| self.find(piece))
    }

    /// Finds the neighbours of each vector on this thread, several walks of the graph at a time.
    fn find(&self, vectors: &[Vec<f32>]) -> Result<Vec<Found>> {
        self.limits.check()?;
        let prepare = |vector: &Vec<f32>| Ok(Query::new(self.column.space, vector)?);
        let queries = vectors.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let mut all: Vec<Found> = queries.iter().map(|_| self.blank()).collect();
        if self.limits.are_spent() {
            for found in &mut all {
                found.is_partial = true;
                self.cut(found);
            }
            return Ok(all);
        }
        if self.is_by_graph() {
            self.walk(&queries, &mut all)?;
        }
        for (query, found) in queries.iter().zip(&mut all) {
            if !self.is_by_graph() {
                self.scan(query, 0, found)?;
            } else if !found.is_partial
                && (found.ef.is_none() || found.neighbors.len() < self.wanted())
            {
                // No walk suffices, or the graph ran out of reachable rows before it ran out of rows. Only a scan knows
                // them all.
                let is_coded = self.coded().is_some();
                found.strategy = match is_coded {
                    true => Strategy::GraphThenClusters,
                    false => Strategy::GraphThenExact,
                };
                let mut walked = std::mem::take(&mut found.neighbors);
                self.scan(query, 0, found)?;
                if found.is_partial || is_coded {
                    let scanned = &found.neighbors;
                    walked.retain(|of| scanned.iter().all(|other| other.row != of.row));
                    self.keep(walked, found);
                }
            }
            self.cut(found);
        }
        Ok(all)
    }

    /// What is known of an answer before the search.
    pub fn blank(&self) -> Found {
        Found::new(self.strategy())
    }

    fn check_vector(&self, vector: &[f32]) -> Result<()> {
        let column = || self.column.name.clone();
        self.column
            .space
            .check_query(vector)
            .map_err(|error| match error {
                longbow_index::Error::Dimension { expected, got } => Error::QueryDimension {
                    column: column(),
                    expected,
                    got,
                },
                longbow_index::Error::NotFinite { at, .. } => Error::QueryNotFinite {
                    column: column(),
                    position: at,
                },
                longbow_index::Error::TooLarge { at, value, most } => Error::QueryTooLarge {
                    column: column(),
                    position: at,
                    value,
                    most,
                },
                other => other.into(),
            })
    }

    pub fn is_by_graph(&self) -> bool {
        matches!(self.strategy(), Strategy::Graph | Strategy::GraphFiltered)
    }

    fn strategy(&self) -> Strategy {
        let passing = self.rows.matching.as_ref().map(|_| self.rows.passing);
        match (self.exact, &self.index, passing) {
            (true, _, None) | (_, None, None) => Strategy::Exact,
            (true, _, Some(_)) | (_, None, Some(_)) => Strategy::ExactFiltered,
            (false, Some(index), None) if self.is_small(index) => Strategy::Exact,
            (false, Some(_), None) => Strategy::Graph,
            (false, Some(_), Some(_)) if self.is_by_codes() => Strategy::ClustersFiltered,
            (false, Some(index), Some(rows)) if self.is_scan(index, rows) => {
                Strategy::ExactFiltered
            }
            (false, Some(_), Some(_)) => Strategy::GraphFiltered,
        }
    }

    /// Whether so few rows pass the filter that a scan of them is the better way.
    fn is_scan(&self, index: &Reached, passing: u64) -> bool {
        match &*index.graph {
            Graph::Flat | Graph::Hnsw(_) | Graph::SpFresh { .. } => {
                passing <= SCAN_ROWS || (passing as f64) < self.view.live as f64 * SCAN_SHARE
            }
            Graph::Quantized(_) => self.cost().is_some_and(|(_, cost)| cost.is_scan()),
        }
    }

    /// The effort of a walk, or the least that it begins with.
    pub fn least_effort(&self) -> usize {
        match &self.effort {
            Effort::Fixed(ef) => *ef.max(&self.k),
            Effort::Target(..) => self.k,
        }
    }

    /// How many rows pass, of how many in the graph; and what it takes to find the nearest without codes of their own.
    fn cost(&self) -> Option<((u64, u64), FilterCost)> {
        let Graph::Quantized(graph) = &*self.index.as_ref()?.graph else {
            return None;
        };
        let ef = self.least_effort();
        let dead = self.rows.matching.as_ref()?.len();
        let passing = self.rows.passing;
        let dead = dead.saturating_sub(passing);
        let share = (passing, (graph.len() as u64).max(passing));
        let dim = self.column.space.dim;
        let cost = FilterCost::new(share, dim, (self.k, ef));
        Some((share, cost.past_dead(dead)))
    }

    /// Codes of the rows that pass, if a search by them is the better way than others without a walk.
    pub fn coded(&self) -> Option<Coded<'_>> {
        let made = self.rows.coded.as_deref()?;
        let codes = &made.codes;
        let clusters = self.clusters_passing(codes);
        let cost = codes.cost(self.k, clusters);
        (cost < self.cost()?.1.scan).then_some(Coded {
            made,
            clusters,
            cost,
        })
    }

    /// The recall by which it is decided how many clusters of codes are read.
    pub fn recall_by_codes(&self) -> f32 {
        match (&self.effort, self.target) {
            (Effort::Fixed(ef), None) => CodedRun::recall_at(self.k, *ef),
            // Queries may be less like the rows than those by which it was measured.
            (Effort::Target(target, _), _) => half_way_up(*target),
            (Effort::Fixed(_), Some(target)) => half_way_up(target),
        }
    }

    /// Whether that is the better way than a walk, too.
    fn is_by_codes(&self) -> bool {
        let coded = self.coded().zip(self.cost());
        coded.is_some_and(|(coded, (share, cost))| cost.is_more_than(coded.cost, share))
    }

    /// How many neighbours there can be, at most.
    pub fn wanted(&self) -> usize {
        let rows = self
            .rows
            .matching
            .as_ref()
            .map_or(self.view.live, |rows| rows.len());
        let rows = rows.saturating_sub(self.rows.without.len() as u64);
        self.k.min(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    pub fn is_wanted(&self, row: u64) -> bool {
        self.rows.admit(row) && self.view.is_visible(row)
    }

    /// Walks the graph and scans the rows that are not yet in it.
    fn walk(&self, queries: &[Query], all: &mut [Found]) -> Result<()> {
        let Some(index) = &self.index else {
            return Ok(());
        };
        let watermark = index.watermark;
        let few = self.are_few(index);
        let from_graph = match &self.effort {
            _ if few => vec![Vec::new(); queries.len()],
            Effort::Fixed(ef) => self.walk_by(*ef, index, queries, all)?,
            Effort::Target(target, curve) => self.walk_to(*target, curve, (index, queries), all)?,
        };
        self.limits.check()?;
        for ((query, found), from_graph) in queries.iter().zip(&mut *all).zip(from_graph) {
            let from_graph = match few || self.lacks_living(from_graph.len(), index, found) {
                true => self.scan_living(query, index, found)?,
                false => from_graph,
            };
            // What a walk behind a filter lacks, or left to a scan, is not to be made up for by rows that wait.
            let is_short = from_graph.len() < self.wanted()
                && !found.is_partial
                && self.passing_below(watermark) >= (ENOUGH * self.k) as u64;
            if found.ef.is_none() || is_short || watermark >= self.view.next_row {
                found.neighbors = from_graph;
            } else {
                self.add_tail(query, index, from_graph, found)?;
            }
        }
        self.widen(index, queries, all)
    }

    /// Walks the graph for all queries with one effort.
    pub fn walk_by(
        &self,
        ef: usize,
        index: &Reached,
        queries: &[Query],
        all: &mut [Found],
    ) -> Result<Vec<Vec<Neighbor>>> {
        let wanted = |row: u64| row < index.watermark && self.is_wanted(row);
        let ef = ef.max(self.k);
        let mut stats = vec![SearchStats::default(); queries.len()];
        let at = (self.view, self.column);
        let matching = self.rows.matching.as_ref();
        let passing = self.passing_below(index.watermark);
        let coded = self.coded().map(|coded| coded.cost);
        let entries = |rows, passing| Entries {
            rows,
            passing: Some(passing),
            coded,
        };
        let filtered = matching.map(|rows| entries(rows.sample(), passing));
        // Dead rows that did not leave the graph yet are in the way like rows that do not pass.
        let among_dead = || Some(entries(&[], self.among_dead(index)?));
        let entries = filtered.or_else(among_dead);
        let was_cut = AtomicBool::new(false);
        let is_over = || {
            let spent = self.limits.are_spent();
            was_cut.fetch_or(spent, Ordering::Relaxed);
            spent
        };
        let wanted = Wanted {
            visible: &wanted,
            entries,
            is_over: self.limits.have_budget().then_some(&is_over),
            reply: self.reply,
        };
        let found = index
            .graph
            .search(queries, (self.k, ef), wanted, at, &mut stats)?;
        for (found, stats) in all.iter_mut().zip(stats) {
            found.stats += stats;
            found.ef = Some(ef);
            found.is_partial |= was_cut.load(Ordering::Relaxed);
        }
        Ok(found)
    }

    /// About how many rows below a row pass the filter, and may be found; none without a filter.
    fn passing_below(&self, end: u64) -> u64 {
        let Some(rows) = &self.rows.matching else {
            return 0;
        };
        // Dead rows are in the set, too, and rows that no walk finds yet.
        about(rows, |row| row < end && self.is_wanted(row))
    }

    /// Scans the rows from the watermark on, and keeps the best of them and of those from the graph.
    fn add_tail(
        &self,
        query: &Query,
        index: &Reached,
        from_graph: Vec<Neighbor>,
        found: &mut Found,
    ) -> Result<()> {
        if found.strategy == Strategy::Graph {
            found.strategy = Strategy::GraphAndTail;
        }
        let mut top = TopK::new(self.k);
        // First: the more is known, the fewer of the others are compared.
        for neighbor in from_graph {
            top.push(neighbor);
        }
        let from = self.scan_coded(query, index, &mut top, found)?;
        self.scan_from(query, from, &mut top, found)?;
        found.neighbors = top.into_sorted();
        Ok(())
    }

    /// Keeps the best of what was found already and of what was found now, which are other rows.
    fn keep(&self, before: Vec<Neighbor>, found: &mut Found) {
        let mut top = TopK::new(self.k);
        let now = std::mem::take(&mut found.neighbors);
        for neighbor in before.into_iter().chain(now) {
            top.push(neighbor);
        }
        found.neighbors = top.into_sorted();
    }

    /// Drops what is too far, and says why there are fewer than asked for.
    fn cut(&self, found: &mut Found) {
        let before = found.neighbors.len();
        if let Some(max) = self.max_distance {
            let space = self.column.space;
            found
                .neighbors
                .retain(|neighbor| space.to_distance_and_score(neighbor.distance).0 <= max);
        }
        let got = found.neighbors.len();
        if got >= self.k {
            return;
        }
        let why = match (self.max_distance, &self.rows.matching) {
            _ if found.is_partial => {
                format!("the budget ran out with {before} rows found")
            }
            (Some(max), _) if got < before => {
                let which = match found.strategy {
                    Strategy::Exact | Strategy::ExactFiltered | Strategy::GraphThenExact => {
                        "the nearest"
                    }
                    // It may have passed some by.
                    _ => "what the index took for the nearest",
                };
                format!("only {got} of {which} {before} rows are within {max}")
            }
            (_, Some(_)) => {
                format!("{before} of {} rows match the filter", self.view.live)
            }
            _ => format!(
                "the dataset holds {} rows with a vector in '{}'",
                before + self.rows.without.len(),
                self.column.name
            ),
        };
        found.short_because = Some(why);
    }
}
