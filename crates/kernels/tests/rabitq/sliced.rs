//! Eight-bit codes whose signs lie apart.

use longbow_kernels::rabitq::{Octets, Rabitq, Sliced, sign_bytes, slice, sliced_bytes};

use crate::{DIMS, Dice, all_kernels};

fn sliced(code: &[i8]) -> [Box<[u8]>; 2] {
    let bytes: Vec<u8> = code.iter().map(|x| *x as u8).collect();
    // Exactly as many bytes, so that a sanitizer sees a read behind them; none of what was there before is left.
    let signs = sign_bytes(code.len());
    let rest = sliced_bytes(code.len()) - signs;
    let mut parts = [signs, rest].map(|len| vec![0xFF; len].into_boxed_slice());
    let [signs, rest] = &mut parts;
    slice(&bytes, signs, rest);
    parts
}

fn octets(code: &[i8]) -> Octets {
    let mut out = Octets::default();
    out.set(vec![-1; code.len() + 64].into_iter());
    out.set(code.iter().copied());
    out
}

#[test]
fn a_code_comes_back_and_its_signs_lie_first() {
    let mut dice = Dice(11);
    for dim in (16..=400).step_by(16).chain(DIMS) {
        let code = dice.codes(dim);
        let [signs, rest] = &sliced(&code);
        for (i, element) in code.iter().enumerate() {
            let sign = signs[i / 8] >> (i % 8) & 1;
            assert_eq!(sign == 1, *element < 0, "{dim}: {i}");
        }
        for kernels in all_kernels() {
            let mut joined = octets(&vec![3; dim]);
            joined.join(kernels, dim, Sliced { signs, rest });
            let what = format!("{} {dim}", kernels.isa());
            assert_eq!(joined.code(), octets(&code).code(), "{what}");
            assert_eq!(joined.dim(), dim, "{what}");
        }
    }
}

fn check(kernels: &Rabitq, query: &[i8], code: &[i8]) {
    let (octets, [signs, rest]) = (octets(query), &sliced(code));
    let pairs = || query.iter().zip(code);
    let negative = pairs().filter(|(_, x)| **x < 0);
    let right: i64 = negative.map(|(q, _)| i64::from(*q)).sum();
    let what = format!(
        "{} {}: {} {}",
        kernels.isa(),
        query.len(),
        query[0],
        code[0]
    );
    for codes in 1..4 {
        let mut got = vec![0; codes];
        let signs = vec![signs.as_ptr(); codes];
        // SAFETY: there are the signs of a code of the query's dimension.
        unsafe { kernels.sums_where_negative(&octets, &signs, &mut got) };
        assert_eq!(got, vec![right as i32; codes], "{what}");
    }
    let right: i64 = pairs().map(|(q, x)| i64::from(*q) * i64::from(*x)).sum();
    let got = kernels.dot_sliced(&octets, Sliced { signs, rest });
    assert_eq!(i64::from(got), right, "{what}");
}

#[test]
fn sums_and_products_are_exact() {
    let mut dice = Dice(12);
    for dim in (16..=400).step_by(16).chain(DIMS).chain([100_000]) {
        let extremes = [i8::MIN, -1, 0, i8::MAX].map(|x| vec![x; dim].into_boxed_slice());
        let mut codes = extremes.to_vec();
        codes.push(dice.codes(dim));
        for query in &codes {
            for code in &codes {
                for kernels in all_kernels() {
                    check(kernels, query, code);
                }
            }
        }
    }
}
