//! A block: up to 32 vectors of a posting, side by side, so that all are estimated at once.
//!
//! ```text
//! offset  bytes  the first part
//!      0      4  CRC-32C of all bytes after it, of both parts
//!      4      1  number of vectors, 1 to 32
//!      5     59  zero
//!     64    4 d  one-bit codes of the ways from the centroid: see `longbow_kernels::rabitq`
//!      …    128  their `add`, f32
//!      …     64  their `factor`, the upper halves of f32
//!      …    256  rows, u64
//!
//! offset  bytes  the second part, for each of 32 vectors
//!      0      d  eight-bit code
//!      d      4  its scale, f32
//!    d+4      4  squared length of what it stands for, f32
//!    d+8      4  sum of the eight-bit code, i32
//!   d+12      1  1: the vector's own posting; 0: one of a boundary's other side
//!   d+13      3  zero
//! ```
//!
//! d is the dimension, rounded up to 16. Both parts begin at a cache line. The first one is read from begin to end by each
//! search that comes by, the second one of a few vectors; where they lie in the file: see `places`.
//! A block never changes: another one takes its place.

use std::io;
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, Digest};
use longbow_kernels::rabitq::{self, SLOTS};

use super::places::Places;
use super::store::Store;
use crate::error::{Error, Result};
use crate::lines::{ALIGN, Lines, put_signs};
use crate::sync::{ArcSwap, Loaded};
use crate::vector8::Vector8;

const HEAD: usize = ALIGN;

/// Where things lie in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dim: usize,
    add: usize,
    factor: usize,
    rows: usize,
    /// Of a vector in the second part.
    stride: usize,
    /// The lengths of both parts.
    pub(super) places: Places,
    /// Of a block.
    pub(crate) bytes: usize,
}

/// Bytes of a vector behind its eight-bit code.
const TERMS: usize = 16;

impl Layout {
    /// `dim` is a multiple of 16.
    pub(crate) fn new(dim: usize) -> Self {
        let add = HEAD + rabitq::code_bytes(dim);
        let factor = add + 4 * SLOTS;
        let rows = factor + 2 * SLOTS;
        let stride = dim + TERMS;
        let places = Places {
            first: rows + 8 * SLOTS,
            second: stride * SLOTS,
        };
        debug_assert_eq!(places.first % ALIGN, 0, "{dim} dimensions");
        debug_assert_eq!(places.second % ALIGN, 0, "{dim} dimensions");
        Layout {
            dim,
            add,
            factor,
            rows,
            stride,
            places,
            bytes: places.both(),
        }
    }
}

/// A vector of a posting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) row: u64,
    /// Whether this is the vector's own posting.
    pub(super) own: bool,
    pub(super) code: &'a [u8],
    pub(super) scale: f32,
    pub(super) norm: f32,
    pub(super) sum: i32,
}

impl Member<'_> {
    /// What its code stands for, rotated.
    pub(super) fn floats(&self) -> impl Iterator<Item = f32> {
        let elements = self.code.iter();
        elements.map(|x| f32::from(*x as i8) * self.scale)
    }

    pub(super) fn vector(&self) -> Vector8 {
        Vector8 {
            code: self.code.as_ptr().cast(),
            scale: self.scale,
            norm: self.norm,
            sum: self.sum,
        }
    }
}

/// The way from a centroid to a vector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    /// Signs, 16 dimensions a word.
    pub(super) bits: &'a [u16],
    pub(super) add: f32,
    pub(super) factor: f32,
}

/// The bytes of a block, to be read.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    layout: &'a Layout,
    first: &'a [u8],
    second: &'a [u8],
}

impl<'a> Read<'a> {
    #[inline(always)]
    pub(super) fn row(&self, at: usize) -> u64 {
        u64::from_le_bytes(array(self.first, self.layout.rows + 8 * at))
    }

    #[inline(always)]
    pub(super) fn own(&self, at: usize) -> bool {
        self.vector(at)[self.layout.dim + 12] == 1
    }

    /// What an estimate is stretched by; negative.
    #[inline(always)]
    pub(super) fn factor(&self, at: usize) -> f32 {
        let upper_half = u16::from_le_bytes(array(self.first, self.layout.factor + 2 * at));
        f32::from_bits(u32::from(upper_half) << 16)
    }

    /// The eight-bit code of a vector and what belongs to it.
    #[inline(always)]
    pub(super) fn vector(&self, at: usize) -> &'a [u8] {
        let stride = self.layout.stride;
        &self.second[stride * at..][..stride]
    }

    #[inline(always)]
    pub(super) fn member(&self, at: usize) -> Member<'a> {
        let Vector8 {
            scale, norm, sum, ..
        } = self.coded(at);
        Member {
            row: self.row(at),
            own: self.own(at),
            code: &self.vector(at)[..self.layout.dim],
            scale,
            norm,
            sum,
        }
    }

    /// The eight-bit code of a vector with its terms, as distances are taken of it: nothing of the first part.
    #[inline(always)]
    pub(super) fn coded(&self, at: usize) -> Vector8 {
        let (code, terms) = self.vector(at).split_at(self.layout.dim);
        Vector8 {
            code: code.as_ptr().cast(),
            scale: f32::from_le_bytes(array(terms, 0)),
            norm: f32::from_le_bytes(array(terms, 4)),
            sum: i32::from_le_bytes(array(terms, 8)),
        }
    }

    /// Where the estimator finds the ways. Aligned, as all blocks are.
    #[inline(always)]
    pub(super) fn ways(&self) -> rabitq::Block {
        rabitq::Block {
            codes: self.first[HEAD..].as_ptr(),
            add: rabitq::Add::Whole(self.first[self.layout.add..].as_ptr().cast()),
            factor: self.first[self.layout.factor..].as_ptr().cast(),
        }
    }

    /// What a search reads of each block.
    pub(super) fn first_part(&self) -> &'a [u8] {
        self.first
    }

    /// What a search reads of a few vectors.
    pub(super) fn second_part(&self) -> &'a [u8] {
        self.second
    }
}

#[inline(always)]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..][..N]);
    array
}

/// A block that is being made.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    lines: Lines,
    len: usize,
}

impl Draft {
    pub(super) fn new(layout: &Layout) -> Self {
        let lines = Lines::zero(layout.bytes);
        Draft { lines, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn read<'a>(&'a self, layout: &'a Layout) -> Read<'a> {
        let (first, second) = self.lines.bytes().split_at(layout.places.first);
        Read {
            layout,
            first,
            second,
        }
    }

    /// Appends a vector; there is room for it.
    pub(super) fn push(&mut self, layout: &Layout, member: Member<'_>, way: Way<'_>) {
        assert!(self.len < SLOTS, "a block has {SLOTS} places");
        self.len += 1;
        self.put(layout, self.len - 1, member, way);
    }

    /// Puts a vector in the place of another.
    pub(super) fn put(&mut self, layout: &Layout, at: usize, member: Member<'_>, way: Way<'_>) {
        assert!(at < self.len, "place {at} of {}", self.len);
        assert_eq!(way.bits.len() * 16, layout.dim, "signs");
        let bytes = self.lines.bytes_mut();
        let mut set = |from: usize, value: &[u8]| {
            bytes[from..][..value.len()].copy_from_slice(value);
        };
        set(layout.add + 4 * at, &way.add.to_le_bytes());
        let upper_half = (way.factor.to_bits() >> 16) as u16;
        set(layout.factor + 2 * at, &upper_half.to_le_bytes());
        set(layout.rows + 8 * at, &member.row.to_le_bytes());
        let vector = layout.places.first + layout.stride * at;
        let terms = vector + layout.dim;
        set(vector, member.code);
        set(terms, &member.scale.to_le_bytes());
        set(terms + 4, &member.norm.to_le_bytes());
        set(terms + 8, &member.sum.to_le_bytes());
        set(terms + 12, &[u8::from(member.own)]);
        put_signs(&mut bytes[HEAD..layout.add], at, way.bits);
    }

    /// Forgets the last vector.
    pub(super) fn pop(&mut self) {
        self.len -= 1;
    }

    /// Writes the block.
    pub(super) fn write(mut self, store: &Arc<Store>) -> io::Result<Block> {
        let bytes = self.lines.bytes_mut();
        bytes[4] = self.len as u8;
        let sum = crc(&bytes[4..], &[]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        let slot = store.write(bytes)?;
        Ok(Block::new(slot, self.len, store, || self.lines))
    }
}

/// A copy of a block's first part, if there is one.
#[derive(Debug, Default)]
pub(super) struct Copied(Option<Lines>);

/// A block that stays as it is.
#[derive(Debug)]
pub(super) struct Block {
    slot: u32,
    len: u8,
    /// Where the file gives no view of its bytes.
    lines: Option<Lines>,
    /// What `kept` has of it.
    copied: ArcSwap<Copied>,
    store: Arc<Store>,
}

impl Block {
    fn new(slot: u32, len: usize, store: &Arc<Store>, lines: impl FnOnce() -> Lines) -> Self {
        let is_aligned = |bytes: &[u8]| bytes.as_ptr().addr().is_multiple_of(ALIGN);
        let seen = store.bytes(slot);
        let aligned = seen.is_some_and(|(first, second)| is_aligned(first) && is_aligned(second));
        let block = Block {
            slot,
            len: len as u8,
            lines: (!aligned).then(lines),
            copied: ArcSwap::new(Arc::clone(&store.not_copied)),
            store: Arc::clone(store),
        };
        block.keep();
        block
    }

    /// Copies the first part, if one more may be kept.
    pub(super) fn keep(&self) {
        let is_there = self.lines.is_some() || self.is_kept();
        if is_there || !self.store.kept.take() {
            return;
        }
        let copied = Copied(Some(Lines::of_first(self.parts().0)));
        self.exchange(Arc::new(copied));
    }

    /// Forgets the copy; false if there is none.
    pub(super) fn let_go(&self) -> bool {
        self.is_kept() && self.exchange(Arc::clone(&self.store.not_copied))
    }

    /// Whether there was another copy.
    fn exchange(&self, copied: Arc<Copied>) -> bool {
        let was_kept = self.copied.swap(copied).0.is_some();
        if was_kept {
            self.store.kept.give_back();
        }
        was_kept
    }

    /// Whether there is a copy of the first part.
    pub(super) fn is_kept(&self) -> bool {
        self.copied().is_some_and(|copied| copied.0.is_some())
    }

    /// The copy of the first part. None is made while nothing is kept.
    #[inline(always)]
    pub(super) fn copied(&self) -> Option<Loaded<Copied>> {
        self.store.kept.is_any().then(|| self.copied.load())
    }

    /// As [`Block::read`], but the first part from its copy.
    #[inline(always)]
    pub(super) fn read_copied<'a>(
        &'a self,
        layout: &'a Layout,
        copied: Option<&'a Arc<Copied>>,
    ) -> Read<'a> {
        let mut read = self.read(layout);
        if let Some(lines) = copied.and_then(|copied| copied.0.as_ref()) {
            read.first = lines.bytes();
        }
        read
    }

    /// A block of a checkpoint, whose parts are `parts`; the slot is one of those that the store was made with.
    pub(super) fn load(slot: u32, parts: (&[u8], &[u8]), store: &Arc<Store>) -> Self {
        Block::new(slot, usize::from(parts.0[4]), store, || Lines::of(parts))
    }

    /// Checks that the parts of a slot, of which the first is at `at`, are those of a block that was written, and tells its
    /// vectors: 1 to 32.
    pub(super) fn check(at: u64, (first, second): (&[u8], &[u8])) -> Result<usize> {
        let expected = u32::from_le_bytes(array(first, 0));
        let got = crc(&first[4..], second);
        if expected != got {
            return Err(Error::Block { at, expected, got });
        }
        match usize::from(first[4]) {
            len @ 1..=SLOTS => Ok(len),
            got => Err(Error::Inconsistent {
                at: at + 4,
                field: "vectors of a block",
                got: got as u64,
                limit: SLOTS as u64,
            }),
        }
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Both parts.
    #[inline(always)]
    fn parts(&self) -> (&[u8], &[u8]) {
        match &self.lines {
            Some(lines) => lines.bytes().split_at(self.store.places.first),
            None => {
                let parts = self.store.bytes(self.slot);
                parts.expect("the file gave them when the block was made")
            }
        }
    }

    #[inline(always)]
    pub(super) fn read<'a>(&'a self, layout: &'a Layout) -> Read<'a> {
        let (first, second) = self.parts();
        Read {
            layout,
            first,
            second,
        }
    }

    /// A copy that can be changed.
    pub(super) fn draft(&self) -> Draft {
        Draft {
            lines: Lines::of(self.parts()),
            len: self.len(),
        }
    }

    /// The same in a slot before `end`, if one is free.
    pub(super) fn moved_before(&self, end: u32) -> io::Result<Option<Block>> {
        let lines = Lines::of(self.parts());
        let slot = self.store.write_before(end, lines.bytes())?;
        Ok(slot.map(|slot| Block::new(slot, self.len(), &self.store, || lines)))
    }

    /// Bytes of memory, without what is kept.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + 16 + self.lines.as_ref().map_or(0, |_| self.store.places.both())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.let_go();
        self.store.release(self.slot);
    }
}

fn crc(first: &[u8], second: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(first);
    digest.update(second);
    digest.finalize() as u32
}
