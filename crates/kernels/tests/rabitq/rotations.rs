//! Random rotations.

use longbow_kernels::rabitq::{Rabitq, Rotation};

use crate::{Dice, all_kernels, portable};

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

#[test]
fn rotations_are_orthogonal_and_the_same_everywhere() {
    let mut dice = Dice(9);
    for dim in (1..=300).chain([784, 1040, 4112]) {
        let rotation = Rotation::new(dim, dim as u64);
        let mut vectors = [0, 1].map(|_| dice.units(dim));
        for vector in &mut vectors {
            vector.resize(rotation.dim(), 0.0);
        }
        let expected = vectors.clone().map(|mut vector| {
            rotation.apply(portable(), &mut vector);
            vector
        });
        for kernels in all_kernels() {
            let mut turned = vectors.clone();
            for vector in &mut turned {
                rotation.apply(kernels, vector);
            }
            assert_eq!(turned, expected, "{} {dim}", kernels.isa());
        }
        let size = dot(&vectors[0], &vectors[0]).max(dot(&vectors[1], &vectors[1]));
        for (i, j) in [(0, 0), (0, 1), (1, 1)] {
            let change = dot(&vectors[i], &vectors[j]) - dot(&expected[i], &expected[j]);
            assert!(change.abs() < 1e-5 * size, "{dim}: {change}");
        }
    }
}

#[test]
fn the_whole_matrix_of_a_rotation_is_orthogonal() {
    for dim in (16..=304).step_by(16) {
        let rotation = Rotation::new(dim, 11);
        let columns: Vec<Vec<f32>> = (0..dim)
            .map(|i| {
                let mut column = vec![0.0; dim];
                column[i] = 1.0;
                rotation.apply(Rabitq::get(), &mut column);
                column
            })
            .collect();
        for i in 0..dim {
            for j in 0..=i {
                let right = if i == j { 1.0 } else { 0.0 };
                let got = dot(&columns[i], &columns[j]);
                assert!((got - right).abs() < 1e-5, "{dim}: {i} {j} {got}");
            }
        }
    }
}
