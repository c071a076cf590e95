//! NEON: 4 lanes, fused multiply-add, half floats widened by integer shifts.

use std::arch::aarch64::*;

use crate::lanes::{F16, F32, I8, Lanes, Load, U8};
use crate::table::entry_points;

/// Four floats.
#[derive(Clone, Copy)]
pub(crate) struct Q4(float32x4_t);

impl Lanes for Q4 {
    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: NEON is part of `aarch64`; so in all methods below.
        unsafe { Q4(vdupq_n_f32(0.0)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Q4(vaddq_f32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Q4(vsubq_f32(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Q4(vfmaq_f32(sum.0, self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn total(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { vaddvq_f32(self.0) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 4 writable floats.
        unsafe { vst1q_f32(to, self.0) }
    }
}

impl Load<F32> for Q4 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 readable bytes.
        unsafe { Q4(vreinterpretq_f32_u8(vld1q_u8(at))) }
    }
}

impl Load<F16> for Q4 {
    /// Exponent and mantissa move to their places in an `f32` whose exponent is then too small by 112, which a
    /// multiplication mends, for subnormal halves too. An exponent of all ones is widened to all ones.
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 8 readable bytes.
        unsafe {
            let halves = vmovl_u16(vreinterpret_u16_u8(vld1_u8(at)));
            let sign = vshlq_n_u32::<16>(vandq_u32(halves, vdupq_n_u32(0x8000)));
            let body = vandq_u32(halves, vdupq_n_u32(0x7FFF));
            let scale = vreinterpretq_f32_u32(vdupq_n_u32((127 + 112) << 23));
            let value = vmulq_f32(vreinterpretq_f32_u32(vshlq_n_u32::<13>(body)), scale);
            let special = vcgtq_u32(body, vdupq_n_u32(0x7BFF));
            let ones = vandq_u32(special, vdupq_n_u32(0x7F80_0000));
            let bits = vorrq_u32(vreinterpretq_u32_f32(value), vorrq_u32(sign, ones));
            Q4(vreinterpretq_f32_u32(bits))
        }
    }
}

impl Load<I8> for Q4 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 4 readable bytes.
        unsafe {
            let bytes = vcreate_s8(u64::from(at.cast::<u32>().read_unaligned()));
            Q4(vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes)))))
        }
    }
}

impl Load<U8> for Q4 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: the caller vouches for 4 readable bytes.
        unsafe {
            let bytes = vcreate_u8(u64::from(at.cast::<u32>().read_unaligned()));
            Q4(vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes)))))
        }
    }
}

entry_points!(Neon, Q4, "neon");
