//! No vector instructions: the definition that the others are tested against.

use super::generic::{self, read_once};
use super::planes;
use super::rotation::Tile;
use super::{Add, Base, Block, Lut, Planes, Rabitq, Residual, Rotation, SLOTS};
use crate::Isa;

unsafe fn estimate(lut: &Lut, block: Block, base: Base, limit: f32, out: &mut [f32; SLOTS]) -> u32 {
    let mut sums = [0i32; SLOTS];
    for (group, table) in lut.tables().iter().enumerate() {
        for byte in 0..SLOTS / 2 {
            // SAFETY: the caller vouches for 16 bytes of codes a group.
            let pair = unsafe { read_once(block.codes.add(group * 16 + byte)) };
            sums[byte] += i32::from(table[usize::from(pair & 15)]);
            sums[byte + 16] += i32::from(table[usize::from(pair >> 4)]);
        }
    }
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the factors of all slots.
        let (add, factor) = unsafe {
            let add = match block.add {
                Add::Whole(at) => read_once(at.add(i)),
                Add::Upper(at) => generic::whole(read_once(at.add(i))),
            };
            (add, generic::whole(read_once(block.factor.add(i))))
        };
        let product = lut.scale * sums[i] as f32 + lut.offset + base.slack;
        *out = base.distance + add + factor * product;
    }
    generic::below(out, limit)
}

impl Tile for [f32; 16] {
    #[inline(always)]
    unsafe fn load(from: &[f32; 16]) -> Self {
        *from
    }

    #[inline(always)]
    unsafe fn store(self, to: &mut [f32; 16]) {
        *to = self
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] - other[i])
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] * other[i])
    }

    #[inline(always)]
    unsafe fn transform(mut self) -> Self {
        for half in [1, 2, 4, 8] {
            for pair in self.chunks_exact_mut(2 * half) {
                let (a, b) = pair.split_at_mut(half);
                for (x, y) in a.iter_mut().zip(b) {
                    (*x, *y) = (*x + *y, *x - *y);
                }
            }
        }
        self
    }
}

fn rotate(rotation: &Rotation, vector: &mut [f32]) {
    // SAFETY: no instruction set is needed.
    unsafe { rotation.rotate::<[f32; 16]>(vector) }
}

fn dot(a: &[i8], b: &[i8]) -> i32 {
    let products = a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y));
    products.sum()
}

unsafe fn dot_i8(a: *const i8, b: *const i8, dim: usize, _sum: i32) -> i32 {
    // SAFETY: the caller vouches for `dim` bytes of both.
    unsafe {
        dot(
            std::slice::from_raw_parts(a, dim),
            std::slice::from_raw_parts(b, dim),
        )
    }
}

unsafe fn dot_query(planes: &Planes, code: *const i8) -> f32 {
    // SAFETY: the caller vouches for as many bytes as the planes have dimensions.
    let code = unsafe { std::slice::from_raw_parts(code, planes.dim()) };
    planes.value(dot(planes.high(), code), dot(planes.low(), code))
}

unsafe fn residual(
    from: *const i8,
    from_scale: f32,
    to: *const i8,
    to_scale: f32,
    bits: &mut [u16],
) -> Residual {
    let (mut norm, mut total, mut origin) = (0f32, 0f32, 0f32);
    for (word, bits) in bits.iter_mut().enumerate() {
        *bits = 0;
        for j in 0..16 {
            // SAFETY: the caller vouches for 16 bytes a word.
            let (v, n) = unsafe {
                (
                    from_scale * f32::from(*from.add(16 * word + j)),
                    to_scale * f32::from(*to.add(16 * word + j)),
                )
            };
            let r = n - v;
            norm += r * r;
            total += r.abs();
            if r.is_sign_positive() {
                origin += v;
                *bits |= 1 << j;
            } else {
                origin -= v;
            }
        }
    }
    Residual {
        norm,
        total,
        origin,
    }
}

pub(crate) static KERNELS: Rabitq = Rabitq {
    isa: Isa::Scalar,
    estimate,
    fill_lut: generic::fill_lut,
    split: planes::split,
    rotate,
    dot_i8,
    dot_query,
    sums_where_negative: super::sliced::sums_where_negative,
    dot_sliced: super::sliced::dot,
    join: super::sliced::join,
    residual,
};
