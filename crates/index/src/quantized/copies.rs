//! Copies of stored vectors, a byte an element, of vectors that consist of whole numbers.
//!
//! What was pixels, counts, or descriptors is often stored as `float32` though each element is a whole number that fits into a
//! byte. A search compares its last candidates by the stored vectors, which is much of what it reads: of such, a
//! copy with a quarter of the bytes tells the same distance, to the last bit, since kernels widen elements before they compare.
//!
//! Good for `float32` of which almost all vectors in a sample consist of whole numbers from 0 to 255, or from -128 to 127. Of all others
//! there are no copies, and nothing is spent on them but a look at the sample.
//!
//! # Odd ones
//!
//! A vector with another element is odd: it has no copy, a mark says so, and it is read itself. While none is odd, no mark is looked at.
//! Where more than a quarter of all that ever came is odd, the copies end, and so they do where their memory is needed ([`Copies::end`]):
//! then searches read the stored vectors, as without. They are in no checkpoint, but made anew from the rows when one is read.
//!
//! A search looks for copies when its walk has ended, not before. So each node that it met has a copy or a mark, or there are none: who
//! inserts a node sees to that before an edge leads to the node.

use std::sync::Arc;

use longbow_kernels::Scalar;

use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::QuantizedGraph;
use crate::checkpoint::VectorSource;
use crate::chunks::Chunks;
use crate::space::Space;
use crate::sync::{ArcSwap, Loaded};

/// So many odd vectors end no copies, however few others there are yet: they may come first.
const FEW: u64 = if cfg!(shuttle) { 2 } else { 256 };
/// Copies end where more than one vector in so many is odd: their room is taken, but searches gain little by it.
const ONE_IN: u64 = 4;
/// Nodes whose vectors tell which type of elements suits those of a graph that was read.
const SAMPLE: u32 = 1_000;
/// Marks of nodes.
const ODD: u8 = 0;
const WHOLE: u8 = 1;

/// The copies of a graph's vectors, if there are any.
pub(super) struct Copies {
    kept: ArcSwap<Option<Kept>>,
}

/// What holds them.
pub(super) struct Kept {
    form: Scalar,
    dim: usize,
    /// By node.
    vectors: Chunks,
    /// By node: a byte, [`ODD`] or [`WHOLE`].
    marks: Chunks,
    count: Count,
}

/// How many vectors came, whatever became of them since.
#[derive(Default)]
struct Count {
    all: AtomicU64,
    odd: AtomicU64,
}

impl Copies {
    /// None.
    pub(super) fn new() -> Self {
        Copies {
            kept: ArcSwap::from_pointee(None),
        }
    }

    /// Of vectors with elements of this type from now on; none of a graph may have been inserted.
    pub(super) fn begin(&self, form: Option<Scalar>, dim: usize) {
        self.kept
            .store(Arc::new(form.map(|form| Kept::new(form, dim))));
    }

    /// Gives up all, and tells how many bytes that were. The memory is free when the searches that read them have ended.
    pub(super) fn end(&self) -> usize {
        let kept = self.kept.swap(Arc::new(None));
        Option::as_ref(&kept).map_or(0, Kept::bytes)
    }

    /// The type of their elements, if there are copies.
    pub(super) fn form(&self) -> Option<Scalar> {
        Option::as_ref(&self.load()).map(|kept| kept.form)
    }

    /// Those of all nodes that were met before.
    #[inline(always)]
    pub(super) fn load(&self) -> Loaded<Option<Kept>> {
        self.kept.load()
    }

    /// Makes the copy of a stored vector that is about to be inserted; it is empty where the vector is odd, or there are no copies.
    pub(super) fn prepare(&self, vector: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if let Some(form) = self.form()
            && !narrow(form, vector, out)
        {
            out.clear();
        }
    }

    /// Keeps the prepared copy of a node's vector, to which nothing leads yet. Ends all where too many are odd.
    pub(super) fn set(&self, node: u32, copy: &[u8]) {
        if let Some(kept) = &**self.load() {
            // SAFETY: nobody reads it before something leads to the node. Copies begin while no insert runs, so this was prepared for them.
            unsafe { kept.set(node, copy) };
            if !kept.count.is_worth_it() {
                self.end();
            }
        }
    }

    /// Gives a node the copy of another, or none if the other has none.
    ///
    /// # Safety
    /// Both were inserted, and no search compares that of the first: the row that it had is dead for all, and it gets its next one later.
    pub(super) unsafe fn hand_on(&self, to: u32, from: u32) {
        if let Some(kept) = &**self.load() {
            // SAFETY: as long as there are copies, all nodes that were inserted have a mark, and room for one; the caller sees to readers.
            unsafe {
                match kept.is_whole(from) {
                    true => {
                        std::ptr::copy_nonoverlapping(kept.at(from), kept.at(to), kept.dim);
                        kept.mark(to, WHOLE);
                    }
                    false => kept.mark(to, ODD),
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        Option::as_ref(&self.load()).map_or(0, Kept::bytes)
    }
}

impl Kept {
    fn new(form: Scalar, dim: usize) -> Self {
        Kept {
            form,
            dim,
            vectors: Chunks::new(dim),
            marks: Chunks::new(1),
            count: Count::default(),
        }
    }

    fn bytes(&self) -> usize {
        self.vectors.bytes() + self.marks.bytes()
    }

    /// # Safety
    /// Nobody reads that of the node meanwhile, and the copy has `dim` bytes, or none where the vector is odd.
    unsafe fn set(&self, node: u32, copy: &[u8]) {
        self.vectors.reserve(node);
        self.marks.reserve(node);
        let is_whole = !copy.is_empty();
        // Before the mark: whoever finds it finds that not all are whole.
        self.count.add(is_whole);
        // SAFETY: the items were just reserved, and have as many bytes; the caller sees to readers.
        unsafe {
            if is_whole {
                assert_eq!(copy.len(), self.dim, "the copy of a vector");
                std::ptr::copy_nonoverlapping(copy.as_ptr(), self.at(node), self.dim);
            }
            self.mark(node, if is_whole { WHOLE } else { ODD });
        }
    }

    /// # Safety
    /// The node was reserved.
    unsafe fn mark(&self, node: u32, mark: u8) {
        let at = self.marks.at(node).cast::<AtomicU8>();
        // SAFETY: the item is there, as long as these are, and nobody but by atomic operations reads it.
        unsafe { at.as_ref() }.store(mark, Ordering::Release);
    }

    /// Whether the vector of a node has a copy.
    ///
    /// # Safety
    /// The node was inserted, which happened before these were loaded.
    #[inline(always)]
    unsafe fn is_whole(&self, node: u32) -> bool {
        if self.count.odd.load(Ordering::Acquire) == 0 {
            return true;
        }
        // SAFETY: the item was written before something led to the node, and is written by atomic operations from then on.
        unsafe { self.marks.at(node).cast::<AtomicU8>().as_ref() }.load(Ordering::Acquire) == WHOLE
    }

    /// The type of the elements.
    #[inline(always)]
    pub(super) fn form(&self) -> Scalar {
        self.form
    }

    #[inline(always)]
    fn at(&self, node: u32) -> *mut u8 {
        self.vectors.at(node).as_ptr()
    }

    /// Where the copy of a node's vector is, and how many bytes: to be asked for, not to be read. Nothing if the vector is odd.
    ///
    /// # Safety
    /// The node was inserted, which happened before these were loaded.
    #[inline(always)]
    pub(super) unsafe fn place(&self, node: u32) -> Option<(*const u8, usize)> {
        // SAFETY: the caller vouches for the node.
        let is_whole = unsafe { self.is_whole(node) };
        is_whole.then(|| (self.at(node).cast_const(), self.dim))
    }

    /// The copy of a node's vector, unless that is odd.
    ///
    /// # Safety
    /// As for [`Kept::place`], and the row of the node is not dead for all.
    #[inline(always)]
    pub(super) unsafe fn vector(&self, node: u32) -> Option<&[u8]> {
        // SAFETY: the caller vouches for the node, whose copy has `dim` bytes, and for who writes.
        unsafe {
            let (at, bytes) = self.place(node)?;
            Some(std::slice::from_raw_parts(at, bytes))
        }
    }
}

impl Count {
    fn add(&self, is_whole: bool) {
        self.all.fetch_add(1, Ordering::Relaxed);
        if !is_whole {
            self.odd.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether few enough are odd.
    fn is_worth_it(&self) -> bool {
        let (all, odd) = (
            self.all.load(Ordering::Relaxed),
            self.odd.load(Ordering::Relaxed),
        );
        odd <= FEW + all / ONE_IN
    }
}

impl QuantizedGraph {
    /// Bytes that copies of all vectors take, if there may be some.
    #[must_use]
    pub fn bytes_of_copies(&self) -> usize {
        let may_be = self.params.edge_codes && self.space.scalar == Scalar::F32;
        let nodes = if may_be {
            self.ground().blocks.claimed()
        } else {
            0
        };
        nodes as usize * bytes_of_one(self.space.dim)
    }

    /// Makes copies of vectors that consist of whole numbers, if they do: of a graph that was just read, and is known to nobody. `vectors` has those of
    /// all rows, but for rows below `end` that nobody sees from now on. Says whether there are copies then.
    pub fn make_copies(&mut self, vectors: &dyn VectorSource, end: u64) -> bool {
        if self.bytes_of_copies() == 0 {
            return false;
        }
        let blocks = &self.ground().blocks;
        let step = blocks.claimed().div_ceil(SAMPLE).max(1);
        let sample = (0..blocks.claimed()).step_by(step as usize);
        // SAFETY: no insert runs, so all nodes that were claimed are written.
        let sample = sample.filter_map(|node| vectors.vector(unsafe { blocks.row(node) }));
        let form = form_of(self.space, sample);
        let kept = form.and_then(|form| self.copied(form, (vectors, end)));
        let is_some = kept.is_some();
        self.copies.kept.store(Arc::new(kept));
        is_some
    }

    /// Copies of all vectors with elements of this type, if all are there and few are odd.
    fn copied(&self, form: Scalar, (vectors, end): (&dyn VectorSource, u64)) -> Option<Kept> {
        let kept = Kept::new(form, self.space.dim);
        let mut copy = Vec::with_capacity(self.space.dim);
        for node in 0..self.ground().blocks.claimed() {
            copy.clear();
            // SAFETY: no insert runs, so all nodes that were claimed are written.
            let row = unsafe { self.ground().blocks.row(node) };
            match vectors.vector(row) {
                Some(vector) => {
                    if !narrow(form, vector, &mut copy) {
                        copy.clear();
                    }
                }
                None if row < end => copy.resize(self.space.dim, 0),
                None => return None,
            }
            // SAFETY: nobody else knows of these.
            unsafe { kept.set(node, &copy) };
        }
        kept.count.is_worth_it().then_some(kept)
    }
}

/// Bytes of a copy of so many elements, and of its mark.
pub(super) fn bytes_of_one(dim: usize) -> usize {
    dim + size_of_val(&WHOLE)
}

/// The type of one byte that has all elements of most stored vectors, if there is one.
pub(super) fn form_of<'a>(
    space: Space,
    sample: impl Iterator<Item = &'a [u8]> + Clone,
) -> Option<Scalar> {
    let all = sample.clone().count();
    if space.scalar != Scalar::F32 || all == 0 {
        return None;
    }
    let mut room = Vec::with_capacity(space.dim);
    let mut odd = |form: Scalar| {
        let is_odd = |vector: &&[u8]| {
            room.clear();
            !narrow(form, vector, &mut room)
        };
        sample.clone().filter(is_odd).count()
    };
    let forms = [Scalar::U8, Scalar::I8].map(|form| (odd(form), form));
    let (odd, form) = forms.into_iter().min_by_key(|(odd, _)| *odd)?;
    (odd as u64 <= all as u64 / ONE_IN).then_some(form)
}

/// Appends the elements of `float32` as bytes; false if one is none.
fn narrow(form: Scalar, vector: &[u8], out: &mut Vec<u8>) -> bool {
    let (elements, _) = vector.as_chunks::<4>();
    let elements = elements.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let mut fits = true;
    out.extend(elements.map(|x| {
        // Casts cut what is beyond the type, and make 0 of what is no number.
        let (byte, back) = match form {
            Scalar::I8 => (x as i8 as u8, f32::from(x as i8)),
            _ => (x as u8, f32::from(x as u8)),
        };
        fits &= back == x;
        byte
    }));
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::tests::{bytes, space};
    use longbow_kernels::Metric;

    #[test]
    fn a_sample_with_few_odd_ones_has_a_form() {
        let floats = space(Metric::Euclidean, 2);
        let check = |rows: &[&[f32]], expected| {
            let rows: Vec<Vec<u8>> = rows.iter().map(|row| bytes(row)).collect();
            let sample = rows.iter().map(Vec::as_slice);
            assert_eq!(form_of(floats, sample), expected, "{rows:?}");
        };
        check(&[&[0.0, 255.0], &[7.0, 1.0]], Some(Scalar::U8));
        check(&[&[0.0, 127.0], &[-128.0, 1.0]], Some(Scalar::I8));
        check(&[&[0.0, 128.0], &[-1.0, 1.0]], None);
        let (pixel, signed, odd) = (&[0.0, 200.0][..], &[-7.0, 1.0][..], &[0.5, 1.0][..]);
        check(&[pixel, pixel, odd, pixel], Some(Scalar::U8));
        check(&[signed, odd, signed, signed], Some(Scalar::I8));
        check(&[pixel, signed, pixel, pixel], Some(Scalar::U8));
        check(&[odd, pixel, pixel, odd], None);
        check(&[&[256.0, 0.0]], None);
        check(&[&[-129.0, 0.0]], None);
        check(&[&[1.0, 2.0], &[0.5, 2.0]], None);
        check(&[&[f32::NAN, 2.0]], None);
        check(&[&[f32::INFINITY, 2.0]], None);
        check(&[&[-0.0, 2.0]], Some(Scalar::U8));
        check(&[], None);
        let halves = [0u8, 0, 0, 0];
        let sample = [&halves[..]].into_iter();
        let scalar = Scalar::F16;
        assert_eq!(form_of(Space { scalar, ..floats }, sample), None);
    }

    /// Keeps the copy of a vector, if it is not odd.
    fn keep(copies: &Copies, node: u32, row: &[f32]) {
        let mut room = vec![7];
        copies.prepare(&bytes(row), &mut room);
        copies.set(node, &room);
    }

    /// Checks the copy of a node.
    fn check(kept: &Kept, node: u32, expected: Option<&[u8]>) {
        // SAFETY: the node was set, and nobody writes it meanwhile.
        let (found, place) = unsafe { (kept.vector(node), kept.place(node)) };
        assert_eq!(found, expected, "{node}");
        assert_eq!(
            place,
            expected.map(|_| (kept.at(node).cast_const(), kept.dim))
        );
    }

    #[test]
    fn odd_ones_have_none_and_end_them_where_they_are_many() {
        let copies = Copies::new();
        keep(&copies, 0, &[1.0, 2.0]);
        assert_eq!((copies.bytes(), copies.form()), (0, None));
        copies.begin(Some(Scalar::I8), 2);
        for (node, row) in (0..).zip([[1.0, -2.0], [3.0, 4.0], [0.5, 1.0]]) {
            keep(&copies, node, &row);
        }
        assert!(copies.bytes() > 0);
        let kept = copies.load();
        let kept = Option::as_ref(&kept).expect("copies");
        assert_eq!(kept.form(), Scalar::I8);
        check(kept, 0, Some(&[1, 0xfe]));
        check(kept, 1, Some(&[3, 4]));
        check(kept, 2, None);
        for (to, from, expected) in [
            (0, 1, Some(&[3, 4][..])),
            (1, 2, None),
            (2, 0, Some(&[3, 4])),
            (2, 1, None),
        ] {
            // SAFETY: all three were set, and nobody reads them meanwhile.
            unsafe { copies.hand_on(to, from) };
            check(kept, to, expected);
        }
        // One of the three is odd, and so are all that come: until a quarter and some more are.
        for node in 3..1_000 {
            keep(&copies, node, &[200.0, 0.0]);
            let (all, odd) = (u64::from(node) + 1, u64::from(node) - 1);
            assert_eq!(copies.form().is_some(), odd <= FEW + all / 4, "{node}");
        }
        // Of one that was made before they ended.
        copies.set(2, &[5, 6]);
        check(kept, 0, Some(&[3, 4]));
    }

    #[test]
    fn a_quarter_may_be_odd() {
        for (one_in, ends) in [(4, false), (3, true)] {
            let copies = Copies::new();
            copies.begin(Some(Scalar::U8), 1);
            for node in 0..10_000 {
                let is_odd = node % one_in == 0;
                keep(&copies, node, &[if is_odd { 0.5 } else { 1.0 }]);
            }
            assert_eq!(copies.form().is_none(), ends, "one in {one_in}");
        }
    }
}
