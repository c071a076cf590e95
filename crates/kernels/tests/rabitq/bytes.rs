//! Inner products with eight-bit codes.

use longbow_kernels::rabitq::{Planes, Rabitq};

use crate::{DIMS, Dice, all_kernels, portable};

fn plain_dot(a: &[i8], b: &[i8]) -> i64 {
    let pairs = a.iter().zip(b);
    pairs.map(|(x, y)| i64::from(*x) * i64::from(*y)).sum()
}

#[test]
fn products_of_bytes_are_exact() {
    let mut dice = Dice(5);
    for dim in (16..=400).step_by(16).chain(DIMS).chain([100_000]) {
        let extremes = [i8::MIN, -1, 0, i8::MAX].map(|x| vec![x; dim].into_boxed_slice());
        let mut codes = extremes.to_vec();
        codes.push(dice.codes(dim));
        codes.push(dice.codes(dim));
        for a in &codes {
            for b in &codes {
                let sum = b.iter().map(|y| i32::from(*y)).sum();
                for kernels in all_kernels() {
                    // SAFETY: both have `dim` bytes.
                    let got = unsafe { kernels.dot_i8(a.as_ptr(), b.as_ptr(), dim, sum) };
                    let what = format!("{} {dim} {} {}", kernels.isa(), a[0], b[0]);
                    assert_eq!(i64::from(got), plain_dot(a, b), "{what}");
                }
            }
        }
    }
}

fn check_planes(query: &[f32], code: &[i8]) {
    let terms = query.iter().zip(code);
    let right: f64 = terms.map(|(q, c)| f64::from(*q) * f64::from(*c)).sum();
    let largest = query.iter().fold(0f32, |m, q| m.max(q.abs()));
    let size: f64 = code.iter().map(|c| f64::from(*c).abs()).sum();
    // A rounding to the nearest of 2 * 32639 steps, and that of the arithmetic that finds it, of 24 bits.
    let bound = f64::from(largest) * size / 65278.0 * 1.01 + right.abs() * 2e-7 + 1e-33 * size;
    let of = |kernels: &Rabitq| {
        let mut planes = Planes::default();
        planes.fill(kernels, query);
        // SAFETY: the code has the dimensions of the planes.
        unsafe { kernels.dot_query(&planes, code.as_ptr()) }
    };
    for kernels in all_kernels() {
        let what = format!("{} {}", kernels.isa(), query.len());
        let got = of(kernels);
        assert_eq!(got.to_bits(), of(portable()).to_bits(), "{what}");
        let error = (f64::from(got) - right).abs();
        assert!(error <= bound, "{what}: {got} is not {right}");
    }
}

#[test]
fn products_with_a_query_are_within_its_rounding() {
    let mut dice = Dice(6);
    for dim in (16..=400).step_by(16).chain(DIMS) {
        for magnitude in [1.0, 0.0, 1e30, 1e-30] {
            let query: Vec<f32> = dice.units(dim).iter().map(|q| q * magnitude).collect();
            check_planes(&query, &dice.codes(dim));
        }
        let mut spike = vec![0.0; dim];
        spike[dim - 1] = 7.0;
        check_planes(&spike, &dice.codes(dim));
    }
    for dim in [16, 784, 100_000] {
        for (q, code) in [(1.0, 127), (1.0, -128), (-1.0, 127), (-1.0, -128)] {
            check_planes(&vec![q; dim], &vec![code; dim]);
        }
    }
}

#[test]
fn a_query_is_rounded_to_sixteen_bits_on_average_too() {
    let mut dice = Dice(7);
    let (dim, mut planes) = (1024, Planes::default());
    let query = dice.units(dim);
    planes.fill(portable(), &query);
    let mut squares = 0f64;
    for i in 0..dim {
        let mut code = vec![0i8; dim];
        code[i] = 1;
        // SAFETY: the code has the dimensions of the planes.
        let got = unsafe { portable().dot_query(&planes, code.as_ptr()) };
        squares += f64::from(got - query[i]).powi(2);
    }
    let step = 1.0 / 32639.0;
    let rms = (squares / dim as f64).sqrt();
    assert!(rms < 1.1 * step / 12f64.sqrt(), "{rms}");
}
