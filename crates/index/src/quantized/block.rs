//! What a quantised graph keeps of each node, in one run of memory or two.
//!
//! ```text
//! offset  bytes  what
//!      0      8  row
//!      8      4  next twin; ff ff ff ff: none
//!     12      4  which slots hold edges that no nearer neighbour stands in for, one bit each
//!     16      4  squared length of the vector that the eight-bit code stands for, f32
//!     20      4  scale of the eight-bit code, f32: an element times this is a rotated coordinate
//!     24      4  sum of the eight-bit code, i32
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
//! The first part is read when a distance to the node is computed, the rest when its edges are followed, each from
//! begin to end, which is what memory is fastest at.
//!
//! Without codes of edges the neighbours follow the eight-bit code at once, and the block ends behind them, at a multiple of 32 bytes. From
//! 192 dimensions on, codes are cut then (`longbow_kernels::rabitq::slice`), with d rounded up to 32: a node is estimated by its signs, which lie
//! with what else that takes in a run of their own, which ends at a multiple of 32 bytes, too. See [`cut`].
//!
//! ```text
//!      0     16  as above from 16 to 32, but at 8 the factor of an estimate by the signs, f32
//!     16    d/8  signs of the eight-bit code
//!
//!      0     16  as above
//!     16  7/8 d  the rest of the code
//!      …    128  neighbours
//! ```

mod cut;
mod edges;
mod layout;
mod reads;
mod signs;

use crate::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use std::f32::consts::SQRT_2;

use half::bf16;
use longbow_kernels::rabitq::{self, SLOTS};

use crate::sync::Mutex;

use super::front::NODES;
use crate::candidate::Candidate;
use crate::chunks::Chunks;
use crate::led_to::LedTo;
use crate::twins::chain;
use crate::vector8::Vector8;
pub(super) use edges::Edge;
pub(crate) use layout::Layout;
use layout::{ADD, CODES, FACTOR};
pub(super) use signs::Gathered;

/// No node: it ends a chain of twins, and stands in a free slot.
pub(super) const NONE: u32 = u32::MAX;

/// The row of a node that is free, and of no other.
pub(super) const FREE: u64 = u64::MAX;

/// What a node is.
#[repr(C)]
struct Head {
    row: AtomicU64,
    twin: AtomicU32,
    apart: AtomicU32,
}

/// What belongs to a node's code.
#[repr(C)]
struct OfCode {
    norm: f32,
    scale: f32,
    /// The sum of the code, or the bits of the factor where that is cut.
    sum_or_factor: i32,
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
    layout: Layout,
    chunks: Chunks,
    /// What belongs to the codes and their signs, where codes are cut.
    near: Option<Chunks>,
    next: AtomicU32,
    /// Nodes that were given back, and are claimed again first.
    free: Mutex<Vec<u32>>,
}

impl Blocks {
    /// No nodes yet; `dim` is a multiple of 16.
    pub(super) fn new(dim: usize, coded: bool) -> Self {
        let layout = Layout::new(dim, coded);
        Blocks {
            dim,
            batch: (AT_ONCE / layout.compared()).clamp(4, SLOTS),
            first: (FIRST / layout.compared()).clamp(FEWEST_FIRST, SLOTS),
            coded,
            layout,
            chunks: Chunks::new(layout.stride),
            near: layout.near.map(Chunks::new),
            next: AtomicU32::new(0),
            free: Mutex::new(Vec::new()),
        }
    }

    /// Elements of a code.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// Whether edges have codes.
    #[inline(always)]
    pub(super) fn coded(&self) -> bool {
        self.coded
    }

    /// Whether codes are cut, so that neighbours are estimated by their signs.
    #[inline(always)]
    pub(super) fn cut(&self) -> bool {
        self.near.is_some()
    }

    /// Most nodes that fit.
    pub(super) fn limit(&self) -> u32 {
        self.chunks.limit().min(NODES)
    }

    pub(super) fn bytes(&self) -> usize {
        self.chunks.bytes() + self.near.as_ref().map_or(0, Chunks::bytes)
    }

    /// Nodes that are not free.
    pub(super) fn taken(&self) -> u64 {
        let free = self.free.lock().len() as u64;
        u64::from(self.claimed()).saturating_sub(free)
    }

    /// Bytes of nodes that were given back.
    pub(super) fn free_bytes(&self) -> usize {
        self.free.lock().len() * self.layout.bytes()
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
        if let Some(near) = &self.near {
            near.reserve(node);
        }
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
            apart: AtomicU32::new(0),
        };
        let of_code = OfCode {
            norm: vector.norm,
            scale: vector.scale,
            sum_or_factor: vector.sum,
            leaving: AtomicU16::new(0),
            led_to: LedTo::none(),
        };
        let layout = self.layout;
        // SAFETY: the block was reserved with `stride` bytes, aligned to half a line, and the caller vouches that it is not
        // shared.
        unsafe {
            self.at(node, 0).cast::<Head>().write(head);
            let at = self.of_code_at(node);
            at.write(of_code);
            self.at(node, layout.edges)
                .cast::<[u32; SLOTS]>()
                .write([NONE; SLOTS]);
            if self.cut() {
                (*at).sum_or_factor = self.write_sliced(node, vector).to_bits() as i32;
                return;
            }
            self.at(node, layout.code)
                .copy_from_nonoverlapping(vector.code.cast(), self.dim);
            if !self.coded {
                return;
            }
            self.at(node, layout.edges + ADD)
                .cast::<[u16; SLOTS]>()
                .write([bf16::INFINITY.to_bits(); SLOTS]);
            self.at(node, layout.edges + FACTOR)
                .write_bytes(0, 2 * SLOTS);
            self.at(node, layout.edges + CODES)
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
    unsafe fn of_code(&self, node: u32) -> &OfCode {
        // SAFETY: as above.
        unsafe { &*self.of_code_at(node) }
    }

    #[inline(always)]
    fn of_code_at(&self, node: u32) -> *mut OfCode {
        match &self.near {
            Some(near) => near.at(node).as_ptr().cast(),
            None => self.at(node, size_of::<Head>()).cast(),
        }
    }

    /// The scale of a node's code.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn scale(&self, node: u32) -> f32 {
        // SAFETY: the caller vouches for the node.
        unsafe { self.of_code(node) }.scale
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

    /// The code of a node that is not cut.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn vector(&self, node: u32) -> Vector8 {
        debug_assert!(!self.cut(), "codes are whole");
        // SAFETY: the caller vouches for the node.
        let of_code = unsafe { self.of_code(node) };
        Vector8 {
            code: self.at(node, self.layout.code).cast(),
            scale: of_code.scale,
            norm: of_code.norm,
            sum: of_code.sum_or_factor,
        }
    }

    /// By how much the squared distance of a query to a node's vector may be less than that to its code, and mostly is not. The query was rounded
    /// by steps of `own`, which are 0 where that is not worth mentioning.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn error(&self, node: Candidate, own: f32) -> f32 {
        // SAFETY: the caller vouches for the node.
        let scale = unsafe { self.scale(node.node()) };
        // Rounding moves what a code stands for across and along the way to the query: across, it lengthens
        // the way by a twelfth of a squared step a dimension; along, it is as likely to shorten it.
        // Both roundings are as one of the root of the sum of their squares, which is no more than this.
        let step = match own {
            0.0 => scale,
            _ => scale.max(own) * SQRT_2,
        };
        let across = step * step * self.dim as f32 / 12.0;
        across + ERRORS * step * node.distance().sqrt()
    }

    /// Whether a node is about to leave the graph: nothing should lead to it from now on.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    #[inline(always)]
    pub(super) unsafe fn is_leaving(&self, node: u32) -> bool {
        // SAFETY: the caller vouches for the node.
        unsafe { self.of_code(node) }
            .leaving
            .load(Ordering::Relaxed)
            != 0
    }

    /// Marks a node that is about to leave the graph.
    ///
    /// # Safety
    /// As [`Blocks::head`].
    pub(super) unsafe fn leave(&self, node: u32) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.of_code(node) }
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
        unsafe {
            &*self
                .at(node, self.layout.edges)
                .cast::<[AtomicU32; SLOTS]>()
        }
    }

    /// Where the estimator finds the codes of a node's neighbours.
    #[inline(always)]
    pub(super) fn block(&self, node: u32) -> rabitq::Block {
        debug_assert!(self.coded, "edges have codes");
        rabitq::Block {
            codes: self.at(node, self.layout.edges + CODES),
            add: rabitq::Add::Upper(self.at(node, self.layout.edges + ADD).cast()),
            factor: self.at(node, self.layout.edges + FACTOR).cast(),
        }
    }
}
