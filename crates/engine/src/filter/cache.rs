//! Which rows pass the filters that were asked for lately.
//!
//! A row version keeps its number and its values for ever, so whether it passes never changes: an answer that is
//! remembered stays right, and only rows that came since are evaluated. Rows that died are left in; whoever reads looks
//! whether a row is visible anyway.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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
/// Where codes do not have room, half of how often they were asked for is forgotten after this: long enough that equals tell
/// apart from others, and do not take each other's place.
const AGE: Duration = Duration::from_secs(10);
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
    /// When it was last forgotten how often codes were asked for.
    aged: Option<Instant>,
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
    /// until all fits into `room`. Tells whether codes may have gone.
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
        let mut is_cut = false;
        if let Some(old) = self.filters.insert(key.to_owned(), entry) {
            self.bytes -= old.rows.memory_bytes();
            is_cut = !Arc::ptr_eq(&old.codes, &matching.codes);
        }
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
    fn age(&mut self) {
        let is_due = |aged: Instant| aged.elapsed() >= AGE;
        if self.aged.is_none_or(is_due) {
            self.filters.values().for_each(|entry| entry.codes.age());
            self.aged = Some(Instant::now());
        }
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

    /// Makes codes of a column for one of the filters that want some, the one that is asked for most of those for which there is
    /// room; false if there is none. Codes take no more than `room` bytes, and those of filters that are asked for half as often
    /// at most make room for others.
    ///
    /// # Errors
    /// If a vector cannot be read. They are not tried again until more rows pass.
    pub fn make_codes(&self, view: &View, column: &VectorColumn, room: usize) -> Result<bool> {
        let Some(_making) = self.making.try_lock() else {
            return Ok(false);
        };
        let bytes = |entry: &Entry| Made::expected_bytes(entry.rows.len(), column);
        let mut wanted = self.wanted(view, &column.name).into_iter();
        let Some(entry) = wanted.find(|entry| self.make_room((entry, column), bytes(entry), room))
        else {
            return Ok(false);
        };
        let passing = entry.rows.len();
        let made = Made::new(&entry.rows, entry.end, (view, column));
        tracing::debug!(column = column.name, codes = ?made.as_ref().ok(), "codes for a filter");
        let (made, failed) = match made {
            Ok(made) => (Some(made), None),
            Err(error) => (None, Some(error)),
        };
        let made = made.filter(|made| {
            let bytes = made.codes.memory_bytes();
            made.codes.is_useful(view.live) && self.make_room((&entry, column), bytes, room)
        });
        entry.codes.set(&column.name, made, passing);
        self.remembered.lock().count(&self.coded_bytes);
        failed.map_or(Ok(true), Err)
    }

    /// The filters for which codes of a column are asked for and are not there, those that are asked for most first.
    fn wanted(&self, view: &View, column: &str) -> Vec<Entry> {
        let remembered = self.remembered.lock();
        let entries = remembered.filters.values();
        let entries = entries.filter(|entry| entry.index <= view.index);
        let wanted = entries.filter_map(|entry| {
            let asked = entry.codes.wanted(&entry.rows, column)?;
            Some((asked, entry.clone()))
        });
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort_unstable_by_key(|(asked, _)| Reverse(*asked));
        wanted.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Lets go of codes so that others fit into `room`; false if they do not.
    fn make_room(&self, (of, column): (&Entry, &VectorColumn), bytes: usize, room: usize) -> bool {
        let bytes = bytes + of.codes.beside(&column.name);
        if bytes > room {
            return false;
        }
        let mut remembered = self.remembered.lock();
        let others = remembered.filters.values();
        let others = others.filter(|other| !Arc::ptr_eq(&other.codes, &of.codes));
        let mut others: Vec<_> = others.map(|other| (other.codes.worth(), other)).collect();
        others.sort_unstable_by_key(|((asked, _), _)| *asked);
        let worth: Vec<_> = others.iter().map(|(worth, _)| *worth).collect();
        let gone = to_let_go(&worth, (of.codes.worth().0, bytes), room);
        let go = others.iter().take(gone.unwrap_or(0));
        go.for_each(|(_, other)| other.codes.forget());
        if gone != Some(0) {
            remembered.age();
        }
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
