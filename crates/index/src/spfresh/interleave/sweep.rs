//! A sweep beside threads that split what it has not come to yet.

use std::ops::Range;

use shuttle::thread;

use super::{PARAMS, Rows, empty, own};
use crate::interleave::explore;
use crate::spfresh::{SpFresh, SpFreshParams};

/// Rows that are there at the begin: two postings, each of half of the clusters, and a number that was given up.
const FIRST: u64 = 60;
const EACH: u64 = 8;
const CLUSTERS: u64 = 8;

/// Clusters so far apart that a split parts them and moves nothing else.
fn vector(row: u64) -> [f32; 8] {
    let cluster = row % CLUSTERS;
    let mut vector = [0.0; 8];
    vector[0] = if cluster & 1 == 0 { -64.0 } else { 64.0 };
    vector[1] = if cluster & 2 == 0 { -16.0 } else { 16.0 };
    vector[2] = if cluster & 4 == 0 { -4.0 } else { 4.0 };
    vector[3] = row as f32 / 512.0;
    vector
}

fn is_dead(row: u64) -> bool {
    row < FIRST / 2
}

fn sweep(index: &SpFresh) -> u64 {
    let (mut from, mut rows) = (Some(0), 0);
    while let Some(begin) = from {
        let swept = index.sweep(&is_dead, begin, 1).expect("no file fails");
        (from, rows) = (swept.next, rows + swept.rows);
    }
    rows
}

#[test]
fn one_sweep_takes_all_out_that_was_dead_where_none_moves_elsewhere() {
    explore(1, || {
        let params = SpFreshParams {
            merge: 1,
            replicas: 1,
            ..PARAMS
        };
        let (index, _) = empty(params);
        let rows = Rows::new(FIRST + 2 * EACH, vector);
        let insert = |some: Range<u64>| some.for_each(|row| rows.insert(&index, row));
        insert(0..FIRST);
        let free = index.shards[0].writer.lock().free.len();
        assert_eq!((index.postings(), free), (2, 1));
        thread::scope(|scope| {
            scope.spawn(|| insert(FIRST..FIRST + EACH));
            scope.spawn(|| insert(FIRST + EACH..FIRST + 2 * EACH));
            scope.spawn(|| assert_eq!(sweep(&index), FIRST / 2));
        });
        let alive: Vec<u64> = (FIRST / 2..FIRST + 2 * EACH).collect();
        assert_eq!(own(&index), alive);
    });
}
