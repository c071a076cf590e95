//! Which rows pass the filters that were asked for lately.
//!
//! A row version keeps its number and its values for ever, so whether it passes never changes: an answer that is
//! remembered stays right, and only rows that came since are evaluated. Rows that died are left in; whoever reads looks
//! whether a row is visible anyway.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Filter;
use super::bound::Bound;
use super::codes::{FilterCodes, Made, Matching};
use super::row_set::RowSet;
use super::sorted_columns::SortedColumns;
use crate::deadline::Deadline;
use crate::error::Result;
use crate::schema::VectorColumn;
use crate::shared::Shared;
use crate::view::View;

/// Bytes of row sets that are remembered for a dataset at most, of the order of its rows, and of codes.
const MOST_BYTES: u64 = 64 << 20;
/// The part of the memory limit that all datasets together may take for row sets, again for orders, and again for codes.
const PART: u64 = 16;
/// Filters that are remembered for a dataset.
const MOST_FILTERS: usize = 1_024;

/// The filters of one dataset.
#[derive(Debug, Default)]
pub(crate) struct FilterCache {
    remembered: Mutex<Remembered>,
    sorted: SortedColumns,
    /// Held to make codes.
    making: Mutex<()>,
    /// Of all codes.
    coded_bytes: AtomicUsize,
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
    codes: Arc<FilterCodes>,
    end: u64,
    /// The latest log entry of a view that rows were read from. What had died and was compacted away by then is not in
    /// `rows`, so that views before it may lack rows.
    index: u64,
    used: u64,
}

impl Entry {
    fn matching(&self) -> Matching {
        Matching {
            rows: Arc::clone(&self.rows),
            codes: Arc::clone(&self.codes),
        }
    }
}

impl Remembered {
    /// Takes what is known as of a view, unless another came further meanwhile; and lets go of what was used the longest ago
    /// until all fits into `room`. Tells whether there was such.
    fn put(&mut self, key: &str, matching: &Matching, view: &View, room: usize) -> bool {
        let known = self.filters.get(key);
        if known.is_some_and(|known| known.index >= view.index) {
            return false;
        }
        let Matching { rows, codes } = matching.clone();
        self.bytes += rows.memory_bytes();
        let entry = Entry {
            rows,
            codes,
            end: view.next_row,
            index: view.index,
            used: self.uses,
        };
        if let Some(old) = self.filters.insert(key.to_owned(), entry) {
            self.bytes -= old.rows.memory_bytes();
        }
        let mut is_cut = false;
        while self.bytes > room || self.filters.len() > MOST_FILTERS {
            let oldest = self.filters.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some(old) = self.filters.remove(&key) {
                self.bytes -= old.rows.memory_bytes();
            }
            is_cut = true;
        }
        is_cut
    }

    /// What was asked for long ago counts less.
    fn age(&self) {
        self.filters.values().for_each(|entry| entry.codes.age());
    }

    /// Counts the bytes of all codes.
    fn count(&self, bytes: &AtomicUsize) {
        let codes = self.filters.values().map(|entry| entry.codes.worth().1);
        bytes.store(codes.sum(), Ordering::Relaxed);
    }
}

impl Shared {
    /// Bytes that a dataset may take for row sets, again for the order of its rows, and again for codes.
    pub(crate) fn filter_room(&self) -> usize {
        let datasets = self.catalog.count().max(1) as u64;
        let share = self.options.memory_limit / PART / datasets;
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
    ) -> Result<(Matching, u64)> {
        let key = filter.key();
        let known = key.and_then(|key| self.find(key, view));
        if let Some(known) = &known
            && known.end >= view.next_row
        {
            return Ok((known.matching(), 0));
        }
        let bound = Bound::new(filter, dataset, &view.schema.arrow)?;
        let (mut rows, from, codes) = match known {
            Some(known) => (RowSet::clone(&known.rows), known.end, known.codes),
            None => Default::default(),
        };
        let evaluated = self
            .sorted
            .add_rows(&bound, (view, from), (deadline, room), &mut rows)?;
        let matching = Matching {
            rows: Arc::new(rows),
            codes,
        };
        if let Some(key) = key {
            self.remember(key, &matching, view, room);
        }
        Ok((matching, evaluated))
    }

    /// Makes codes of a column for the filter that is asked for most of those that want some; false if none does, or there is no
    /// room for them: it takes no more than `room` bytes, of filters that are asked for half as often at most.
    ///
    /// # Errors
    /// If a vector cannot be read.
    pub fn make_codes(&self, view: &View, column: &VectorColumn, room: usize) -> Result<bool> {
        let Some(_making) = self.making.try_lock() else {
            return Ok(false);
        };
        let Some(entry) = self.most_wanted(view, &column.name) else {
            return Ok(false);
        };
        let expected = Made::expected_bytes(entry.rows.len(), column);
        let has_room = self.make_room(&entry, expected, room);
        if has_room {
            let made = Made::new(&entry.rows, entry.end, (view, column))?;
            tracing::debug!(column = column.name, codes = ?made.codes, "codes for a filter");
            entry.codes.set(&column.name, made, view.live);
        }
        self.remembered.lock().count(&self.coded_bytes);
        Ok(has_room)
    }

    /// The filter for which codes of a column are asked for most and are not there.
    fn most_wanted(&self, view: &View, column: &str) -> Option<Entry> {
        let remembered = self.remembered.lock();
        let entries = remembered.filters.values();
        let entries = entries.filter(|entry| entry.index <= view.index);
        let wanted = entries.filter_map(|entry| {
            let asked = entry.codes.wanted(&entry.rows, column)?;
            Some((asked, entry))
        });
        let most = wanted.max_by_key(|(asked, _)| *asked);
        most.map(|(_, entry)| entry.clone())
    }

    /// Lets go of codes so that others fit into `room`; false if they do not.
    fn make_room(&self, of: &Entry, bytes: usize, room: usize) -> bool {
        let remembered = self.remembered.lock();
        let others = remembered.filters.values();
        let others = others.filter(|other| !Arc::ptr_eq(&other.codes, &of.codes));
        let mut others: Vec<_> = others.map(|other| (other.codes.worth(), other)).collect();
        others.sort_unstable_by_key(|((asked, _), _)| *asked);
        let worth: Vec<_> = others.iter().map(|(worth, _)| *worth).collect();
        let gone = to_let_go(&worth, (of.codes.worth().0, bytes), room);
        if gone != Some(0) {
            remembered.age();
        }
        let go = others.iter().take(gone.unwrap_or(0));
        go.for_each(|(_, other)| other.codes.forget());
        gone.is_some()
    }

    /// Memory of the row sets, of the rows' order by columns, and of codes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let coded = self.coded_bytes.load(Ordering::Relaxed);
        self.remembered.lock().bytes + self.sorted.memory_bytes() + coded
    }

    fn find(&self, key: &str, view: &View) -> Option<Entry> {
        let mut remembered = self.remembered.lock();
        remembered.uses += 1;
        let uses = remembered.uses;
        let entry = remembered.filters.get_mut(key)?;
        entry.used = uses;
        (entry.index <= view.index).then(|| entry.clone())
    }

    fn remember(&self, key: &str, matching: &Matching, view: &View, room: usize) {
        let mut remembered = self.remembered.lock();
        if remembered.put(key, matching, view, room) {
            remembered.count(&self.coded_bytes);
        }
    }
}

/// Of codes, by how often they were asked for and their bytes, the least asked for first: how many are to go so that others
/// fit into `room`, which are asked for twice as often at least. None if they would not fit even so.
fn to_let_go(worth: &[(u64, usize)], (asked, bytes): (u64, usize), room: usize) -> Option<usize> {
    let mut taken = bytes + worth.iter().map(|(_, bytes)| bytes).sum::<usize>();
    for (gone, (other_asked, other_bytes)) in worth.iter().enumerate() {
        if taken <= room {
            return Some(gone);
        }
        if other_asked * 2 > asked {
            return None;
        }
        taken -= other_bytes;
    }
    (taken <= room).then_some(worth.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_make_room_for_those_that_are_asked_for_more() {
        let kept = [(3, 10), (10, 20), (40, 30)];
        for (asked, bytes, room, gone) in [
            (1, 40, 100, Some(0)),
            (100, 41, 100, Some(1)),
            (100, 60, 100, Some(2)),
            (100, 100, 100, Some(3)),
            (100, 101, 100, None),
            // Those that are in the way are asked for too often.
            (20, 50, 100, Some(1)),
            (20, 60, 100, Some(2)),
            (20, 80, 100, None),
            (19, 60, 100, None),
            (5, 50, 100, None),
        ] {
            assert_eq!(
                to_let_go(&kept, (asked, bytes), room),
                gone,
                "{bytes} bytes asked for {asked} times, room {room}"
            );
        }
        assert_eq!(to_let_go(&[], (64, 10), 9), None);
        assert_eq!(to_let_go(&[], (64, 10), 10), Some(0));
    }
}
