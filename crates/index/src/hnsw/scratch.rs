//! Room to work in for one search or insert, reused by the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::stats::SearchStats;

/// A node and its distance in one number that orders by distance, then by node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u64);

impl Candidate {
    /// `distance` is not NaN.
    #[inline(always)]
    pub(crate) fn new(distance: f32, node: u32) -> Self {
        // The bits of positive floats are in order. Those of negative ones are in reverse order, and all below.
        let bits = distance.to_bits();
        let ordered = if bits >> 31 == 0 {
            bits | 0x8000_0000
        } else {
            !bits
        };
        Candidate(u64::from(ordered) << 32 | u64::from(node))
    }

    #[inline(always)]
    pub(crate) fn node(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 1 {
            ordered & 0x7FFF_FFFF
        } else {
            !ordered
        })
    }
}

/// Which nodes a walk has met. A stamp is a byte, so that stamps of many nodes stay in the cache; they are wiped once
/// in 255 walks.
#[derive(Default)]
pub(crate) struct Visited {
    stamps: Vec<u8>,
    now: u8,
}

impl Visited {
    /// Forgets all nodes, and makes room for nodes below `nodes`.
    pub(crate) fn clear(&mut self, nodes: usize) {
        if self.stamps.len() < nodes {
            // Some room beyond, since an index that grows would else copy its stamps at every insert.
            self.stamps.resize(nodes + nodes / 4 + 64, 0);
        }
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.stamps.fill(0);
            self.now = 1;
        }
    }

    /// Whether this is the first meeting. Nodes beyond the room were added since the walk began; they count as met.
    #[inline(always)]
    pub(crate) fn meet(&mut self, node: u32) -> bool {
        match self.stamps.get_mut(node as usize) {
            Some(stamp) if *stamp != self.now => {
                *stamp = self.now;
                true
            }
            _ => false,
        }
    }
}

/// Room for one search or insert.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) visited: Visited,
    /// Nodes still to be walked from, the nearest on top.
    pub(crate) open: BinaryHeap<Reverse<Candidate>>,
    /// The nearest nodes that were found, the farthest on top.
    pub(crate) found: BinaryHeap<Candidate>,
    /// Neighbours that are to be scored, and their distances.
    pub(crate) fresh: Vec<u32>,
    pub(crate) distances: Vec<f32>,
    /// Those of them that are near enough.
    pub(crate) near: Vec<Candidate>,
    pub(crate) stats: SearchStats,
}

impl Scratch {
    fn bytes(&self) -> usize {
        self.visited.stamps.capacity()
            + (self.open.capacity() + self.found.capacity() + self.near.capacity())
                * size_of::<Candidate>()
            + (self.fresh.capacity() + self.distances.capacity()) * size_of::<u32>()
    }
}

/// Scratches that are kept for reuse; more searches than this at once allocate anew.
const KEPT: usize = 64;

/// A pool without locks: a slot is emptied and filled by one exchange.
pub(crate) struct Pool {
    slots: [AtomicPtr<Scratch>; KEPT],
    bytes: AtomicUsize,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Pool {
            slots: [const { AtomicPtr::new(null_mut()) }; KEPT],
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes of the scratches that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Box<Scratch> {
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

    pub(crate) fn give(&self, scratch: Box<Scratch>) {
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

impl Drop for Pool {
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn candidates_keep_and_order_what_they_hold(a in any::<f32>(), b in any::<f32>(), n: u32, m: u32) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            let (x, y) = (Candidate::new(a, n), Candidate::new(b, m));
            prop_assert_eq!((x.distance().to_bits(), x.node()), (a.to_bits(), n));
            prop_assert_eq!(x.cmp(&y), a.total_cmp(&b).then(n.cmp(&m)));
        }
    }

    #[test]
    fn stamps_survive_the_wrap_of_their_clock() {
        let mut visited = Visited::default();
        for walk in 0..600 {
            visited.clear(10);
            let node = walk % 10;
            assert!(visited.meet(node), "first meeting in walk {walk}");
            assert!(!visited.meet(node), "second meeting in walk {walk}");
            assert!(visited.meet((node + 1) % 10), "other node in walk {walk}");
        }
        assert!(!visited.meet(1_000_000), "beyond the room");
    }

    #[test]
    fn a_pool_keeps_so_many_and_no_more() {
        let pool = Pool::new();
        let taken: Vec<_> = (0..KEPT + 3).map(|_| pool.take()).collect();
        let each = {
            let mut scratch = Scratch::default();
            scratch.visited.clear(1000);
            scratch.bytes()
        };
        for mut scratch in taken {
            scratch.visited.clear(1000);
            pool.give(scratch);
        }
        assert_eq!(pool.bytes(), KEPT * each);
        let again = pool.take();
        assert_eq!((again.bytes(), pool.bytes()), (each, (KEPT - 1) * each));
    }
}
