//! Kernels without vector instructions.

use half::f16;

use crate::lanes::{F16, F32, I8, Lanes, Load, U8};
use crate::table::entry_points;

impl Lanes for f32 {
    const COUNT: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> f32 {
        0.0
    }

    #[inline(always)]
    unsafe fn add(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    unsafe fn sub(self, other: f32) -> f32 {
        self - other
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: f32, sum: f32) -> f32 {
        self * other + sum
    }

    #[inline(always)]
    unsafe fn total(self) -> f32 {
        self
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for one writable float.
        unsafe { to.write(self) }
    }
}

impl Load<F32> for f32 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> f32 {
        // SAFETY: the caller vouches for four readable bytes.
        unsafe { at.cast::<f32>().read_unaligned() }
    }
}

impl Load<F16> for f32 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> f32 {
        // SAFETY: the caller vouches for two readable bytes.
        f16::from_bits(unsafe { at.cast::<u16>().read_unaligned() }).to_f32_const()
    }
}

impl Load<I8> for f32 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> f32 {
        // SAFETY: the caller vouches for one readable byte.
        f32::from(unsafe { at.cast::<i8>().read() })
    }
}

impl Load<U8> for f32 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> f32 {
        // SAFETY: the caller vouches for one readable byte.
        f32::from(unsafe { at.read() })
    }
}

entry_points!(Scalar, f32);
