//! Hints to the processor that memory will be read soon.

mod measure;

use std::sync::atomic::{AtomicBool, Ordering};

pub use measure::measure;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines asked for at the head of a row; the processor's own stream detection takes longer rows from there.
const MAX_LINES: usize = 16;

/// Which level of the cache takes what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLevel {
    /// The nearest. It has room for few lines that are on their way: one or two dozen.
    First,
    /// The one behind it, which waits for more lines at a time, but is farther when they are read.
    Second,
}

/// Whether it is the second: the first until it is measured that the second is faster.
static SECOND: AtomicBool = AtomicBool::new(false);

impl CacheLevel {
    /// That at which all prefetches aim.
    #[inline(always)]
    #[must_use]
    pub fn aimed_at() -> CacheLevel {
        // A hint depends on nothing else.
        match SECOND.load(Ordering::Relaxed) {
            true => CacheLevel::Second,
            false => CacheLevel::First,
        }
    }

    /// Aims all prefetches at it from now on.
    pub fn aim(self) {
        SECOND.store(self == CacheLevel::Second, Ordering::Relaxed);
    }
}

/// Asks for all cache lines of `bytes` bytes at an address. A hint only, as [`prefetch`].
#[inline(always)]
pub fn prefetch_all(at: *const u8, bytes: usize) {
    prefetch_into(CacheLevel::aimed_at(), at, bytes);
}

/// Asks for the cache lines of `bytes` bytes at an address, the first sixteen at most. A hint only: it reads nothing,
/// so the address need not be valid.
#[inline(always)]
pub fn prefetch(at: *const u8, bytes: usize) {
    prefetch_all(at, bytes.min(MAX_LINES * LINE));
}

#[inline(always)]
fn prefetch_into(level: CacheLevel, at: *const u8, bytes: usize) {
    let lines = (0..bytes)
        .step_by(LINE)
        .map(|offset| at.wrapping_add(offset));
    // A loop for each, which asks nothing more.
    match level {
        CacheLevel::First => lines.for_each(line::<false>),
        CacheLevel::Second => lines.for_each(line::<true>),
    }
}

/// Asks for a line, into the second level or the first.
#[inline(always)]
fn line<const SECOND: bool>(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is allowed and has no effect that can be seen.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match SECOND {
            false => _mm_prefetch::<_MM_HINT_T0>(at.cast()),
            true => _mm_prefetch::<_MM_HINT_T1>(at.cast()),
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address is allowed and has no effect that can be seen.
    unsafe {
        use std::arch::asm;
        match SECOND {
            false => {
                asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
            true => {
                asm!("prfm pldl2keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}
