use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use longbow_kernels::{Metric, Scalar};

use super::posting::Centroid;
use super::reach::Asking;
use super::route::route;
use super::shard::Shard;
use super::{SpFresh, SpFreshParams};
use crate::checkpoint::VectorSource;
use crate::encode::{Encoded, Encoder};
use crate::mix::mix;
use crate::space::{Query, Space};
use crate::stats::SearchStats;

pub(super) fn centroid() -> Arc<Centroid> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 16,
    };
    let encoder = Encoder::new(space, 1, None);
    Arc::new(Centroid::new(&encoder, &vec![1.0; encoder.dim()]))
}

fn space(dim: usize) -> Space {
    Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim,
    }
}

/// A vector around one of some centres, which drift away with the row.
fn vector(row: u64, dim: usize) -> Vec<u8> {
    let number = |seed: u64| {
        let mixed = (mix(seed) >> 40) as f32;
        mixed / 8_388_608.0 - 1.0
    };
    let centre = mix(row) % 40;
    let drift = row as f32 / 4_000.0;
    let element = |at: u64| number(centre << 20 | at) + 0.4 * number(row << 10 | at) + drift;
    (0..dim as u64)
        .flat_map(|at| element(at).to_le_bytes())
        .collect()
}

/// Beyond what rounding does.
const NEARER: f32 = 0.999;

/// Vectors in the index, and those of them for which the squared distance to another centroid of their shard is below that to
/// the centroid of their own posting, times a factor.
pub(super) fn misplaced(index: &SpFresh, factor: f32) -> (usize, usize) {
    let (mut all, mut wrong) = (0, 0);
    for (shard, directory) in index.directories().iter().enumerate() {
        assert_eq!(directory.centroids.len(), directory.len());
        for posting in directory.iter() {
            for member in posting.members(&index.layout).filter(|member| member.own) {
                assert_eq!(route(member.row, index.shards.len()), shard);
                let own = index.between(member.vector(), &posting.centroid);
                let nearest = directory
                    .iter()
                    .map(|other| index.between(member.vector(), &other.centroid))
                    .fold(f32::INFINITY, f32::min);
                all += 1;
                wrong += usize::from(nearest < own * factor);
            }
        }
    }
    (all, wrong)
}

#[test]
fn each_vector_is_in_the_posting_of_its_nearest_centroid() {
    let params = SpFreshParams {
        split: 64,
        merge: 8,
        reassign: 48,
        ..SpFreshParams::default()
    };
    for (replicas, shards) in [(1, 1), (3, 1), (2, 3)] {
        let params = SpFreshParams {
            replicas,
            shards,
            ..params
        };
        let file = Box::new(super::store::tests::NoFile::default());
        let index = SpFresh::new(space(32), params, file).expect("good parameters");
        for row in 0..8_000 {
            index
                .insert(row, &vector(row, 32))
                .expect("memory is there");
        }
        let (all, wrong) = misplaced(&index, NEARER);
        assert_eq!(all, 8_000);
        assert!(
            wrong < 80,
            "after inserts: {wrong} in wrong postings, {index:?}"
        );
        index
            .sweep(&|row| row % 3 != 0, 0, usize::MAX)
            .expect("memory is there");
        let (all, wrong) = misplaced(&index, NEARER);
        assert_eq!(all, 2_667);
        assert!(
            wrong < 80,
            "after a sweep: {wrong} in wrong postings, {index:?}"
        );
    }
}

/// Rows go where clusters were, and as many come where they are now: no posting is ever split or merged for it.
#[test]
fn centroids_follow_what_drifts() {
    let file = Box::new(super::store::tests::NoFile::default());
    let params = SpFreshParams::default();
    let index = SpFresh::new(space(32), params, file).expect("good parameters");
    let vector = |row: u64| vector(row, 32);
    (0..4_000).for_each(|row| index.insert(row, &vector(row)).expect("memory is there"));
    for end in (4_000..24_000).step_by(400) {
        (end..end + 400).for_each(|row| index.insert(row, &vector(row)).expect("memory is there"));
        let dead = |row: u64| row + 4_000 < end + 400;
        index.sweep(&dead, 0, usize::MAX).expect("memory is there");
    }
    let directory = &index.directories()[0];
    let strayed = directory
        .iter()
        .filter(|posting| index.strayed(posting).is_some());
    let strayed = strayed.count();
    assert!(
        3 * strayed <= directory.len(),
        "{strayed} strayed, {index:?}"
    );
    let (all, wrong) = misplaced(&index, NEARER);
    assert_eq!(all, 4_000);
    assert!(wrong < 80, "{wrong} in wrong postings, {index:?}");
    let (most, all) = index.lengths();
    assert!(most <= params.split && all < 8_000, "{most} {all}");
}

/// An index of rows 0 to `rows`.
fn build(space: Space, params: SpFreshParams, rows: u64) -> SpFresh {
    let file = Box::new(super::store::tests::NoFile::default());
    let index = SpFresh::new(space, params, file).expect("good parameters");
    for row in 0..rows {
        let vector = vector(row, space.dim);
        index.insert(row, &vector).expect("memory is there");
    }
    index
}

#[test]
fn no_vector_is_nearer_than_bounds_say_and_bounds_are_not_much_less() {
    for metric in [Metric::Euclidean, Metric::Cosine] {
        let space = Space {
            metric,
            ..space(48)
        };
        let index = build(space, SpFreshParams::default(), 3_000);
        let (mut of_vectors, mut of_postings) = (0.0, 0.0);
        for at in 0..20u64 {
            let floats: Vec<f32> = (vector(5_000 + at, 48).as_chunks().0.iter())
                .map(|x| f32::from_le_bytes(*x) * (1 + at % 3) as f32)
                .collect();
            let query = Query::new(space, &floats).expect("finite");
            let mut encoded = Encoded::default();
            index.encoder().query(query.floats(), &mut encoded);
            let asking = Asking::new(index.encoder(), &encoded, space);
            let directory = &index.directories()[0];
            for posting in directory.iter() {
                let (bound, _) = asking.to_posting(posting);
                let mut nearest = f32::INFINITY;
                for member in posting.members(&index.layout).filter(|member| member.own) {
                    let distance = query.distance(&vector(member.row, 48));
                    let least = asking.to_vector(member.vector());
                    assert!(!asking.is_beyond(least, distance), "{least} {distance}");
                    assert!(
                        asking.is_beyond(least, distance * 0.85),
                        "{least} {distance}"
                    );
                    assert!(!asking.is_beyond(bound, distance), "{bound} {distance}");
                    nearest = nearest.min(distance);
                }
                // All that it has may be from the other side of a boundary.
                if nearest.is_infinite() {
                    continue;
                }
                of_postings += bound * bound;
                of_vectors += f64::from(nearest);
            }
        }
        assert!(of_postings > 0.1 * of_vectors, "{of_postings} {of_vectors}");
    }
}

/// Searches so long that several threads read find what one finds, whether exact or by the codes.
#[test]
fn the_number_of_threads_makes_no_difference() {
    let params = SpFreshParams {
        shards: 5,
        ..SpFreshParams::default()
    };
    let (dim, rows) = (1_024, 14_000);
    let mut index = build(space(dim), params, rows);
    let originals: HashMap<u64, Vec<u8>> = (0..rows).map(|row| (row, vector(row, dim))).collect();
    struct Source(HashMap<u64, Vec<u8>>);
    impl VectorSource for Source {
        fn vector(&self, row: u64) -> Option<&[u8]> {
            self.0.get(&row).map(Vec::as_slice)
        }
    }
    let originals = Source(originals);
    for at in 0..4u64 {
        let floats = vector(20_000 + at, dim);
        let floats = floats.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x));
        let query = Query::new(space(dim), &floats.collect::<Vec<f32>>()).expect("finite");
        for probes in [1_000, usize::MAX] {
            let mut search = |threads| {
                index.threads = threads;
                let mut stats = SearchStats::default();
                let visible = |row: u64| row % 7 != at;
                let rows: (&(dyn Fn(u64) -> bool + Sync), _) = (&visible, None);
                let found = index.search(&query, (20, probes), rows, &originals, &mut stats);
                (found, stats)
            };
            let (found, stats) = search(1);
            assert_eq!(found.len(), 20);
            for threads in [2, 3, 9] {
                let (again, cost) = search(threads);
                assert_eq!(again, found, "{threads} threads, {probes} probes");
                // By the codes, they do the same in parts; exact ones end where they happen to.
                assert!(probes == usize::MAX || cost == stats, "{cost:?} {stats:?}");
            }
        }
    }
    let blocks = index.directories();
    let blocks = blocks.iter().flat_map(|directory| directory.iter());
    let blocks: usize = blocks.map(|posting| posting.blocks.len()).sum();
    let bytes = blocks * index.layout.bytes;
    assert!(
        index.threads(bytes, super::read::LONG) == 5,
        "{bytes} bytes"
    );
}

/// What holds of a shard at every moment: a row is its own in one posting, and the centroids are those of the postings.
fn check_shard(index: &SpFresh, shard: &Shard) {
    let directory = shard.directory.load_full();
    let mut own = HashMap::new();
    for posting in directory.iter() {
        for member in posting.members(&index.layout).filter(|member| member.own) {
            let before = own.insert(member.row, posting.id);
            assert_eq!(before, None, "row {} is in {} too", member.row, posting.id);
        }
    }
    let mut ids: Vec<u64> = directory.iter().map(|posting| posting.id).collect();
    let mut named = directory.centroids.ids(&index.layout);
    ids.sort_unstable();
    named.sort_unstable();
    assert_eq!(ids, named);
}

#[test]
fn beside_inserts_and_sweeps_a_row_is_its_own_in_one_posting() {
    for shards in [1, 4] {
        let params = SpFreshParams {
            split: 48,
            merge: 12,
            shards,
            ..SpFreshParams::default()
        };
        let index = build(space(24), params, 1_000);
        let (done, first) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let dead = first.load(Ordering::SeqCst);
                    let sweep = |from| index.sweep(&|row| row < dead, from, 7).expect("no file");
                    let mut next = Some(0);
                    while let Some(from) = next {
                        next = sweep(from).next;
                    }
                }
            });
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let shards = index.shards.iter();
                    shards.for_each(|shard| check_shard(&index, shard));
                }
            });
            let insert = |rows: std::ops::Range<u64>| {
                for row in rows {
                    index.insert(row, &vector(row, 24)).expect("no file");
                }
            };
            for from in (1_000..4_000).step_by(100) {
                let other = scope.spawn(move || insert(from..from + 50));
                insert(from + 50..from + 100);
                other.join().expect("an insert does not panic");
                first.store(from - 900, Ordering::SeqCst);
            }
            done.store(true, Ordering::SeqCst);
        });
    }
}
