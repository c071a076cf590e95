//! Hints to the processor that memory will be read soon.

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines asked for at the head of a row; the processor's own stream detection takes longer rows from there.
const MAX_LINES: usize = 16;

/// Asks for the cache line that holds the first byte of `bytes`. A hint only: it reads nothing.
#[inline(always)]
pub fn prefetch(bytes: &[u8]) {
    prefetch_line(bytes.as_ptr());
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

/// Asks for the first lines of a row.
#[inline(always)]
pub(crate) fn prefetch_row(row: &[u8]) {
    let mut offset = 0;
    while offset < row.len().min(MAX_LINES * LINE) {
        prefetch_line(row.as_ptr().wrapping_add(offset));
        offset += LINE;
    }
}
