//! AVX-512 with VNNI.

use std::arch::x86_64::*;

use super::generic::{BYTE_RUN, SIGNS, WORD_RUN, read_once, scale, sums_of_words};
use super::planes;
use super::rotation::Tile;
use super::{Add, Base, Block, Lut, Planes, Rabitq, Residual, Rotation, SLOTS};
use crate::Isa;

/// Groups that one register holds, each in a lane.
const LANES: usize = 4;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn estimate(lut: &Lut, block: Block, base: Base, limit: f32, out: &mut [f32; SLOTS]) -> u32 {
    let (tables, groups) = (lut.tables().as_ptr().cast(), lut.groups());
    let mut sums = [_mm512_setzero_si512(); 2];
    let mut group = 0;
    while group < groups {
        let end = groups.min(group + WORD_RUN);
        // SAFETY: the table has 16 bytes a group; the caller vouches for as many of codes.
        let part = unsafe { part(tables, block.codes, group, end) };
        sums = [
            _mm512_add_epi32(sums[0], part[0]),
            _mm512_add_epi32(sums[1], part[1]),
        ];
        group = end;
    }
    let (scale, offset) = (
        _mm512_set1_ps(lut.scale),
        _mm512_set1_ps(lut.offset + base.slack),
    );
    let (base, limit) = (_mm512_set1_ps(base.distance), _mm512_set1_ps(limit));
    let mut below = 0;
    for (half, sums) in sums.into_iter().enumerate() {
        // SAFETY: the caller vouches for the factors of all slots.
        let (add, factor) = unsafe {
            let add = match block.add {
                Add::Whole(at) => read_once(at.add(16 * half).cast::<__m512>()),
                Add::Upper(at) => whole(read_once(at.add(16 * half).cast::<__m256i>())),
            };
            let factor = read_once(block.factor.add(16 * half).cast::<__m256i>());
            (add, whole(factor))
        };
        let product = _mm512_add_ps(_mm512_mul_ps(scale, _mm512_cvtepi32_ps(sums)), offset);
        let step = _mm512_mul_ps(factor, product);
        let value = _mm512_add_ps(_mm512_add_ps(base, add), step);
        // SAFETY: 16 floats a half.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr().add(16 * half), value) };
        below |= u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(value, limit)) << (16 * half);
    }
    below
}

/// The numbers of which these are the upper halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn whole(upper: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(upper)))
}

/// Sums of the slots over the groups `from..to`, a multiple of [`LANES`] and at most [`WORD_RUN`], as two registers of
/// 16.
///
/// # Safety
/// Both have 16 bytes for each group up to `to`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn part(tables: *const u8, codes: *const u8, from: usize, to: usize) -> [__m512i; 2] {
    let (low, high) = sums_of_words!(_mm512_setzero_si512(), LANES, tables, codes, from, to);
    join(low, high)
}

/// Adds the entries of four groups, those of the lower slots and those of the upper.
///
/// # Safety
/// Both have 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn look_up(tables: *const u8, codes: *const u8, sums: &mut [__m512i; 2]) {
    // SAFETY: the caller vouches for the bytes.
    let (table, code) = unsafe {
        (
            _mm512_loadu_si512(tables.cast()),
            read_once(codes.cast::<__m512i>()),
        )
    };
    let nibble = _mm512_set1_epi8(15);
    let low = _mm512_and_si512(code, nibble);
    let high = _mm512_and_si512(_mm512_srli_epi16::<4>(code), nibble);
    sums[0] = _mm512_add_epi8(sums[0], _mm512_shuffle_epi8(table, low));
    sums[1] = _mm512_add_epi8(sums[1], _mm512_shuffle_epi8(table, high));
}

/// Adds bytes to sums of words: once with the byte above, and once that byte alone.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn widen(bytes: __m512i, words: &mut [__m512i; 2]) {
    words[0] = _mm512_add_epi16(words[0], bytes);
    words[1] = _mm512_add_epi16(words[1], _mm512_srli_epi16::<8>(bytes));
}

/// The words at even and odd slots, lower ones and upper ones, a lane each, in the order of the slots.
const IN_ORDER: [u16; SLOTS] = {
    let mut order = [0; SLOTS];
    let mut slot = 0;
    while slot < SLOTS {
        order[slot] = (slot / 16 * 16 + slot % 2 * 8 + slot % 16 / 2) as u16;
        slot += 1;
    }
    order
};

/// From the sums of words and of their upper bytes, in four lanes, the totals of the slots. They fit into words, as no
/// more than [`WORD_RUN`] entries were added.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn join(low: [__m512i; 2], high: [__m512i; 2]) -> [__m512i; 2] {
    let [low, high] = [low, high].map(|[words, odd]| {
        let even = _mm512_sub_epi16(words, _mm512_slli_epi16::<8>(odd));
        _mm512_add_epi16(
            _mm512_shuffle_i32x4::<0b01_00_01_00>(even, odd),
            _mm512_shuffle_i32x4::<0b11_10_11_10>(even, odd),
        )
    });
    let totals = _mm512_add_epi16(
        _mm512_shuffle_i32x4::<0b10_00_10_00>(low, high),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(low, high),
    );
    // SAFETY: 32 words are a register.
    let order = unsafe { _mm512_loadu_si512(IN_ORDER.as_ptr().cast()) };
    let totals = _mm512_permutexvar_epi16(order, totals);
    [
        _mm512_cvtepu16_epi32(_mm512_castsi512_si256(totals)),
        _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(totals)),
    ]
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn fill_lut(rotated: &[f32], bytes: &mut [u8]) -> (f32, f32) {
    let lines = rotated.as_chunks::<16>().0;
    let (mut widest, mut totals) = (_mm512_setzero_ps(), _mm512_setzero_ps());
    for line in lines {
        let reach = reach(load(line));
        widest = _mm512_max_ps(widest, reach);
        totals = _mm512_add_ps(totals, reach);
    }
    let totals = store(totals);
    let total = (totals[0] + totals[4]) + (totals[8] + totals[12]);
    let Some((scale, inverse)) = scale(_mm512_reduce_max_ps(widest), total) else {
        bytes.fill(0);
        return (0.0, 0.0);
    };
    let (factor, half) = (_mm512_set1_ps(inverse), _mm512_set1_ps(0.5));
    for (line, out) in lines.iter().zip(bytes.as_chunks_mut::<64>().0) {
        let entries = entries(_mm512_mul_ps(load(line), factor), half);
        // SAFETY: the chunk has 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), entries) };
    }
    (scale, -total)
}

/// The entries of the groups in the lanes, from their dimensions in units of the scale.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn entries(q: __m512, half: __m512) -> __m512i {
    // Products with a sign are exact, so that this rounds as sums do. Four entries of each group are made at a time: they
    // differ in the signs of the first two dimensions.
    let middle = _mm512_add_ps(reach(q), half);
    let level = _mm512_fmadd_ps(
        _mm512_permute_ps::<0b00_00_00_00>(q),
        load(&SIGNS[0]),
        middle,
    );
    let level = _mm512_fmadd_ps(
        _mm512_permute_ps::<0b01_01_01_01>(q),
        load(&SIGNS[1]),
        level,
    );
    let (c, d) = (
        _mm512_permute_ps::<0b10_10_10_10>(q),
        _mm512_permute_ps::<0b11_11_11_11>(q),
    );
    let (minus, plus) = (_mm512_sub_ps(level, c), _mm512_add_ps(level, c));
    let low = _mm512_packs_epi32(
        _mm512_cvttps_epi32(_mm512_sub_ps(minus, d)),
        _mm512_cvttps_epi32(_mm512_sub_ps(plus, d)),
    );
    let high = _mm512_packs_epi32(
        _mm512_cvttps_epi32(_mm512_add_ps(minus, d)),
        _mm512_cvttps_epi32(_mm512_add_ps(plus, d)),
    );
    _mm512_packus_epi16(low, high)
}

/// In each lane of four, the sum of their absolute values.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn reach(q: __m512) -> __m512 {
    let q = _mm512_abs_ps(q);
    let pairs = _mm512_add_ps(q, _mm512_permute_ps::<0b10_11_00_01>(q));
    _mm512_add_ps(pairs, _mm512_permute_ps::<0b01_00_11_10>(pairs))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn load(x: &[f32; 16]) -> __m512 {
    // SAFETY: 16 floats are a register.
    unsafe { _mm512_loadu_ps(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn store(x: __m512) -> [f32; 16] {
    let mut out = [0.0; 16];
    // SAFETY: 16 floats are a register.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), x) };
    out
}

impl Tile for __m512 {
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
        unsafe { _mm512_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_sub_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm512_mul_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn transform(self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { transform(self) }
    }
}

/// Each step adds the element's counterpart, after turning the sign of the upper of both.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn transform(x: __m512) -> __m512 {
    let zero = _mm512_setzero_ps();
    let [a, b, c, d] = SIGNS
        .each_ref()
        .map(|signs| _mm512_sub_ps(zero, load(signs)));
    let x = _mm512_fmadd_ps(x, a, _mm512_permute_ps::<0b10_11_00_01>(x));
    let x = _mm512_fmadd_ps(x, b, _mm512_permute_ps::<0b01_00_11_10>(x));
    let x = _mm512_fmadd_ps(x, c, _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x));
    _mm512_fmadd_ps(x, d, _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn split(query: &[f32], bytes: &mut [u8]) -> (f32, [i32; 2]) {
    planes::split(query, bytes)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn rotate(rotation: &Rotation, vector: &mut [f32]) {
    // SAFETY: this function has the instruction set.
    unsafe { rotation.rotate::<__m512>(vector) }
}

/// Of `dim` bytes the last 64; of fewer, all, and zeros behind them.
///
/// What lies behind 64 bytes or more is not read, not even past a mask: a load waits for all lines of the cache that it crosses, and
/// the next one belongs to something else, which nobody asked for.
///
/// # Safety
/// There are `dim` bytes, at least one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn load_last(from: *const i8, dim: usize) -> __m512i {
    // SAFETY: the caller vouches for the bytes, of which there are 64, or the mask leaves out what lies behind.
    unsafe {
        match dim.checked_sub(64) {
            Some(begin) => _mm512_loadu_si512(from.add(begin).cast()),
            None => _mm512_maskz_loadu_epi8(u64::MAX >> (64 - dim), from),
        }
    }
}

/// Which bytes of the register that [`load_last`] gives are at `at`, fewer than 64 before the end, or behind it.
fn last(at: usize, dim: usize) -> u64 {
    let rest = dim - at;
    match dim < 64 {
        true => u64::MAX >> (64 - rest),
        false => u64::MAX << (64 - rest),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn dot_i8(a: *const i8, b: *const i8, dim: usize, sum: i32) -> i32 {
    let flip = _mm512_set1_epi8(-128);
    let mut totals = [_mm512_setzero_si512(); 2];
    let mut at = 0;
    // The instruction takes one side unsigned: 128 more, which the sum of the other side makes good.
    while at + 128 <= dim {
        for (i, total) in totals.iter_mut().enumerate() {
            // SAFETY: the caller vouches for `dim` bytes of both.
            let (x, y) = unsafe {
                (
                    _mm512_loadu_si512(a.add(at + 64 * i).cast()),
                    _mm512_loadu_si512(b.add(at + 64 * i).cast()),
                )
            };
            *total = _mm512_dpbusd_epi32(*total, _mm512_xor_si512(x, flip), y);
        }
        at += 128;
    }
    if at + 64 <= dim {
        // SAFETY: the caller vouches for `dim` bytes of both.
        let (x, y) = unsafe {
            (
                _mm512_loadu_si512(a.add(at).cast()),
                _mm512_loadu_si512(b.add(at).cast()),
            )
        };
        totals[0] = _mm512_dpbusd_epi32(totals[0], _mm512_xor_si512(x, flip), y);
        at += 64;
    }
    if at < dim {
        let last = last(at, dim);
        // SAFETY: the caller vouches for `dim` bytes of both.
        let (x, y) = unsafe { (load_last(a, dim), load_last(b, dim)) };
        let y = _mm512_maskz_mov_epi8(last, y);
        totals[1] = _mm512_dpbusd_epi32(totals[1], _mm512_xor_si512(x, flip), y);
    }
    // The total may wrap; the product does not, so what is left is right.
    let total = _mm512_reduce_add_epi32(_mm512_add_epi32(totals[0], totals[1]));
    total.wrapping_sub(sum.wrapping_mul(128))
}

/// The sums of both, wrapping, which cost little more than that of one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn totals_of(a: __m512i, b: __m512i) -> (i32, i32) {
    let pairs = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let pairs = _mm256_add_epi32(
        _mm512_castsi512_si256(pairs),
        _mm512_extracti64x4_epi64::<1>(pairs),
    );
    let pairs = _mm_add_epi32(
        _mm256_castsi256_si128(pairs),
        _mm256_extracti128_si256::<1>(pairs),
    );
    let pair = _mm_cvtsi128_si64(_mm_add_epi32(pairs, _mm_unpackhi_epi64(pairs, pairs)));
    (pair as i32, (pair >> 32) as i32)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn dot_query(planes: &Planes, code: *const i8) -> f32 {
    let flip = _mm512_set1_epi8(-128);
    let dim = planes.dim();
    let (high, low) = (planes.high().as_ptr(), planes.low().as_ptr());
    let mut totals = [_mm512_setzero_si512(); 4];
    let mut at = 0;
    while at + 128 <= dim {
        for i in 0..2 {
            // SAFETY: the caller vouches for the bytes of the code; the planes have as many.
            let (x, high, low) = unsafe {
                (
                    _mm512_loadu_si512(code.add(at + 64 * i).cast()),
                    _mm512_loadu_si512(high.add(at + 64 * i).cast()),
                    _mm512_loadu_si512(low.add(at + 64 * i).cast()),
                )
            };
            let x = _mm512_xor_si512(x, flip);
            totals[2 * i] = _mm512_dpbusd_epi32(totals[2 * i], x, high);
            totals[2 * i + 1] = _mm512_dpbusd_epi32(totals[2 * i + 1], x, low);
        }
        at += 128;
    }
    if at + 64 <= dim {
        // SAFETY: as above.
        let (x, high, low) = unsafe {
            (
                _mm512_loadu_si512(code.add(at).cast()),
                _mm512_loadu_si512(high.add(at).cast()),
                _mm512_loadu_si512(low.add(at).cast()),
            )
        };
        let x = _mm512_xor_si512(x, flip);
        totals[0] = _mm512_dpbusd_epi32(totals[0], x, high);
        totals[1] = _mm512_dpbusd_epi32(totals[1], x, low);
        at += 64;
    }
    if at < dim {
        let last = last(at, dim);
        // SAFETY: as above.
        let x = unsafe { load_last(code, dim) };
        let begin = dim.saturating_sub(64);
        // SAFETY: the planes have as many bytes, and the mask leaves out what lies behind fewer than 64.
        let (high, low) = unsafe {
            (
                _mm512_maskz_loadu_epi8(last, high.add(begin)),
                _mm512_maskz_loadu_epi8(last, low.add(begin)),
            )
        };
        let x = _mm512_xor_si512(x, flip);
        totals[2] = _mm512_dpbusd_epi32(totals[2], x, high);
        totals[3] = _mm512_dpbusd_epi32(totals[3], x, low);
    }
    let high = _mm512_add_epi32(totals[0], totals[2]);
    let low = _mm512_add_epi32(totals[1], totals[3]);
    let (high, low) = totals_of(high, low);
    let [high_excess, low_excess] = planes.excess;
    planes.value(high.wrapping_sub(high_excess), low.wrapping_sub(low_excess))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn residual(
    from: *const i8,
    from_scale: f32,
    to: *const i8,
    to_scale: f32,
    bits: &mut [u16],
) -> Residual {
    let (from_scale, to_scale) = (_mm512_set1_ps(from_scale), _mm512_set1_ps(to_scale));
    let zero = _mm512_setzero_ps();
    let sign = _mm512_set1_epi32(i32::MIN);
    let (mut norm, mut total, mut origin) = (zero, zero, zero);
    for (word, bits) in bits.iter_mut().enumerate() {
        // SAFETY: the caller vouches for 16 bytes a word.
        let (v, n) = unsafe {
            (
                _mm_loadu_si128(from.add(16 * word).cast()),
                _mm_loadu_si128(to.add(16 * word).cast()),
            )
        };
        let v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(v)), from_scale);
        let n = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(n)), to_scale);
        let r = _mm512_sub_ps(n, v);
        // The sign bits, as `is_sign_positive` of the portable version.
        let negative = _mm512_and_si512(_mm512_castps_si512(r), sign);
        let turned = _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(v), negative));
        norm = _mm512_fmadd_ps(r, r, norm);
        total = _mm512_add_ps(total, _mm512_abs_ps(r));
        origin = _mm512_add_ps(origin, turned);
        *bits = _mm512_testn_epi32_mask(negative, negative);
    }
    Residual {
        norm: _mm512_reduce_add_ps(norm),
        total: _mm512_reduce_add_ps(total),
        origin: _mm512_reduce_add_ps(origin),
    }
}

pub(crate) static KERNELS: Rabitq = Rabitq {
    isa: Isa::Avx512,
    estimate,
    fill_lut,
    split,
    rotate,
    dot_i8,
    dot_query,
    sums_where_negative: super::sliced::avx512::sums_where_negative,
    dot_sliced: super::sliced::avx2::dot,
    join: super::sliced::avx2::join,
    residual,
};
