//! One-bit codes of residuals.

use longbow_kernels::rabitq::{Rabitq, Residual};

use crate::{DIMS, Dice, all_kernels};

pub fn residual_of(
    kernels: &Rabitq,
    from: (&[i8], f32),
    to: (&[i8], f32),
) -> (Residual, Box<[u16]>) {
    let mut bits = vec![0xAAAA; from.0.len() / 16].into_boxed_slice();
    let (from, to) = ((from.0.as_ptr(), from.1), (to.0.as_ptr(), to.1));
    // SAFETY: both have 16 bytes a word.
    let residual = unsafe { kernels.residual(from, to, &mut bits) };
    (residual, bits)
}

#[test]
fn residuals_agree_with_plain_arithmetic() {
    let mut dice = Dice(8);
    for dim in (16..=256).step_by(16).chain(DIMS) {
        let (a, b) = (dice.codes(dim), dice.codes(dim));
        let low = vec![i8::MIN; dim].into_boxed_slice();
        let scales = [(0.01, 0.013), (1e-6, 3.0), (0.0, 0.5), (0.5, 0.0)];
        let pairs = [(&a, &b), (&a, &a), (&low, &b), (&b, &low), (&low, &low)];
        for ((from_scale, to_scale), (from, to)) in scales
            .into_iter()
            .flat_map(|scales| pairs.map(|pair| (scales, pair)))
        {
            let (mut norm, mut total, mut origin, mut size) = (0f64, 0f64, 0f64, 0f64);
            let mut expected = vec![0u16; dim / 16];
            for i in 0..dim {
                let v = from_scale * f32::from(from[i]);
                let r = to_scale * f32::from(to[i]) - v;
                norm += f64::from(r).powi(2);
                total += f64::from(r.abs());
                origin += f64::from(v) * f64::from(1f32.copysign(r));
                size += f64::from(v.abs());
                expected[i / 16] |= u16::from(r.is_sign_positive()) << (i % 16);
            }
            for kernels in all_kernels() {
                let what = format!("{} {dim}", kernels.isa());
                let (got, bits) = residual_of(kernels, (from, from_scale), (to, to_scale));
                assert_eq!(*bits, *expected, "{what}");
                let rounding = 1e-7 * (4.0 + dim as f64);
                assert!(
                    (f64::from(got.norm) - norm).abs() <= rounding * norm,
                    "{what}"
                );
                assert!(
                    (f64::from(got.total) - total).abs() <= rounding * total,
                    "{what}"
                );
                assert!(
                    (f64::from(got.origin) - origin).abs() <= rounding * size,
                    "{what}"
                );
            }
        }
    }
}
