//! [`RowRanks`]: where rows stand in a list with many gaps.

use crate::row_runs::RowRuns;

/// Fewer runs are found in their list as soon: it stays in the first level of the cache.
const FEW_RUNS: usize = 16;

/// The most row numbers, of rows or of gaps, for each row: 16 bytes.
const MAX_SPAN_OF_ROW: u64 = 64;

/// A bit for each row number from the first of a list to its last, and beside each 64 of them how many rows come before.
///
/// Good for a compacted segment, in which each row that died leaves a gap: a rank is one read of 16 bytes, where to
/// search thousands of runs takes a dozen that wait for each other. Not good for a list of few runs, or of rows that
/// lie far apart: there are none for these.
///
/// ```text
/// rank of row first + 64 w + b:  block w = ┌ rows before: 8 bytes ┬ present: 8 bytes ┐
///                                before + how many of the lowest b bits of present are set
/// ```
#[derive(Debug)]
pub(crate) struct RowRanks {
    first: u64,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(16))]
struct Block {
    before: u64,
    present: u64,
}

impl RowRanks {
    /// The ranks of a list; `None` if its runs are few or its rows lie far apart.
    pub fn of(rows: &RowRuns) -> Option<Self> {
        let (first, last) = (rows.first()?, rows.last()?);
        let span = last - first;
        if rows.iter().nth(FEW_RUNS).is_none() || span / MAX_SPAN_OF_ROW >= rows.len() {
            return None;
        }
        let mut blocks = vec![Block::default(); (span / 64) as usize + 1];
        for run in rows.iter() {
            let (mut at, end) = (run.start - first, run.end - first);
            while at < end {
                let bit = at % 64;
                let taken = (64 - bit).min(end - at);
                blocks[(at / 64) as usize].present |= u64::MAX >> (64 - taken) << bit;
                at += taken;
            }
        }
        let mut before = 0;
        for block in &mut blocks {
            block.before = before;
            before += u64::from(block.present.count_ones());
        }
        Some(RowRanks { first, blocks })
    }

    /// Position of a row number in the list.
    pub fn rank(&self, row: u64) -> Option<u64> {
        let at = row.checked_sub(self.first)?;
        let block = self.blocks.get(usize::try_from(at / 64).ok()?)?;
        let bit = 1_u64 << (at % 64);
        let below = u64::from((block.present & (bit - 1)).count_ones());
        (block.present & bit != 0).then_some(block.before + below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_are_those_of_the_list(
            start in prop::sample::select(vec![0, 1, 63, 1 << 40, u64::MAX - 40_000]),
            gaps in prop::collection::vec((1..100_u64, 1..90_u64), FEW_RUNS + 1..200),
        ) {
            let mut rows = RowRuns::default();
            let mut at = start;
            for (gap, len) in gaps {
                rows.push(at + gap..at + gap + len).unwrap();
                at += gap + len;
            }
            let ranks = RowRanks::of(&rows).unwrap();
            for row in start..=at + 130 {
                prop_assert_eq!(ranks.rank(row), rows.rank(row));
            }
            for row in [0, u64::MAX] {
                prop_assert_eq!(ranks.rank(row), rows.rank(row));
            }
        }
    }

    #[test]
    fn there_are_none_where_they_would_be_large_or_no_use() {
        let spread = |runs: u64, apart: u64| -> RowRuns {
            (0..runs).map(|run| run * apart..run * apart + 1).collect()
        };
        assert!(RowRanks::of(&RowRuns::default()).is_none());
        assert!(RowRanks::of(&spread(16, 2)).is_none());
        assert!(RowRanks::of(&spread(17, 2)).is_some());
        assert!(RowRanks::of(&spread(1_000, 64)).is_some());
        assert!(RowRanks::of(&spread(1_000, 65)).is_none());
        assert!(RowRanks::of(&spread(1_000, u64::MAX / 1_000)).is_none());
    }
}
