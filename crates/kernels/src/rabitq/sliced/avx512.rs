use std::arch::x86_64::*;

use super::Octets;

/// # Safety
/// As [`super::Rabitq::sums_where_negative`], and the processor has the set.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
pub(in crate::rabitq) unsafe fn sums_where_negative(
    query: &Octets,
    signs: &[*const u8],
    out: &mut [i32],
) {
    for (signs, out) in signs.iter().zip(out) {
        // SAFETY: the caller vouches for the length.
        *out = unsafe { negative(query, *signs) };
    }
}

/// # Safety
/// There are signs for all elements, up to a whole chunk of 32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn negative(query: &Octets, signs: *const u8) -> i32 {
    let (dim, ones) = (query.dim(), _mm512_set1_epi8(1));
    let (mut sums, mut at) = (_mm512_setzero_si512(), 0);
    while at < dim {
        // SAFETY: the caller vouches for the signs, and the query has zeros up to a multiple of 64 elements.
        let chosen = unsafe {
            let signs = signs.add(at / 8);
            let bits = match dim - at {
                0..=32 => u64::from(signs.cast::<u32>().read_unaligned()),
                _ => signs.cast::<u64>().read_unaligned(),
            };
            _mm512_maskz_loadu_epi8(bits, query.start().add(at))
        };
        sums = _mm512_dpbusd_epi32(sums, ones, chosen);
        at += 64;
    }
    _mm512_reduce_add_epi32(sums)
}
