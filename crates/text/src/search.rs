//! [`Search`]: a query over pieces, and over rows that are in none.

use tantivy::TERMINATED;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;

use crate::alive::Alive;
use crate::bm25::{Lengths, Totals};
use crate::cursor::{Cursor, Weights};
use crate::error::Result;
use crate::fresh::Fresh;
use crate::pattern::Walk;
use crate::piece::Piece;
use crate::plan::{Column, Plan};
use crate::query::Query;
use crate::top::{Hit, Top};
use crate::window::{WINDOW, Window};

/// Where each term of a query is in a piece, if it is in it.
type Places = Vec<Option<TermInfo>>;

/// A search that is being prepared: takes the rows outside of pieces, then runs.
pub struct Search {
    plan: Plan,
    fresh: Fresh,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Best first, and of equals the one of the smaller number first.
    pub hits: Vec<Hit>,
    /// Rows outside of pieces, whose texts were read.
    pub rows_scanned: u64,
    /// Terms that were looked up, those that patterns stand for included.
    pub terms: usize,
    /// Terms that patterns would stand for beyond the most that are looked up.
    pub terms_left_out: usize,
    /// Whether it was told to end before it had looked everywhere.
    pub is_partial: bool,
}

impl Search {
    /// Prepares a query over columns. A row matches by any of them, and its score is the sum of theirs.
    ///
    /// # Errors
    /// If the query has too many words.
    pub fn new(query: &Query, columns: &[Column]) -> Result<Self> {
        let plan = Plan::new(query, columns)?;
        let fresh = Fresh::new(&plan);
        Ok(Search { plan, fresh })
    }

    /// Takes a living row that is in no piece, with its texts by column.
    pub fn add(&mut self, row: u64, texts: &[Option<&str>]) {
        self.fresh.add(&mut self.plan, row, texts);
    }

    /// Finds the `k` best rows for which `wanted` holds, of those added and of the living ones of the pieces.
    ///
    /// # Errors
    /// If tantivy cannot read a piece.
    pub fn run(
        self,
        pieces: &[(&Piece, &Alive)],
        k: usize,
        wanted: &dyn Fn(u64) -> bool,
    ) -> Result<Found> {
        self.run_until(pieces, k, wanted, &|| false)
    }

    /// The same, but asks `is_over` every few thousand rows whether to end with what was found.
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn run_until(
        mut self,
        pieces: &[(&Piece, &Alive)],
        k: usize,
        wanted: &dyn Fn(u64) -> bool,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Found> {
        self.expand(pieces)?;
        let (infos, df) = self.look_up(pieces)?;
        let totals = self.totals(pieces);
        let idf: Vec<f64> = self
            .plan
            .terms
            .iter()
            .zip(&df)
            .map(|(term, df)| totals[term.column].idf(*df))
            .collect();
        let lengths: Vec<Lengths> = totals.iter().map(|totals| totals.lengths()).collect();
        let (mut top, mut is_partial) = (Top::new(k), false);
        for ((piece, alive), infos) in pieces.iter().zip(&infos) {
            let weights = Weights {
                idf: &idf,
                lengths: &lengths,
                infos,
            };
            let cursor = Cursor::open(&self.plan.root, &self.plan, piece, &weights)?;
            is_partial |= !walk(cursor, (piece, alive), wanted, is_over, &mut top);
            if is_partial {
                break;
            }
        }
        let weights = Weights {
            idf: &idf,
            lengths: &lengths,
            infos: &[],
        };
        for fresh in &self.fresh.rows {
            if let Some(score) = fresh.score(&self.plan.root, &self.plan, &weights) {
                let (row, score) = (fresh.row, score as f32);
                offer(Hit { row, score }, wanted, &mut top);
            }
        }
        let patterns = self.plan.patterns.iter();
        Ok(Found {
            hits: top.into_sorted(),
            rows_scanned: self.fresh.scanned,
            terms: self.plan.terms.len(),
            terms_left_out: patterns.map(|pattern| pattern.left_out).sum(),
            is_partial,
        })
    }

    /// Settles which terms the patterns stand for.
    fn expand(&mut self, pieces: &[(&Piece, &Alive)]) -> Result<()> {
        let Plan {
            terms, patterns, ..
        } = &mut self.plan;
        for pattern in patterns {
            for (piece, alive) in pieces {
                let mut found: Vec<(String, u64)> = Vec::new();
                let dictionary = piece.inverted().terms();
                let mut stream = dictionary.search(Walk(pattern)).into_stream()?;
                while let Some((term, info)) = stream.next() {
                    let rows = living(piece, alive, info)?;
                    if rows > 0
                        && let Ok(term) = std::str::from_utf8(term)
                    {
                        found.push((term.to_owned(), rows));
                    }
                }
                drop(stream);
                for (term, rows) in found {
                    let distance = pattern.distance(term.as_bytes()).unwrap_or(0);
                    pattern.note(&term, distance, rows);
                }
            }
            for fresh in &self.fresh.rows {
                for number in fresh.terms() {
                    let term = terms.text(number);
                    if let Some(distance) = pattern.distance(term.as_bytes()) {
                        pattern.note(term, distance, 1);
                    }
                }
            }
            pattern.choose(terms);
        }
        Ok(())
    }

    /// Where each term is in each piece, and in how many rows it is in all.
    fn look_up(&self, pieces: &[(&Piece, &Alive)]) -> Result<(Vec<Places>, Vec<u64>)> {
        let mut df = vec![0; self.plan.terms.len()];
        let mut all = Vec::with_capacity(pieces.len());
        for (piece, alive) in pieces {
            let mut infos = Vec::with_capacity(df.len());
            for (term, df) in self.plan.terms.iter().zip(&mut df) {
                let info = piece.term(&term.text)?;
                if let Some(info) = &info {
                    *df += living(piece, alive, info)?;
                }
                infos.push(info);
            }
            all.push(infos);
        }
        for fresh in &self.fresh.rows {
            fresh.terms().for_each(|term| df[term] += 1);
        }
        Ok((all, df))
    }

    /// What is counted of each column.
    fn totals(&self, pieces: &[(&Piece, &Alive)]) -> Vec<Totals> {
        let columns = self.plan.columns.iter().zip(&self.fresh.totals);
        let all = columns.map(|(column, fresh)| {
            let of_pieces = pieces.iter().map(|(_, alive)| alive.totals(column.number));
            of_pieces.fold(*fresh, Totals::sum)
        });
        all.collect()
    }
}

/// In how many living documents of a piece a term is.
fn living(piece: &Piece, alive: &Alive, info: &TermInfo) -> Result<u64> {
    if alive.are_all() {
        return Ok(u64::from(info.doc_freq));
    }
    let inverted = piece.inverted();
    let option = IndexRecordOption::Basic;
    let mut postings = inverted.read_block_postings_from_terminfo(info, option)?;
    let mut count = 0;
    while !postings.docs().is_empty() {
        let docs = postings.docs().iter();
        count += docs.filter(|doc| alive.has(**doc as usize)).count() as u64;
        postings.advance();
    }
    Ok(count)
}

/// Offers all matches in a piece; false if it was told to end before.
fn walk(
    mut cursor: Cursor<'_>,
    (piece, alive): (&Piece, &Alive),
    wanted: &dyn Fn(u64) -> bool,
    is_over: &dyn Fn() -> bool,
    top: &mut Top,
) -> bool {
    let mut window = Window::new();
    loop {
        let next = cursor.next();
        if next == TERMINATED {
            return true;
        }
        if is_over() {
            return false;
        }
        let from = next / WINDOW * WINDOW;
        cursor.fill(from, from + WINDOW, &mut window);
        window.each(from, alive, |document, score| {
            let row = piece.row(document);
            offer(Hit { row, score }, wanted, top);
        });
        window.clear();
    }
}

#[inline]
fn offer(hit: Hit, wanted: &dyn Fn(u64) -> bool, top: &mut Top) {
    if top.wants(hit) && wanted(hit.row) {
        top.push(hit);
    }
}
