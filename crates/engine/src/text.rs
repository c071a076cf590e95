//! Searching for words.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_text::{Alive, Column, Piece, Query, Search};

use crate::dataset::{Dataset, id_at};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::id::Id;
use crate::text_column::TextColumn;
use crate::text_index::{Pieces, each_text};
use crate::time_limits::TimeLimits;
use crate::view::View;

/// A search for words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextQuery {
    /// In the query language: words, of which any suffices; `+must`, `-not`, `"phrases"`, `AND`, `OR`, `NOT`, parentheses,
    /// `prefix*`, and `fuzzy~1` or `fuzzy~2`.
    pub text: String,
    /// Names of the columns; if none, all text columns. A row matches by any of them, and its score is the sum of theirs.
    pub columns: Option<Vec<String>>,
}

/// How far the text index of a dataset is, taken before the view of a search.
#[derive(Debug, Clone)]
pub(crate) struct TextReached(Arc<Pieces>);

/// Rows that are read before the time limits are looked at.
const UNASKED: u64 = 256;

/// What a search for words found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextFound {
    /// Row numbers and BM25 scores, best first, and of equals the lower number first.
    pub rows: Vec<(u64, f32)>,
    /// Rows that are not indexed yet, whose texts were read.
    pub rows_scanned: u64,
    /// Terms that were looked up, those that prefixes and fuzzy words stand for included.
    pub terms: usize,
    /// Terms that these would stand for beyond the most that are looked up.
    pub terms_left_out: usize,
    /// Whether the search ended before it had looked everywhere, since its budget ran out.
    pub is_partial: bool,
}

impl Dataset {
    /// How far the text index is, for a reader who takes a view after it.
    pub(crate) fn text_reached(&self) -> TextReached {
        TextReached(self.text().pieces())
    }
}

/// Finds the `k` rows of a view that fit a query best, of those for which `wanted` holds. Rows that are not in the index
/// yet are read, and count like the others: scores depend on the living rows alone.
///
/// # Errors
/// If the query cannot be read, or is for a column that has no text, or there is no more time.
pub(crate) fn find(
    dataset: &Dataset,
    reached: &TextReached,
    view: &View,
    query: &TextQuery,
    k: usize,
    wanted: &dyn Fn(u64) -> bool,
    limits: &TimeLimits,
) -> Result<TextFound> {
    let columns = columns(dataset, view, query.columns.as_deref())?;
    let numbers: Vec<Column> = columns.iter().map(|column| column.column).collect();
    let parsed = Query::parse(&query.text).map_err(Error::TextQuery)?;
    let mut search = Search::new(&parsed, &numbers)?;
    let TextReached(pieces) = reached;
    let mut is_partial = false;
    each_text(
        view,
        &columns,
        pieces.watermark..view.next_row,
        &mut |row, texts| {
            if row.is_multiple_of(UNASKED) {
                limits.check()?;
                is_partial |= limits.are_spent();
            }
            if !is_partial {
                search.add(row, texts);
            }
            Ok(())
        },
    )?;
    let living: Vec<Arc<Alive>> = pieces.list.iter().map(|held| held.alive(view)).collect();
    let pairs = pieces.list.iter().zip(&living);
    let pairs: Vec<(&Piece, &Alive)> = pairs
        .map(|(held, alive)| (&held.piece, alive.as_ref()))
        .collect();
    let is_over = || limits.are_spent() || limits.check().is_err();
    let found = search.run_until(&pairs, k, wanted, &is_over)?;
    limits.check()?;
    Ok(TextFound {
        rows: found.hits.iter().map(|hit| (hit.row, hit.score)).collect(),
        rows_scanned: found.rows_scanned,
        terms: found.terms,
        terms_left_out: found.terms_left_out,
        is_partial: is_partial || found.is_partial,
    })
}

/// The columns that a query is for.
fn columns(dataset: &Dataset, view: &View, asked: Option<&[String]>) -> Result<Vec<TextColumn>> {
    let all = dataset.text().columns(view);
    let not_text = |column: &str| Error::NotATextColumn {
        dataset: dataset.name.clone(),
        column: column.to_owned(),
        have: match &all[..] {
            [] => "none".to_owned(),
            all => {
                let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
                names.join(", ")
            }
        },
    };
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        return match all.is_empty() {
            true => Err(Error::NoTextColumn(dataset.name.clone())),
            false => Ok(all),
        };
    };
    let mut columns: Vec<TextColumn> = Vec::with_capacity(asked.len());
    for name in asked {
        view.schema.column(&dataset.name, name)?;
        let mut named = all.iter().filter(|column| column.name == *name);
        let column = named.next().ok_or_else(|| not_text(name))?;
        // Named twice, it counts once.
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    Ok(columns)
}

impl Engine {
    /// The ids of the `k` rows that fit a query best, with their BM25 scores.
    ///
    /// # Errors
    /// If there is no such dataset, the query cannot be read, or it is for a column that has no text.
    pub fn text_search(
        &self,
        dataset: &str,
        query: &TextQuery,
        k: usize,
    ) -> Result<Vec<(Id, f32)>> {
        let dataset = self.dataset(dataset)?;
        let reached = dataset.text_reached();
        let view = dataset.view();
        let found = find(
            &dataset,
            &reached,
            &view,
            query,
            k,
            &|_| true,
            &TimeLimits::default(),
        )?;
        let id = |(row, score): (u64, f32)| {
            let (batch, at) = view.locate(row)?;
            Some(id_at(batch, view.schema.id, at).map(|id| (id, score)))
        };
        found.rows.into_iter().filter_map(id).collect()
    }

    /// Text indexes of the last checkpoint that could not be read, and so are built anew.
    pub fn rebuilt_texts(&self) -> usize {
        self.shared().rebuilt_texts.load(Ordering::Relaxed)
    }

    /// Pieces of the text index of a dataset, the rows in them, dead ones included, and their bytes.
    ///
    /// # Errors
    /// If there is no such dataset.
    pub fn text_pieces(&self, dataset: &str) -> Result<(usize, u64, u64)> {
        let dataset = self.dataset(dataset)?;
        let pieces = dataset.text().pieces();
        let rows: usize = pieces.list.iter().map(|held| held.piece.len()).sum();
        Ok((pieces.list.len(), rows as u64, dataset.text().bytes()))
    }
}
