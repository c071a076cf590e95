//! Which rows pass the filters that were asked for lately.
//!
//! A row version keeps its number and its values for ever, so whether it passes never changes: an answer that is
//! remembered stays right, and only rows that came since are evaluated. Rows that died are left in; whoever reads looks
//! whether a row is visible anyway.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Filter;
use super::bound::Bound;
use super::row_set::RowSet;
use super::sorted_columns::SortedColumns;
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::error::Result;
use crate::view::View;

/// Bytes of row sets that are remembered for a dataset at most, and of the order of its rows.
const MOST_BYTES: u64 = 64 << 20;
/// The part of the memory limit that all datasets together may take for row sets, and again for orders.
const PART: u64 = 16;
/// Filters that are remembered for a dataset.
const MOST_FILTERS: usize = 1_024;

/// The filters of one dataset.
#[derive(Debug, Default)]
pub(crate) struct FilterCache {
    remembered: Mutex<Remembered>,
    sorted: SortedColumns,
}

#[derive(Debug, Default)]
struct Remembered {
    filters: HashMap<String, Entry>,
    bytes: usize,
    /// Counts the uses.
    uses: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Of the rows below `end`, those that pass.
    rows: Arc<RowSet>,
    end: u64,
    /// The latest log entry of a view that rows were read from. What had died and was compacted away by then is not in
    /// `rows`, so that views before it may lack rows.
    index: u64,
    used: u64,
}

impl Engine {
    /// Bytes that a dataset may take for row sets, and again for the order of its rows.
    pub(crate) fn filter_room(&self) -> usize {
        let datasets = self.catalog().count().max(1) as u64;
        let share = self.options().memory_limit / PART / datasets;
        share.min(MOST_BYTES) as usize
    }
}

impl FilterCache {
    /// The rows of a view that pass, and others that the view does not show; and for how many rows that was evaluated. What is
    /// remembered takes no more than `room` bytes, and again the order of rows.
    ///
    /// # Errors
    /// If the filter does not suit the dataset, a living row makes the evaluation fail, or there is no more time.
    pub fn rows(
        &self,
        filter: &dyn Filter,
        dataset: &str,
        view: &View,
        (deadline, room): (Deadline, usize),
    ) -> Result<(Arc<RowSet>, u64)> {
        let key = filter.key();
        let known = key.and_then(|key| self.find(key, view));
        if let Some(known) = &known
            && known.end >= view.next_row
        {
            return Ok((Arc::clone(&known.rows), 0));
        }
        let bound = Bound::new(filter, dataset, &view.schema.arrow)?;
        let (mut rows, from) = match known {
            Some(known) => (RowSet::clone(&known.rows), known.end),
            None => (RowSet::default(), 0),
        };
        let evaluated = self
            .sorted
            .add_rows(&bound, (view, from), (deadline, room), &mut rows)?;
        let rows = Arc::new(rows);
        if let Some(key) = key {
            self.remember(key, &rows, view, room);
        }
        Ok((rows, evaluated))
    }

    /// Memory of the row sets, and of the rows' order by columns, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.remembered.lock().bytes + self.sorted.memory_bytes()
    }

    fn find(&self, key: &str, view: &View) -> Option<Entry> {
        let mut remembered = self.remembered.lock();
        remembered.uses += 1;
        let uses = remembered.uses;
        let entry = remembered.filters.get_mut(key)?;
        entry.used = uses;
        (entry.index <= view.index).then(|| entry.clone())
    }

    fn remember(&self, key: &str, rows: &Arc<RowSet>, view: &View, room: usize) {
        let mut remembered = self.remembered.lock();
        let Remembered {
            filters,
            bytes,
            uses,
        } = &mut *remembered;
        // Another may have come further meanwhile.
        if filters
            .get(key)
            .is_some_and(|known| known.index >= view.index)
        {
            return;
        }
        let entry = Entry {
            rows: Arc::clone(rows),
            end: view.next_row,
            index: view.index,
            used: *uses,
        };
        *bytes += rows.memory_bytes();
        if let Some(old) = filters.insert(key.to_owned(), entry) {
            *bytes -= old.rows.memory_bytes();
        }
        while *bytes > room || filters.len() > MOST_FILTERS {
            let oldest = filters.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some(old) = filters.remove(&key) {
                *bytes -= old.rows.memory_bytes();
            }
        }
    }
}
