//! AVX-512: 16 lanes, tails by masked loads.

use std::arch::x86_64::*;

use crate::lanes::{F16, F32, I8, Lanes, Load, U8};
use crate::table::entry_points;

/// Sixteen floats.
#[derive(Clone, Copy)]
pub(crate) struct V16(__m512);

/// The lowest `count < 16` bits.
#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    (1u16 << count).wrapping_sub(1)
}

impl Lanes for V16 {
    const COUNT: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for AVX-512 in this and all methods below.
        unsafe { V16(_mm512_setzero_ps()) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V16(_mm512_add_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V16(_mm512_sub_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { V16(_mm512_fmadd_ps(self.0, other.0, sum.0)) }
    }

    #[inline(always)]
    unsafe fn total(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { _mm512_reduce_add_ps(self.0) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 16 writable floats.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
}

impl Load<F32> for V16 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 64 readable bytes.
        unsafe { V16(_mm512_loadu_ps(at.cast())) }
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        unsafe { V16(_mm512_maskz_loadu_ps(mask(count), at.cast())) }
    }
}

impl Load<F16> for V16 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 32 readable bytes.
        unsafe { V16(_mm512_cvtph_ps(_mm256_loadu_si256(at.cast()))) }
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        unsafe {
            V16(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(
                mask(count),
                at.cast(),
            )))
        }
    }
}

impl Load<I8> for V16 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 readable bytes.
        unsafe {
            V16(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(
                at.cast(),
            ))))
        }
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        unsafe {
            let bytes = _mm_maskz_loadu_epi8(mask(count), at.cast());
            V16(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)))
        }
    }
}

impl Load<U8> for V16 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 readable bytes.
        unsafe {
            V16(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(
                at.cast(),
            ))))
        }
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        unsafe {
            let bytes = _mm_maskz_loadu_epi8(mask(count), at.cast());
            V16(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)))
        }
    }
}

entry_points!(Avx512, V16, "avx512f,avx512bw,avx512vl,avx2,fma,f16c");
