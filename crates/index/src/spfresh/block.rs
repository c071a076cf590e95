//! A block: up to 32 vectors of a posting, side by side, so that all are estimated at once.
//!
//! ```text
//! offset  bytes  what
//!      0      4  CRC-32C of all bytes after it
//!      4      1  number of vectors, 1 to 32
//!      5     59  zero
//!     64    4 d  one-bit codes of the ways from the centroid: see `longbow_kernels::rabitq`
//!      …    128  their `add`, f32
//!      …     64  their `factor`, the upper halves of f32
//!      …    256  rows, u64
//!      …    128  scales of the eight-bit codes, f32
//!      …    128  squared lengths of what the eight-bit codes stand for, f32
//!      …    128  sums of the eight-bit codes, i32
//!      …     32  1: the vector's own posting; 0: one of a boundary's other side
//!      …     32  zero
//!      …   32 d  eight-bit codes
//! ```
//!
//! d is the dimension, rounded up to 16. All is aligned to a cache line, for which a block's offset in its file is too.
//! The first part is read from begin to end by each search that comes by; rows, and eight-bit codes, of a few.
//! A block never changes: another one takes its place.

use std::io;
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, checksum};
use longbow_kernels::rabitq::{self, GROUP, SLOTS};

use super::store::Store;
use crate::error::{Error, Result};
use crate::vector8::Vector8;

const ALIGN: usize = 64;
const HEAD: usize = ALIGN;

/// Where things lie in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dim: usize,
    add: usize,
    factor: usize,
    rows: usize,
    scales: usize,
    norms: usize,
    sums: usize,
    own: usize,
    vectors: usize,
    /// Of a block.
    pub(crate) bytes: usize,
}

impl Layout {
    /// `dim` is a multiple of 16.
    pub(crate) fn new(dim: usize) -> Self {
        let add = HEAD + rabitq::code_bytes(dim);
        let factor = add + 4 * SLOTS;
        let rows = factor + 2 * SLOTS;
        let scales = rows + 8 * SLOTS;
        let norms = scales + 4 * SLOTS;
        let sums = norms + 4 * SLOTS;
        let own = sums + 4 * SLOTS;
        let vectors = own + 2 * SLOTS;
        let bytes = vectors + dim * SLOTS;
        debug_assert_eq!(bytes % ALIGN, 0, "{dim} dimensions");
        Layout {
            dim,
            add,
            factor,
            rows,
            scales,
            norms,
            sums,
            own,
            vectors,
            bytes,
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
    bytes: &'a [u8],
}

impl<'a> Read<'a> {
    #[inline(always)]
    fn array<const N: usize>(&self, from: usize, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[from + N * at..][..N]);
        array
    }

    #[inline(always)]
    pub(super) fn row(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(self.layout.rows, at))
    }

    #[inline(always)]
    pub(super) fn own(&self, at: usize) -> bool {
        self.bytes[self.layout.own + at] == 1
    }

    #[inline(always)]
    pub(super) fn member(&self, at: usize) -> Member<'a> {
        let dim = self.layout.dim;
        Member {
            row: self.row(at),
            own: self.own(at),
            code: &self.bytes[self.layout.vectors + dim * at..][..dim],
            scale: f32::from_le_bytes(self.array(self.layout.scales, at)),
            norm: f32::from_le_bytes(self.array(self.layout.norms, at)),
            sum: i32::from_le_bytes(self.array(self.layout.sums, at)),
        }
    }

    /// Where the estimator finds the ways. Aligned, as all blocks are.
    #[inline(always)]
    pub(super) fn ways(&self) -> rabitq::Block {
        rabitq::Block {
            codes: self.bytes[HEAD..].as_ptr(),
            add: self.bytes[self.layout.add..].as_ptr().cast(),
            factor: self.bytes[self.layout.factor..].as_ptr().cast(),
        }
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What a search reads of each block.
    pub(super) fn first_part(&self) -> &'a [u8] {
        &self.bytes[..self.layout.rows]
    }
}

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGN]);

/// Bytes that begin at a cache line.
#[derive(Debug, Clone)]
struct Lines(Vec<Line>);

impl Lines {
    fn zero(bytes: usize) -> Self {
        Lines(vec![Line([0; ALIGN]); bytes / ALIGN])
    }

    fn of(bytes: &[u8]) -> Self {
        let mut lines = Lines::zero(bytes.len());
        lines.bytes_mut().copy_from_slice(bytes);
        lines
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: a line is so many bytes without padding, each initialised.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * ALIGN) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are a line.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * ALIGN) }
    }
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
        Read {
            layout,
            bytes: self.lines.bytes(),
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
            bytes[from + value.len() * at..][..value.len()].copy_from_slice(value);
        };
        set(layout.add, &way.add.to_le_bytes());
        set(
            layout.factor,
            &((way.factor.to_bits() >> 16) as u16).to_le_bytes(),
        );
        set(layout.rows, &member.row.to_le_bytes());
        set(layout.scales, &member.scale.to_le_bytes());
        set(layout.norms, &member.norm.to_le_bytes());
        set(layout.sums, &member.sum.to_le_bytes());
        set(layout.own, &[u8::from(member.own)]);
        set(layout.vectors, member.code);
        let (byte, shift) = (at % 16, at / 16 * 4);
        let codes = bytes[HEAD..layout.add].chunks_exact_mut(16);
        let nibbles = way.bits.iter().flat_map(|word| {
            (0..16 / GROUP).map(move |group| (word >> (group * GROUP) & 15) as u8)
        });
        for (codes, nibble) in codes.zip(nibbles) {
            codes[byte] = codes[byte] & !(15 << shift) | nibble << shift;
        }
    }

    /// Forgets the last vector.
    pub(super) fn pop(&mut self) {
        self.len -= 1;
    }

    /// Writes the block.
    pub(super) fn write(mut self, store: &Arc<Store>) -> io::Result<Block> {
        let bytes = self.lines.bytes_mut();
        bytes[4] = self.len as u8;
        let sum = crc(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        let slot = store.write(bytes)?;
        Ok(Block::new(slot, self.len, store, || self.lines))
    }
}

/// A block that stays as it is.
#[derive(Debug)]
pub(super) struct Block {
    slot: u32,
    len: u8,
    /// Where the file gives no view of its bytes.
    lines: Option<Lines>,
    store: Arc<Store>,
}

impl Block {
    fn new(slot: u32, len: usize, store: &Arc<Store>, lines: impl FnOnce() -> Lines) -> Self {
        let seen = store.file.bytes(store.offset(slot), store.stride);
        let aligned = seen.is_some_and(|bytes| bytes.as_ptr().addr().is_multiple_of(ALIGN));
        Block {
            slot,
            len: len as u8,
            lines: (!aligned).then(lines),
            store: Arc::clone(store),
        }
    }

    /// A block of a checkpoint, whose bytes are `bytes`; the slot is one of those that the store was made with.
    pub(super) fn load(slot: u32, bytes: &[u8], store: &Arc<Store>) -> Self {
        Block::new(slot, usize::from(bytes[4]), store, || Lines::of(bytes))
    }

    /// Checks that the bytes of a slot are those of a block that was written, and tells its vectors: 1 to 32.
    pub(super) fn check(at: u64, bytes: &[u8]) -> Result<usize> {
        let expected = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let got = crc(&bytes[4..]);
        if expected != got {
            return Err(Error::Checksum { expected, got });
        }
        match usize::from(bytes[4]) {
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

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match &self.lines {
            Some(lines) => lines.bytes(),
            None => {
                let Store { file, stride, .. } = &*self.store;
                let bytes = file.bytes(self.store.offset(self.slot), *stride);
                bytes.expect("the file gave them when the block was made")
            }
        }
    }

    #[inline(always)]
    pub(super) fn read<'a>(&'a self, layout: &'a Layout) -> Read<'a> {
        Read {
            layout,
            bytes: self.bytes(),
        }
    }

    /// A copy that can be changed.
    pub(super) fn draft(&self) -> Draft {
        Draft {
            lines: Lines::of(self.bytes()),
            len: self.len(),
        }
    }

    /// The same in a slot before `end`, if one is free.
    pub(super) fn moved_before(&self, end: u32) -> io::Result<Option<Block>> {
        let slot = self.store.write_before(end, self.bytes())?;
        Ok(slot.map(|slot| Block::new(slot, self.len(), &self.store, || Lines::of(self.bytes()))))
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + 16 + self.lines.as_ref().map_or(0, |_| self.store.stride)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.store.release(self.slot);
    }
}

fn crc(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
