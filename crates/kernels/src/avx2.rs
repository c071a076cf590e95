//! AVX2 with FMA and F16C: 8 lanes.

use std::arch::x86_64::*;

use crate::lanes::{F16, F32, I8, Lanes, Load, U8};
use crate::table::entry_points;

/// Eight floats.
#[derive(Clone, Copy)]
pub(crate) struct V8(__m256);

impl Lanes for V8 {
    const COUNT: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for AVX2, FMA and F16C in this and all methods below.
        unsafe { V8(_mm256_setzero_ps()) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V8(_mm256_add_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V8(_mm256_sub_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V8(_mm256_fmadd_ps(self.0, other.0, sum.0)) }
    }

    #[inline(always)]
    unsafe fn total(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe {
            let four = _mm_add_ps(
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 8 writable floats.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
}

impl Load<F32> for V8 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 32 readable bytes.
        unsafe { V8(_mm256_loadu_ps(at.cast())) }
    }
}

impl Load<F16> for V8 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 readable bytes.
        unsafe { V8(_mm256_cvtph_ps(_mm_loadu_si128(at.cast()))) }
    }
}

impl Load<I8> for V8 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 8 readable bytes.
        unsafe {
            V8(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(
                at.cast(),
            ))))
        }
    }
}

impl Load<U8> for V8 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 8 readable bytes.
        unsafe {
            V8(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(
                at.cast(),
            ))))
        }
    }
}

entry_points!(Avx2, V8, "avx2,fma,f16c");
