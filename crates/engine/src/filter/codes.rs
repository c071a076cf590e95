//! Codes of the rows that pass filters which are asked for often.
//!
//! A graph is of all rows: the fewer of them pass, and the farther from the query, the longer a walk looks for them. One-bit
//! codes of those that pass ([`CodedRun`]) are compared in less time than that, once somebody has made them, which pays
//! where the same filter comes again and again: a tenant, a language, what is in stock. They are made in the background.
//!
//! What has codes stays right, since a row version keeps its number and its values: rows that came since are
//! compared beside it until they are many; rows that died are left out by who searches.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use longbow_index::{CodedRun, Frame};
use parking_lot::Mutex;

use super::RowSet;
use crate::error::Result;
use crate::originals::Originals;
use crate::sample::sample;
use crate::schema::VectorColumn;
use crate::turn::Turn;
use crate::view::View;

/// Searches of one column behind a filter after which it gets codes.
const OFTEN: u64 = 64;
/// Rows that are compared by their codes in the graph as fast.
const FEWEST: u64 = 256;
/// Most rows: to make their codes takes a second or two.
const MOST: u64 = 1 << 17;
/// Rows without codes beside those with: of so many one, and some more.
const BESIDE: (u64, u64) = (8, 64);
/// Rows that stand for queries, of each kind.
const SAMPLE: usize = 64;
/// Most rows that searches ask for which read a part of the clusters.
const NEAREST: usize = 100;
/// Of the rotation.
const SEED: u64 = 0x6669_6c74;

/// The rows that pass a filter; rows that are dead may be among them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matching {
    pub(super) rows: Arc<RowSet>,
    pub(super) codes: Arc<FilterCodes>,
}

impl From<RowSet> for Matching {
    fn from(rows: RowSet) -> Self {
        Matching {
            rows: Arc::new(rows),
            ..Matching::default()
        }
    }
}

impl Deref for Matching {
    type Target = RowSet;

    fn deref(&self) -> &RowSet {
        &self.rows
    }
}

/// Codes for a filter, by the vector columns that are searched behind it.
#[derive(Debug, Default)]
pub(crate) struct FilterCodes {
    columns: Mutex<Vec<OfColumn>>,
}

#[derive(Debug)]
struct OfColumn {
    column: String,
    /// Searches that had a use for codes, of late.
    asked: u64,
    made: Option<Arc<Made>>,
    /// So many rows passed when it was found that there should be none.
    useless: u64,
}

/// Codes of the rows below `end` that pass a filter.
pub(crate) struct Made {
    pub codes: CodedRun,
    pub end: u64,
    /// Rows below `end` that pass: those with codes, and others that are dead or have no vector.
    passing: u64,
    /// The latest log entry of the view that they are of: what was dead by then has no code.
    index: u64,
}

impl Matching {
    /// The codes for a search of a column, if there are any of most rows. Who asks often gets some.
    pub fn codes(&self, column: &VectorColumn, view: &View) -> Option<Arc<Made>> {
        if !(FEWEST..=MOST).contains(&self.rows.len()) {
            return None;
        }
        let mut columns = self.codes.columns.lock();
        let at = columns.iter().position(|of| of.column == column.name);
        let at = at.unwrap_or_else(|| {
            columns.push(OfColumn {
                column: column.name.clone(),
                asked: 0,
                made: None,
                useless: 0,
            });
            columns.len() - 1
        });
        let of = &mut columns[at];
        of.asked += 1;
        let made = of.made.as_ref();
        let made = made.filter(|made| made.is_of(column, view) && made.covers(&self.rows));
        made.map(Arc::clone)
    }
}

impl FilterCodes {
    /// How often codes of a column were asked for, if the rows that pass should have others than they do.
    pub(super) fn wanted(&self, rows: &RowSet, column: &str) -> Option<u64> {
        let columns = self.columns.lock();
        let of = columns.iter().find(|of| of.column == column)?;
        let has_some = of.made.as_ref().is_some_and(|made| made.covers(rows));
        let is_useless = rows.len() < of.useless.saturating_mul(2);
        let is_fit = !has_some && !is_useless && (FEWEST..=MOST).contains(&rows.len());
        (of.asked >= OFTEN && is_fit).then_some(of.asked)
    }

    /// Forgets half of how often codes were asked for: what was often asked for long ago counts less.
    pub(super) fn age(&self) {
        self.columns.lock().iter_mut().for_each(|of| of.asked /= 2);
    }

    /// How often any were asked for, and the bytes that they take.
    pub(super) fn worth(&self) -> (u64, usize) {
        let columns = self.columns.lock();
        let asked = columns.iter().map(|of| of.asked).sum();
        let made = columns.iter().flat_map(|of| &of.made);
        (asked, made.map(|made| made.codes.memory_bytes()).sum())
    }

    /// Bytes of the codes of other columns.
    pub(super) fn beside(&self, column: &str) -> usize {
        let columns = self.columns.lock();
        let others = columns.iter().filter(|of| of.column != column);
        let made = others.flat_map(|of| &of.made);
        made.map(|made| made.codes.memory_bytes()).sum()
    }

    /// Lets go of all codes.
    pub(super) fn forget(&self) {
        self.columns.lock().iter_mut().for_each(|of| of.made = None);
    }

    /// Takes codes; without any, that there are none for so many rows: they are of no use, or cannot be made.
    pub(super) fn set(&self, column: &str, made: Option<Made>, passing: u64) {
        let mut columns = self.columns.lock();
        if let Some(of) = columns.iter_mut().find(|of| of.column == column) {
            of.useless = if made.is_some() { 0 } else { passing };
            of.made = made.map(Arc::new);
        }
    }
}

impl Made {
    /// Bytes that codes of so many rows take, about.
    pub(super) fn expected_bytes(rows: u64, column: &VectorColumn) -> usize {
        let (rows, dim) = (rows as usize, column.space.dim);
        // Beside codes, some of whose blocks are not full, centroids; the rotation; and the mean.
        rows * (dim / 8 + 16) * 5 / 4 + rows / 45 * dim + 64 * dim
    }

    /// Codes of the rows below `end` that pass a filter and live.
    ///
    /// # Errors
    /// If a vector cannot be read.
    pub(super) fn new(
        rows: &RowSet,
        end: u64,
        (view, column): (&View, &VectorColumn),
    ) -> Result<Made> {
        let turn = Turn::begin();
        let between = || turn.give_way();
        let originals = Originals::new(view, column);
        let living = rows.iter_from(0).take_while(|row| *row < end);
        let living = living.filter(|row| view.is_visible(*row));
        let vectors: Vec<(u64, &[u8])> = living
            .filter_map(|row| Some((row, originals.of(row)?)))
            .collect();
        let frame = Frame::around(column.space, SEED, &vectors)?;
        let mut codes = CodedRun::clustered(&frame, &vectors, &between);
        let step = vectors.len().div_ceil(SAMPLE).max(1);
        let passing = vectors.iter().step_by(step).copied().collect();
        let others = sample(view, column, SAMPLE as u64)?;
        let others = others.iter().filter(|(row, _)| !rows.contains(*row));
        let others = others.map(|(row, vector)| (*row, &vector[..])).collect();
        codes.measure(&[passing, others], NEAREST, &originals, &between)?;
        drop(vectors);
        originals.check()?;
        Ok(Made {
            codes,
            end,
            passing: rows.len(),
            index: view.index,
        })
    }

    /// Whether they are codes of these vectors, and a view shows no row that was dead before.
    fn is_of(&self, column: &VectorColumn, view: &View) -> bool {
        self.codes.space() == column.space && self.index <= view.index
    }

    /// Whether no row came since.
    pub fn is_whole(&self, rows: &RowSet) -> bool {
        // Not by how many there are: sets that were added to by different searches may each lack a row that is dead.
        rows.iter_from(self.end).next().is_none()
    }

    /// Whether all but a few rows have codes.
    fn covers(&self, rows: &RowSet) -> bool {
        rows.len().saturating_sub(self.passing) <= self.passing / BESIDE.0 + BESIDE.1
    }
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made")
            .field("codes", &self.codes)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
