use super::line::Line;
use super::{DIM_STEP, Rabitq};

/// Steps that the largest element of a query is rounded to: the most whose upper byte stays below 128.
const STEPS: f32 = 32639.0;
/// Added to and taken from a small float, it rounds to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0;

/// A query of 16 bits a dimension. Each element is off by at most `max |q| / 65278`. A query below 1e-33 counts as zero.
/// Inner products are right up to 100,000 dimensions.
///
/// It lies as the instruction set that filled it multiplies, for that alone: as one plane of upper and one of lower bytes,
/// both signed, where there are instructions for sums of products of bytes; as words where there are those of words only.
///
/// ```text
/// planes  upper bytes, zeros up to a cache line │ lower bytes, zeros up to a cache line
/// words   of 32 elements each: the words of the even ones │ those of the odd ones; zeros up to a cache line
/// ```
#[derive(Clone, Default)]
pub struct Planes {
    lines: Vec<Line>,
    dim: usize,
    step: f32,
    /// 128 times the sum of each plane.
    pub(crate) excess: [i32; 2],
}

impl Planes {
    /// Rounds a query, whose length is a multiple of [`DIM_STEP`] and whose elements are finite.
    pub fn fill(&mut self, kernels: &Rabitq, query: &[f32]) {
        let dim = query.len();
        assert_eq!(dim % DIM_STEP, 0, "{dim} dimensions");
        self.dim = dim;
        self.lines.clear();
        self.lines.resize(2 * dim.div_ceil(64), Line::ZERO);
        let (step, sums) = kernels.split(query, Line::bytes_mut(&mut self.lines));
        self.step = step;
        self.excess = sums.map(|sum| sum.wrapping_mul(128));
    }

    /// Elements of the query.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Bytes that are allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }

    /// The upper bytes, which begin at a cache line and are followed by zeros up to the next.
    pub(crate) fn high(&self) -> &[i8] {
        self.plane(0)
    }

    /// The lower bytes, likewise.
    pub(crate) fn low(&self) -> &[i8] {
        self.plane(1)
    }

    fn plane(&self, which: usize) -> &[i8] {
        let half = self.lines.len() / 2;
        let bytes = Line::bytes(&self.lines[which * half..]);
        // SAFETY: any byte is an `i8`, and half of the lines have at least `dim` bytes.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.dim) }
    }

    /// The words, of which there are as many as of elements and zeros up to a multiple of 64.
    pub(crate) fn words(&self) -> &[i16] {
        let bytes = Line::bytes(&self.lines);
        // SAFETY: any two bytes are an `i16`, and a line is aligned for it.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 2) }
    }

    /// The inner product, from those of the planes.
    #[inline(always)]
    pub(crate) fn value(&self, high: i32, low: i32) -> f32 {
        self.scaled(256 * i64::from(high) + i64::from(low))
    }

    /// The inner product, from that of the rounded elements.
    #[inline(always)]
    pub(crate) fn scaled(&self, product: i64) -> f32 {
        product as f32 * self.step
    }
}

/// Rounds a query to two planes, and returns the step and the sum of each plane. Compiled as part of each instruction set's
/// entry point.
#[inline(always)]
pub(crate) fn split(query: &[f32], bytes: &mut [u8]) -> (f32, [i32; 2]) {
    let (high, low) = bytes.split_at_mut(bytes.len() / 2);
    let (step, inverse) = step(query);
    let mut sums = [0i32; 2];
    for ((q, high), low) in query.iter().zip(high).zip(low) {
        let value = rounded(q * inverse);
        let upper = value.wrapping_add(128) >> 8;
        let lower = value.wrapping_sub(upper << 8);
        sums[0] = sums[0].wrapping_add(upper);
        sums[1] = sums[1].wrapping_add(lower);
        (*high, *low) = (upper as u8, lower as u8);
    }
    (step, sums)
}

/// Rounds a query to words, and returns the step. Compiled as [`split`] is.
#[inline(always)]
pub(crate) fn words(query: &[f32], bytes: &mut [u8]) -> f32 {
    let (step, inverse) = step(query);
    for (query, out) in query.chunks(32).zip(bytes.as_chunks_mut::<64>().0) {
        let (even, odd) = out.split_at_mut(32);
        let pairs = query.as_chunks::<2>().0.iter();
        let words = even.as_chunks_mut::<2>().0.iter_mut();
        for ((q, even), odd) in pairs.zip(words).zip(odd.as_chunks_mut::<2>().0) {
            *even = (rounded(q[0] * inverse) as i16).to_ne_bytes();
            *odd = (rounded(q[1] * inverse) as i16).to_ne_bytes();
        }
    }
    step
}

/// The nearest integer of a small number.
#[inline(always)]
fn rounded(x: f32) -> i32 {
    // The integer is in the lower bits of the float; it and its upper byte are small, and nothing wraps.
    let bits = (x + ROUND).to_bits() as i32;
    bits.wrapping_sub(ROUND.to_bits() as i32)
}

/// The step and its inverse, zeros for a query without any.
#[inline(always)]
fn step(query: &[f32]) -> (f32, f32) {
    // As integers, whose order is that of floats without a sign.
    let bits = query.iter().map(|q| q.abs().to_bits());
    let largest = f32::from_bits(bits.max().unwrap_or(0));
    let step = largest / STEPS;
    let inverse = 1.0 / step;
    if inverse.is_finite() && step.is_finite() {
        return (step, inverse);
    }
    (0.0, 0.0)
}
