//! What a quantised graph keeps of each node, in one run of memory.
//!
//! ```text
//! offset  bytes  what
//!      0      8  row
//!      8      4  next twin; ff ff ff ff: none
//!     12      4  squared length of the vector that the eight-bit code stands for, f32
//!     16      4  scale of the eight-bit code, f32: an element times this is a rotated coordinate
//!     20      4  sum of the eight-bit code, i32
//!     24      4  which slots hold edges that no nearer neighbour stands in for, one bit each
//!     28      2  1 if the node is about to leave the graph
//!     30      2  how many edges lead to it, of nodes that stay, u16
//!     32      d  eight-bit code; d is the dimension, rounded up to 16
//!      …   64 n  up to a whole line
//!      …    128  neighbours, 32 u32; ff ff ff ff: a free slot
//!      …     64  their `add`, the upper halves of f32; +inf in a free slot, so that its estimate is never near
//!      …     64  their `factor`, the upper halves of f32
//!      …    4 d  one-bit codes of the neighbours: see `longbow_kernels::rabitq`
//!      …         up to a whole line
//! ```
//!
//! Without codes of edges the neighbours follow the eight-bit code at once, and the block ends behind them, at a multiple of
//! 32 bytes.
//!
//! The first part is read when a distance to the node is computed, the rest when its edges are followed, each from
//! begin to end, which is what memory is fastest at.

mod edges;

use crate::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use half::bf16;
use longbow_kernels::prefetch_all;
use longbow_kernels::rabitq::{self, SLOTS};

use crate::sync::Mutex;

use super::front::NODES;
use crate::candidate::Candidate;
use crate::chunks::{ALIGN, Chunks};
use crate::led_to::LedTo;
use crate::twins::chain;
use crate::vector8::Vector8;
pub(super) use edges::Edge;

/// No node: it ends a chain of twins, and stands in a free slot.
pub(super) const NONE: u32 = u32::MAX;

/// The row of a node that is free, and of no other.
pub(super) const FREE: u64 = u64::MAX;

const VECTOR: usize = 32;
/// From the begin of the edges.
const ADD: usize = 4 * SLOTS;
const FACTOR: usize = ADD + 2 * SLOTS;
const CODES: usize = FACTOR + 2 * SLOTS;

/// The first bytes of a block.
#[repr(C)]
struct Head {
    row: AtomicU64,
    twin: AtomicU32,
    norm: f32,
    scale: f32,
    sum: i32,
    apart: AtomicU32,
    leaving: AtomicU16,
    led_to: LedTo,
}

/// Bytes of nodes that a walk asks for at once, before the distances to these tighten its limit: as many as are on their
/// way at the same time. With half of it walks wait oftener, with more they compare more in vain.
const AT_ONCE: usize = 8 << 10;

/// Bytes of the nearest neighbours, by estimate, that a walk asks for before it looks again at what else is near: with fewer it waits for
/// each of them, with more it compares what soon is too far.
const FIRST: usize = 2 << 10;
/// Such neighbours at least.
pub(super) const FEWEST_FIRST: usize = 4;

/// Errors of a squared distance to an eight-bit code, in units of its scale times the distance, that are reckoned with.
/// Each element's rounding error is even over one step, 0.29 steps in standard deviation, and counts twice: this is
/// three and a half standard deviations.
const ERRORS: f32 = 2.0;

/// The blocks of all nodes.
pub(super) struct Blocks {
    dim: usize,
    /// Nodes that a walk compares at once.
    batch: usize,
    /// Of these, how many at first.
    first: usize,
    /// Whether edges have codes.
    coded: bool,
    /// Where the edges begin.
    edges: usize,
    stride: usize,
    chunks: Chunks,
    next: AtomicU32,
    /// Nodes that were given back, and are claimed again first.
    free: Mutex<Vec<u32>>,
}

impl Blocks {
    /// No nodes yet; `dim` is a multiple of 16.
    pub(super) fn new(dim: usize, coded: bool) -> Self {
        let (edges, stride) = layout(dim, coded);
        Blocks {
            dim,
            batch: (AT_ONCE / (VECTOR + dim)).clamp(4, SLOTS),
            first: (FIRST / (VECTOR + dim)).clamp(FEWEST_FIRST, SLOTS),
            coded,
            edges,
            stride,
            chunks: Chunks::new(stride),
            next: AtomicU32::new(0),
            free: Mutex::new(Vec::new()),
        }
    }

    /// Whether edges have codes.
    #[inline(always)]
    pub(super) fn coded(&self) -> bool {
        self.coded
    }

    /// Most nodes that fit.
    pub(super) fn limit(&self) -> u32 {
        self.chunks.limit().min(NODES)
    }

    pub(super) fn bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// Nodes that are not free.
    pub(super) fn taken(&self) -> u64 {
        let free = self.free.lock().len() as u64;
        u64::from(self.claimed()).saturating_sub(free)
    }

    /// Bytes of nodes that were given back.
    pub(super) fn free_bytes(&self) -> usize {
        self.free.lock().len() * self.stride
    }

    /// Nodes that were ever claimed; those of inserts that run are not all written.
    pub(super) fn claimed(&self) -> u32 {
        self.next.load(Ordering::Acquire)
    }

    /// Claims the number of a new node, or `None` if all are taken.
    pub(super) fn claim(&self) -> Option<u32> {
        if let Some(node) = self.free.lock().pop() {
            return Some(node);
        }
        let limit = self.limit();
        let step = |next: u32| (next < limit).then(|| next + 1);
        let node = self
            .next
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step)
            .ok()?;
        self.chunks.reserve(node);
        Some(node)
    }

    #[inline(always)]
    fn at(&self, node: u32, offset: usize) -> *mut u8 {
        self.chunks.at(node).as_ptr().wrapping_add(offset)
    }

    /// Writes a claimed node with no twin and no neighbours.
    ///
    /// # Safety
    /// Nobody else reads or writes this node until the call has returned, and the code has `dim` bytes.
    pub(super) unsafe fn write(&self, node: u32, row: u64, vector: Vector8) {
        let head = Head {
            row: AtomicU64::new(row),
            twin: AtomicU32::new(NONE),
            norm: vector.norm,
            scale: vector.scale,
            sum: vector.sum,
            apart: AtomicU32::new(0),
            leaving: AtomicU16::new(0),
            led_to: LedTo::none(),
        };
        // SAFETY: the block was reserved with `stride` bytes, aligned to a line, and the caller vouches that it is not
        // shared.
        unsafe {
            self.at(node, 0).cast::<Head>().write(head);
            self.at(node, self.edges)
                .cast::<[u32; SLOTS]>()
                .write([NONE; SLOTS]);
            self.at(node, VECTOR)
                .copy_from_nonoverlapping(vector.code.cast(), self.dim);
            if !self.coded {
                return;
            }
            self.at(node, self.edges + ADD)
                .cast::<[u16; SLOTS]>()
                .write([bf16::INFINITY.to_bits(); SLOTS]);
            self.at(node, self.edges + FACTOR).write_bytes(0, 2 * SLOTS);
            self.at(node, self.edges + CODES)
                .write_bytes(0, rabitq::code_bytes(self.dim));
        }
    }

    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    unsafe fn head(&self, node: u32) -> &Head {
        // SAFETY: it was written as a `Head`, and only its atomics are written again before nobody reads the node any more.
        unsafe { &*self.at(node, 0).cast::<Head>() }
    }

    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn row(&self, node: u32) -> u64 {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.row.load(Ordering::Acquire)
    }

    /// Lets a node hold another row.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    pub(super) unsafe fn set_row(&self, node: u32, row: u64) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.row.store(row, Ordering::Release);
    }

    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn vector(&self, node: u32) -> Vector8 {
        // SAFETY: the caller vouches for the node.
        let head = unsafe { self.head(node) };
        Vector8 {
            code: self.at(node, VECTOR).cast(),
            scale: head.scale,
            norm: head.norm,
            sum: head.sum,
        }
    }

    /// By how much the squared distance to a node's vector may be less than that to its code, and mostly is not.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn error(&self, node: Candidate) -> f32 {
        // SAFETY: the caller vouches for the node.
        let scale = unsafe { self.head(node.node()) }.scale;
        // Rounding moves what a code stands for across and along the way to the query: across, it lengthens
        // the way by a twelfth of a squared step a dimension; along, it is as likely to shorten it.
        let across = scale * scale * self.dim as f32 / 12.0;
        across + ERRORS * scale * node.distance().sqrt()
    }

    /// Whether a node is about to leave the graph: nothing should lead to it from now on.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn is_leaving(&self, node: u32) -> bool {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.leaving.load(Ordering::Relaxed) != 0
    }

    /// Marks a node that is about to leave the graph.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    pub(super) unsafe fn leave(&self, node: u32) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }
            .leaving
            .store(1, Ordering::Relaxed);
    }

    /// Gives a node back.
    ///
    /// # Safety
    /// The node was written, nothing leads to it, and nobody else reads or writes it.
    pub(super) unsafe fn free(&self, node: u32) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.set_row(node, FREE) };
        self.free.lock().push(node);
    }

    /// Which slots hold edges that no nearer neighbour stands in for.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    pub(super) unsafe fn apart(&self, node: u32) -> &AtomicU32 {
        // SAFETY: the caller vouches for the node.
        unsafe { &self.head(node).apart }
    }

    /// The eight-bit code of a node.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn code(&self, node: u32) -> &[u8] {
        // SAFETY: the caller vouches for the node; its code is not written again before nobody reads the node any more.
        unsafe { std::slice::from_raw_parts(self.at(node, VECTOR), self.dim) }
    }

    /// The next node with the same code, or [`NONE`].
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn twin(&self, node: u32) -> u32 {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }.twin.load(Ordering::Acquire)
    }

    /// Takes the chain from `from` to the leaving twin `gone` past that one, and past those behind it that leave too.
    ///
    /// # Safety
    /// As [`Blocks::head`], for all nodes of the chain.
    pub(super) unsafe fn pass_twin(&self, from: u32, gone: u32) {
        // SAFETY: the caller vouches for the chain.
        unsafe {
            let mut next = self.twin(gone);
            while next != NONE && self.is_leaving(next) {
                next = self.twin(next);
            }
            let mut at = from;
            // Twins that came meanwhile stand between the two.
            while let Err(between) =
                self.head(at)
                    .twin
                    .compare_exchange(gone, next, Ordering::AcqRel, Ordering::Acquire)
            {
                if between == NONE {
                    return;
                }
                at = between;
            }
        }
    }

    /// Sets the next twin of a node that nobody else knows yet.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    pub(super) unsafe fn set_twin(&self, node: u32, twin: u32) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.head(node) }
            .twin
            .store(twin, Ordering::Relaxed);
    }

    /// Puts `twin`, which nobody else knows yet, next to `node` in the chain of its equals.
    ///
    /// # Safety
    /// As [`Blocks::head`], for both.
    pub(super) unsafe fn add_twin(&self, node: u32, twin: u32) {
        // SAFETY: the caller vouches for both nodes.
        let (head, new) = unsafe { (self.head(node), self.head(twin)) };
        chain(&head.twin, &new.twin, twin);
    }

    /// The neighbours of a node. A number is written with release and read with acquire, so whoever reads it sees all
    /// that was written of that node before it was linked.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn ids(&self, node: u32) -> &[AtomicU32; SLOTS] {
        // SAFETY: they were written, and are accessed only as atomics since.
        unsafe { &*self.at(node, self.edges).cast::<[AtomicU32; SLOTS]>() }
    }

    /// Where the estimator finds the codes of a node's neighbours.
    #[inline(always)]
    pub(super) fn block(&self, node: u32) -> rabitq::Block {
        debug_assert!(self.coded, "edges have codes");
        rabitq::Block {
            codes: self.at(node, self.edges + CODES),
            add: rabitq::Add::Upper(self.at(node, self.edges + ADD).cast()),
            factor: self.at(node, self.edges + FACTOR).cast(),
        }
    }

    /// Asks for the cache lines of a node's edges.
    #[inline(always)]
    pub(super) fn prefetch_edges(&self, node: u32) {
        prefetch_all(self.at(node, self.edges), self.stride - self.edges);
    }

    /// Asks for the cache lines of the numbers of a node's neighbours.
    #[inline(always)]
    pub(super) fn prefetch_ids(&self, node: u32) {
        prefetch_all(self.at(node, self.edges), ADD);
    }

    /// Asks for the cache lines of a node's eight-bit code and what belongs to it.
    #[inline(always)]
    pub(super) fn prefetch_vector(&self, node: u32) {
        prefetch_all(self.at(node, 0), VECTOR + self.dim);
    }

    /// Asks for the cache line of a node's head.
    #[inline(always)]
    pub(super) fn prefetch_head(&self, node: u32) {
        prefetch_all(self.at(node, 0), VECTOR);
    }

    /// Nodes that a walk compares at once.
    #[inline(always)]
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// The same of neighbours that were just estimated, or taken up.
    #[inline(always)]
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Bytes that a distance to a node reads.
    pub(super) fn vector_bytes(&self) -> usize {
        VECTOR + self.dim
    }

    /// Bytes that following a node's edges reads.
    pub(super) fn edge_bytes(&self) -> usize {
        self.stride - self.edges
    }
}

/// Where in a block the edges begin, and how long it is; `dim` is a multiple of 16.
pub(crate) fn layout(dim: usize, coded: bool) -> (usize, usize) {
    if coded {
        let edges = (VECTOR + dim).next_multiple_of(ALIGN);
        let end = edges + CODES + rabitq::code_bytes(dim);
        (edges, end.next_multiple_of(ALIGN))
    } else {
        let edges = VECTOR + dim;
        (edges, (edges + ADD).next_multiple_of(ALIGN / 2))
    }
}
