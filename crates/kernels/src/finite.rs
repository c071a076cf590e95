//! Tests for infinities, NaN, and numbers beyond a limit.
//!
//! Without their signs, the bits of floats are ordered as the numbers, then come infinity and the NaNs: so a block needs the largest of its
//! words. Those of `f16` are only looked at for an exponent whose bits are all ones, to which one more carries into the sign.
//! Compilers turn both into vector code of whatever instruction set the caller is compiled for.

/// Bytes looked at between two looks at the verdict: small enough to stop early, large enough to stream.
const BLOCK: usize = 4096;

/// Whether no little-endian `f32` in `bytes` is NaN, or farther from zero than `most`, which is finite and not negative.
#[inline(always)]
pub(crate) fn within_f32(bytes: &[u8], most: f32) -> bool {
    bytes.chunks(BLOCK).all(|block| {
        let words = block.as_chunks::<4>().0.iter();
        let sizes = words.map(|word| u32::from_le_bytes(*word) & 0x7FFF_FFFF);
        sizes.fold(0, u32::max) <= most.to_bits()
    })
}

/// Whether all little-endian `f16` in `bytes` are finite.
#[inline(always)]
pub(crate) fn finite_f16(bytes: &[u8]) -> bool {
    bytes.chunks(BLOCK).all(|block| {
        let mut carried = 0u16;
        for word in block.as_chunks::<2>().0 {
            carried |= (u16::from_le_bytes(*word) & 0x7C00).wrapping_add(0x0400);
        }
        carried & 0x8000 == 0
    })
}
