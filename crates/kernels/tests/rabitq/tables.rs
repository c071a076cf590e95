//! Lookup tables and the sums of what is looked up.

use longbow_kernels::rabitq::{GROUP, SLOTS};

use crate::neighbours::{Neighbours, filled, random_bits, upper, whole};
use crate::{DIMS, Dice, all_kernels, portable};

fn signed_sum(query: &[f32], bits: &[u16]) -> f64 {
    let signs = (0..query.len()).map(|i| bits[i / 16] >> (i % 16) & 1 == 1);
    let terms = query.iter().zip(signs);
    terms
        .map(|(q, plus)| f64::from(*q) * if plus { 1.0 } else { -1.0 })
        .sum()
}

/// Checks a query's table against `f64`, within `groups` roundings of half a unit, and sets against each other.
/// Returns the largest error in units.
fn check_query(dice: &mut Dice, query: &[f32]) -> f64 {
    let (dim, bits) = (query.len(), random_bits(dice, query.len()));
    let neighbours = Neighbours::new(dim, &bits);
    let (expected, _) = neighbours.estimate(portable(), &filled(portable(), query), 0.0, 0.0);
    let size: f64 = query.iter().map(|q| f64::from(q.abs())).sum();
    let mut worst = 0f64;
    for kernels in all_kernels() {
        let what = format!("{} {dim}", kernels.isa());
        let lut = filled(kernels, query);
        let (out, _) = neighbours.estimate(kernels, &lut, 0.0, 0.0);
        assert_eq!(out.map(f32::to_bits), expected.map(f32::to_bits), "{what}");
        let unit = f64::from(lut.scale());
        let bound = 0.5 * unit * lut.groups() as f64 + 1e-4 * size;
        for (bits, got) in bits.iter().zip(out) {
            let error = (f64::from(got) - signed_sum(query, bits)).abs();
            assert!(error <= bound, "{what}: off by {error}, bound {bound}");
            worst = worst.max(error / unit.max(f64::MIN_POSITIVE));
        }
    }
    worst
}

#[test]
fn sums_agree_and_roundings_cancel() {
    let mut dice = Dice(1);
    for dim in DIMS {
        let query = dice.units(dim);
        // Roundings of a group are uniform, with a variance of a twelfth; a table that was cut off would be half off.
        let expected = ((dim / GROUP) as f64 / 12.0).sqrt();
        let worst = check_query(&mut dice, &query);
        assert!(worst < 6.0 * expected, "{dim}: {worst} units");
    }
}

#[test]
fn tables_of_spikes_zeros_and_extreme_magnitudes() {
    let mut dice = Dice(2);
    for dim in [16, 48, 128, 784] {
        for magnitude in [1e30, 1e18, 1e-18, 1e-30, 1e-36] {
            let query: Vec<f32> = dice.units(dim).iter().map(|q| q * magnitude).collect();
            check_query(&mut dice, &query);
        }
        for at in [0, 5, dim - 1] {
            let mut query = vec![0.0; dim];
            query[at] = -3.0;
            check_query(&mut dice, &query);
            query = dice.units(dim);
            query[at] = 1e6;
            check_query(&mut dice, &query);
        }
    }
}

/// Values whose sum overflows, or whose inverse does, must not become infinities of the wrong sign.
#[test]
fn a_query_that_cannot_be_summed_counts_as_zero() {
    let dim = 48;
    let bits = random_bits(&mut Dice(3), dim);
    let neighbours = Neighbours::new(dim, &bits);
    for value in [0.0, -0.0, 1e-42, f32::MAX, f32::INFINITY, f32::NAN] {
        for kernels in all_kernels() {
            let lut = filled(kernels, &vec![value; dim]);
            let (out, below) = neighbours.estimate(kernels, &lut, 2.0, 3.0);
            assert_eq!(out, [2.0; SLOTS], "{} {value}", kernels.isa());
            assert_eq!(below, u32::MAX, "{} {value}", kernels.isa());
        }
    }
    // A table is used again, so it must also forget what it had.
    for kernels in all_kernels() {
        let mut lut = filled(kernels, &vec![1.0; 2 * dim]);
        lut.fill(kernels, &vec![0.0; dim]);
        let (out, _) = neighbours.estimate(kernels, &lut, 2.0, 3.0);
        assert_eq!(out, [2.0; SLOTS], "{}", kernels.isa());
    }
}

/// Every looked up byte is the largest: bytes, words and their runs must hold it.
#[test]
fn the_largest_sums_do_not_overflow() {
    for dim in DIMS.into_iter().chain([66_000, 100_000]) {
        let query = vec![1.0; dim];
        for (bits, sign) in [(u16::MAX, 1.0), (0, -1.0)] {
            let neighbours = Neighbours::new(dim, &vec![vec![bits; dim / 16]; SLOTS]);
            for kernels in all_kernels() {
                let (out, _) = neighbours.estimate(kernels, &filled(kernels, &query), 0.0, 0.0);
                for got in out {
                    let error = (got - sign * dim as f32).abs() / dim as f32;
                    assert!(error < 1e-6, "{} {dim}: {got}", kernels.isa());
                }
            }
        }
    }
}

#[test]
fn factors_and_limits_are_those_of_plain_arithmetic() {
    let mut dice = Dice(4);
    let dim = 128;
    let query = dice.units(dim);
    let mut neighbours = Neighbours::new(dim, &random_bits(&mut dice, dim));
    let lut = filled(portable(), &query);
    let (product, _) = neighbours.estimate(portable(), &lut, 0.0, 0.0);
    let specials = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1.0,
        f32::MAX,
        1e-40,
    ];
    for round in 0..20 {
        neighbours.short = round % 2 == 1;
        for i in 0..SLOTS {
            neighbours.add[i] = 100.0 * dice.unit();
            neighbours.factor[i] = upper(dice.unit());
            if round > 0 && dice.next().is_multiple_of(2) {
                neighbours.add[i] = specials[dice.next() as usize % specials.len()];
                neighbours.factor[i] = 0;
            }
        }
        let limits = specials.into_iter().chain([dice.unit(), neighbours.add[7]]);
        for limit in limits {
            for kernels in all_kernels() {
                let (out, below) = neighbours.estimate(kernels, &lut, 0.25, limit);
                for i in 0..SLOTS {
                    let factor = whole(neighbours.factor[i]);
                    let add = match neighbours.add[i] {
                        add if neighbours.short => whole(upper(add)),
                        add => add,
                    };
                    let right = 0.25 + add + factor * product[i];
                    let same = out[i] == right || out[i].is_nan() && right.is_nan();
                    assert!(same, "{}: {} is not {right}", kernels.isa(), out[i]);
                    let bit = below >> i & 1 == 1;
                    assert_eq!(bit, right < limit, "{}: {right} {limit}", kernels.isa());
                }
            }
        }
    }
}
