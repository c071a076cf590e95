use std::sync::Arc;

use longbow_kernels::{Metric, Scalar};

use super::posting::Centroid;
use super::{SpFresh, SpFreshParams};
use crate::encode::Encoder;
use crate::mix::mix;
use crate::space::Space;

pub(super) fn centroid() -> Arc<Centroid> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 16,
    };
    let encoder = Encoder::new(space, 1, vec![0.0; 16]);
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

/// Vectors in the index, and those of them for which the squared distance to another centroid is below that to the centroid of their own posting,
/// times a factor.
pub(super) fn misplaced(index: &SpFresh, factor: f32) -> (usize, usize) {
    let directory = index.directory.load_full();
    let (mut all, mut wrong) = (0, 0);
    for posting in directory.iter() {
        for member in posting.members(&index.layout).filter(|member| member.own) {
            let own = index.between(member.vector(), &posting.centroid);
            let nearest = directory
                .iter()
                .map(|other| index.between(member.vector(), &other.centroid))
                .fold(f32::INFINITY, f32::min);
            all += 1;
            wrong += usize::from(nearest < own * factor);
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
    for replicas in [1, 3] {
        let params = SpFreshParams { replicas, ..params };
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
        let directory = index.directory.load_full();
        assert_eq!(directory.centroids.len(), directory.len());
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
    let directory = index.directory.load_full();
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
