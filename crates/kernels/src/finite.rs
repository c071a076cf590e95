//! Tests for infinities and NaN: floats whose exponent bits are all ones.
//!
//! Adding one unit of the exponent to the masked exponent carries into the sign bit only if all its bits were
//! ones, so a block needs an AND, an ADD and an OR a word, which compilers turn into vector code of whatever
//! instruction set the caller is compiled for.

/// Bytes looked at between two looks at the verdict: small enough to stop early, large enough to stream.
const BLOCK: usize = 4096;

/// Whether all little-endian `f32` in `bytes` are finite.
#[inline(always)]
pub(crate) fn finite_f32(bytes: &[u8]) -> bool {
    bytes.chunks(BLOCK).all(|block| {
        let mut carried = 0u32;
        for word in block.as_chunks::<4>().0 {
            carried |= (u32::from_le_bytes(*word) & 0x7F80_0000).wrapping_add(0x0080_0000);
        }
        carried & 0x8000_0000 == 0
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
