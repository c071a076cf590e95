//! Memory for what grows, in huge pages where the system allows: from the system itself, since an allocator puts something of its own before
//! each piece, and may back all of it with huge pages, which makes megabytes of an index of a single row.

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;

/// Asks the system to back `bytes` bytes from the begin of a huge page on, but for the first `skip`, with huge pages: walks go anywhere, and would
/// else spend a quarter of their time on looking up pages. A hint: nothing depends on whether it is followed.
pub(crate) fn ask_for_huge(memory: *mut u8, skip: usize, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let bytes = (bytes - bytes.min(skip)) / HUGE * HUGE;
        if bytes > 0 {
            // SAFETY: the range lies in the memory, begins and ends at pages, and its contents do not change.
            let _ = unsafe {
                rustix::mm::madvise(
                    memory.add(skip).cast(),
                    bytes,
                    rustix::mm::Advice::LinuxHugepage,
                )
            };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (memory, skip, bytes);
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::alloc::Layout;
    use std::ptr::null_mut;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// As [`std::alloc::alloc`]; null if there is no memory.
    ///
    /// # Safety
    /// The layout has a size above zero, and an alignment that is a multiple of the system's pages.
    pub(crate) unsafe fn take(layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let Some(asked) = size
            .checked_next_multiple_of(align)
            .and_then(|size| size.checked_add(align))
        else {
            return null_mut();
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, where the system likes, shares nothing with others.
        let mapped = unsafe { mmap_anonymous(null_mut(), asked, protection, MapFlags::PRIVATE) };
        let Ok(mapped) = mapped else {
            return null_mut();
        };
        let before = mapped.cast::<u8>().align_offset(align);
        let after = asked - before - size.next_multiple_of(align);
        // SAFETY: what is before the first multiple of the alignment, and after the memory, is of this mapping and in no use; both are
        // whole pages, since the alignment is. Failing to give it back leaves it in no use.
        unsafe {
            let memory = mapped.cast::<u8>().add(before);
            if before > 0 {
                let _ = munmap(mapped, before);
            }
            if after > 0 {
                let _ = munmap(memory.add(asked - before - after).cast(), after);
            }
            memory
        }
    }

    /// As [`std::alloc::dealloc`].
    ///
    /// # Safety
    /// The memory was taken with this layout, and is not used any more.
    pub(crate) unsafe fn give(memory: *mut u8, layout: Layout) {
        // SAFETY: the caller vouches for the memory, which has as many bytes.
        let _ = unsafe {
            munmap(
                memory.cast(),
                layout.size().next_multiple_of(layout.align()),
            )
        };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    pub(crate) use std::alloc::{alloc as take, dealloc as give};
}

pub(crate) use system::{give, take};
