//! Memory that grows and never moves: items of one size in chunks, found through a two-level directory.

use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

use crate::pages::{self, HUGE};
use crate::prefetch_aim;
use crate::sync::Mutex;

/// Most bytes of a chunk, unless a single item is larger. The system backs them with memory as they are written.
const CHUNK_BYTES: usize = 16 << 20;
/// Bits of an index within one level of the directory.
const FAN_BITS: u32 = 9;
const FAN: usize = 1 << FAN_BITS;
/// Chunks from which on there is more than caches hold.
const MANY: u32 = 2;
/// Items begin at a cache line, if their stride is a multiple of it.
pub(crate) const ALIGN: usize = 64;

/// Directory of chunks; the second level.
struct Leaf([AtomicPtr<u8>; FAN]);

/// A growing array of items of `stride` bytes. Items keep their addresses for good, so they are read without a lock
/// while others are added.
pub(crate) struct Chunks {
    stride: usize,
    /// An index has the item's place in its chunk in the lowest `shift` bits, then the two levels of the directory.
    shift: u32,
    /// Those bits.
    mask: u32,
    root: Box<[AtomicPtr<Leaf>]>,
    leaves: AtomicUsize,
    /// One more than the largest index that was reserved.
    used: AtomicU32,
    growing: Mutex<()>,
}

impl Chunks {
    /// No items yet; each will have `stride` bytes.
    pub(crate) fn new(stride: usize) -> Self {
        assert!(
            stride > 0 && stride <= isize::MAX as usize / 2,
            "a stride of {stride} bytes"
        );
        let per_chunk = (CHUNK_BYTES / stride).max(1);
        let root = (0..FAN).map(|_| AtomicPtr::new(null_mut())).collect();
        let shift = per_chunk.ilog2();
        Chunks {
            stride,
            shift,
            mask: (1 << shift) - 1,
            root,
            leaves: AtomicUsize::new(0),
            used: AtomicU32::new(0),
            growing: Mutex::new(()),
        }
    }

    /// Most items that fit. Below `u32::MAX`, so that this number itself can mean "none".
    pub(crate) fn limit(&self) -> u32 {
        let limit = 1u64 << (self.shift + 2 * FAN_BITS);
        u32::try_from(limit).unwrap_or(u32::MAX).min(u32::MAX - 1)
    }

    /// Bytes of items that were reserved, and of the directory.
    pub(crate) fn bytes(&self) -> usize {
        let leaves = self.leaves.load(Ordering::Relaxed) * size_of::<Leaf>();
        let items = self.used.load(Ordering::Relaxed) as usize * self.stride;
        items + leaves + self.root.len() * size_of::<usize>()
    }

    fn chunk_layout(&self) -> Layout {
        let bytes = self.stride << self.shift;
        Layout::from_size_align(bytes, HUGE).unwrap_or_else(|_| panic!("a chunk of {bytes} bytes"))
    }

    /// Makes room for the item `index`, which is uninitialised at first.
    pub(crate) fn reserve(&self, index: u32) {
        assert!(
            index < self.limit(),
            "item {index} of at most {}",
            self.limit()
        );
        if self.chunk(index).is_none() {
            self.grow(index);
        }
        self.used.fetch_max(index + 1, Ordering::Relaxed);
    }

    #[cold]
    fn grow(&self, index: u32) {
        if index >> self.shift >= MANY {
            prefetch_aim::measure_once();
        }
        let _one_at_a_time = self.growing.lock();
        let (outer, inner) = self.path(index);
        let mut leaf = self.root[outer].load(Ordering::Acquire);
        if leaf.is_null() {
            leaf = Box::into_raw(Box::new(Leaf([const { AtomicPtr::new(null_mut()) }; FAN])));
            self.root[outer].store(leaf, Ordering::Release);
            self.leaves.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: a leaf is freed only when `self` is dropped.
        let slot = unsafe { &(&(*leaf).0)[inner] };
        if slot.load(Ordering::Acquire).is_null() {
            let layout = self.chunk_layout();
            // SAFETY: the layout has a size above zero, since the stride has, and is aligned to huge pages.
            let chunk = unsafe { pages::take(layout) };
            if chunk.is_null() {
                handle_alloc_error(layout);
            }
            // The first pages of all stay small, so that small indexes take little.
            let skip = if (outer, inner) == (0, 0) { HUGE } else { 0 };
            pages::ask_for_huge(chunk, skip, layout.size());
            slot.store(chunk, Ordering::Release);
        }
    }

    #[inline(always)]
    fn path(&self, index: u32) -> (usize, usize) {
        let chunk = index.wrapping_shr(self.shift) as usize;
        (chunk >> FAN_BITS, chunk & (FAN - 1))
    }

    #[inline(always)]
    fn chunk(&self, index: u32) -> Option<NonNull<u8>> {
        let (outer, inner) = self.path(index);
        let leaf = self.root[outer].load(Ordering::Acquire);
        // SAFETY: a leaf that was stored is freed only when `self` is dropped.
        let leaf = unsafe { leaf.as_ref() }?;
        NonNull::new(leaf.0[inner].load(Ordering::Acquire))
    }

    /// Address of an item. It is aligned to [`ALIGN`] if the stride is a multiple of it.
    ///
    /// # Panics
    /// If it was not reserved.
    #[inline(always)]
    pub(crate) fn at(&self, index: u32) -> NonNull<u8> {
        let Some(chunk) = self.chunk(index) else {
            not_reserved(index)
        };
        let place = (index & self.mask) as usize;
        // SAFETY: a chunk holds `mask + 1` items, and `place` is one of them.
        unsafe { chunk.add(place.wrapping_mul(self.stride)) }
    }
}

#[cold]
fn not_reserved(index: u32) -> ! {
    panic!("item {index} was not reserved")
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let layout = self.chunk_layout();
        for leaf in &mut self.root {
            let leaf = *leaf.get_mut();
            if leaf.is_null() {
                continue;
            }
            // SAFETY: it was made by `Box::into_raw`, and nobody else can reach it now.
            let mut leaf = unsafe { Box::from_raw(leaf) };
            for chunk in &mut leaf.0 {
                if !chunk.get_mut().is_null() {
                    // SAFETY: it was allocated with this layout, and nobody else can reach it now.
                    unsafe { pages::give(*chunk.get_mut(), layout) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_apart_and_do_not_move() {
        for stride in [4, 64, 192, 4096, 3 << 19, 5 << 20, 17 << 20] {
            let chunks = Chunks::new(stride);
            let per_chunk = 1u32 << chunks.shift;
            let indexes = [
                0,
                1,
                per_chunk - 1,
                per_chunk,
                2 * per_chunk,
                per_chunk << FAN_BITS,
            ];
            for index in indexes {
                chunks.reserve(index);
                // SAFETY: the item was reserved, and has at least four bytes.
                unsafe { chunks.at(index).cast::<u32>().write(index) };
            }
            let addresses: Vec<usize> = indexes
                .iter()
                .map(|index| chunks.at(*index).addr().get())
                .collect();
            for (i, index) in indexes.iter().enumerate() {
                // SAFETY: the item was reserved and written above.
                assert_eq!(unsafe { chunks.at(*index).cast::<u32>().read() }, *index);
                assert!(stride % ALIGN != 0 || addresses[i].is_multiple_of(ALIGN));
                let apart = |other: &usize| {
                    *other == addresses[i] || other.abs_diff(addresses[i]) >= stride
                };
                assert!(addresses.iter().all(apart), "stride {stride}");
            }
            assert!(chunks.bytes() >= stride * ((per_chunk as usize) << FAN_BITS));
        }
    }

    #[test]
    #[should_panic(expected = "item 7 was not reserved")]
    fn an_item_that_was_not_reserved_is_not_handed_out() {
        Chunks::new(4 << 20).at(7);
    }

    #[test]
    fn limits_leave_a_number_that_means_none() {
        assert_eq!(Chunks::new(4).limit(), u32::MAX - 1);
        assert_eq!(Chunks::new(1 << 23).limit(), 1 << 19);
        assert_eq!(Chunks::new(1 << 25).limit(), 1 << 18);
    }
}
