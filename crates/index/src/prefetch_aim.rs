//! At which level of the cache prefetches aim.

use std::alloc::Layout;
use std::sync::Once;

use longbow_kernels::prefetch::{Level, measure};

use crate::pages::{self, HUGE};

/// Bytes that are read to find out, which is more than most caches hold.
const BYTES: usize = 32 << 20;

/// Measures it, if it was not measured before: for who has more memory to walk through than caches hold. Which level is better differs from
/// processor to processor, by up to a half of all time that a walk takes.
///
/// It takes some hundredths of a second, and its memory only for as long.
pub(crate) fn measure_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(level) = measured() {
            level.aim();
        }
    });
}

/// `None` without the memory for it.
fn measured() -> Option<Level> {
    let layout = Layout::from_size_align(BYTES, HUGE).ok()?;
    // SAFETY: the layout has a size above zero.
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
