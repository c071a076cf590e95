//! SSE2: 4 lanes, no fused multiply-add, half floats widened by integer shifts.

use std::arch::x86_64::*;

use crate::lanes::{F16, F32, I8, Lanes, Load, U8};
use crate::table::entry_points;

/// Four floats.
#[derive(Clone, Copy)]
pub(crate) struct V4(__m128);

impl Lanes for V4 {
    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: SSE2 is part of `x86_64`; so in all methods below.
        unsafe { V4(_mm_setzero_ps()) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V4(_mm_add_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V4(_mm_sub_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V4(_mm_add_ps(_mm_mul_ps(self.0, other.0), sum.0)) }
    }

    #[inline(always)]
    unsafe fn total(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe {
            let two = _mm_add_ps(self.0, _mm_movehl_ps(self.0, self.0));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 4 writable floats.
        unsafe { _mm_storeu_ps(to, self.0) }
    }
}

impl Load<F32> for V4 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 readable bytes.
        unsafe { V4(_mm_loadu_ps(at.cast())) }
    }
}

impl Load<F16> for V4 {
    /// Exponent and mantissa move to their places in an `f32` whose exponent is then too small by 112, which a
    /// multiplication mends, for subnormal halves too. An exponent of all ones is widened to all ones.
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 8 readable bytes.
        unsafe {
            let halves = _mm_unpacklo_epi16(_mm_loadl_epi64(at.cast()), _mm_setzero_si128());
            let sign = _mm_slli_epi32::<16>(_mm_and_si128(halves, _mm_set1_epi32(0x8000)));
            let body = _mm_and_si128(halves, _mm_set1_epi32(0x7FFF));
            let scale = _mm_castsi128_ps(_mm_set1_epi32((127 + 112) << 23));
            let value = _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32::<13>(body)), scale);
            let special = _mm_cmpgt_epi32(body, _mm_set1_epi32(0x7BFF));
            let ones = _mm_and_si128(special, _mm_set1_epi32(0x7F80_0000));
            V4(_mm_or_ps(value, _mm_castsi128_ps(_mm_or_si128(sign, ones))))
        }
    }
}

impl Load<I8> for V4 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 4 readable bytes.
        unsafe {
            let bytes = _mm_cvtsi32_si128(at.cast::<i32>().read_unaligned());
            let pairs = _mm_unpacklo_epi8(bytes, bytes);
            V4(_mm_cvtepi32_ps(_mm_srai_epi32::<24>(_mm_unpacklo_epi16(
                pairs, pairs,
            ))))
        }
    }
}

impl Load<U8> for V4 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 4 readable bytes.
        unsafe {
            let zero = _mm_setzero_si128();
            let bytes = _mm_cvtsi32_si128(at.cast::<i32>().read_unaligned());
            V4(_mm_cvtepi32_ps(_mm_unpacklo_epi16(
                _mm_unpacklo_epi8(bytes, zero),
                zero,
            )))
        }
    }
}

entry_points!(Sse2, V4, "sse2");
