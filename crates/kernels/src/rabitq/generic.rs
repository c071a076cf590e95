//! What the instruction sets share.

use super::{GROUP, SLOTS};

/// The largest entry of a lookup table: six bits, so that four of them are summed in a byte. Their rounding is far
/// below what one bit a dimension leaves open.
pub(crate) const LEVELS: u8 = 63;
/// Entries that are summed in a byte.
pub(crate) const BYTE_RUN: usize = 4;
/// Entries that are summed in a word.
pub(crate) const WORD_RUN: usize = 1024;

const _: () = assert!(LEVELS as usize * BYTE_RUN <= u8::MAX as usize);
const _: () = assert!(LEVELS as usize * WORD_RUN <= u16::MAX as usize);
const _: () = assert!(WORD_RUN.is_multiple_of(BYTE_RUN));

/// Sums over the groups `$from..$to`, a multiple of the `$lanes` that one register holds, as words of the lower slots and of the
/// upper ones: [`BYTE_RUN`] entries are summed in a byte before it is widened. The instruction set's own `look_up` and `widen` do
/// that; as a function, this would be compiled for none.
///
/// The code around it vouches for 16 bytes of tables and of codes for each group up to `$to`.
#[cfg(target_arch = "x86_64")]
macro_rules! sums_of_words {
    ($zero:expr, $lanes:expr, $tables:expr, $codes:expr, $from:expr, $to:expr) => {{
        let (zero, to) = ($zero, $to);
        let (mut low, mut high) = ([zero; 2], [zero; 2]);
        let mut group = $from;
        while group + $lanes * BYTE_RUN <= to {
            let mut sums = [zero; 2];
            for _ in 0..BYTE_RUN {
                // SAFETY: the groups are below `to`.
                unsafe { look_up($tables.add(16 * group), $codes.add(16 * group), &mut sums) };
                group += $lanes;
            }
            widen(sums[0], &mut low);
            widen(sums[1], &mut high);
        }
        if group < to {
            let mut sums = [zero; 2];
            while group < to {
                // SAFETY: the groups are below `to`.
                unsafe { look_up($tables.add(16 * group), $codes.add(16 * group), &mut sums) };
                group += $lanes;
            }
            widen(sums[0], &mut low);
            widen(sums[1], &mut high);
        }
        (low, high)
    }};
}
#[cfg(target_arch = "x86_64")]
pub(crate) use sums_of_words;

/// A value at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

/// Reads memory that others may write to meanwhile: one access, which the compiler neither repeats nor splits.
///
/// # Safety
/// The bytes are readable, and any bytes are a `T`.
#[inline(always)]
pub(crate) unsafe fn read_once<T: Copy>(at: *const T) -> T {
    // SAFETY: the caller vouches for the bytes; the wrapper has no alignment.
    unsafe { at.cast::<Unaligned<T>>().read_volatile().0 }
}

/// The number of which this is the upper half.
#[inline(always)]
pub(crate) fn whole(upper: u16) -> f32 {
    f32::from_bits(u32::from(upper) << 16)
}

/// The scale of a [`super::Lut`] and its inverse, from the widest group's sum of absolute values and the sum of all.
/// `None` for a query that cannot be told from zero, or whose sum is no finite number: it looks up zeros.
#[inline(always)]
pub(crate) fn scale(widest: f32, total: f32) -> Option<(f32, f32)> {
    let scale = widest * (2.0 / f32::from(LEVELS));
    let inverse = 1.0 / scale;
    (total.is_finite() && inverse.is_finite()).then_some((scale, inverse))
}

/// `SIGNS[j][x]`: the sign that dimension `j` of a group has where the group's bits are `x`.
pub(crate) const SIGNS: [[f32; 16]; GROUP] = {
    let mut signs = [[-1.0; 16]; GROUP];
    let mut j = 0;
    while j < GROUP {
        let mut x = 0;
        while x < 16 {
            if x >> j & 1 == 1 {
                signs[j][x] = 1.0;
            }
            x += 1;
        }
        j += 1;
    }
    signs
};

/// Fills the bytes of a [`super::Lut`] and returns its scale and offset.
#[inline(always)]
pub(crate) fn fill_lut(rotated: &[f32], bytes: &mut [u8]) -> (f32, f32) {
    let groups = rotated.as_chunks::<GROUP>().0;
    let (mut widest, mut totals) = (0f32, [0f32; 4]);
    for line in groups.as_chunks::<4>().0 {
        for (q, total) in line.iter().zip(&mut totals) {
            let reach = reach(q);
            widest = widest.max(reach);
            *total += reach;
        }
    }
    let total = (totals[0] + totals[1]) + (totals[2] + totals[3]);
    let Some((scale, inverse)) = scale(widest, total) else {
        bytes.fill(0);
        return (0.0, 0.0);
    };
    for (q, out) in groups.iter().zip(bytes.as_chunks_mut::<16>().0) {
        let q = q.map(|q| q * inverse);
        let middle = reach(&q) + 0.5;
        for (x, out) in out.iter_mut().enumerate() {
            // From 0.5 to 63.5, up to rounding.
            let level = middle + q[0] * SIGNS[0][x] + q[1] * SIGNS[1][x];
            *out = (level + q[2] * SIGNS[2][x] + q[3] * SIGNS[3][x]) as u8;
        }
    }
    (scale, -total)
}

/// How far a group's sum reaches from zero. Every instruction set adds in this order.
#[inline(always)]
fn reach(q: &[f32; GROUP]) -> f32 {
    (q[0].abs() + q[1].abs()) + (q[2].abs() + q[3].abs())
}

/// Which values are below a limit.
#[inline(always)]
pub(crate) fn below(values: &[f32; SLOTS], limit: f32) -> u32 {
    let bits = values.iter().enumerate();
    bits.fold(0, |mask, (i, value)| mask | u32::from(*value < limit) << i)
}
