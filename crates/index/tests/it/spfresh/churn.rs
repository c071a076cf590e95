use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use longbow_index::{Metric, Result, Scalar, SpFresh, SpFreshParams, Space};
use proptest::prelude::*;

use super::{build, recall, search};
use crate::common::{Data, Dice};

const SPACE: Space = Space {
    scalar: Scalar::F32,
    metric: Metric::Euclidean,
    dim: 24,
};

/// Sweeps all postings, some at a time.
fn sweep(index: &SpFresh, dead: &dyn Fn(u64) -> bool) -> Result<u64> {
    let mut rows = 0;
    loop {
        let (mut from, mut left) = (0, 0);
        loop {
            let swept = index.sweep(dead, from, 7)?;
            left += swept.rows;
            match swept.next {
                Some(next) => from = next,
                None => break,
            }
        }
        rows += left;
        // A split may have moved a dead row to where the sweep had been.
        if left == 0 {
            return Ok(rows);
        }
    }
}

#[test]
fn rows_that_go_give_their_room_to_others_and_recall_stays() -> Result<()> {
    let data = Data::clustered(SPACE, 24_000, 60, 9)?;
    for shards in [1, 3] {
        rows_go_and_others_come(&data, shards)?;
    }
    Ok(())
}

fn rows_go_and_others_come(data: &Data, shards: usize) -> Result<()> {
    let params = SpFreshParams {
        shards,
        ..SpFreshParams::default()
    };
    let index = build(data, params, 0..4_000)?;
    let first = recall(&index, data, (10, 12), &|row| row < 4_000);
    let (bytes, _) = index.file_bytes();
    for round in 1..=10 {
        let alive = round * 2_000..round * 2_000 + 4_000;
        for row in alive.start + 2_000..alive.end {
            index.insert(row, data.vector(row))?;
        }
        assert_eq!(sweep(&index, &|row| row < alive.start)?, 2_000);
        assert_eq!(index.len(), 4_000);
        let found = recall(&index, data, (10, 12), &|row| alive.contains(&row));
        assert!(
            found > first - 0.02,
            "round {round}: {found}, at first {first}"
        );
    }
    let (most, all) = index.lengths();
    assert!(
        most <= 2 * index.params().split && all < 8_000,
        "{most} {all}"
    );
    assert!(
        index.file_bytes().0 < 2 * bytes,
        "{bytes} {:?}",
        index.file_bytes()
    );
    assert_eq!(sweep(&index, &|_| true)?, 4_000);
    assert!(index.is_empty() && index.postings() <= shards);
    Ok(())
}

#[test]
fn searches_beside_inserts_and_sweeps_miss_no_row_that_stays() -> Result<()> {
    let data = Data::clustered(SPACE, 12_000, 30, 11)?;
    for shards in [1, 4] {
        none_is_missed(&data, shards)?;
    }
    Ok(())
}

fn none_is_missed(data: &Data, shards: usize) -> Result<()> {
    let params = SpFreshParams {
        split: 48,
        merge: 12,
        shards,
        ..SpFreshParams::default()
    };
    let index = build(data, params, 0..1_000)?;
    let (done, first) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::SeqCst) {
                let first = first.load(Ordering::SeqCst);
                sweep(&index, &|row| row < first)?;
            }
            Ok(())
        });
        let reader = scope.spawn(|| {
            let mut dice = Dice(2);
            while !done.load(Ordering::SeqCst) {
                let query = &data.queries[dice.below(data.queries.len() as u64) as usize];
                let last = first.load(Ordering::SeqCst) + 1_000;
                // Of these, none goes before the search ends, since the next rows come in first.
                let stays = last - 500..last;
                let found = search(&index, data, query, (10, usize::MAX), &|row| {
                    stays.contains(&row)
                });
                let now = first.load(Ordering::SeqCst);
                if now < stays.start {
                    assert_eq!(found, data.exact(query, 10, &|row| stays.contains(&row)));
                }
            }
        });
        let two = |from: u64| {
            let index = &index;
            move || (from..from + 50).try_for_each(|row| index.insert(row, data.vector(row)))
        };
        for from in (1_000..12_000).step_by(100) {
            let other = scope.spawn(two(from));
            two(from + 50)()?;
            other.join().expect("an insert does not panic")?;
            first.store(from - 900, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
        reader.join().expect("the reader found what it must");
        sweeper.join().expect("the sweeper ended")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After anything, all postings together give what an exact search does.
    #[test]
    fn whatever_comes_and_goes_all_postings_hold_what_is_there(
        seed in any::<u64>(),
        steps in prop::collection::vec((0u8..4, 1u64..120), 1..25),
        (split, replicas, shards) in (32usize..64, 1usize..5, 1usize..5),
    ) {
        let data = Data::clustered(Space { dim: 9, ..SPACE }, 3_000, 7, seed)?;
        let params = SpFreshParams { split, replicas, shards, merge: split / 4, reassign: 8, ..SpFreshParams::default() };
        let index = build(&data, params, 0..0)?;
        let (mut alive, mut next) = (BTreeSet::new(), 0);
        let mut dice = Dice(seed);
        for (what, count) in steps {
            if what < 3 {
                for _ in 0..count.min(3_000 - next) {
                    index.insert(next, data.vector(next))?;
                    alive.insert(next);
                    next += 1;
                }
            } else {
                let limit = dice.below(100);
                alive.retain(|row| row.wrapping_mul(0x9E37_79B9) >> 7 & 127 >= limit);
                sweep(&index, &|row| !alive.contains(&row))?;
            }
            prop_assert_eq!(index.len(), alive.len());
            let query = &data.queries[dice.below(data.queries.len() as u64) as usize];
            let found = search(&index, &data, query, (10, usize::MAX), &|_| true);
            prop_assert_eq!(found, data.exact(query, 10, &|row| alive.contains(&row)));
        }
    }
}
