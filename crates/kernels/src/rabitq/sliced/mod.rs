//! Eight-bit codes whose signs lie apart, so that they can be read alone.
//!
//! ```text
//! dim / 8 bytes       dim / 8 bytes       dim / 4 bytes        dim / 2 bytes            dim: rounded up to 32
//! +------------------+------------------+--------------------+-----------------------+
//! | signs, 1 for     | bit 6 of each    | bits 5 and 4       | bits 3 to 0           |
//! | negative         | element          |                    |                       |
//! +------------------+------------------+--------------------+-----------------------+
//!
//! of 32 elements each:   bit i % 8 of         2 (i / 8) bits up    4 (i / 16) bits up
//!                        byte i / 8           in byte i % 8        in byte i % 16
//! ```
//!
//! The elements are those of the code in two's complement. The signs give the product with a one-bit code of RaBitQ (Gao and Long, arXiv
//! 2405.12497) relative to the origin of the codes ([`Rabitq::sums_where_negative`]); all of it the exact product
//! ([`Rabitq::dot_sliced`]).
//!
//! Good for: a vector that mostly is passed over by its signs, which are an eighth of it. Not for one that is compared in any case: whole
//! bytes ([`Rabitq::dot_query`]) need not be put together first.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;

use super::line::Line;
use super::{DIM_STEP, Rabitq};

/// Elements that lie together.
pub(crate) const CHUNK: usize = 32;
/// Bytes of a chunk in the parts of one, two and four bits.
const ONE: usize = CHUNK / 8;
const TWO: usize = CHUNK / 4;
const FOUR: usize = CHUNK / 2;

/// Elements that are summed in sixteen bits.
#[cfg(target_arch = "x86_64")]
const RUN: usize = 4096;

/// Eight bits an element, at the begin of a cache line, and zeros up to the next.
#[derive(Clone, Default)]
pub struct Octets {
    lines: Vec<Line>,
    dim: usize,
}

impl Octets {
    /// Takes the elements of a code, a multiple of [`DIM_STEP`] of them.
    pub fn set(&mut self, code: impl ExactSizeIterator<Item = i8>) {
        self.make_room(code.len());
        let out = Line::bytes_mut(&mut self.lines).iter_mut();
        out.zip(code).for_each(|(out, code)| *out = code as u8);
    }

    /// Takes the `dim` elements of a code that [`slice()`] made.
    ///
    /// # Panics
    /// If the parts have other lengths.
    pub fn join(&mut self, kernels: &Rabitq, dim: usize, sliced: Sliced<'_>) {
        self.make_room(dim);
        let parts = Parts::new(dim, sliced);
        let chunks = Line::bytes_mut(&mut self.lines).as_chunks_mut().0;
        // SAFETY: there are as many chunks of parts; the table was handed out only if the processor has the set.
        unsafe { (kernels.join)(parts, &mut chunks[..dim.div_ceil(CHUNK)]) }
    }

    fn make_room(&mut self, dim: usize) {
        assert_eq!(dim % DIM_STEP, 0, "{dim} dimensions");
        self.dim = dim;
        self.lines.clear();
        self.lines.resize(dim.div_ceil(64), Line::ZERO);
    }

    /// The elements.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &Line::bytes(&self.lines)[..self.dim]
    }

    /// Where they begin; zeros follow up to a cache line.
    pub(super) fn start(&self) -> *const i8 {
        self.lines.as_ptr().cast()
    }

    /// How many.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Bytes that are allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

/// Bytes of a code of `dim` elements.
#[must_use]
#[inline(always)]
pub const fn sliced_bytes(dim: usize) -> usize {
    dim.div_ceil(CHUNK) * CHUNK
}

/// Bytes of its signs, which come first.
#[must_use]
#[inline(always)]
pub const fn sign_bytes(dim: usize) -> usize {
    sliced_bytes(dim) / 8
}

/// Writes a code in parts: its signs, and the rest.
///
/// # Panics
/// If these have not [`sign_bytes`] and what is left of [`sliced_bytes`], or the elements are no multiple of [`DIM_STEP`].
pub fn slice(code: &[u8], signs: &mut [u8], rest: &mut [u8]) {
    let dim = code.len();
    assert_eq!(dim % DIM_STEP, 0, "{dim} dimensions");
    check(dim, (signs.len(), rest.len()));
    signs.fill(0);
    rest.fill(0);
    let (ones, rest) = rest.split_at_mut(sign_bytes(dim));
    let (twos, fours) = rest.split_at_mut(2 * sign_bytes(dim));
    for (at, chunk) in code.chunks(CHUNK).enumerate() {
        for (i, element) in chunk.iter().enumerate() {
            signs[ONE * at + i / 8] |= (element >> 7) << (i % 8);
            ones[ONE * at + i / 8] |= (element >> 6 & 1) << (i % 8);
            twos[TWO * at + i % TWO] |= (element >> 4 & 3) << (2 * (i / TWO));
            fours[FOUR * at + i % FOUR] |= (element & 15) << (4 * (i / FOUR));
        }
    }
}

/// A code as [`slice()`] wrote it.
#[derive(Debug, Clone, Copy)]
pub struct Sliced<'a> {
    /// The signs.
    pub signs: &'a [u8],
    /// All else.
    pub rest: &'a [u8],
}

/// Checks how many bytes the parts of a code have.
#[inline(always)]
fn check(dim: usize, (signs, rest): (usize, usize)) {
    assert_eq!(signs, sign_bytes(dim), "bytes of signs");
    assert_eq!(rest, sliced_bytes(dim) - sign_bytes(dim), "bytes without");
}

/// The parts of a code.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    signs: &'a [u8],
    ones: &'a [u8],
    twos: &'a [u8],
    fours: &'a [u8],
}

impl<'a> Parts<'a> {
    #[inline(always)]
    fn new(dim: usize, Sliced { signs, rest }: Sliced<'a>) -> Self {
        check(dim, (signs.len(), rest.len()));
        let (ones, rest) = rest.split_at(sign_bytes(dim));
        let (twos, fours) = rest.split_at(2 * sign_bytes(dim));
        Parts {
            signs,
            ones,
            twos,
            fours,
        }
    }
}

impl Parts<'_> {
    /// The elements of a chunk.
    fn chunk(&self, at: usize) -> [u8; CHUNK] {
        let [signs, ones] = [self.signs, self.ones].map(|part| &part[ONE * at..][..ONE]);
        let (twos, fours) = (
            &self.twos[TWO * at..][..TWO],
            &self.fours[FOUR * at..][..FOUR],
        );
        std::array::from_fn(|i| {
            let [sign, one] = [signs, ones].map(|part| part[i / 8] >> (i % 8) & 1);
            let two = twos[i % TWO] >> (2 * (i / TWO)) & 3;
            let four = fours[i % FOUR] >> (4 * (i / FOUR)) & 15;
            sign << 7 | one << 6 | two << 4 | four
        })
    }
}

/// The definition that the instruction sets are tested against.
///
/// # Safety
/// As [`Rabitq::sums_where_negative`].
pub(super) unsafe fn sums_where_negative(query: &Octets, signs: &[*const u8], out: &mut [i32]) {
    for (signs, sum) in signs.iter().zip(out) {
        // SAFETY: the caller vouches for the bytes.
        let signs = unsafe { std::slice::from_raw_parts(*signs, query.dim / 8) };
        *sum = 0;
        for (byte, eight) in signs.iter().zip(query.code().as_chunks::<8>().0) {
            for (at, element) in eight.iter().enumerate() {
                *sum += i32::from(*element as i8) * i32::from(byte >> at & 1);
            }
        }
    }
}

/// The definition that the instruction sets are tested against.
pub(super) fn join(parts: Parts<'_>, chunks: &mut [[u8; CHUNK]]) {
    for (at, out) in chunks.iter_mut().enumerate() {
        *out = parts.chunk(at);
    }
}

/// The definition that the instruction sets are tested against.
pub(super) fn dot(query: &Octets, sliced: Sliced<'_>) -> i32 {
    let parts = Parts::new(query.dim, sliced);
    let chunks = query.code().chunks(CHUNK).enumerate();
    let products = chunks.map(|(at, query)| {
        let pairs = query.iter().zip(parts.chunk(at));
        let products = pairs.map(|(q, x)| i32::from(*q as i8) * i32::from(x as i8));
        products.sum::<i32>()
    });
    products.sum()
}

impl Rabitq {
    /// The sums of those elements of a query at which the signs of codes are negative, one a code.
    ///
    /// # Safety
    /// [`sign_bytes`] are readable of each.
    ///
    /// # Panics
    /// If there are not as many sums as codes.
    #[inline(always)]
    pub unsafe fn sums_where_negative(&self, query: &Octets, signs: &[*const u8], out: &mut [i32]) {
        assert_eq!(signs.len(), out.len(), "sums");
        // SAFETY: the caller vouches for the signs; the table was handed out only if the processor has the set.
        unsafe { (self.sums_where_negative)(query, signs, out) }
    }

    /// Inner product of a query with a code that [`slice()`] wrote. Exact up to 100,000 dimensions.
    ///
    /// # Panics
    /// If the parts have other lengths.
    #[inline(always)]
    #[must_use]
    pub fn dot_sliced(&self, query: &Octets, sliced: Sliced<'_>) -> i32 {
        check(query.dim, (sliced.signs.len(), sliced.rest.len()));
        // SAFETY: the lengths were checked; the table was handed out only if the processor has the set.
        unsafe { (self.dot_sliced)(query, sliced) }
    }
}
