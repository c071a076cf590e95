//! Every instruction set against plain `f64` arithmetic, on all element types, lengths and alignments.

use half::f16;
use longbow_kernels::{Isa, Kernels, Scalar};
use proptest::prelude::*;

/// Small deterministic generator (splitmix64), so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in -1 .. 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

fn encode(scalar: Scalar, values: &[f32]) -> Vec<u8> {
    match scalar {
        Scalar::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Scalar::F16 => values
            .iter()
            .flat_map(|x| f16::from_f32(*x).to_le_bytes())
            .collect(),
        Scalar::I8 => values.iter().map(|x| (x * 127.0) as i8 as u8).collect(),
        Scalar::U8 => values.iter().map(|x| (x.abs() * 255.0) as u8).collect(),
    }
}

fn plain(scalar: Scalar, bytes: &[u8]) -> Vec<f64> {
    match scalar {
        Scalar::F32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|x| f64::from(f32::from_le_bytes(*x)))
            .collect(),
        Scalar::F16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|x| f16::from_le_bytes(*x).to_f64())
            .collect(),
        Scalar::I8 => bytes.iter().map(|x| f64::from(*x as i8)).collect(),
        Scalar::U8 => bytes.iter().map(|x| f64::from(*x)).collect(),
    }
}

fn all_kernels() -> Vec<&'static Kernels> {
    Isa::ALL.into_iter().filter_map(Kernels::for_isa).collect()
}

/// `got` is a sum of `terms`, each of which was rounded a few times, as was every partial sum.
fn assert_sum(got: f32, terms: &[f64], what: &str) {
    let exact: f64 = terms.iter().sum();
    let size: f64 = terms.iter().map(|x| x.abs()).sum();
    let bound = size * f64::from(f32::EPSILON) * (4.0 + terms.len() as f64 / 8.0)
        + f64::from(f32::MIN_POSITIVE);
    assert!(
        (f64::from(got) - exact).abs() <= bound,
        "{what}: {got} is not {exact} within {bound}"
    );
}

fn check(kernels: &Kernels, scalar: Scalar, query: &[f32], stored: &[u8]) {
    let dim = query.len();
    let what = format!("{} {scalar} dim {dim}", kernels.isa());
    let values = plain(scalar, stored);
    let pairs = || {
        query
            .iter()
            .map(|q| f64::from(*q))
            .zip(values.iter().copied())
    };
    let squares: Vec<f64> = pairs().map(|(q, v)| (q - v) * (q - v)).collect();
    let products: Vec<f64> = pairs().map(|(q, v)| q * v).collect();
    let norms: Vec<f64> = values.iter().map(|v| v * v).collect();

    let l2 = kernels.l2_squared(scalar, query, stored);
    let dot = kernels.dot(scalar, query, stored);
    let (dot_again, norm) = kernels.dot_and_norm(scalar, query, stored);
    assert_sum(l2, &squares, &format!("l2 {what}"));
    assert_sum(dot, &products, &format!("dot {what}"));
    assert_sum(norm, &norms, &format!("norm {what}"));
    assert_eq!(
        dot.to_bits(),
        dot_again.to_bits(),
        "one dot product, {what}"
    );

    let mut widened = vec![f32::NAN; dim];
    kernels.decode(scalar, stored, &mut widened);
    assert!(
        widened
            .iter()
            .map(|x| f64::from(*x))
            .eq(values.iter().copied()),
        "decode {what}"
    );
    assert!(kernels.all_finite(scalar, stored), "finite {what}");
}

#[test]
fn scalar_kernels_always_exist_and_the_widest_are_chosen() {
    assert_eq!(
        Kernels::for_isa(Isa::Scalar).map(Kernels::isa),
        Some(Isa::Scalar)
    );
    let widest = Isa::ALL.into_iter().find(|isa| isa.is_available());
    assert_eq!(Some(Kernels::get().isa()), widest);
    for isa in Isa::ALL {
        assert_eq!(
            Kernels::for_isa(isa).map(Kernels::isa),
            isa.is_available().then_some(isa),
            "{isa}"
        );
    }
}

#[test]
fn agree_on_all_lengths() {
    let mut dice = Dice(1);
    for dim in (0..=130).chain([384, 1536, 4096, 5000]) {
        let query: Vec<f32> = (0..dim).map(|_| dice.unit()).collect();
        let values: Vec<f32> = (0..dim).map(|_| dice.unit()).collect();
        for scalar in Scalar::ALL {
            let stored = encode(scalar, &values);
            for kernels in all_kernels() {
                check(kernels, scalar, &query, &stored);
            }
        }
    }
}

#[test]
fn agree_at_all_alignments() {
    let mut dice = Dice(2);
    for dim in [1, 7, 16, 33, 100] {
        let query: Vec<f32> = (0..dim).map(|_| dice.unit()).collect();
        let values: Vec<f32> = (0..dim).map(|_| dice.unit()).collect();
        for scalar in Scalar::ALL {
            let stored = encode(scalar, &values);
            for offset in 0..64 {
                let mut room = vec![0xFF; offset];
                room.extend_from_slice(&stored);
                for kernels in all_kernels() {
                    check(kernels, scalar, &query, &room[offset..]);
                }
            }
        }
    }
}

#[test]
fn agree_on_zeros_and_extreme_magnitudes() {
    let mut dice = Dice(3);
    for dim in [1, 5, 16, 31, 128] {
        for magnitude in [0.0, 1e-30, 1e-18, 1e15, 1e18] {
            let query: Vec<f32> = (0..dim).map(|_| dice.unit() * magnitude).collect();
            let values: Vec<f32> = (0..dim).map(|_| dice.unit() * magnitude).collect();
            for kernels in all_kernels() {
                check(kernels, Scalar::F32, &query, &encode(Scalar::F32, &values));
            }
        }
        for magnitude in [0.0, 1e-7, 6e4] {
            let query: Vec<f32> = (0..dim).map(|_| dice.unit() * magnitude).collect();
            let values: Vec<f32> = (0..dim).map(|_| dice.unit() * magnitude).collect();
            for kernels in all_kernels() {
                check(kernels, Scalar::F16, &query, &encode(Scalar::F16, &values));
            }
        }
    }
}

#[test]
fn rows_and_gather_give_the_bits_of_single_rows() {
    let mut dice = Dice(4);
    for dim in [1, 3, 16, 50, 128, 784] {
        let query: Vec<f32> = (0..dim).map(|_| dice.unit()).collect();
        for scalar in Scalar::ALL {
            for count in [0usize, 1, 3, 4, 5, 37] {
                let values: Vec<f32> = (0..dim * count).map(|_| dice.unit()).collect();
                let bytes = encode(scalar, &values);
                let rows: Vec<&[u8]> = bytes.chunks(dim * scalar.size()).collect();
                for kernels in all_kernels() {
                    let (mut near, mut far) = (vec![0f32; count], vec![0f32; count]);
                    kernels.l2_squared_rows(scalar, &query, &bytes, &mut near);
                    kernels.l2_squared_gather(scalar, &query, &rows, &mut far);
                    let single: Vec<f32> = rows
                        .iter()
                        .map(|r| kernels.l2_squared(scalar, &query, r))
                        .collect();
                    assert_eq!(
                        (&near, &far),
                        (&single, &single),
                        "l2 {} {scalar} {dim}",
                        kernels.isa()
                    );
                    kernels.dot_rows(scalar, &query, &bytes, &mut near);
                    kernels.dot_gather(scalar, &query, &rows, &mut far);
                    let single: Vec<f32> = rows
                        .iter()
                        .map(|r| kernels.dot(scalar, &query, r))
                        .collect();
                    assert_eq!(
                        (&near, &far),
                        (&single, &single),
                        "dot {} {scalar} {dim}",
                        kernels.isa()
                    );
                    let (mut near, mut far) =
                        (vec![(0f32, 0f32); count], vec![(0f32, 0f32); count]);
                    kernels.dot_and_norm_rows(scalar, &query, &bytes, &mut near);
                    kernels.dot_and_norm_gather(scalar, &query, &rows, &mut far);
                    let single: Vec<(f32, f32)> = rows
                        .iter()
                        .map(|r| kernels.dot_and_norm(scalar, &query, r))
                        .collect();
                    assert_eq!(
                        (&near, &far),
                        (&single, &single),
                        "pair {} {scalar} {dim}",
                        kernels.isa()
                    );
                }
            }
        }
    }
}

#[test]
fn every_half_float_is_widened_exactly() {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    let bytes: Vec<u8> = bits.iter().flat_map(|x| x.to_le_bytes()).collect();
    for kernels in all_kernels() {
        let mut widened = vec![0f32; bits.len()];
        kernels.decode(Scalar::F16, &bytes, &mut widened);
        for (bits, got) in bits.iter().zip(&widened) {
            let half = f16::from_bits(*bits);
            let right = if half.is_nan() {
                got.is_nan()
            } else {
                got.to_bits() == half.to_f32().to_bits()
            };
            assert!(right, "{} widens {bits:#06x} to {got}", kernels.isa());
        }
        for (bits, bytes) in bits.iter().zip(bytes.chunks(2)) {
            let finite = f16::from_bits(*bits).is_finite();
            assert_eq!(
                kernels.all_finite(Scalar::F16, bytes),
                finite,
                "{} {bits:#06x}",
                kernels.isa()
            );
        }
    }
}

#[test]
fn one_infinity_or_nan_anywhere_is_found() {
    for len in [1usize, 15, 64, 1024, 1025, 3000] {
        let good = vec![f32::MAX; len];
        for at in [0, len / 2, len - 1] {
            for bad in [
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
                f32::from_bits(0xFF80_0001),
            ] {
                let mut values = good.clone();
                values[at] = bad;
                for kernels in all_kernels() {
                    assert!(kernels.all_finite(Scalar::F32, &encode(Scalar::F32, &good)));
                    assert!(
                        !kernels.all_finite(Scalar::F32, &encode(Scalar::F32, &values)),
                        "{bad} at {at} of {len}"
                    );
                    assert!(
                        !kernels.all_finite(Scalar::F16, &encode(Scalar::F16, &values)),
                        "{bad} at {at} of {len}"
                    );
                    assert!(
                        kernels.all_finite(Scalar::I8, &[0xFF; 4])
                            && kernels.all_finite(Scalar::U8, &[0x7F; 4])
                    );
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "bytes of a vector of 3 float32")]
fn a_wrong_length_is_a_fault_of_the_caller() {
    let _ = Kernels::get().dot(Scalar::F32, &[1.0, 2.0, 3.0], &[0; 8]);
}

proptest! {
    #[test]
    fn within_agrees_on_random_bits(
        bits in prop::collection::vec(any::<u32>(), 0..80),
        most in prop_oneof![65_504f32..1e20, Just(f32::MAX)],
    ) {
        // About as large as the limit or smaller, then one at it, and one beyond.
        let mut values: Vec<f32> = bits.iter().map(|x| f32::from_bits(x & 0xC7FF_FFFF)).collect();
        for kernels in all_kernels() {
            let bytes = encode(Scalar::F32, &values);
            let within = values.iter().all(|x| x.abs() <= most);
            prop_assert_eq!(kernels.all_within(Scalar::F32, &bytes, most), within);
        }
        values.retain(|x| x.abs() <= most);
        for (last, within) in [
            (-most, true),
            (most.next_up(), false),
            (-most.next_up(), false),
            (f32::NEG_INFINITY, false),
            (f32::NAN, false),
            (-f32::NAN, false),
        ] {
            values.push(last);
            for kernels in all_kernels() {
                let bytes = encode(Scalar::F32, &values);
                prop_assert_eq!(kernels.all_within(Scalar::F32, &bytes, most), within);
            }
            values.pop();
        }
    }

    /// Any bytes are some `f32`: the verdict is that of the standard library, element by element.
    #[test]
    fn finite_agrees_on_random_bits(bits in prop::collection::vec(any::<u32>(), 0..80)) {
        let bytes: Vec<u8> = bits.iter().flat_map(|x| x.to_le_bytes()).collect();
        let finite = bits.iter().all(|x| f32::from_bits(*x).is_finite());
        for kernels in all_kernels() {
            prop_assert_eq!(kernels.all_finite(Scalar::F32, &bytes), finite);
        }
    }
}

/// Graphs keep copies of vectors in a narrower type, and tell distances by these.
#[test]
fn whole_numbers_have_the_same_distances_in_every_type_to_the_last_bit() {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    for dim in (0..=130).chain([784, 1_000]) {
        let query: Vec<f32> = (0..dim)
            .map(|at| match at % 7 {
                0 => 0.0,
                1 => -0.0,
                _ => next() as f32 / 65_536.0 - 128.0,
            })
            .collect();
        for (scalar, least) in [(Scalar::U8, 0), (Scalar::I8, -128)] {
            let whole: Vec<i32> = (0..dim).map(|_| least + (next() % 256) as i32).collect();
            let narrow: Vec<u8> = whole.iter().map(|x| *x as u8).collect();
            // A zero may be negative, as it is stored.
            let float = |x: &i32| if *x == 0 { -0.0 } else { *x as f32 };
            let wide: Vec<u8> = whole.iter().flat_map(|x| float(x).to_le_bytes()).collect();
            for kernels in all_kernels() {
                let bits = |scalar, stored: &[u8]| {
                    let (dot, norm) = kernels.dot_and_norm(scalar, &query, stored);
                    let alone = kernels.dot(scalar, &query, stored);
                    let l2 = kernels.l2_squared(scalar, &query, stored);
                    [dot, norm, alone, l2].map(f32::to_bits)
                };
                assert_eq!(
                    bits(scalar, &narrow),
                    bits(Scalar::F32, &wide),
                    "{} {scalar} dim {dim}",
                    kernels.isa()
                );
            }
        }
    }
}
