//! Searches of graphs in which few rows live: of small datasets, and of graphs of the dead.
//!
//! Who replaces most rows of a dataset within seconds leaves a graph of dead rows, whose new versions wait for their turn. A walk
//! finds its way by all of them, and looks at the more dead ones for each living one that it is to hold. Where few live, these
//! are compared one by one, by their codes.

use longbow_index::{CodedRun, FilterCost, Neighbor, QuantizedGraph, Query, TopK};

use crate::coded_tail::Coded;
use crate::column_index::Reached;
use crate::dead::Living;
use crate::error::Result;
use crate::graph::Graph;
use crate::search::{Found, Searcher};
use crate::strategy::Strategy;

/// Rows of a set by which it is judged how many of it live.
const JUDGED: usize = 32;

/// Rows for each that a walk would hold, up to which it looks at most of them on its way: to compare all takes no longer, and is exact.
const SMALL: u64 = 4;
/// Bytes of vectors that are compared by the time that a walk takes, however few it holds.
const LITTLE: u64 = 64 << 10;

/// Whether so many of some rows are dead that it matters.
fn is_few(living: u64, rows: u64) -> bool {
    living * 4 < rows * 3
}

impl Searcher<'_> {
    /// How many rows of the graph live: those of the dataset that do not wait for it. Some of them may have no vector.
    fn living(&self, index: &Reached) -> u64 {
        let view = self.view;
        match &*index.graph {
            Graph::Quantized(_) | Graph::Hnsw(_) => view.living_below(index.watermark),
            // What a search of postings reads does not depend on it.
            Graph::Flat | Graph::SpFresh { .. } => view.live,
        }
    }

    /// How many rows of the graph live, if so many are dead that they are in the way like rows that do not pass a filter.
    pub(crate) fn among_dead(&self, index: &Reached) -> Option<u64> {
        let view = self.view;
        let is_few = |living| is_few(living, index.graph.len() as u64);
        // To count those that wait takes longer, the more they are.
        let waiting = view.next_row.saturating_sub(index.watermark);
        if !is_few(view.live.saturating_sub(waiting)) {
            return None;
        }
        Some(self.living(index)).filter(|living| is_few(*living))
    }

    /// Whether all rows of the dataset are so few, of which a graph of whole vectors would compare most.
    pub(crate) fn is_small(&self, index: &Reached) -> bool {
        let by_vectors = matches!(&*index.graph, Graph::Hnsw(_));
        // Those of other types are converted as a whole for each scan.
        by_vectors && (self.are_short() || self.column.native && self.are_small())
    }

    fn are_short(&self) -> bool {
        let bytes = self.column.space.row_bytes() as u64;
        self.view.next_row.saturating_mul(bytes) <= LITTLE
    }

    pub(crate) fn are_small(&self) -> bool {
        let few = SMALL * self.least_effort() as u64;
        // A scan goes past versions of rows that died, as long as they are there.
        self.view.live <= few && self.view.next_row <= 2 * few
    }

    /// Whether the rows of a graph of codes that live are so few that to compare them all is the better way than a walk.
    pub(crate) fn are_few(&self, index: &Reached) -> bool {
        let Graph::Quantized(graph) = &*index.graph else {
            return false;
        };
        if self.rows.matching.is_some() || !graph.is_prepared() {
            return false;
        }
        let (rows, dim) = (graph.len() as u64, self.column.space.dim);
        let at = (self.k, self.least_effort());
        let living = match self.are_small() {
            true => Some(self.living(index)),
            false => self.among_dead(index),
        };
        living.is_some_and(|living| FilterCost::new((living, rows), dim, at).is_scan())
    }

    /// Whether a walk that ended found too few of the rows that live: among many dead it leaves them, where they lie elsewhere than around
    /// the query.
    pub(crate) fn lacks_living(&self, rows: usize, index: &Reached, found: &Found) -> bool {
        let by_codes = matches!(&*index.graph, Graph::Quantized(_));
        let is_whole = by_codes && self.rows.matching.is_none() && !found.is_partial;
        if rows >= self.k || !is_whole || found.ef.is_none() {
            return false;
        }
        let living = self.living(index).min(index.graph.len() as u64);
        let living = living.saturating_sub(self.rows.without.len() as u64);
        (rows as u64) < living.min(self.k as u64)
    }

    /// Of how many clusters of a run of rows that wait those are read that are nearest to a query, of which so many rows may be found: of all
    /// where many of its rows are dead, since it was measured for all how many hold the nearest.
    pub(crate) fn clusters_of(&self, run: &Coded, wanted: usize) -> usize {
        let view = self.view;
        let living = view.dead.living(run.first..run.end, view.index);
        let living: u64 = living.map(Living::count).sum();
        match is_few(living, run.codes.len() as u64) {
            true => run.codes.clusters(),
            false => run.codes.clusters_for(wanted, self.recall_by_codes()),
        }
    }

    /// The same of the rows that pass a filter, of which it is judged by some.
    pub(crate) fn clusters_passing(&self, codes: &CodedRun) -> usize {
        let some = self
            .rows
            .matching
            .as_ref()
            .map_or(&[][..], |of| of.sample());
        let some = some.iter().step_by((some.len() / JUDGED).max(1));
        let living = some.clone().filter(|row| self.view.is_visible(**row));
        match is_few(living.count() as u64, some.count() as u64) {
            true => codes.clusters(),
            false => codes.clusters_for(self.k, self.recall_by_codes()),
        }
    }

    /// The nearest of the rows of the graph that live, by comparing all of them.
    pub(crate) fn scan_living(
        &self,
        query: &Query,
        index: &Reached,
        found: &mut Found,
    ) -> Result<Vec<Neighbor>> {
        let mut top = TopK::new(self.k);
        if let Graph::Quantized(graph) = &*index.graph {
            self.offer_living((graph, index), query, &mut top, found)?;
            found.strategy = Strategy::Codes;
            found.ef.get_or_insert(self.least_effort());
            found.expected = Some(match index.watermark < self.view.next_row {
                true => self.recall_by_codes(),
                false => 1.0,
            });
        }
        Ok(top.into_sorted())
    }

    /// Offers the rows of a graph of codes that live, by their codes.
    pub(crate) fn offer_living(
        &self,
        (graph, index): (&QuantizedGraph, &Reached),
        query: &Query,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        let rows = self.view.living(index.watermark);
        let rows = rows.filter(|row| !self.rows.without.contains(row));
        self.scan_codes(graph, rows, query, top, found)
    }
}

#[cfg(test)]
mod tests;
