//! What a graph keeps of each node besides its vector: row, twin, links by level, and how many lead to it.

use crate::sync::atomic::{AtomicU32, Ordering};

use longbow_kernels::prefetch;

use crate::chunks::Chunks;
use crate::led_to::LedTo;
use crate::twins::chain;

/// No node. It ends a list of links and a chain of twins.
pub(crate) const NONE: u32 = u32::MAX;
/// Highest level of a node, which takes a graph of 16^15 nodes to need.
pub(crate) const MAX_LEVEL: u32 = 15;
/// Bits of `Node::tower` that hold the level.
const LEVEL_BITS: u32 = 4;

/// Sixteen bytes a node.
struct Node {
    row: u64,
    /// Next node with an equal vector. Twins have no links of their own: they are found through their first.
    twin: AtomicU32,
    /// First of the node's blocks of upper links, and its level in the lowest bits.
    tower: u32,
}

/// One of a node's lists of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    /// The level whose nodes it links.
    pub(crate) level: u32,
    /// Whether it holds those of level 0 that were chosen by inner product.
    pub(crate) by_product: bool,
}

impl List {
    /// The lists of a node of some level, the lowest first; `split` says whether level 0 has two.
    pub(crate) fn all(level: u32, split: bool) -> impl Iterator<Item = List> {
        let plain = |level| List {
            level,
            by_product: false,
        };
        let by_product = split.then_some(List {
            level: 0,
            by_product: true,
        });
        std::iter::once(plain(0))
            .chain(by_product)
            .chain((1..=level).map(plain))
    }

    /// Links that the list holds at most.
    pub(crate) fn most(self, m: usize, split: bool) -> usize {
        if self.level == 0 && !split { 2 * m } else { m }
    }
}

/// Rows, twins and links, by node.
///
/// A list of links is a fixed number of slots, of which the first [`NONE`] ends it. A slot is written with release
/// and read with acquire, so whoever reads a node there sees all that was written before it was linked.
pub(crate) struct Nodes {
    m: usize,
    /// Whether level 0 has two lists of `m` slots, the second by inner product, in place of one of `2 * m`.
    split: bool,
    heads: Chunks,
    /// `2 * m` slots a node.
    ground: Chunks,
    /// `m` slots for each level above the ground.
    upper: Chunks,
    /// Links on the ground, of either list, that lead to a node.
    led_to: Chunks,
    next_node: AtomicU32,
    next_upper: AtomicU32,
}

impl Nodes {
    pub(crate) fn new(m: usize, split: bool) -> Self {
        Nodes {
            m,
            split,
            heads: Chunks::new(size_of::<Node>()),
            ground: Chunks::new(2 * m * size_of::<u32>()),
            upper: Chunks::new(m * size_of::<u32>()),
            led_to: Chunks::new(size_of::<LedTo>()),
            next_node: AtomicU32::new(0),
            next_upper: AtomicU32::new(0),
        }
    }

    /// Most nodes that fit.
    pub(crate) fn limit(&self) -> u32 {
        self.heads.limit().min(self.ground.limit())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heads.bytes() + self.ground.bytes() + self.upper.bytes() + self.led_to.bytes()
    }

    /// Nodes that were claimed; those of inserts that run are not all written.
    pub(crate) fn claimed(&self) -> u32 {
        self.next_node.load(Ordering::Acquire)
    }

    /// Claims the number of a new node, or `None` if `limit` nodes exist.
    pub(crate) fn claim(&self, limit: u32) -> Option<u32> {
        let step = |next: u32| (next < limit).then(|| next + 1);
        self.next_node
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step)
            .ok()
    }

    /// Writes a claimed node with no twin and no links, and returns the level that it got: `level`, or 0 where the
    /// blocks of upper links have run out.
    ///
    /// # Safety
    /// Nobody else reads or writes this node until the call has returned.
    pub(crate) unsafe fn write(&self, node: u32, row: u64, level: u32) -> u32 {
        debug_assert!(level <= MAX_LEVEL, "level {level}");
        let (first, level) = match self.claim_upper(level) {
            Some(first) => (first, level),
            None => (0, 0),
        };
        self.heads.reserve(node);
        self.ground.reserve(node);
        self.led_to.reserve(node);
        let head = Node {
            row,
            twin: AtomicU32::new(NONE),
            tower: first << LEVEL_BITS | level,
        };
        // SAFETY: an item has the size of a `Node`, and chunks and their items are aligned for it; the caller vouches
        // that the node is not shared. Links likewise.
        unsafe {
            self.heads.at(node).cast::<Node>().write(head);
            self.led_to.at(node).cast::<LedTo>().write(LedTo::none());
            fill(&self.ground, node, 2 * self.m);
            for block in first..first + level {
                self.upper.reserve(block);
                fill(&self.upper, block, self.m);
            }
        }
        level
    }

    fn claim_upper(&self, level: u32) -> Option<u32> {
        let limit = self.upper.limit().min(1 << (u32::BITS - LEVEL_BITS));
        let step = |next: u32| next.checked_add(level).filter(|next| *next <= limit);
        self.next_upper
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step)
            .ok()
    }

    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    unsafe fn head(&self, node: u32) -> &Node {
        // SAFETY: it was written as a `Node`, and only its atomic is written again.
        unsafe { self.heads.at(node).cast::<Node>().as_ref() }
    }

    /// # Safety
    /// As [`Nodes::head`].
    #[inline(always)]
    pub(crate) unsafe fn row(&self, node: u32) -> u64 {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.row
    }

    /// # Safety
    /// As [`Nodes::head`].
    #[inline(always)]
    pub(crate) unsafe fn level(&self, node: u32) -> u32 {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.tower & MAX_LEVEL
    }

    /// The next node with an equal vector, or [`NONE`].
    ///
    /// # Safety
    /// As [`Nodes::head`].
    #[inline(always)]
    pub(crate) unsafe fn twin(&self, node: u32) -> u32 {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.twin.load(Ordering::Acquire)
    }

    /// Puts `twin`, which nobody else knows yet, next to `node` in the chain of its equals.
    ///
    /// # Safety
    /// As [`Nodes::head`], for both.
    pub(crate) unsafe fn add_twin(&self, node: u32, twin: u32) {
        // SAFETY: the caller vouches for both nodes.
        let (head, new) = unsafe { (self.head(node), self.head(twin)) };
        chain(&head.twin, &new.twin, twin);
    }

    /// The lists of a node of some level, the lowest first.
    pub(crate) fn lists(&self, level: u32) -> impl Iterator<Item = List> + use<> {
        List::all(level, self.split)
    }

    /// The slots of all lists of a level, one after the other.
    ///
    /// # Safety
    /// As [`Nodes::head`], and `level` is at most the node's.
    #[inline(always)]
    unsafe fn level_slots(&self, node: u32, level: u32) -> &[AtomicU32] {
        let (at, slots) = if level == 0 {
            (self.ground.at(node), 2 * self.m)
        } else {
            // SAFETY: the caller vouches for the node.
            let first = unsafe { self.head(node) }.tower >> LEVEL_BITS;
            (self.upper.at(first + level - 1), self.m)
        };
        // SAFETY: so many slots were written there, and are accessed only as atomics since.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU32>().as_ptr(), slots) }
    }

    /// The slots of a list.
    ///
    /// # Safety
    /// As [`Nodes::level_slots`] for the list's level.
    pub(crate) unsafe fn slots(&self, node: u32, list: List) -> &[AtomicU32] {
        // SAFETY: the caller vouches for the node and the level.
        let slots = unsafe { self.level_slots(node, list.level) };
        let (first, second) = slots.split_at(list.most(self.m, self.split));
        if list.by_product { second } else { first }
    }

    /// Asks for the cache lines of what is known of a node, but for its upper links.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: u32) {
        prefetch(self.heads.at(node).as_ptr(), size_of::<Node>());
        prefetch(self.ground.at(node).as_ptr(), 2 * self.m * size_of::<u32>());
    }

    /// The links of a node at a level, in all lists.
    ///
    /// # Safety
    /// As [`Nodes::level_slots`].
    #[inline(always)]
    pub(crate) unsafe fn links(&self, node: u32, level: u32) -> impl Iterator<Item = u32> {
        // SAFETY: the caller vouches for the node and the level.
        let slots = unsafe { self.level_slots(node, level) };
        let list = List {
            level,
            by_product: false,
        };
        slots
            .chunks_exact(list.most(self.m, self.split))
            .flat_map(until_none)
    }

    /// The links in one list of a node.
    ///
    /// # Safety
    /// As [`Nodes::slots`].
    pub(crate) unsafe fn list(&self, node: u32, list: List) -> impl Iterator<Item = u32> {
        // SAFETY: the caller vouches for the node and the level.
        until_none(unsafe { self.slots(node, list) })
    }

    /// How many links on the ground lead to a node.
    ///
    /// # Safety
    /// As [`Nodes::head`].
    #[inline(always)]
    pub(crate) unsafe fn led_to(&self, node: u32) -> &LedTo {
        // SAFETY: it was written with the node, and is accessed only by its atomic since.
        unsafe { self.led_to.at(node).cast::<LedTo>().as_ref() }
    }

    /// Counts the links of a list, if it is one of the ground.
    ///
    /// # Safety
    /// As [`Nodes::head`] for each that it leads to.
    pub(crate) unsafe fn count(&self, list: List, links: &[u32]) {
        if list.level == 0 {
            // SAFETY: the caller vouches for the nodes.
            links
                .iter()
                .for_each(|link| unsafe { self.led_to(*link) }.count());
        }
    }

    /// Replaces a list of links; those that do not fit are left out.
    ///
    /// Readers meanwhile see a mix of old and new links, all of which are nodes. Writers must exclude each other.
    ///
    /// # Safety
    /// As [`Nodes::slots`], and for each of `links` that it was written and has the list's level.
    pub(crate) unsafe fn set_list(&self, node: u32, list: List, links: &[u32]) {
        // SAFETY: the caller vouches for the node and the level.
        let slots = unsafe { self.slots(node, list) };
        let padded = links.iter().copied().chain(std::iter::repeat(NONE));
        for (slot, link) in slots.iter().zip(padded) {
            slot.store(link, Ordering::Release);
        }
    }
}

#[inline(always)]
fn until_none(slots: &[AtomicU32]) -> impl Iterator<Item = u32> {
    slots
        .iter()
        .map(|slot| slot.load(Ordering::Acquire))
        .take_while(|link| *link != NONE)
}

/// # Safety
/// The item has `slots` slots, and nobody else reads or writes it.
unsafe fn fill(chunks: &Chunks, index: u32, slots: usize) {
    let first = chunks.at(index).cast::<AtomicU32>();
    for i in 0..slots {
        // SAFETY: the caller vouches for the slot.
        unsafe { first.add(i).write(AtomicU32::new(NONE)) };
    }
}
