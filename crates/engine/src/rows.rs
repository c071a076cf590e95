//! Which rows a search may find.

use std::sync::Arc;

use crate::filter::{Made, Matching, RowSet};
use crate::view::View;

/// Rows of a set by which it is judged how many of it may be found.
const JUDGED: usize = 128;

/// The rows that may be found, of those that a view shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// Those that pass the filter, if there is one; rows that the view does not show may be among them.
    pub matching: Option<Matching>,
    /// About how many of those the view shows.
    pub passing: u64,
    /// Not these, which are few: examples.
    pub without: Vec<u64>,
    /// Codes of those that pass, by which they are searched.
    pub coded: Option<Arc<Made>>,
}

impl Rows {
    /// Those that pass a filter, if there is one, without a few.
    pub fn new(matching: Option<Matching>, without: Vec<u64>, view: &View) -> Self {
        // Where none of those asked lives, some may yet.
        let least = |rows: &Matching| rows.len().saturating_sub(JUDGED as u64) / JUDGED as u64;
        let shown = |rows: &Matching| about(rows, |row| view.is_visible(row)).max(least(rows));
        Rows {
            passing: matching.as_ref().map_or(0, shown),
            matching,
            without,
            coded: None,
        }
    }

    /// Whether a row may be found.
    #[inline]
    pub fn admit(&self, row: u64) -> bool {
        let matching = self.matching.as_ref();
        matching.is_none_or(|rows| rows.contains(row)) && !self.without.contains(&row)
    }

    /// Whether all may be found.
    pub fn are_all(&self) -> bool {
        self.matching.is_none() && self.without.is_empty()
    }
}

/// About how many of some rows are wanted, by a few of them.
pub(crate) fn about(rows: &RowSet, wanted: impl Fn(u64) -> bool) -> u64 {
    let some = rows.sample();
    let some = some.iter().step_by(some.len().div_ceil(JUDGED).max(1));
    let (mut asked, mut held) = (0, 0);
    some.for_each(|row| {
        asked += 1;
        held += u64::from(wanted(*row));
    });
    let about = rows.len().saturating_mul(held).checked_div(asked);
    about.unwrap_or(0)
}
