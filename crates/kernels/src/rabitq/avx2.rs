//! AVX2 with FMA.

use std::arch::x86_64::*;

use super::generic::{BYTE_RUN, SIGNS, WORD_RUN, read_once, scale, sums_of_words};
use super::planes;
use super::rotation::Tile;
use super::{Add, Base, Block, Lut, Planes, Rabitq, Residual, Rotation, SLOTS};
use crate::Isa;

/// Groups that one register holds, each in a lane.
const LANES: usize = 2;

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn estimate(lut: &Lut, block: Block, base: Base, limit: f32, out: &mut [f32; SLOTS]) -> u32 {
    let (tables, groups) = (lut.tables().as_ptr().cast(), lut.groups());
    let mut sums = [_mm256_setzero_si256(); 4];
    let mut group = 0;
    while group < groups {
        let end = groups.min(group + LANES * WORD_RUN);
        // SAFETY: the table has 16 bytes a group; the caller vouches for as many of codes.
        let part = unsafe { part(tables, block.codes, group, end) };
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum = _mm256_add_epi32(*sum, part);
        }
        group = end;
    }
    let (scale, offset) = (
        _mm256_set1_ps(lut.scale),
        _mm256_set1_ps(lut.offset + base.slack),
    );
    let (base, limit) = (_mm256_set1_ps(base.distance), _mm256_set1_ps(limit));
    let mut below = 0;
    for (quarter, sums) in sums.into_iter().enumerate() {
        // SAFETY: the caller vouches for the factors of all slots.
        let (add, factor) = unsafe {
            let add = match block.add {
                Add::Whole(at) => read_once(at.add(8 * quarter).cast::<__m256>()),
                Add::Upper(at) => whole(read_once(at.add(8 * quarter).cast::<__m128i>())),
            };
            let factor = read_once(block.factor.add(8 * quarter).cast::<__m128i>());
            (add, whole(factor))
        };
        let product = _mm256_add_ps(_mm256_mul_ps(scale, _mm256_cvtepi32_ps(sums)), offset);
        let step = _mm256_mul_ps(factor, product);
        let value = _mm256_add_ps(_mm256_add_ps(base, add), step);
        // SAFETY: 8 floats a quarter.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(8 * quarter), value) };
        let mask = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(value, limit));
        below |= (mask as u32) << (8 * quarter);
    }
    below
}

/// The numbers of which these are the upper halves.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn whole(upper: __m128i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(upper)))
}

/// Sums of the slots over the groups `from..to`, a multiple of [`LANES`], as four registers of 8.
///
/// # Safety
/// Both have 16 bytes for each group up to `to`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn part(tables: *const u8, codes: *const u8, from: usize, to: usize) -> [__m256i; 4] {
    let (low, high) = sums_of_words!(_mm256_setzero_si256(), LANES, tables, codes, from, to);
    let ([a, b], [c, d]) = (join(low), join(high));
    [a, b, c, d]
}

/// Adds the entries of two groups, those of the lower slots and those of the upper.
///
/// # Safety
/// Both have 32 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn look_up(tables: *const u8, codes: *const u8, sums: &mut [__m256i; 2]) {
    // SAFETY: the caller vouches for the bytes.
    let (table, code) = unsafe {
        (
            _mm256_loadu_si256(tables.cast()),
            read_once(codes.cast::<__m256i>()),
        )
    };
    let nibble = _mm256_set1_epi8(15);
    let low = _mm256_and_si256(code, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(code), nibble);
    sums[0] = _mm256_add_epi8(sums[0], _mm256_shuffle_epi8(table, low));
    sums[1] = _mm256_add_epi8(sums[1], _mm256_shuffle_epi8(table, high));
}

/// Adds bytes to sums of words: once with the byte above, and once that byte alone.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn widen(bytes: __m256i, words: &mut [__m256i; 2]) {
    words[0] = _mm256_add_epi16(words[0], bytes);
    words[1] = _mm256_add_epi16(words[1], _mm256_srli_epi16::<8>(bytes));
}

/// From the sums of words and of their upper bytes, in two lanes, the totals of 16 slots.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn join([words, odd]: [__m256i; 2]) -> [__m256i; 2] {
    let even = _mm256_sub_epi16(words, _mm256_slli_epi16::<8>(odd));
    [
        fold(_mm256_unpacklo_epi16(even, odd)),
        fold(_mm256_unpackhi_epi16(even, odd)),
    ]
}

/// Adds the two lanes of eight words, widened.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn fold(words: __m256i) -> __m256i {
    _mm256_add_epi32(
        _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)),
        _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(words)),
    )
}

#[target_feature(enable = "avx2,fma,f16c")]
fn fill_lut(rotated: &[f32], bytes: &mut [u8]) -> (f32, f32) {
    let lines = rotated.as_chunks::<16>().0;
    let zero = _mm256_setzero_ps();
    let (mut widest, mut totals) = (zero, [zero; 2]);
    for line in lines {
        for (q, total) in load(line).into_iter().zip(&mut totals) {
            let reach = reach(q);
            widest = _mm256_max_ps(widest, reach);
            *total = _mm256_add_ps(*total, reach);
        }
    }
    let widest = store([widest; 2]).into_iter().fold(0f32, f32::max);
    let totals = store(totals);
    let total = (totals[0] + totals[4]) + (totals[8] + totals[12]);
    let Some((scale, inverse)) = scale(widest, total) else {
        bytes.fill(0);
        return (0.0, 0.0);
    };
    let (factor, half) = (_mm256_set1_ps(inverse), _mm256_set1_ps(0.5));
    for (line, out) in lines.iter().zip(bytes.as_chunks_mut::<64>().0) {
        for (q, out) in load(line).into_iter().zip(out.as_chunks_mut::<32>().0) {
            let entries = entries(_mm256_mul_ps(q, factor), half);
            // SAFETY: the chunk has 32 bytes.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), entries) };
        }
    }
    (scale, -total)
}

/// The entries of the groups in the lanes, from their dimensions in units of the scale.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn entries(q: __m256, half: __m256) -> __m256i {
    // Products with a sign are exact, so that this rounds as sums do. Four entries of each group are made at a time: they
    // differ in the signs of the first two dimensions.
    let middle = _mm256_add_ps(reach(q), half);
    let level = _mm256_fmadd_ps(
        _mm256_permute_ps::<0b00_00_00_00>(q),
        load(&SIGNS[0])[0],
        middle,
    );
    let level = _mm256_fmadd_ps(
        _mm256_permute_ps::<0b01_01_01_01>(q),
        load(&SIGNS[1])[0],
        level,
    );
    let (c, d) = (
        _mm256_permute_ps::<0b10_10_10_10>(q),
        _mm256_permute_ps::<0b11_11_11_11>(q),
    );
    let (minus, plus) = (_mm256_sub_ps(level, c), _mm256_add_ps(level, c));
    let low = _mm256_packs_epi32(
        _mm256_cvttps_epi32(_mm256_sub_ps(minus, d)),
        _mm256_cvttps_epi32(_mm256_sub_ps(plus, d)),
    );
    let high = _mm256_packs_epi32(
        _mm256_cvttps_epi32(_mm256_add_ps(minus, d)),
        _mm256_cvttps_epi32(_mm256_add_ps(plus, d)),
    );
    _mm256_packus_epi16(low, high)
}

/// In each lane of four, the sum of their absolute values.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn reach(q: __m256) -> __m256 {
    let q = _mm256_andnot_ps(_mm256_set1_ps(-0.0), q);
    let pairs = _mm256_add_ps(q, _mm256_permute_ps::<0b10_11_00_01>(q));
    _mm256_add_ps(pairs, _mm256_permute_ps::<0b01_00_11_10>(pairs))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load(x: &[f32; 16]) -> [__m256; 2] {
    // SAFETY: 16 floats are two registers.
    unsafe {
        [
            _mm256_loadu_ps(x.as_ptr()),
            _mm256_loadu_ps(x.as_ptr().add(8)),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store(x: [__m256; 2]) -> [f32; 16] {
    let mut out = [0.0; 16];
    // SAFETY: 16 floats are two registers.
    unsafe {
        _mm256_storeu_ps(out.as_mut_ptr(), x[0]);
        _mm256_storeu_ps(out.as_mut_ptr().add(8), x[1]);
    }
    out
}

impl Tile for [__m256; 2] {
    #[inline(always)]
    unsafe fn load(from: &[f32; 16]) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { load(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: &mut [f32; 16]) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { *to = store(self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            [
                _mm256_add_ps(self[0], other[0]),
                _mm256_add_ps(self[1], other[1]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            [
                _mm256_sub_ps(self[0], other[0]),
                _mm256_sub_ps(self[1], other[1]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            [
                _mm256_mul_ps(self[0], other[0]),
                _mm256_mul_ps(self[1], other[1]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn transform(self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { transform(self) }
    }
}

/// Each step within a register adds the element's counterpart, after turning the sign of the upper of both.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn transform(tile: [__m256; 2]) -> [__m256; 2] {
    let zero = _mm256_setzero_ps();
    let [a, b, c, _] = SIGNS
        .each_ref()
        .map(|signs| _mm256_sub_ps(zero, load(signs)[0]));
    let [low, high] = tile.map(|x| {
        let x = _mm256_fmadd_ps(x, a, _mm256_permute_ps::<0b10_11_00_01>(x));
        let x = _mm256_fmadd_ps(x, b, _mm256_permute_ps::<0b01_00_11_10>(x));
        _mm256_fmadd_ps(x, c, _mm256_permute2f128_ps::<1>(x, x))
    });
    [_mm256_add_ps(low, high), _mm256_sub_ps(low, high)]
}

#[target_feature(enable = "avx2,fma,f16c")]
fn split(query: &[f32], bytes: &mut [u8]) -> (f32, [i32; 2]) {
    (planes::words(query, bytes), [0; 2])
}

#[target_feature(enable = "avx2,fma,f16c")]
fn rotate(rotation: &Rotation, vector: &mut [f32]) {
    // SAFETY: this function has the instruction set.
    unsafe { rotation.rotate::<[__m256; 2]>(vector) }
}

/// # Safety
/// There are 32 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn bytes(from: *const i8) -> __m256i {
    // SAFETY: the caller vouches for the bytes.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// Sixteen bytes, and zeros.
///
/// # Safety
/// There are 16 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn half(from: *const i8) -> __m256i {
    // SAFETY: the caller vouches for the bytes.
    _mm256_zextsi128_si256(unsafe { _mm_loadu_si128(from.cast()) })
}

/// The sum of eight integers, widened.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn total(x: __m256i) -> i64 {
    let x = _mm256_add_epi64(
        _mm256_cvtepi32_epi64(_mm256_castsi256_si128(x)),
        _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(x)),
    );
    let x = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
    _mm_cvtsi128_si64(_mm_add_epi64(x, _mm_unpackhi_epi64(x, x)))
}

/// Sixteen bytes, widened to words.
///
/// # Safety
/// There are 16 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn words(from: *const i8) -> __m256i {
    // SAFETY: the caller vouches for the bytes.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(from.cast()) })
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn dot_i8(a: *const i8, b: *const i8, dim: usize, _sum: i32) -> i32 {
    let mut sums = _mm256_setzero_si256();
    for at in (0..dim / 16).map(|i| 16 * i) {
        // SAFETY: the caller vouches for `dim` bytes of both, a multiple of 16.
        let products = unsafe { _mm256_madd_epi16(words(a.add(at)), words(b.add(at))) };
        sums = _mm256_add_epi32(sums, products);
    }
    total(sums) as i32
}

/// Elements whose products with words are summed in two registers of 32 bits and then in one.
const PRODUCTS: usize = 4096;
const _: () = assert!(PRODUCTS / 8 * (128 * 32640) <= i32::MAX as usize);

/// Adds the products of 32 bytes and as many words.
///
/// # Safety
/// There are 32 words.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn multiply(code: __m256i, query: *const i16, sums: &mut [__m256i; 2]) {
    // SAFETY: the caller vouches for the words.
    let (even, odd) = unsafe { (bytes(query.cast()), bytes(query.add(16).cast())) };
    let lower = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(code));
    let upper = _mm256_srai_epi16::<8>(code);
    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(lower, even));
    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(upper, odd));
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn dot_query(planes: &Planes, code: *const i8) -> f32 {
    let (query, dim) = (planes.words().as_ptr(), planes.dim());
    let (mut product, mut at) = (0, 0);
    while at < dim {
        let mut sums = [_mm256_setzero_si256(); 2];
        let end = dim.min(at + PRODUCTS);
        // SAFETY: the caller vouches for the bytes of the code; there are words up to a multiple of 32.
        unsafe {
            while at + 32 <= end {
                multiply(bytes(code.add(at)), query.add(at), &mut sums);
                at += 32;
            }
            if at < end {
                multiply(half(code.add(at)), query.add(at), &mut sums);
                at = end;
            }
        }
        product += total(_mm256_add_epi32(sums[0], sums[1]));
    }
    planes.scaled(product)
}

/// Eight bytes, as floats.
///
/// # Safety
/// There are 8 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn floats(from: *const i8) -> __m256 {
    // SAFETY: the caller vouches for the bytes.
    let bytes = unsafe { _mm_loadl_epi64(from.cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn residual(
    from: *const i8,
    from_scale: f32,
    to: *const i8,
    to_scale: f32,
    bits: &mut [u16],
) -> Residual {
    let (from_scale, to_scale) = (_mm256_set1_ps(from_scale), _mm256_set1_ps(to_scale));
    let sign = _mm256_set1_ps(-0.0);
    let mut sums = [[_mm256_setzero_ps(); 3]; 2];
    for (word, bits) in bits.iter_mut().enumerate() {
        *bits = 0;
        for (half, [norm, total, origin]) in sums.iter_mut().enumerate() {
            let at = 16 * word + 8 * half;
            // SAFETY: the caller vouches for 16 bytes a word.
            let (v, n) = unsafe { (floats(from.add(at)), floats(to.add(at))) };
            let (v, n) = (_mm256_mul_ps(v, from_scale), _mm256_mul_ps(n, to_scale));
            let r = _mm256_sub_ps(n, v);
            *norm = _mm256_fmadd_ps(r, r, *norm);
            *total = _mm256_add_ps(*total, _mm256_andnot_ps(sign, r));
            *origin = _mm256_add_ps(*origin, _mm256_xor_ps(v, _mm256_and_ps(r, sign)));
            // The sign bits, as `is_sign_positive` of the portable version.
            *bits |= (!_mm256_movemask_ps(r) as u16 & 0xFF) << (8 * half);
        }
    }
    let [a, b] = sums;
    let [norm, total, origin] = [0, 1, 2].map(|i| {
        let sums = store([a[i], b[i]]).into_iter();
        sums.sum()
    });
    Residual {
        norm,
        total,
        origin,
    }
}

pub(crate) static KERNELS: Rabitq = Rabitq {
    isa: Isa::Avx2,
    estimate,
    fill_lut,
    split,
    rotate,
    dot_i8,
    dot_query,
    sums_where_negative: super::sliced::avx2::sums_where_negative,
    dot_sliced: super::sliced::avx2::dot,
    join: super::sliced::avx2::join,
    residual,
};
