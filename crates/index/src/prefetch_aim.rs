//! At which level of the cache prefetches aim.

use std::alloc::Layout;
use std::sync::atomic::{AtomicBool, Ordering};

use longbow_kernels::prefetch::{CacheLevel, measure};

use crate::pages::{self, HUGE};

/// Bytes that are read to find out, each once: about as many as come into the last level of a cache, or more, so that most come from behind it.
const BYTES: usize = if cfg!(miri) { 2 << 20 } else { 64 << 20 };

/// Measures it, unless somebody began to before: for who has more memory to walk through than caches hold. Which level is better differs from
/// processor to processor, and so do walks: by up to a third of what they take.
///
/// It takes some hundredths of a second, and its memory only for as long. Nobody else waits for it: what it finds is a hint.
pub(crate) fn measure_once() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.swap(true, Ordering::Relaxed)
        && let Some(level) = measured()
    {
        level.aim();
    }
}

/// `None` without the memory for it.
fn measured() -> Option<CacheLevel> {
    let layout = Layout::from_size_align(BYTES, HUGE).ok()?;
    // SAFETY: the layout has a size above zero, and is aligned to pages.
    let memory = unsafe { pages::take(layout) };
    if memory.is_null() {
        return None;
    }
    pages::ask_for_huge(memory, 0, BYTES);
    // SAFETY: it has as many bytes, which nobody else knows, and is given back when nothing refers to them any more.
    unsafe {
        memory.write_bytes(1, BYTES);
        let level = measure(std::slice::from_raw_parts(memory, BYTES));
        pages::give(memory, layout);
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_out_in_memory_that_is_given_back() {
        assert!(measured().is_some());
        measure_once();
        measure_once();
    }
}
