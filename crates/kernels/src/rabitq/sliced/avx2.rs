use std::arch::x86_64::*;

use super::{CHUNK, FOUR, ONE, Octets, Parts, RUN, Sliced, TWO};

// Pairs of -128, of as many chunks as are added in sixteen bits.
const _: () = assert!(RUN / CHUNK * 256 <= 1 << 15);

/// # Safety
/// As [`super::Rabitq::sums_where_negative`], and the processor has the set.
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::rabitq) unsafe fn sums_where_negative(
    query: &Octets,
    signs: &[*const u8],
    out: &mut [i32],
) {
    // Two at a time: while bits of one are spread, those of the other are added.
    let (pairs, last) = signs.as_chunks::<2>();
    let (sums, rest) = out.as_chunks_mut::<2>();
    for (signs, sums) in pairs.iter().zip(sums) {
        // SAFETY: the caller vouches for the lengths.
        *sums = unsafe { negative(query, *signs) };
    }
    for (signs, sum) in last.iter().zip(rest) {
        // SAFETY: the caller vouches for the length.
        [*sum] = unsafe { negative(query, [*signs]) };
    }
}

/// The sums of the elements at which signs are negative.
///
/// # Safety
/// There are signs for all elements, up to a whole chunk.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn negative<const N: usize>(query: &Octets, signs: [*const u8; N]) -> [i32; N] {
    let chunks = query.dim().div_ceil(CHUNK);
    let (mut totals, mut at) = ([_mm256_setzero_si256(); N], 0);
    while at < chunks {
        let to = chunks.min(at + RUN / CHUNK);
        let mut sums = [_mm256_setzero_si256(); N];
        while at < to {
            for (sum, signs) in sums.iter_mut().zip(signs) {
                let (bits, elements) = (signs.wrapping_add(ONE * at), CHUNK * at);
                // SAFETY: the caller vouches for the signs, and the query has zeros behind its elements.
                *sum = unsafe { add_where(*sum, bits, query.start().add(elements)) };
            }
            at += 1;
        }
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total = _mm256_add_epi32(*total, _mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
        }
    }
    totals.map(|sums| total(sums))
}

/// Adds those elements of a chunk whose bits are set, by pairs.
///
/// # Safety
/// There is a chunk of both.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_where(sums: __m256i, bits: *const u8, query: *const i8) -> __m256i {
    // SAFETY: the caller vouches for the chunk.
    let (is_set, elements) = unsafe { (is_set(bits), _mm256_loadu_si256(query.cast())) };
    let chosen = _mm256_and_si256(elements, is_set);
    _mm256_add_epi16(sums, _mm256_maddubs_epi16(_mm256_set1_epi8(1), chosen))
}

/// Ones in each byte whose bit is set.
///
/// # Safety
/// There are four bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn is_set(bits: *const u8) -> __m256i {
    let byte = _mm256_setr_epi64x(
        0,
        0x0101_0101_0101_0101,
        0x0202_0202_0202_0202,
        0x0303_0303_0303_0303,
    );
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201u64 as i64);
    // SAFETY: the caller vouches for the bytes.
    let bits = unsafe { bits.cast::<i32>().read_unaligned() };
    let spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte);
    _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit)
}

/// # Safety
/// The parts are as long as [`super::Rabitq::dot_sliced`] checks, and the processor has the set.
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::rabitq) unsafe fn dot(query: &Octets, sliced: Sliced<'_>) -> i32 {
    // SAFETY: the caller vouches for the bytes, of which these are parts, and the query has zeros behind its elements.
    unsafe {
        let parts = Parts::new(query.dim(), sliced);
        let mut sums = _mm256_setzero_si256();
        for at in 0..query.dim().div_ceil(CHUNK) {
            let elements = _mm256_loadu_si256(query.start().add(CHUNK * at).cast());
            let products = _mm256_maddubs_epi16(lower(parts, at), elements);
            let sum = _mm256_madd_epi16(products, _mm256_set1_epi16(1));
            sums = _mm256_add_epi32(sums, sum);
        }
        let [negative] = negative(query, [parts.signs.as_ptr()]);
        total(sums).wrapping_sub(negative.wrapping_mul(128))
    }
}

/// # Safety
/// The parts have as many chunks, and the processor has the set.
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::rabitq) unsafe fn join(parts: Parts<'_>, chunks: &mut [[u8; CHUNK]]) {
    let highest = _mm256_set1_epi8(i8::MIN);
    for (at, out) in chunks.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the chunk of the parts, and that of the code has 32 bytes.
        unsafe {
            let sign = is_set(parts.signs.as_ptr().add(ONE * at));
            let code = _mm256_or_si256(lower(parts, at), _mm256_and_si256(sign, highest));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), code);
        }
    }
}

/// The elements of a chunk without their signs, which count for -128.
///
/// # Safety
/// There is such a chunk.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn lower(parts: Parts<'_>, at: usize) -> __m256i {
    // SAFETY: the caller vouches for the chunk.
    let (ones, twos, fours) = unsafe {
        (
            is_set(parts.ones.as_ptr().add(ONE * at)),
            parts
                .twos
                .as_ptr()
                .add(TWO * at)
                .cast::<i64>()
                .read_unaligned(),
            _mm_loadu_si128(parts.fours.as_ptr().add(FOUR * at).cast()),
        )
    };
    let twos = _mm256_srlv_epi64(_mm256_set1_epi64x(twos), _mm256_setr_epi64x(0, 2, 4, 6));
    let fours = _mm256_broadcastsi128_si256(fours);
    let fours = _mm256_srlv_epi64(fours, _mm256_setr_epi64x(0, 0, 4, 4));
    let ones = _mm256_and_si256(ones, _mm256_set1_epi8(64));
    let twos = _mm256_slli_epi16::<4>(_mm256_and_si256(twos, _mm256_set1_epi8(3)));
    let fours = _mm256_and_si256(fours, _mm256_set1_epi8(15));
    _mm256_or_si256(_mm256_or_si256(ones, twos), fours)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn total(x: __m256i) -> i32 {
    let x = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
    let x = _mm_add_epi32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
    _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x)))
}
