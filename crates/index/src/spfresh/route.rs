//! Which shard a row belongs to.

use crate::mix::mix;

/// The shard of a row, of so many. The number of the row is mixed first, since rows are numbered in order and by those who
/// send them in steps: without that, all rows of one sender may be in one shard.
pub(super) fn route(row: u64, shards: usize) -> usize {
    let (mixed, shards) = (mix(row), shards.max(1) as u64);
    let shard = if shards.is_power_of_two() {
        mixed & (shards - 1)
    } else {
        mixed % shards
    };
    shard as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_shard_and_that_is_in_range() {
        for shards in 1..=64 {
            for row in (0..500).chain(u64::MAX - 500..=u64::MAX) {
                assert!(route(row, shards) < shards, "row {row} of {shards}");
            }
        }
    }

    /// Where a row is must stay what it is: other rows of a checkpoint's shards were routed the same way.
    #[test]
    fn rows_are_where_they_always_were() {
        let by = |shards| [0, 1, 2, 3, 1 << 40].map(|row| route(row, shards));
        assert_eq!(by(1), [0; 5]);
        assert_eq!(by(4), [3, 1, 2, 1, 1]);
        assert_eq!(by(8), [7, 1, 6, 5, 1]);
        assert_eq!(by(3), [1, 2, 1, 0, 0]);
        assert_eq!(by(10), [5, 5, 0, 3, 1]);
    }

    #[test]
    fn regular_numbers_spread() {
        const ROWS: u64 = 32_000;
        for shards in [2, 3, 4, 6, 7, 8, 16, 64] {
            for step in [1, 2, 3, 7, 8, 16, 64, 1_000, 4_096, 1 << 20, 1 << 32] {
                let mut counts = vec![0u64; shards];
                (0..ROWS).for_each(|row| counts[route(row * step, shards)] += 1);
                let mean = ROWS as f64 / shards as f64;
                // Six standard deviations of what chance does.
                let most = 6.0 * mean.sqrt();
                let off = counts.iter().map(|count| (*count as f64 - mean).abs());
                let off = off.fold(0.0, f64::max);
                assert!(off < most, "{shards} shards, step {step}: {counts:?}");
            }
        }
    }
}
