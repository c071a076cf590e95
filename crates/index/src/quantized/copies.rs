//! Copies of stored vectors, a byte an element, of vectors that consist of whole numbers.
//!
//! What was pixels, counts, or descriptors is often stored as `float32` though each element is a whole number that fits into a
//! byte. A search compares its last candidates by the stored vectors, which is a third of all that it reads: of such, a
//! copy with a quarter of the bytes tells the same distance, to the last bit, since kernels widen elements before they compare.
//!
//! Good for `float32` whose sample has whole numbers alone, from 0 to 255 or from -128 to 127. Of all others there are no copies, and
//! nothing is spent on them but a look at the sample.
//!
//! # All or none
//!
//! Copies are of every node of the lowest level. The first vector that is inserted and has another element ends them, for this graph for
//! good. So does who needs their memory, until there is room again: then searches read the stored vectors, as without. They are in no
//! checkpoint, but made anew from the rows.
//!
//! A search looks for copies when its walk has ended, not before. So it finds none unless each node that it met has one: who inserts a node
//! without a copy ends them before an edge leads to the node.

use std::sync::Arc;

use longbow_kernels::Scalar;

use super::QuantizedGraph;
use super::block::FREE;
use crate::checkpoint::VectorSource;
use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::space::Space;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{ArcSwap, Loaded};

/// Vectors that tell whether all may consist of whole numbers.
const SAMPLE: u32 = 1_000;
/// How often it is looked whether the visits before have ended.
const LOOKS: usize = 1_000;

/// The copies of a graph's vectors, if there are any.
pub(super) struct Copies {
    kept: ArcSwap<Option<Kept>>,
    /// Whether some vector is known that does not consist of whole numbers.
    unfit: AtomicBool,
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
            unfit: AtomicBool::new(false),
        }
    }

    /// Of vectors with elements of this type from now on; none of a graph may have been inserted.
    pub(super) fn begin(&self, form: Option<Scalar>, dim: usize) {
        self.unfit.store(form.is_none(), Ordering::Release);
        self.kept
            .store(Arc::new(form.map(|form| Kept::new(form, dim))));
    }

    /// Gives up all, and tells how many bytes that were. The memory is free when the searches that read them have ended.
    pub(super) fn end(&self) -> usize {
        let kept = self.kept.swap(Arc::new(None));
        Option::as_ref(&kept).map_or(0, Kept::bytes)
    }

    /// Whether there are none, and there may be.
    fn are_missing(&self) -> bool {
        !self.unfit.load(Ordering::Acquire) && self.load().is_none()
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
            self.unfit.store(true, Ordering::Release);
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
    /// Whether there are no copies of vectors that consist of whole numbers, and it is not known that there are others.
    #[must_use]
    pub fn may_copy(&self) -> bool {
        self.params.edge_codes
            && self.space.scalar == Scalar::F32
            && !self.is_empty()
            && self.copies.are_missing()
    }

    /// Makes copies of vectors that consist of whole numbers, if they do and there are none; says whether there are any then.
    ///
    /// No insert may run meanwhile. Searches may. `vectors` has those of all rows of the graph, but for some of rows that are `gone`: whoever
    /// enters from now on does not see them.
    ///
    /// # Errors
    /// [`Error::Busy`] if an insert runs, or a visit does not end in which rows may be seen that are gone: try again.
    pub fn make_copies(
        &self,
        vectors: &dyn VectorSource,
        gone: &dyn Fn(u64) -> bool,
    ) -> Result<bool> {
        let _no_node_leaves = self.removal.lock();
        let _still = self.still.try_write().ok_or(Error::Busy)?;
        if !self.may_copy() {
            return Ok(self.copies.form().is_some());
        }
        let blocks = &self.ground().blocks;
        // SAFETY: no insert runs, so all nodes that were claimed are written.
        let row = |node: u32| unsafe { blocks.row(node) };
        let step = blocks.claimed().div_ceil(SAMPLE).max(1) as usize;
        let sample = (0..blocks.claimed()).step_by(step).map(row);
        let Some(form) = form_of(self.space, sample.filter_map(|row| vectors.vector(row))) else {
            self.copies.unfit.store(true, Ordering::Release);
            return Ok(false);
        };
        let kept = Kept::new(form, self.space.dim);
        let (mut is_gone, mut copy) = (false, Vec::with_capacity(self.space.dim));
        for node in 0..blocks.claimed() {
            copy.clear();
            match vectors.vector(row(node)) {
                Some(vector) if !narrow(form, vector, &mut copy) => {
                    self.copies.unfit.store(true, Ordering::Release);
                    return Ok(false);
                }
                Some(_) => {}
                None if row(node) == FREE => {}
                None if gone(row(node)) => is_gone = true,
                None => return Ok(false),
            }
            copy.resize(self.space.dim, 0);
            // SAFETY: nobody else knows of these.
            unsafe { kept.set(node, &copy) };
        }
        if is_gone && !self.are_visits_over() {
            return Err(Error::Busy);
        }
        self.copies.kept.store(Arc::new(Some(kept)));
        Ok(true)
    }

    /// Whether those visits end soon that began before.
    fn are_visits_over(&self) -> bool {
        self.visits.turn();
        (0..LOOKS).any(|_| {
            std::thread::yield_now();
            self.visits.are_over()
        })
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
    use longbow_kernels::Metric;

    fn bytes(floats: &[f32]) -> Vec<u8> {
        floats.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn space(scalar: Scalar, dim: usize) -> Space {
        Space {
            scalar,
            metric: Metric::Euclidean,
            dim,
        }
    }

    #[test]
    fn a_sample_of_whole_numbers_has_a_form() {
        let check = |rows: &[&[f32]], expected| {
            let rows: Vec<Vec<u8>> = rows.iter().map(|row| bytes(row)).collect();
            let sample = rows.iter().map(Vec::as_slice);
            assert_eq!(form_of(space(Scalar::F32, 2), sample), expected, "{rows:?}");
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
        assert_eq!(form_of(space(Scalar::F16, 2), sample), None);
    }

    #[test]
    fn the_first_vector_that_does_not_fit_ends_them() {
        let (copies, mut room) = (Copies::new(), Vec::new());
        copies.prepare(&bytes(&[1.0, 2.0]), &mut room);
        copies.set(0, &room);
        assert_eq!((copies.bytes(), copies.form()), (0, None));
        assert!(copies.are_missing());
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
        assert!(copies.bytes() > 0 && !copies.are_missing());
        copies.prepare(&bytes(&[0.5, 0.0]), &mut room);
        assert_eq!((copies.bytes(), copies.form()), (0, None));
        assert!(!copies.are_missing(), "one does not fit");
        // Of one that was made before they ended.
        copies.set(2, &[5, 6]);
        assert_eq!(both, [&[3, 4][..]; 2], "who reads them still may");
    }
}
