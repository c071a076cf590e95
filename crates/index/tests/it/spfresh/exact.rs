//! Exact searches, which read only what can matter.

use longbow_index::{
    Metric, Neighbor, Query, Result, Scalar, SearchStats, SpFresh, SpFreshParams, Space,
};

use super::file::MemoryFile;
use super::{again, build, build_in};
use crate::common::{Data, Dice, encode};

/// What an exact search finds, and how many postings it reads.
fn exact(index: &SpFresh, data: &Data, query: &Query, k: usize) -> (Vec<Neighbor>, u64) {
    let mut stats = SearchStats::default();
    let all = |_: u64| true;
    let found = index.search(query, (k, usize::MAX), (&all, None), data, &mut stats);
    (found, stats.nodes_popped)
}

fn space(scalar: Scalar, metric: Metric, dim: usize) -> Space {
    Space {
        scalar,
        metric,
        dim,
    }
}

/// Vectors without clusters, most of them several times.
fn noise(space: Space, rows: usize, seed: u64) -> Result<Data> {
    let mut data = Data::clustered(space, 1, 1, seed)?;
    let mut dice = Dice(seed);
    let vectors: Vec<Vec<u8>> = (0..rows / 3)
        .map(|_| {
            let values: Vec<f32> = (0..space.dim).map(|_| 2.0 * dice.unit()).collect();
            encode(space.scalar, &values)
        })
        .collect();
    let any = |_| vectors[dice.below(vectors.len() as u64) as usize].clone();
    data.bytes = (0..rows).flat_map(any).collect();
    Ok(data)
}

/// Two searches, with what bounds save and without, find what a scan does, whatever the vectors are.
fn check(data: &Data, shards: usize) -> Result<()> {
    let rows = data.rows() as u64;
    let params = SpFreshParams {
        split: 40,
        merge: 8,
        shards,
        ..SpFreshParams::default()
    };
    let pruned = build(data, params, 0..rows)?;
    let exact_shard_prune = false;
    let whole = SpFreshParams {
        exact_shard_prune,
        ..params
    };
    let whole = build(data, whole, 0..rows)?;
    // Bounds hold on when vectors go.
    for index in [&pruned, &whole] {
        index.sweep(&|row| row % 5 == 2, 0, usize::MAX)?;
    }
    let stays = |row: u64| row % 5 != 2;
    for (at, query) in data.queries.iter().take(25).enumerate() {
        let k = [1, 10, 100][at % 3];
        let what = format!("{:?}, {shards} shards, query {at}, k {k}", data.space);
        let expected = data.exact(query, k, &stays);
        let (found, read) = exact(&whole, data, query, k);
        assert_eq!(
            (found, read),
            (expected.clone(), whole.postings() as u64),
            "{what}"
        );
        assert_eq!(exact(&pruned, data, query, k).0, expected, "pruned: {what}");
    }
    Ok(())
}

#[test]
fn bounds_leave_out_nothing_that_matters() -> Result<()> {
    use Metric::{Cosine, Dot, Euclidean};
    for (at, (scalar, metric, dim)) in [
        (Scalar::F32, Euclidean, 3),
        (Scalar::F32, Cosine, 24),
        (Scalar::F16, Euclidean, 17),
        (Scalar::F16, Cosine, 5),
        (Scalar::I8, Euclidean, 32),
        (Scalar::U8, Cosine, 4),
        (Scalar::U8, Euclidean, 2),
        (Scalar::F32, Dot, 12),
    ]
    .into_iter()
    .enumerate()
    {
        let space = space(scalar, metric, dim);
        for (kind, shards) in [(0, [1, 4, 7][at % 3]), (1, [3, 1, 2][at % 3])] {
            let data = match kind {
                0 => Data::clustered(space, 2_500, 25, at as u64)?,
                _ => noise(space, 2_500, at as u64)?,
            };
            check(&data, shards)?;
        }
    }
    check(&Data::equal(500)?, 3)
}

/// Squares of such vectors are infinite, or zero, or lose most of their digits.
#[test]
fn bounds_leave_out_nothing_where_sums_are_not_finite_or_vanish() -> Result<()> {
    // The cosine of a vector whose length is more than a float can be is what it comes to, not what it is.
    for (metric, most) in [(Metric::Euclidean, f32::MAX), (Metric::Cosine, 1e37)] {
        let mut data = Data::clustered(space(Scalar::F32, metric, 16), 900, 9, 5)?;
        let size = data.space.row_bytes();
        let lengths = [3e30, 3e38, 1e-20, 1e-30, 1e-40, 1e15, 4e18, 0.0, -2e19];
        for (at, length) in lengths.into_iter().cycle().take(300).enumerate() {
            let shape = |element: f32| (element * length).clamp(-most, most);
            let row = &mut data.bytes[3 * at * size..][..size];
            for element in row.as_chunks_mut::<4>().0 {
                *element = shape(f32::from_le_bytes(*element)).to_le_bytes();
            }
        }
        let floats = |length: f32| (1..=16).map(move |at| length * (at as f32 - 8.3));
        for length in [1e37, 1e30, 3e18, 1e-19, 1e-25, 1e-38, 0.0] {
            let query = Query::new(data.space, &floats(length).collect::<Vec<f32>>())?;
            data.queries.insert(0, query);
        }
        for shards in [1, 3] {
            check(&data, shards)?;
        }
    }
    Ok(())
}

#[test]
fn few_postings_are_read_where_vectors_are_in_clusters() -> Result<()> {
    let mut data = Data::clustered(space(Scalar::F32, Metric::Euclidean, 24), 9_000, 40, 3)?;
    for shards in [1, 4] {
        let params = SpFreshParams {
            split: 64,
            merge: 16,
            shards,
            ..SpFreshParams::default()
        };
        let file = MemoryFile::default();
        let index = build_in(&file, &data, params, 0..9_000)?;
        for index in [again(&index, &file)?, index] {
            let postings = index.postings() as u64;
            let read: u64 = data
                .queries
                .iter()
                .map(|query| exact(&index, &data, query, 10).1)
                .sum();
            let mean = read / data.queries.len() as u64;
            assert!(
                mean * 6 < postings,
                "{shards} shards: {mean} of {postings} postings, {index:?}"
            );
        }
    }
    // A search that ends early says what it has.
    data.queries.truncate(1);
    let index = build(&data, SpFreshParams::default(), 0..6_000)?;
    let (all, over) = (|_: u64| true, || true);
    let mut stats = SearchStats::default();
    let rows: (&(dyn Fn(u64) -> bool + Sync), _) = (&all, Some(&over as longbow_index::IsOver<'_>));
    let found = index.search(&data.queries[0], (10, usize::MAX), rows, &data, &mut stats);
    assert_eq!((found.len(), stats.nodes_popped), (10, 1));
    Ok(())
}
