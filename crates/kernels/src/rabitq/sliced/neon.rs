use std::arch::aarch64::*;

use super::{CHUNK, FOUR, ONE, Octets, Parts, Sliced, TWO};

/// # Safety
/// As [`super::Rabitq::sums_where_negative`], and the processor has the set.
pub(in crate::rabitq) unsafe fn sums_where_negative(
    query: &Octets,
    signs: &[*const u8],
    out: &mut [i32],
) {
    for (signs, out) in signs.iter().zip(out) {
        // SAFETY: the caller vouches for the length; the processor has NEON.
        *out = unsafe { negative(query, *signs) };
    }
}

/// # Safety
/// There are signs for all elements, and the processor has NEON.
#[inline(always)]
unsafe fn negative(query: &Octets, signs: *const u8) -> i32 {
    // SAFETY: the caller vouches for the signs; the processor has NEON.
    unsafe {
        let mut sums = vdupq_n_s32(0);
        for at in (0..query.dim()).step_by(16) {
            let elements = vld1q_s8(query.start().add(at));
            let chosen = vandq_s8(elements, vreinterpretq_s8_u8(is_set(signs.add(at / 8))));
            sums = vpadalq_s16(sums, vpaddlq_s8(chosen));
        }
        vaddvq_s32(sums)
    }
}

/// Ones in each of 16 bytes whose bit is set.
///
/// # Safety
/// There are two bytes, and the processor has NEON.
#[inline(always)]
unsafe fn is_set(bits: *const u8) -> uint8x16_t {
    // SAFETY: the caller vouches for bytes and NEON.
    unsafe {
        let bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let spread = vcombine_u8(vdup_n_u8(*bits), vdup_n_u8(*bits.add(1)));
        vtstq_u8(spread, bit)
    }
}

/// # Safety
/// The parts are as long as [`super::Rabitq::dot_sliced`] checks, and the processor has the set.
pub(in crate::rabitq) unsafe fn dot(query: &Octets, sliced: Sliced<'_>) -> i32 {
    // SAFETY: the caller vouches for the bytes, of which these are parts, and the query has zeros behind its elements; the
    // processor has NEON.
    unsafe {
        let parts = Parts::new(query.dim(), sliced);
        let mut sums = vdupq_n_s32(0);
        for at in 0..query.dim().div_ceil(CHUNK) {
            let twos = vld1_u8(parts.twos.as_ptr().add(TWO * at));
            let fours = vld1q_u8(parts.fours.as_ptr().add(FOUR * at));
            let ones = parts.ones.as_ptr().add(ONE * at);
            let elements = query.start().add(CHUNK * at);
            let low = vandq_u8(fours, vdupq_n_u8(15));
            let (first, second) = (twos, vshr_n_u8::<2>(twos));
            sums = add(
                sums,
                (is_set(ones), vcombine_u8(first, second), low),
                elements,
            );
            let high = vshrq_n_u8::<4>(fours);
            let (third, fourth) = (vshr_n_u8::<4>(twos), vshr_n_u8::<6>(twos));
            let rest = (is_set(ones.add(2)), vcombine_u8(third, fourth), high);
            sums = add(sums, rest, elements.add(16));
        }
        let negative = negative(query, parts.signs.as_ptr());
        vaddvq_s32(sums).wrapping_sub(negative.wrapping_mul(128))
    }
}

/// Adds the products of 16 elements with those of a code without their signs, of which these are the parts.
///
/// # Safety
/// There are so many elements, and the processor has NEON.
#[inline(always)]
unsafe fn add(
    sums: int32x4_t,
    (ones, twos, fours): (uint8x16_t, uint8x16_t, uint8x16_t),
    query: *const i8,
) -> int32x4_t {
    // SAFETY: the caller vouches for elements and NEON.
    unsafe {
        let ones = vandq_u8(ones, vdupq_n_u8(64));
        let twos = vshlq_n_u8::<4>(vandq_u8(twos, vdupq_n_u8(3)));
        let code = vreinterpretq_s8_u8(vorrq_u8(vorrq_u8(ones, twos), fours));
        let elements = vld1q_s8(query);
        let low = vmull_s8(vget_low_s8(code), vget_low_s8(elements));
        let high = vmull_high_s8(code, elements);
        vpadalq_s16(vpadalq_s16(sums, low), high)
    }
}
