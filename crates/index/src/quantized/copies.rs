//! Copies of stored vectors, a byte an element, of vectors that consist of whole numbers.
//!
//! What was pixels, counts, or descriptors is often stored as `float32` though each element is a whole number that fits into a
//! byte. A search compares its last candidates by the stored vectors, which is much of what it reads: of such, a
//! copy with a quarter of the bytes tells the same distance, to the last bit, since kernels widen elements before they compare.
//!
//! Good for `float32` whose sample has whole numbers alone, from 0 to 255 or from -128 to 127. Of all others there are no copies, and
//! nothing is spent on them but a look at the sample.
//!
//! # All or none
//!
//! Copies are of every node of the lowest level. The first vector that is inserted and has another element ends them, and so does
//! who needs their memory: then searches read the stored vectors, as without. They are in no checkpoint, but made anew from the rows when
//! one is read.
//!
//! A search looks for copies when its walk has ended, not before. So it finds none unless each node that it met has one: who inserts a node
//! without a copy ends them before an edge leads to the node.

use std::sync::Arc;

use longbow_kernels::Scalar;

use super::QuantizedGraph;
use crate::checkpoint::VectorSource;
use crate::chunks::Chunks;
use crate::space::Space;
use crate::sync::{ArcSwap, Loaded};

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

    /// Makes the copy of a stored vector that is about to be inserted, or ends them all.
    pub(super) fn prepare(&self, vector: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if let Some(form) = self.form()
            && !narrow(form, vector, out)
        {
            self.end();
        }
    }

    /// Keeps the prepared copy of a node's vector, to which nothing leads yet.
    pub(super) fn set(&self, node: u32, copy: &[u8]) {
        if let Some(kept) = &**self.load() {
            // Copies begin while no insert runs, and a vector that does not fit has ended them.
            assert_eq!(copy.len(), kept.dim, "the copy of a vector");
            // SAFETY: nobody reads it before something leads to the node.
            unsafe { kept.set(node, copy) };
        }
    }

    /// Gives a node the copy of another.
    ///
    /// # Safety
    /// Both were inserted, and no search compares that of the first: the row that it had is dead for all, and it gets its next one later.
    pub(super) unsafe fn hand_on(&self, to: u32, from: u32) {
        if let Some(kept) = &**self.load() {
            // SAFETY: as long as there are copies, all nodes that were inserted have one; the caller sees to readers.
            unsafe { std::ptr::copy_nonoverlapping(kept.at(from), kept.at(to), kept.dim) };
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
        }
    }

    fn bytes(&self) -> usize {
        self.vectors.bytes()
    }

    /// # Safety
    /// Nobody reads that of the node meanwhile, and the copy has `dim` bytes.
    unsafe fn set(&self, node: u32, copy: &[u8]) {
        self.vectors.reserve(node);
        // SAFETY: the item was just reserved, and has as many bytes; the caller sees to readers.
        unsafe { std::ptr::copy_nonoverlapping(copy.as_ptr(), self.at(node), self.dim) };
    }

    /// Where the copy of a node's vector is, and how many bytes: to be asked for, not to be read.
    pub(super) fn place(&self, node: u32) -> (*const u8, usize) {
        (self.at(node), self.dim)
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

    /// The copy of a node's vector.
    ///
    /// # Safety
    /// The node was inserted, which happened before these were loaded, and its row is not dead for all.
    #[inline(always)]
    pub(super) unsafe fn vector(&self, node: u32) -> &[u8] {
        // SAFETY: as long as there are copies, all nodes that were inserted have one, of `dim` bytes.
        unsafe { std::slice::from_raw_parts(self.at(node), self.dim) }
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
        nodes as usize * self.space.dim
    }

    /// Makes copies of vectors that consist of whole numbers, if they do: of a graph that was just read, and is known to nobody. `vectors` has those of
    /// all rows, but for rows below `end` that nobody sees from now on. Says whether there are copies then.
    pub fn make_copies(&mut self, vectors: &dyn VectorSource, end: u64) -> bool {
        if self.bytes_of_copies() == 0 {
            return false;
        }
        let kept = [Scalar::U8, Scalar::I8]
            .into_iter()
            .find_map(|form| self.copied(form, (vectors, end)));
        let is_some = kept.is_some();
        self.copies.kept.store(Arc::new(kept));
        is_some
    }

    /// Copies of all vectors with elements of this type, if all are there and fit.
    fn copied(&self, form: Scalar, (vectors, end): (&dyn VectorSource, u64)) -> Option<Kept> {
        let kept = Kept::new(form, self.space.dim);
        let mut copy = Vec::with_capacity(self.space.dim);
        for node in 0..self.ground().blocks.claimed() {
            copy.clear();
            // SAFETY: no insert runs, so all nodes that were claimed are written.
            let row = unsafe { self.ground().blocks.row(node) };
            match vectors.vector(row) {
                Some(vector) if narrow(form, vector, &mut copy) => {}
                None if row < end => copy.resize(self.space.dim, 0),
                _ => return None,
            }
            // SAFETY: nobody else knows of these.
            unsafe { kept.set(node, &copy) };
        }
        Some(kept)
    }
}

/// The type of one byte that has all elements of some stored vectors, if there is one.
pub(super) fn form_of<'a>(
    space: Space,
    sample: impl Iterator<Item = &'a [u8]> + Clone,
) -> Option<Scalar> {
    if space.scalar != Scalar::F32 || sample.clone().next().is_none() {
        return None;
    }
    let mut room = Vec::with_capacity(space.dim);
    let mut fits = |form: Scalar| {
        sample.clone().all(|vector| {
            room.clear();
            narrow(form, vector, &mut room)
        })
    };
    [Scalar::U8, Scalar::I8]
        .into_iter()
        .find(|form| fits(*form))
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
    fn a_sample_of_whole_numbers_has_a_form() {
        let floats = space(Metric::Euclidean, 2);
        let check = |rows: &[&[f32]], expected| {
            let rows: Vec<Vec<u8>> = rows.iter().map(|row| bytes(row)).collect();
            let sample = rows.iter().map(Vec::as_slice);
            assert_eq!(form_of(floats, sample), expected, "{rows:?}");
        };
        check(&[&[0.0, 255.0], &[7.0, 1.0]], Some(Scalar::U8));
        check(&[&[0.0, 127.0], &[-128.0, 1.0]], Some(Scalar::I8));
        check(&[&[0.0, 128.0], &[-1.0, 1.0]], None);
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

    #[test]
    fn the_first_vector_that_does_not_fit_ends_them() {
        let (copies, mut room) = (Copies::new(), Vec::new());
        copies.prepare(&bytes(&[1.0, 2.0]), &mut room);
        copies.set(0, &room);
        assert_eq!((copies.bytes(), copies.form()), (0, None));
        copies.begin(Some(Scalar::I8), 2);
        for (node, row) in (0..).zip([[1.0, -2.0], [3.0, 4.0]]) {
            copies.prepare(&bytes(&row), &mut room);
            copies.set(node, &room);
        }
        // SAFETY: both nodes have a copy, and nobody reads them meanwhile.
        unsafe { copies.hand_on(0, 1) };
        let kept = copies.load();
        let kept = Option::as_ref(&kept).expect("copies");
        // SAFETY: both nodes have a copy.
        let both = unsafe { [kept.vector(0), kept.vector(1)] };
        assert_eq!((kept.form(), both), (Scalar::I8, [&[3, 4][..]; 2]));
        assert!(copies.bytes() > 0);
        copies.prepare(&bytes(&[0.5, 0.0]), &mut room);
        assert_eq!((copies.bytes(), copies.form()), (0, None));
        // Of one that was made before they ended.
        copies.set(2, &[5, 6]);
        assert_eq!(both, [&[3, 4][..]; 2], "who reads them still may");
    }
}
