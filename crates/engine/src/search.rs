//! The read path: nearest neighbours of a vector, never silently fewer than asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::FieldRef;
use longbow_index::{Entries, FilterCost, Neighbor, Query, SearchStats, TopK};

use crate::column_index::Reached;
use crate::effort::Effort;
use crate::error::{Error, Result};
use crate::filter::{Made, Matching};
use crate::graph::{Graph, Wanted};
use crate::helpers::Helpers;
use crate::schema::VectorColumn;
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
/// Rows by which it is judged how many of those that pass a filter a walk can find.
const JUDGED: usize = 128;
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

/// How a query was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// All rows were scanned.
    Exact,
    /// The rows that pass the filter were scanned.
    ExactFiltered,
    /// Those of the rows that pass the filter were scanned that are in the clusters nearest to the query.
    ClustersFiltered,
    /// The graph was walked.
    Graph,
    /// The graph was walked, and rows not yet in it were scanned.
    GraphAndTail,
    /// The graph was walked, returning only rows that pass the filter.
    GraphFiltered,
    /// The graph gave fewer than there are, or left what it would miss, so all rows that pass were scanned.
    GraphThenExact,
    /// The same, and those were scanned that are in the clusters nearest to the query.
    GraphThenClusters,
}

impl Strategy {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Exact => "exact",
            Strategy::ExactFiltered => "exact_filtered",
            Strategy::ClustersFiltered => "clusters_filtered",
            Strategy::Graph => "graph",
            Strategy::GraphAndTail => "graph_and_tail",
            Strategy::GraphFiltered => "graph_filtered",
            Strategy::GraphThenExact => "graph_then_exact",
            Strategy::GraphThenClusters => "graph_then_clusters",
        }
    }
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
    /// The effort of the walk, if there was one.
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

/// The rows that may be found, of those that a view shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// Those that pass the filter, if there is one; rows that the view does not show may be among them.
    pub matching: Option<Matching>,
    /// Not these, which are few: examples.
    pub without: Vec<u64>,
    /// Codes of those that pass, by which they are searched.
    pub coded: Option<Arc<Made>>,
}

impl Rows {
    /// Whether a row may be found.
    #[inline]
    pub fn admit(&self, row: u64) -> bool {
        let matching = self.matching.as_ref();
        matching.is_none_or(|rows| rows.contains(row)) && !self.without.contains(&row)
    }

    /// Codes of those that pass, for a search of a column that need not be exact.
    pub fn codes(
        &self,
        (view, column): (&View, &VectorColumn),
        index: &Reached,
    ) -> Option<Arc<Made>> {
        let matching = self.matching.as_ref()?;
        let may_have = index.graph.has_coded_tail();
        may_have.then(|| matching.codes(column, view)).flatten()
    }

    /// Whether all may be found.
    pub fn are_all(&self) -> bool {
        self.matching.is_none() && self.without.is_empty()
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
    pub limits: TimeLimits,
    /// The columns that the reply has of what is found.
    pub reply: &'a [FieldRef],
}

impl Searcher<'_> {
    /// Refuses vectors that the column cannot be searched for.
    pub fn check_vectors(&self, vectors: &[Vec<f32>]) -> Result<()> {
        vectors
            .iter()
            .try_for_each(|vector| self.check_vector(vector))
    }

    /// Finds the neighbours of each vector, which were checked, in pieces that the helpers share.
    pub fn find_all(&self, vectors: &[Vec<f32>], helpers: &Helpers) -> Result<Vec<Found>> {
        let least = if self.is_by_graph() { LEAST_PIECE } else { 1 };
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
                found.strategy = match self.coded() {
                    Some(coded) if !coded.is_whole() => Strategy::GraphThenClusters,
                    _ => Strategy::GraphThenExact,
                };
                let mut walked = std::mem::take(&mut found.neighbors);
                self.scan(query, 0, found)?;
                if found.is_partial {
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
        let column = &self.column.name;
        if vector.len() != self.column.space.dim {
            let expected = self.column.space.dim;
            return Err(Error::QueryDimension {
                column: column.clone(),
                expected,
                got: vector.len(),
            });
        }
        if let Some(position) = vector.iter().position(|value| !value.is_finite()) {
            return Err(Error::QueryNotFinite {
                column: column.clone(),
                position,
            });
        }
        Ok(())
    }

    pub fn is_by_graph(&self) -> bool {
        matches!(self.strategy(), Strategy::Graph | Strategy::GraphFiltered)
    }

    fn strategy(&self) -> Strategy {
        let matching = self.rows.matching.as_ref().map(|rows| rows.len());
        match (self.exact, &self.index, matching) {
            (true, _, None) | (_, None, None) => Strategy::Exact,
            (true, _, Some(_)) | (_, None, Some(_)) => Strategy::ExactFiltered,
            (false, Some(_), None) => Strategy::Graph,
            (false, Some(_), Some(_)) if let Some(coded) = self.coded_only() => {
                match coded.is_whole() {
                    true => Strategy::ExactFiltered,
                    false => Strategy::ClustersFiltered,
                }
            }
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
            Graph::Quantized(_) => self.cost().is_some_and(|cost| cost.is_scan()),
        }
    }

    /// What it takes to find the nearest of the rows that pass, without codes of their own.
    fn cost(&self) -> Option<FilterCost> {
        let Graph::Quantized(graph) = &*self.index.as_ref()?.graph else {
            return None;
        };
        let ef = match &self.effort {
            Effort::Fixed(ef) => *ef,
            Effort::Target(..) => self.k,
        };
        let passing = self.rows.matching.as_ref()?.len();
        let rows = (graph.len() as u64).max(passing);
        let dim = self.column.space.dim;
        Some(FilterCost::new((passing, rows), dim, (self.k, ef)))
    }

    /// Codes of the rows that pass, if a search by them is the better way than others without a walk.
    pub fn coded(&self) -> Option<Coded<'_>> {
        let made = self.rows.coded.as_deref()?;
        let codes = &made.codes;
        let clusters = match (&self.effort, self.target) {
            (Effort::Fixed(ef), None) => codes.clusters_at(self.k, *ef),
            // Queries may be less like the rows than those by which it was measured.
            (Effort::Target(target, _), _) => codes.clusters_for(self.k, half_way_up(*target)),
            (Effort::Fixed(_), Some(target)) => codes.clusters_for(self.k, half_way_up(target)),
        };
        let cost = codes.cost(self.k, clusters);
        (cost < self.cost()?.scan).then_some(Coded {
            made,
            clusters,
            cost,
        })
    }

    /// The same, if it is the better way than a walk, too.
    fn coded_only(&self) -> Option<Coded<'_>> {
        let cost = self.cost()?;
        self.coded().filter(|coded| cost.is_more_than(coded.cost))
    }

    /// How many neighbours there can be, at most.
    fn wanted(&self) -> usize {
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
        let from_graph = match &self.effort {
            Effort::Fixed(ef) => self.walk_by(*ef, index, queries, all)?,
            Effort::Target(target, curve) => self.walk_to(*target, curve, (index, queries), all)?,
        };
        self.limits.check()?;
        for ((query, found), from_graph) in queries.iter().zip(all).zip(from_graph) {
            if found.ef.is_none() || watermark >= self.view.next_row {
                found.neighbors = from_graph;
            } else {
                self.add_tail(query, index, from_graph, found)?;
            }
        }
        Ok(())
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
        let coded = self.coded().map(|coded| coded.cost);
        let entries = |rows, passing| Entries {
            rows,
            passing: Some(passing),
            coded,
        };
        let filtered = matching.map(|rows| {
            // Dead rows are in the set, too, and rows that no walk finds yet.
            let some = rows.sample().iter();
            let some = some.step_by(rows.sample().len().div_ceil(JUDGED).max(1));
            let (mut asked, mut shown) = (0, 0);
            some.for_each(|row| {
                asked += 1;
                shown += u64::from(wanted(*row));
            });
            let passing = rows.len().saturating_mul(shown).checked_div(asked);
            entries(rows.sample(), passing.unwrap_or(0))
        });
        // Dead rows that did not leave the graph yet are in the way like rows that do not pass.
        let many_dead = self.view.live * 4 < index.graph.len() as u64 * 3;
        let entries = filtered.or(many_dead.then_some(entries(&[], self.view.live)));
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
                format!("only {got} of the nearest {before} rows are within {max}")
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
