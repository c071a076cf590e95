//! Estimates of distances, from end to end.

use longbow_kernels::rabitq::{Rabitq, Rotation, SLOTS};

use crate::neighbours::{Neighbours, filled, upper};
use crate::residuals::residual_of;
use crate::{Dice, all_kernels};

/// A vector that most dimensions hardly take part in, rotated and rounded to bytes.
fn rounded(dice: &mut Dice, rotation: &Rotation) -> (Vec<f32>, Vec<i8>, f32) {
    let mut vector: Vec<f32> = dice.units(rotation.dim());
    for (i, x) in vector.iter_mut().enumerate() {
        *x = x.powi(3) * if i % 7 == 0 { 10.0 } else { 1.0 };
    }
    rotation.apply(Rabitq::get(), &mut vector);
    let scale = vector.iter().fold(0f32, |m, x| m.max(x.abs())) / 127.0;
    let codes: Vec<i8> = vector.iter().map(|x| (x / scale).round() as i8).collect();
    let vector = codes.iter().map(|c| scale * f32::from(*c)).collect();
    (vector, codes, scale)
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(x, y)| f64::from(x - y).powi(2)).sum()
}

/// Errors of the estimates of 32 neighbours, in units of `|r| |q - v| / sqrt(d)`.
fn errors(dice: &mut Dice, kernels: &Rabitq, dim: usize, short: bool) -> Vec<f64> {
    let rotation = Rotation::new(dim, dice.next());
    let dim = rotation.dim();
    let (v, v_codes, v_scale) = rounded(dice, &rotation);
    let query = rounded(dice, &rotation).0;
    let targets: Vec<_> = (0..SLOTS).map(|_| rounded(dice, &rotation)).collect();
    let edges: Vec<_> = targets
        .iter()
        .map(|(_, codes, scale)| residual_of(kernels, (&v_codes, v_scale), (codes, *scale)))
        .collect();
    let bits: Vec<Vec<u16>> = edges.iter().map(|(_, bits)| bits.to_vec()).collect();
    let mut neighbours = Neighbours::new(dim, &bits);
    neighbours.short = short;
    for (i, (residual, _)) in edges.iter().enumerate() {
        let t = residual.norm / residual.total;
        neighbours.factor[i] = upper(-2.0 * t);
        neighbours.add[i] = residual.norm + 2.0 * t * residual.origin;
    }
    let base = distance(&query, &v);
    let lut = filled(kernels, &query);
    let (out, _) = neighbours.estimate(kernels, &lut, base as f32, 0.0);
    let each = out.iter().zip(&targets);
    each.map(|(got, (n, ..))| {
        let unit = (distance(n, &v) * base / dim as f64).sqrt();
        (f64::from(*got) - distance(&query, n)) / unit
    })
    .collect()
}

/// Gao and Long's theorem, with constants: without bias, and the error falls with the root of the dimension.
#[test]
fn estimates_have_no_bias_and_the_error_of_rabitq() {
    for dim in [64, 128, 784] {
        let both = |kernels| [(kernels, false), (kernels, true)];
        for (kernels, short) in all_kernels().into_iter().flat_map(both) {
            let mut dice = Dice(10);
            let errors: Vec<f64> = (0..150)
                .flat_map(|_| errors(&mut dice, kernels, dim, short))
                .collect();
            let count = errors.len() as f64;
            let mean = errors.iter().sum::<f64>() / count;
            let rms = (errors.iter().map(|e| e * e).sum::<f64>() / count).sqrt();
            let worst = errors.iter().fold(0f64, |m, e| m.max(e.abs()));
            let what = format!("{} {dim}: mean {mean}, rms {rms}", kernels.isa());
            // Errors of the neighbours of one node have the query in common.
            assert!(mean.abs() < 0.1, "{what}");
            // Twice the root of pi / 2 - 1, times the sine of the 60 degrees between independent edges of a node: 1.31.
            assert!((1.2..1.4).contains(&rms), "{what}");
            assert!(worst < 9.0, "{what}: worst {worst}");
        }
    }
}
