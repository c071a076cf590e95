//! Hints to the processor that memory will be read soon.

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines asked for at the head of a row; the processor's own stream detection takes longer rows from there.
const MAX_LINES: usize = 16;

/// Asks for all cache lines of `bytes` bytes at an address, into the first level of the cache. Also where they are more than
/// it takes at once: with the second level as their aim, walks and the reading of graphs were slower (on a Zen 5). A hint
/// only, as [`prefetch`].
#[inline(always)]
pub fn prefetch_all(at: *const u8, bytes: usize) {
    let mut offset = 0;
    while offset < bytes {
        prefetch_line(at.wrapping_add(offset));
        offset += LINE;
    }
}

#[inline(always)]
fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is allowed and has no effect that can be seen.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address is allowed and has no effect that can be seen.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Asks for the cache lines of `bytes` bytes at an address, the first sixteen at most. A hint only: it reads nothing,
/// so the address need not be valid.
#[inline(always)]
pub fn prefetch(at: *const u8, bytes: usize) {
    prefetch_all(at, bytes.min(MAX_LINES * LINE));
}
