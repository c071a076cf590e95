//! [`IdRuns`]: ids that count up with their rows, a few numbers for any count of them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// `len` ids from `first`, held by as many rows from `row`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub first: u64,
    pub row: u64,
    /// Not 0; the last id is at most `u64::MAX`.
    pub len: u64,
}

impl Run {
    /// The last id.
    pub fn last(&self) -> u64 {
        self.first + (self.len - 1)
    }

    /// Whether this id and row come next.
    pub fn goes_on_with(&self, id: u64, row: u64) -> bool {
        self.last().checked_add(1) == Some(id) && self.row + self.len == row
    }

    /// The row of an id that is not below the first.
    fn row_of(&self, id: u64) -> Option<u64> {
        let at = id - self.first;
        (at < self.len).then(|| self.row + at)
    }

    /// The part with the ids from `first` to `last`, which are in the run.
    fn part(&self, first: u64, last: u64) -> Run {
        Run {
            first,
            row: self.row + (first - self.first),
            len: last - first + 1,
        }
    }
}

/// Runs by their first ids; no id is in two of them.
#[derive(Debug, Default)]
pub(crate) struct IdRuns {
    runs: BTreeMap<u64, Run>,
}

impl IdRuns {
    /// The row of an id.
    #[inline]
    pub fn get(&self, id: u64) -> Option<u64> {
        let (_, run) = self.runs.range(..=id).next_back()?;
        run.row_of(id)
    }

    /// Adds a run of which no id is here. If it goes on where another ends, the two become one.
    pub fn push(&mut self, run: Run) {
        let before = self.runs.range_mut(..run.first).next_back();
        if let Some((_, before)) = before
            && before.goes_on_with(run.first, run.row)
        {
            before.len += run.len;
            return;
        }
        self.runs.insert(run.first, run);
    }

    /// Takes out all ids of a range: the parts of runs that were there, in order.
    pub fn cut(&mut self, ids: RangeInclusive<u64>) -> Vec<Run> {
        let (first, last) = ids.into_inner();
        let mut parts = Vec::new();
        while let Some((_, run)) = self.runs.range(..=last).next_back()
            && run.last() >= first
        {
            let run = *run;
            self.runs.remove(&run.first);
            if run.first < first {
                self.runs.insert(run.first, run.part(run.first, first - 1));
            }
            if run.last() > last {
                let rest = run.part(last + 1, run.last());
                self.runs.insert(rest.first, rest);
            }
            parts.push(run.part(run.first.max(first), run.last().min(last)));
        }
        parts.reverse();
        parts
    }

    /// Takes out an id that is the first or the last of a run; false if it is neither.
    pub fn trim(&mut self, id: u64) -> bool {
        let Some((_, run)) = self.runs.range(..=id).next_back() else {
            return false;
        };
        let at_an_end = id == run.first || id == run.last();
        if at_an_end {
            self.cut(id..=id);
        }
        at_an_end
    }

    /// Memory held, in bytes: the tree's nodes are between half and all full.
    pub fn memory_bytes(&self) -> usize {
        self.runs.len() * size_of::<(u64, Run)>() * 3 / 2
    }
}

/// The row of an id among runs in order, as [`IdRuns::cut`] gives them.
pub(crate) fn row_among(runs: &[Run], id: u64) -> Option<u64> {
    let after = runs.partition_point(|run| run.first <= id);
    runs[..after].last()?.row_of(id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Where the ids begin: small ones, and those around the largest.
    fn base() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), Just(u64::MAX - 99)]
    }

    proptest! {
        #[test]
        fn it_is_a_map(
            base in base(),
            steps in prop::collection::vec((0..80_u64, 1..20_u64, prop::bool::ANY), 0..30),
        ) {
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            let mut runs = IdRuns::default();
            let mut row = 0;
            for (first, len, is_put) in steps {
                let first = base + first;
                let last = first + (len - 1);
                if is_put {
                    let parts = runs.cut(first..=last);
                    for id in first..=last {
                        prop_assert_eq!(row_among(&parts, id), model.insert(id, row + (id - first)));
                    }
                    let covered = parts.iter().map(|part| part.len).sum::<u64>();
                    prop_assert!(covered <= len, "nothing beside the range is cut");
                    runs.push(Run { first, row, len });
                    row += len + first % 2;
                } else if runs.trim(first) {
                    prop_assert!(model.remove(&first).is_some());
                } else {
                    let neighbours = [first.wrapping_sub(1), first.wrapping_add(1)];
                    let inner = neighbours.iter().all(|id| model.contains_key(id));
                    prop_assert!(inner || !model.contains_key(&first), "an end was not trimmed");
                }
                for at in 0..100 {
                    prop_assert_eq!(runs.get(base + at), model.get(&(base + at)).copied());
                }
            }
        }
    }

    #[test]
    fn what_goes_on_is_one_run() {
        let mut runs = IdRuns::default();
        for first in (0..1_000).step_by(10) {
            let row = first + 7;
            runs.push(Run {
                first,
                row,
                len: 10,
            });
        }
        assert_eq!(runs.runs.len(), 1);
        runs.push(Run {
            first: 1_000,
            row: 9_000,
            len: 5,
        });
        assert_eq!(runs.runs.len(), 2, "its rows do not go on");
        assert_eq!(runs.cut(0..=2_000).len(), 2);
        assert_eq!(runs.memory_bytes(), 0);
    }
}
