//! [`IntIds`]: integer ids, as runs where they count up and in a hash table where they do not.

use std::hash::BuildHasher;

use crate::id_runs::{IdRuns, Run, row_among};
use crate::id_table::{IntTable, grouped};

/// Shorter runs go to the table: a run takes as much memory as two ids there, and is cut by what comes later.
const MIN_RUN: u64 = 64;
/// In place of a row number: the id is not there, whatever the runs say.
const GONE: u64 = u64::MAX;

/// Integer ids by their bits.
///
/// What the table says of an id goes before what the runs say: an id of a run that gets another row by itself, or is
/// removed, has an entry in the table from then on. So runs stay few however they are written over.
#[derive(Debug)]
pub(crate) struct IntIds {
    table: IntTable,
    runs: IdRuns,
    len: usize,
    /// The least and the largest id that the table ever had.
    table_span: Option<(u64, u64)>,
}

impl IntIds {
    pub fn new() -> Self {
        IntIds {
            table: IntTable::new(),
            runs: IdRuns::default(),
            len: 0,
            table_span: None,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.runs.memory_bytes()
    }

    pub fn get(&self, hasher: &impl BuildHasher, bits: u64) -> Option<u64> {
        match self.table.get(hasher.hash_one(bits), bits) {
            Some(row) => Some(row).filter(|row| *row != GONE),
            None => self.runs.get(bits),
        }
    }

    /// Sets the row of an id, which is not [`GONE`]; the row that held it before.
    pub fn insert(&mut self, hasher: &impl BuildHasher, bits: u64, row: u64) -> Option<u64> {
        self.widen(bits, bits);
        self.insert_hashed(hasher, hasher.hash_one(bits), bits, row)
    }

    #[inline]
    fn insert_hashed(
        &mut self,
        hasher: &impl BuildHasher,
        hash: u64,
        bits: u64,
        row: u64,
    ) -> Option<u64> {
        let before = match self.table.insert(hasher, hash, bits, row) {
            Some(row) => Some(row).filter(|row| *row != GONE),
            None => self.runs.get(bits),
        };
        self.len += usize::from(before.is_none());
        before
    }

    pub fn remove(&mut self, hasher: &impl BuildHasher, bits: u64) -> Option<u64> {
        let hash = hasher.hash_one(bits);
        let row = match self.table.get(hash, bits) {
            Some(GONE) => return None,
            Some(row) => {
                self.table.remove(hash, bits);
                if self.runs.get(bits).is_some() && !self.runs.trim(bits) {
                    self.table.insert(hasher, hash, bits, GONE);
                }
                row
            }
            None => {
                let row = self.runs.get(bits)?;
                if !self.runs.trim(bits) {
                    self.widen(bits, bits);
                    self.table.insert(hasher, hash, bits, GONE);
                }
                row
            }
        };
        self.len -= 1;
        Some(row)
    }

    /// Inserts ids with their rows; `replaced` is told each row that held one before. The last row of an id holds it.
    pub fn insert_all(
        &mut self,
        hasher: &impl BuildHasher,
        items: impl Iterator<Item = (u64, u64)>,
        replaced: &mut dyn FnMut(u64),
    ) {
        let mut others: Vec<(u64, u64)> = Vec::new();
        let mut run: Option<Run> = None;
        let mut end = |ids: &mut Self, others: &mut Vec<_>, run: Run| {
            if run.len < MIN_RUN {
                others.extend((run.first..=run.last()).zip(run.row..));
            } else {
                // In order, so that of an id that is there twice the last row stays.
                ids.insert_others(hasher, others, replaced);
                ids.insert_run(hasher, run, replaced);
            }
        };
        for (first, row) in items {
            match &mut run {
                Some(run) if run.goes_on_with(first, row) => run.len += 1,
                _ => {
                    let next = Run { first, row, len: 1 };
                    if let Some(ended) = run.replace(next) {
                        end(self, &mut others, ended);
                    }
                }
            }
        }
        if let Some(ended) = run {
            end(self, &mut others, ended);
        }
        self.insert_others(hasher, &mut others, replaced);
    }

    /// Inserts ids into the table, in the order that suits it, and empties the list.
    fn insert_others(
        &mut self,
        hasher: &impl BuildHasher,
        others: &mut Vec<(u64, u64)>,
        replaced: &mut dyn FnMut(u64),
    ) {
        let bits = || others.iter().map(|(bits, _)| *bits);
        if let (Some(least), Some(largest)) = (bits().min(), bits().max()) {
            self.widen(least, largest);
        }
        let hash = |bits| hasher.hash_one(bits);
        grouped(others.drain(..), hash, |hash, bits, row| {
            self.insert_hashed(hasher, hash, bits, row)
                .map(&mut *replaced);
        });
    }

    fn insert_run(&mut self, hasher: &impl BuildHasher, run: Run, replaced: &mut dyn FnMut(u64)) {
        let (first, last) = (run.first, run.last());
        let covered = self.runs.cut(first..=last);
        let mut before = 0;
        let mut count = |row| {
            replaced(row);
            before += 1;
        };
        let in_table = self
            .table_span
            .is_some_and(|(least, largest)| least <= last && first <= largest);
        if in_table {
            let items = (first..=last).zip(run.row..);
            let hash = |bits| hasher.hash_one(bits);
            grouped(items, hash, |hash, bits, _| {
                match self.table.remove(hash, bits) {
                    Some(GONE) => None,
                    Some(row) => Some(row),
                    None => row_among(&covered, bits),
                }
                .map(&mut count);
            });
        } else {
            let rows = covered.iter().flat_map(|run| run.row..run.row + run.len);
            rows.for_each(count);
        }
        self.runs.push(run);
        self.len = self.len + run.len as usize - before;
    }

    fn widen(&mut self, from: u64, to: u64) {
        let (least, largest) = self.table_span.unwrap_or((from, to));
        self.table_span = Some((least.min(from), largest.max(to)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use hashbrown::DefaultHashBuilder;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        /// Stretches of ids that count up, by their first ids and lengths.
        Put(Vec<(u64, u64)>),
        Insert(u64),
        Remove(u64),
        RemoveAll(u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let stretch = (0..900_u64, prop_oneof![1..5_u64, 50..300_u64]);
        let step = prop_oneof![
            3 => prop::collection::vec(stretch, 0..5).prop_map(Step::Put),
            1 => (0..1_200_u64).prop_map(Step::Insert),
            1 => (0..1_200_u64).prop_map(Step::Remove),
            1 => (0..900_u64, 1..300_u64).prop_map(|(first, len)| Step::RemoveAll(first, len)),
        ];
        prop::collection::vec(step, 0..25)
    }

    proptest! {
        #[test]
        fn it_is_a_map(base in prop_oneof![Just(0), Just(u64::MAX - 1_199)], steps in steps()) {
            let hasher = DefaultHashBuilder::default();
            let mut model: HashMap<u64, u64> = HashMap::new();
            let mut ids = IntIds::new();
            let mut row = 0;
            for step in steps {
                match step {
                    Step::Put(stretches) => {
                        let put: Vec<u64> = stretches
                            .iter()
                            .flat_map(|(first, len)| base + first..base + first + (len - 1))
                            .collect();
                        let mut replaced = Vec::new();
                        ids.insert_all(&hasher, put.iter().copied().zip(row..), &mut |row| replaced.push(row));
                        let mut expected: Vec<_> =
                            put.iter().zip(row..).filter_map(|(id, row)| model.insert(*id, row)).collect();
                        row += put.len() as u64;
                        replaced.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(replaced, expected);
                    }
                    Step::Insert(id) => {
                        prop_assert_eq!(ids.insert(&hasher, base + id, row), model.insert(base + id, row));
                        row += 1;
                    }
                    Step::Remove(id) => {
                        prop_assert_eq!(ids.remove(&hasher, base + id), model.remove(&(base + id)));
                    }
                    Step::RemoveAll(first, len) => {
                        for id in base + first..base + first + (len - 1) {
                            prop_assert_eq!(ids.remove(&hasher, id), model.remove(&id));
                        }
                    }
                }
                prop_assert_eq!(ids.len(), model.len());
            }
            for id in base..=base + 1_199 {
                prop_assert_eq!(ids.get(&hasher, id), model.get(&id).copied());
            }
        }
    }

    #[test]
    fn ids_in_order_take_no_memory() {
        let hasher = DefaultHashBuilder::default();
        let mut ids = IntIds::new();
        let empty = ids.memory_bytes();
        for first in (0..1_000_000).step_by(1_000) {
            ids.insert_all(&hasher, (first..first + 1_000).zip(first..), &mut |_| {});
        }
        assert_eq!(ids.len(), 1_000_000);
        assert!(ids.memory_bytes() < empty + 1_000, "{}", ids.memory_bytes());
        for id in 0..500_000 {
            assert_eq!(ids.remove(&hasher, id), Some(id));
        }
        assert!(
            ids.memory_bytes() < empty + 1_000,
            "oldest first leaves nothing behind"
        );
    }
}
