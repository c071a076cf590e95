//! The exact part of a search: rows compared one by one.

use longbow_index::{Aim, QuantizedGraph, Query, TopK, flat};

use crate::column_index::Reached;
use crate::error::Result;
use crate::filter::RowSet;
use crate::graph::Graph;
use crate::originals::Originals;
use crate::search::{Coded, Found, Searcher};
use crate::vectors::Vectors;

/// Rows that are compared before the time limits are looked at.
const PIECE: usize = 4_096;
/// The same for rows that are compared by their codes: each piece has some compared by their vectors.
const CODED_PIECE: usize = 65_536;
/// Clusters of waiting rows of which a search reads no fewer, so that it finds a row by its own vector even if that lies between two.
const FEWEST_CLUSTERS: usize = 2;

impl Searcher<'_> {
    /// Scans the rows from `from` on.
    pub fn scan(&self, query: &Query, from: u64, found: &mut Found) -> Result<()> {
        let mut top = TopK::new(self.k);
        self.scan_from(query, from, &mut top, found)?;
        found.neighbors = top.into_sorted();
        Ok(())
    }

    /// Offers the rows from `from` on.
    pub fn scan_from(
        &self,
        query: &Query,
        from: u64,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        match &self.rows.matching {
            None => self.scan_all(query, from, top, found),
            Some(rows) => match self.coded() {
                Some(coded) if from == 0 => self.scan_made(coded, rows, query, top, found),
                _ => self.scan_those(rows, query, from, top, found),
            },
        }
    }

    /// Offers those of the rows that pass a filter and have codes that are in the clusters nearest to the query; and all that came
    /// since.
    fn scan_made(
        &self,
        coded: Coded<'_>,
        rows: &RowSet,
        query: &Query,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        if self.is_over(found)? {
            return Ok(());
        }
        let shown = |row: u64| self.is_shown(row);
        let (codes, stats) = (&coded.made.codes, &mut found.stats);
        match self.codes() {
            Some(graph) if !coded.is_whole() => {
                let few = (self.k, coded.clusters);
                let originals = Originals::new(self.view, self.column);
                let (near, scanned) = codes.nearest(query, few, &shown, &originals, stats);
                originals.check()?;
                // These count where they are compared again.
                found.rows_scanned += (scanned - near.len()) as u64;
                self.scan_codes(graph, near.into_iter(), query, top, found)?;
            }
            _ => {
                let originals = Originals::new(self.view, self.column);
                let all = codes.clusters();
                let aim = codes.frame().aim(query);
                let scanned = codes.scan(&aim, all, (0, &shown), &originals, top, stats);
                found.rows_scanned += scanned as u64;
                originals.check()?;
            }
        }
        match coded.made.is_whole(rows) {
            true => Ok(()),
            false => self.scan_those(rows, query, coded.made.end, top, found),
        }
    }

    /// Offers those of `rows` from `from` on that the view shows.
    pub fn scan_those(
        &self,
        rows: &RowSet,
        query: &Query,
        from: u64,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        match self.codes() {
            Some(graph) => {
                let shown = rows.iter_from(from).filter(|row| self.is_shown(*row));
                self.scan_codes(graph, shown, query, top, found)
            }
            None if self.column.native && rows.len() < self.view.next_row / 64 => {
                self.scan_each(rows, query, from, top, found)
            }
            None => self.scan_some(rows, query, from, top, found),
        }
    }

    /// Offers the rows from the watermark on that have codes and may be nearer than what `top` holds, and tells which row is the first
    /// behind them.
    pub fn scan_coded(
        &self,
        query: &Query,
        index: &Reached,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<u64> {
        let mut from = index.watermark;
        let runs = index.coded.iter().flat_map(|runs| runs.iter());
        let originals = Originals::new(self.view, self.column);
        let mut aim: Option<Aim<'_>> = None;
        for run in runs.filter(|run| run.end > index.watermark) {
            if self.is_over(found)? {
                break;
            }
            debug_assert!(run.first <= from, "no row between is without codes");
            let wanted = |row: u64| self.is_wanted(row);
            let rows = (from, &wanted as &dyn Fn(u64) -> bool);
            let codes = &run.codes;
            // Where few rows are wanted, or some are missed, those that lie elsewhere may be needed.
            let clusters = match self.rows.matching.is_none() && top.bound() < f32::INFINITY {
                true => self
                    .clusters_of(run, self.expected_among(codes.len()))
                    .max(FEWEST_CLUSTERS),
                false => codes.clusters(),
            };
            let stats = &mut found.stats;
            let aim = match &mut aim {
                Some(aim) if aim.is_of(codes) => aim,
                other => other.insert(codes.frame().aim(query)),
            };
            let scanned = codes.scan(aim, clusters, rows, &originals, top, stats);
            found.rows_scanned += scanned as u64;
            from = run.end;
        }
        originals.check()?;
        Ok(from)
    }

    /// How many of the nearest may be among so many rows: twice as many as by chance, since what came together may be alike.
    fn expected_among(&self, rows: usize) -> usize {
        let share = rows as f64 / self.view.live.max(1) as f64;
        let rows = (2.0 * self.k as f64 * share).ceil() as usize;
        rows.clamp(1, self.k.max(1))
    }

    fn scan_all(&self, query: &Query, from: u64, top: &mut TopK, found: &mut Found) -> Result<()> {
        for part in self.view.parts(from) {
            let Some(vectors) = Vectors::of(part.batch, self.column)? else {
                continue;
            };
            for run in &part.runs {
                let visible = |row: u64| {
                    self.is_wanted(row)
                        && (vectors.is_dense()
                            || vectors
                                .row(run.start + (row - run.first_row) as usize)
                                .is_some())
                };
                for offset in (0..run.len).step_by(PIECE) {
                    if self.is_over(found)? {
                        return Ok(());
                    }
                    let rows = PIECE.min(run.len - offset);
                    let bytes = vectors.rows(run.start + offset, rows);
                    let first = run.first_row + offset as u64;
                    flat::scan(query, first, bytes, &visible, top, &mut found.stats);
                    found.rows_scanned += rows as u64;
                }
            }
        }
        Ok(())
    }

    /// Whether the search is to end with what it has, which then is known of what was found.
    fn is_over(&self, found: &mut Found) -> Result<bool> {
        self.limits.check()?;
        found.is_partial |= self.limits.are_spent();
        Ok(found.is_partial)
    }

    /// The graph by whose codes rows are compared, unless vectors are asked for.
    fn codes(&self) -> Option<&QuantizedGraph> {
        match &*self.index.as_ref()?.graph {
            Graph::Quantized(graph) if !self.exact && graph.is_prepared() => Some(graph),
            _ => None,
        }
    }

    /// Scans rows that the view shows by their codes, which leaves few to be compared by their vectors: for the
    /// same answer a fraction of the memory is read.
    pub fn scan_codes(
        &self,
        graph: &QuantizedGraph,
        shown: impl Iterator<Item = u64>,
        query: &Query,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        let originals = Originals::new(self.view, self.column);
        let (mut missing, mut shown) = (Vec::new(), shown.peekable());
        let piece = match self.limits.have_budget() {
            true => CODED_PIECE,
            false => usize::MAX,
        };
        while shown.peek().is_some() && !self.is_over(found)? {
            let mut scanned = 0;
            let some = shown.by_ref().take(piece).inspect(|_| scanned += 1);
            let known = missing.len();
            let counts = (&mut missing, &mut found.stats);
            for neighbor in graph.scan_rows(query, self.k, some, &originals, counts) {
                top.push(neighbor);
            }
            found.rows_scanned += scanned - (missing.len() - known) as u64;
        }
        for missing in missing.chunks(PIECE) {
            if self.is_over(found)? {
                break;
            }
            let vectors = missing
                .iter()
                .filter_map(|row| Some((*row, originals.of(*row)?)));
            compare(query, &mut vectors.collect(), top, found);
        }
        originals.check()
    }

    /// Scans those of `rows` that the view shows, batch by batch.
    fn scan_some(
        &self,
        rows: &RowSet,
        query: &Query,
        from: u64,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        let mut rows = rows.iter_from(from).peekable();
        for part in self.view.parts(from) {
            let Some(vectors) = Vectors::of(part.batch, self.column)? else {
                continue;
            };
            let mut asked = Vec::new();
            for run in &part.runs {
                let end = run.first_row + run.len as u64;
                while let Some(row) = rows.next_if(|row| *row < end) {
                    let at = row.checked_sub(run.first_row);
                    let vector = at.and_then(|at| vectors.row(run.start + at as usize));
                    if self.is_shown(row) {
                        asked.extend(vector.map(|vector| (row, vector)));
                    }
                    if asked.len() == PIECE {
                        if self.is_over(found)? {
                            return Ok(());
                        }
                        compare(query, &mut asked, top, found);
                    }
                }
            }
            if self.is_over(found)? {
                return Ok(());
            }
            compare(query, &mut asked, top, found);
        }
        Ok(())
    }

    /// Whether a row that passes the filter is there and may be found.
    fn is_shown(&self, row: u64) -> bool {
        self.view.is_visible(row) && !self.rows.without.contains(&row)
    }

    /// Scans those of `rows` that the view shows, which are few of all: each is looked up, and nothing is read between them.
    fn scan_each(
        &self,
        rows: &RowSet,
        query: &Query,
        from: u64,
        top: &mut TopK,
        found: &mut Found,
    ) -> Result<()> {
        let originals = Originals::new(self.view, self.column);
        let shown = rows.iter_from(from).filter(|row| self.is_shown(*row));
        let mut shown = shown.filter_map(|row| Some((row, originals.of(row)?)));
        let mut asked = Vec::with_capacity(PIECE);
        loop {
            asked.extend(shown.by_ref().take(PIECE));
            if asked.is_empty() || self.is_over(found)? {
                break;
            }
            compare(query, &mut asked, top, found);
        }
        drop(shown);
        originals.check()
    }
}

/// Compares rows with the query, and forgets them.
fn compare(query: &Query, rows: &mut Vec<(u64, &[u8])>, top: &mut TopK, found: &mut Found) {
    found.rows_scanned += rows.len() as u64;
    flat::scan_rows(query, rows.drain(..), top, &mut found.stats);
}
