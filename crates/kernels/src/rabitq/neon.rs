//! NEON, which every `aarch64` processor has.

use std::arch::aarch64::*;

use super::generic::{self, BYTE_RUN, SIGNS, WORD_RUN, read_once};
use super::planes;
use super::rotation::Tile;
use super::{Add, Base, Block, Lut, Planes, Rabitq, Residual, Rotation, SLOTS};
use crate::Isa;

unsafe fn estimate(lut: &Lut, block: Block, base: Base, limit: f32, out: &mut [f32; SLOTS]) -> u32 {
    let mut sums = [0u32; SLOTS];
    let mut codes = block.codes;
    for tables in lut.tables().chunks(WORD_RUN) {
        // SAFETY: the caller vouches for 16 bytes of codes a group.
        let part = unsafe { part(tables, codes) };
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum += u32::from(part);
        }
        codes = codes.wrapping_add(16 * tables.len());
    }
    // SAFETY: the caller vouches for the factors of all slots; the processor has NEON.
    unsafe {
        for i in (0..SLOTS).step_by(4) {
            let add = match block.add {
                Add::Whole(at) => read_once(at.add(i).cast::<float32x4_t>()),
                Add::Upper(at) => whole(read_once(at.add(i).cast::<uint16x4_t>())),
            };
            let factor = whole(read_once(block.factor.add(i).cast::<uint16x4_t>()));
            let sums = vcvtq_f32_u32(vld1q_u32(sums.as_ptr().add(i)));
            let product = vaddq_f32(
                vmulq_n_f32(sums, lut.scale),
                vdupq_n_f32(lut.offset + base.slack),
            );
            let value = vaddq_f32(vdupq_n_f32(base.distance), add);
            let value = vaddq_f32(value, vmulq_f32(factor, product));
            vst1q_f32(out.as_mut_ptr().add(i), value);
        }
    }
    generic::below(out, limit)
}

/// The numbers of which these are the upper halves.
///
/// # Safety
/// The processor has NEON.
#[inline(always)]
unsafe fn whole(upper: uint16x4_t) -> float32x4_t {
    // SAFETY: the caller vouches for NEON.
    unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(upper)) }
}

/// Sums of the slots over at most [`WORD_RUN`] groups.
///
/// # Safety
/// There are 16 bytes of codes a table.
#[inline(always)]
unsafe fn part(tables: &[[u8; 16]], mut codes: *const u8) -> [u16; SLOTS] {
    let mut out = [0; SLOTS];
    // SAFETY: the caller vouches for the codes; the processor has NEON.
    unsafe {
        let mut words = [vdupq_n_u16(0); 4];
        for run in tables.chunks(BYTE_RUN) {
            let mut bytes = [vdupq_n_u8(0); 2];
            for table in run {
                let table = vld1q_u8(table.as_ptr());
                let code = read_once(codes.cast::<uint8x16_t>());
                let low = vandq_u8(code, vdupq_n_u8(15));
                bytes[0] = vaddq_u8(bytes[0], vqtbl1q_u8(table, low));
                bytes[1] = vaddq_u8(bytes[1], vqtbl1q_u8(table, vshrq_n_u8::<4>(code)));
                codes = codes.add(16);
            }
            for (half, bytes) in bytes.into_iter().enumerate() {
                words[2 * half] = vaddw_u8(words[2 * half], vget_low_u8(bytes));
                words[2 * half + 1] = vaddw_high_u8(words[2 * half + 1], bytes);
            }
        }
        for (i, words) in words.into_iter().enumerate() {
            vst1q_u16(out.as_mut_ptr().add(8 * i), words);
        }
    }
    out
}

impl Tile for [float32x4_t; 4] {
    #[inline(always)]
    unsafe fn load(from: &[f32; 16]) -> Self {
        // SAFETY: every aarch64 processor has NEON, and a register is four floats.
        unsafe { std::array::from_fn(|i| vld1q_f32(from.as_ptr().add(4 * i))) }
    }

    #[inline(always)]
    unsafe fn store(self, to: &mut [f32; 16]) {
        // SAFETY: every aarch64 processor has NEON, and a register is four floats.
        unsafe {
            for (i, x) in self.into_iter().enumerate() {
                vst1q_f32(to.as_mut_ptr().add(4 * i), x)
            }
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: every aarch64 processor has NEON, and a register is four floats.
        unsafe { std::array::from_fn(|i| vaddq_f32(self[i], other[i])) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: every aarch64 processor has NEON, and a register is four floats.
        unsafe { std::array::from_fn(|i| vsubq_f32(self[i], other[i])) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: every aarch64 processor has NEON, and a register is four floats.
        unsafe { std::array::from_fn(|i| vmulq_f32(self[i], other[i])) }
    }

    #[inline(always)]
    unsafe fn transform(self) -> Self {
        // SAFETY: every aarch64 processor has NEON, and a register is four floats.
        unsafe {
            let [a, b] = [0, 1].map(|j| vnegq_f32(vld1q_f32(SIGNS[j].as_ptr())));
            // Within a register, each step adds the counterpart, after turning the sign of the upper of both.
            let [x, y, z, w] = self.map(|x| {
                let x = vfmaq_f32(vrev64q_f32(x), x, a);
                vfmaq_f32(vextq_f32::<2>(x, x), x, b)
            });
            let (x, y) = (vaddq_f32(x, y), vsubq_f32(x, y));
            let (z, w) = (vaddq_f32(z, w), vsubq_f32(z, w));
            [
                vaddq_f32(x, z),
                vaddq_f32(y, w),
                vsubq_f32(x, z),
                vsubq_f32(y, w),
            ]
        }
    }
}

fn rotate(rotation: &Rotation, vector: &mut [f32]) {
    // SAFETY: every aarch64 processor has NEON.
    unsafe { rotation.rotate::<[float32x4_t; 4]>(vector) }
}

/// Adds 16 products to eight sums.
#[inline(always)]
unsafe fn multiply(sums: [int32x4_t; 2], a: int8x16_t, b: int8x16_t) -> [int32x4_t; 2] {
    // SAFETY: every aarch64 processor has NEON.
    unsafe {
        [
            vpadalq_s16(sums[0], vmull_s8(vget_low_s8(a), vget_low_s8(b))),
            vpadalq_s16(sums[1], vmull_high_s8(a, b)),
        ]
    }
}

#[inline(always)]
unsafe fn total(sums: [int32x4_t; 2]) -> i32 {
    // SAFETY: every aarch64 processor has NEON.
    unsafe { vaddvq_s32(vaddq_s32(sums[0], sums[1])) }
}

unsafe fn dot_i8(a: *const i8, b: *const i8, dim: usize, _sum: i32) -> i32 {
    // SAFETY: the caller vouches for `dim` bytes of both, a multiple of 16.
    unsafe {
        let mut sums = [vdupq_n_s32(0); 2];
        for at in (0..dim / 16).map(|i| 16 * i) {
            sums = multiply(sums, vld1q_s8(a.add(at)), vld1q_s8(b.add(at)));
        }
        total(sums)
    }
}

unsafe fn dot_query(planes: &Planes, code: *const i8) -> f32 {
    let (high, low) = (planes.high().as_ptr(), planes.low().as_ptr());
    // SAFETY: the caller vouches for the bytes of the code; the planes have as many, a multiple of 16.
    unsafe {
        let mut sums = [[vdupq_n_s32(0); 2]; 2];
        for at in (0..planes.dim() / 16).map(|i| 16 * i) {
            let code = vld1q_s8(code.add(at));
            sums[0] = multiply(sums[0], code, vld1q_s8(high.add(at)));
            sums[1] = multiply(sums[1], code, vld1q_s8(low.add(at)));
        }
        planes.value(total(sums[0]), total(sums[1]))
    }
}

/// Sixteen bytes, as floats.
///
/// # Safety
/// There are 16 bytes.
#[inline(always)]
unsafe fn floats(from: *const i8) -> [float32x4_t; 4] {
    // SAFETY: the caller vouches for the bytes; the processor has NEON.
    unsafe {
        let bytes = vld1q_s8(from);
        let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
        [
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
            vcvtq_f32_s32(vmovl_high_s16(low)),
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
            vcvtq_f32_s32(vmovl_high_s16(high)),
        ]
    }
}

unsafe fn residual(
    from: *const i8,
    from_scale: f32,
    to: *const i8,
    to_scale: f32,
    bits: &mut [u16],
) -> Residual {
    // SAFETY: the caller vouches for 16 bytes a word; the processor has NEON.
    unsafe {
        let zero = vdupq_n_f32(0.0);
        let (mut norm, mut total, mut origin) = (zero, zero, zero);
        let places = vld1q_u32([1, 2, 4, 8].as_ptr());
        let sign = vdupq_n_u32(1 << 31);
        for (word, bits) in bits.iter_mut().enumerate() {
            *bits = 0;
            let (v, n) = (floats(from.add(16 * word)), floats(to.add(16 * word)));
            for (quarter, (v, n)) in v.into_iter().zip(n).enumerate() {
                let (v, n) = (vmulq_n_f32(v, from_scale), vmulq_n_f32(n, to_scale));
                let r = vsubq_f32(n, v);
                // The sign bits, as `is_sign_positive` of the portable version.
                let negative = vandq_u32(vreinterpretq_u32_f32(r), sign);
                let turned = veorq_u32(vreinterpretq_u32_f32(v), negative);
                norm = vfmaq_f32(norm, r, r);
                total = vaddq_f32(total, vabsq_f32(r));
                origin = vaddq_f32(origin, vreinterpretq_f32_u32(turned));
                let positive = vandq_u32(vceqq_u32(negative, vdupq_n_u32(0)), places);
                *bits |= (vaddvq_u32(positive) as u16) << (4 * quarter);
            }
        }
        Residual {
            norm: vaddvq_f32(norm),
            total: vaddvq_f32(total),
            origin: vaddvq_f32(origin),
        }
    }
}

pub(crate) static KERNELS: Rabitq = Rabitq {
    isa: Isa::Neon,
    estimate,
    fill_lut: generic::fill_lut,
    split: planes::split,
    rotate,
    dot_i8,
    dot_query,
    sums_where_negative: super::sliced::neon::sums_where_negative,
    dot_sliced: super::sliced::neon::dot,
    join: super::sliced::join,
    residual,
};
