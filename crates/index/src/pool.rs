//! Room to work in that one search leaves to the next.

use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr::null_mut;

/// Room for one search or insert.
pub(crate) trait Room: Default {
    /// Bytes that it has allocated.
    fn bytes(&self) -> usize;
}

/// Rooms that are kept for reuse; more searches than this at once allocate anew. Where
/// interleavings are explored, they are few enough to be used up.
const KEPT: usize = if cfg!(shuttle) { 2 } else { 64 };

/// A pool without locks: a slot is emptied and filled by one exchange.
pub(crate) struct Pool<T: Room> {
    slots: [AtomicPtr<T>; KEPT],
    bytes: AtomicUsize,
}

impl<T: Room> Pool<T> {
    pub(crate) fn new() -> Self {
        Pool {
            slots: [const { AtomicPtr::new(null_mut()) }; KEPT],
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes of the rooms that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Box<T> {
        for slot in &self.slots {
            if slot.load(Ordering::Relaxed).is_null() {
                continue;
            }
            let scratch = slot.swap(null_mut(), Ordering::Acquire);
            if !scratch.is_null() {
                // SAFETY: it was made by `Box::into_raw`, and the exchange gave it to this thread alone.
                let scratch = unsafe { Box::from_raw(scratch) };
                self.bytes.fetch_sub(scratch.bytes(), Ordering::Relaxed);
                return scratch;
            }
        }
        Box::default()
    }

    pub(crate) fn give(&self, scratch: Box<T>) {
        let bytes = scratch.bytes();
        let scratch = Box::into_raw(scratch);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        for slot in &self.slots {
            if slot
                .compare_exchange(null_mut(), scratch, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: it was made by `Box::into_raw` above, and no slot took it.
        drop(unsafe { Box::from_raw(scratch) });
    }
}

impl<T: Room> Drop for Pool<T> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            if !slot.get_mut().is_null() {
                // SAFETY: it was made by `Box::into_raw`, and nobody else can reach it now.
                drop(unsafe { Box::from_raw(*slot.get_mut()) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Bytes(Vec<u8>);

    impl Room for Bytes {
        fn bytes(&self) -> usize {
            self.0.capacity()
        }
    }

    #[test]
    fn a_pool_keeps_so_many_and_no_more() {
        let pool = Pool::new();
        let taken: Vec<Box<Bytes>> = (0..KEPT + 3).map(|_| pool.take()).collect();
        for mut room in taken {
            room.0.reserve_exact(1000);
            pool.give(room);
        }
        assert_eq!(pool.bytes(), KEPT * 1000);
        let again = pool.take();
        assert_eq!((again.bytes(), pool.bytes()), (1000, (KEPT - 1) * 1000));
    }
}
