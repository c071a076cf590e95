//! [`RowRuns`]: the row numbers of a segment, as runs.

use std::ops::Range;

use crate::error::{Error, Result};

/// A strictly increasing list of row numbers, kept as runs of neighbours.
///
/// A segment that was never compacted has a run for each batch that came in between two others, usually one; a
/// compacted one has a gap for each row that died. 24 bytes a run in memory, 2 or a little more on disk. A segment with
/// many finds a row by `RowRanks`.
///
/// ```
/// use longbow_storage::RowRuns;
///
/// let rows: RowRuns = [3..6, 9..10].into_iter().collect();
/// assert_eq!(rows.len(), 4);
/// assert_eq!(rows.select(3), Some(9));
/// assert_eq!(rows.rank(5), Some(2));
/// assert_eq!(rows.rank(7), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowRuns {
    runs: Vec<Run>,
    len: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// First row number.
    first: u64,
    /// Number of rows.
    len: u64,
    /// Rows in the runs before.
    before: u64,
}

impl RowRuns {
    /// Appends rows.
    ///
    /// # Errors
    /// If they do not lie after all rows that are there; nothing is appended then.
    pub fn push(&mut self, rows: Range<u64>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let len = rows.end - rows.start;
        match self.runs.last_mut() {
            Some(last) if rows.start < last.first + last.len => {
                return Err(Error::RowOrder {
                    row: rows.start,
                    last: last.first + last.len - 1,
                });
            }
            Some(last) if rows.start == last.first + last.len => last.len += len,
            _ => self.runs.push(Run {
                first: rows.start,
                len,
                before: self.len,
            }),
        }
        self.len += len;
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The smallest row number.
    pub fn first(&self) -> Option<u64> {
        self.runs.first().map(|run| run.first)
    }

    /// The largest row number.
    pub fn last(&self) -> Option<u64> {
        self.runs.last().map(|run| run.first + run.len - 1)
    }

    /// Position of a row number in the list.
    pub fn rank(&self, row: u64) -> Option<u64> {
        let after = self.runs.partition_point(|run| run.first <= row);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (row - run.first < run.len).then(|| run.before + (row - run.first))
    }

    /// The row number at a position.
    pub fn select(&self, position: u64) -> Option<u64> {
        if position >= self.len {
            return None;
        }
        let run = &self.runs[self.run_at(position)];
        Some(run.first + (position - run.before))
    }

    /// The row numbers at `positions`, as ranges in order. Positions past the end have none.
    pub fn ranges(&self, positions: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let end = positions.end.min(self.len);
        let start = positions.start.min(end);
        let first = if start < end {
            self.run_at(start)
        } else {
            self.runs.len()
        };
        self.runs[first..]
            .iter()
            .take_while(move |run| run.before < end)
            .map(move |run| {
                let from = start.max(run.before) - run.before;
                let to = end.min(run.before + run.len) - run.before;
                run.first + from..run.first + to
            })
    }

    /// All row numbers as ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.runs.iter().map(|run| run.first..run.first + run.len)
    }

    fn run_at(&self, position: u64) -> usize {
        self.runs.partition_point(|run| run.before <= position) - 1
    }

    /// LEB128 numbers: for each run the gap since the end of the one before, then its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.runs.len() * 2);
        let mut end = 0;
        for run in &self.runs {
            put_number(&mut bytes, run.first - end);
            put_number(&mut bytes, run.len);
            end = run.first + run.len;
        }
        bytes
    }

    /// Reads what [`RowRuns::encode`] wrote.
    ///
    /// # Errors
    /// If a number is cut or too large, or if a run is empty or touches the one before. Never panics.
    pub fn decode(mut bytes: &[u8]) -> Result<Self> {
        let total = bytes.len();
        let mut rows = RowRuns::default();
        let mut end = 0_u64;
        while !bytes.is_empty() {
            let at = total - bytes.len();
            let bad = || Error::RowRuns { at };
            let gap = take_number(&mut bytes).ok_or_else(bad)?;
            let len = take_number(&mut bytes).ok_or_else(bad)?;
            let first = end.checked_add(gap).ok_or_else(bad)?;
            end = first.checked_add(len).ok_or_else(bad)?;
            if len == 0 || (gap == 0 && !rows.is_empty()) {
                return Err(bad());
            }
            rows.push(first..end)?;
        }
        Ok(rows)
    }
}

impl FromIterator<Range<u64>> for RowRuns {
    /// # Panics
    /// If the ranges are not in order; use [`RowRuns::push`] for ranges from outside.
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut rows = RowRuns::default();
        for range in ranges {
            assert!(rows.push(range).is_ok(), "ranges are in order");
        }
        rows
    }
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = RowRuns> {
        let gaps = prop::collection::vec((0..50_u64, 1..1000_u64), 0..40);
        (gaps, any::<u32>()).prop_map(|(gaps, start)| {
            let mut rows = RowRuns::default();
            let mut at = u64::from(start);
            for (gap, len) in gaps {
                at += gap;
                rows.push(at..at + len).unwrap();
                at += len;
            }
            rows
        })
    }

    proptest! {
        #[test]
        fn encoding_comes_back(rows in rows()) {
            prop_assert_eq!(RowRuns::decode(&rows.encode()).unwrap(), rows);
        }

        #[test]
        fn rank_and_select_agree_with_a_list(rows in rows(), from in 0..20_000_u64, len in 0..20_000_u64) {
            let list: Vec<u64> = rows.iter().flatten().collect();
            prop_assert_eq!(rows.len(), list.len() as u64);
            for (position, row) in list.iter().enumerate() {
                prop_assert_eq!(rows.select(position as u64), Some(*row));
                prop_assert_eq!(rows.rank(*row), Some(position as u64));
            }
            prop_assert_eq!(rows.select(rows.len()), None);
            if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
                prop_assert_eq!(rows.rank(last + 1), None);
                prop_assert_eq!(first.checked_sub(1).and_then(|row| rows.rank(row)), None);
            }
            let part: Vec<u64> = rows.ranges(from..from + len).flatten().collect();
            let from = (from as usize).min(list.len());
            let to = (from + len as usize).min(list.len());
            prop_assert_eq!(part, &list[from..to]);
        }

        #[test]
        fn any_bytes_decode_to_themselves_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(rows) = RowRuns::decode(&bytes) {
                prop_assert_eq!(RowRuns::decode(&rows.encode()).unwrap(), rows);
            }
        }
    }

    #[test]
    fn order_is_kept() {
        let mut rows = RowRuns::default();
        rows.push(5..8).unwrap();
        rows.push(3..3).unwrap();
        assert!(matches!(
            rows.push(7..9),
            Err(Error::RowOrder { row: 7, last: 7 })
        ));
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn the_last_number_there_is() {
        let rows: RowRuns = [0..1, u64::MAX - 1..u64::MAX].into_iter().collect();
        assert_eq!(RowRuns::decode(&rows.encode()).unwrap(), rows);
        let too_far = [
            1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1,
        ];
        assert!(matches!(
            RowRuns::decode(&too_far),
            Err(Error::RowRuns { at: 2 })
        ));
    }
}
