use std::cell::Cell;

use longbow_kernels::prefetch_all;

use super::block::Blocks;
use super::copies::Copies;
use crate::checkpoint::VectorSource;

/// Bytes of the nearest original vectors, which a walk asks for before it ends: of more, the first would be driven out of the second level
/// of the cache before they are compared.
const BYTES: usize = 128 << 10;
/// Bytes that it asks for at a time. What comes next of the graph waits behind them.
const PIECE: usize = 24 * 64;

/// Original vectors, or copies of them, that are asked for while a walk goes on.
///
/// A walk has followed the edges of all that it found when it ends, in the order of their distances. So of the nodes whose edges it
/// follows while they are among the `k` nearest, almost all stay among them, and their original vectors are compared at the end. These come
/// meanwhile, in pieces: a walk by itself leaves much of what memory can deliver unused.
///
/// Good for one walk at a time on a thread. Where several are under way, they leave little unused, and drive out of the cache what came
/// too early. Twins of a node are not asked for, and nodes of which no row is visible are in vain: hints need not be right.
#[derive(Clone)]
pub(super) struct Ahead<'a> {
    originals: &'a dyn VectorSource,
    /// Of them, which are read instead where there are any.
    copies: &'a Copies,
    /// Of how many of the nearest.
    places: usize,
    /// What is left of the last, and how many bytes: to be asked for, not to be read.
    rest: Cell<(*const u8, usize)>,
}

impl<'a> Ahead<'a> {
    /// For a walk whose `k` nearest are compared by vectors of so many bytes; of 0 nearest it asks for nothing.
    pub(super) fn new(
        (originals, copies): (&'a dyn VectorSource, &'a Copies),
        (k, bytes): (usize, usize),
    ) -> Self {
        Ahead {
            originals,
            copies,
            places: k.min(BYTES / bytes),
            rest: Cell::new((std::ptr::null(), 0)),
        }
    }

    /// Whether the vector of a node with such a place is asked for.
    #[inline(always)]
    pub(super) fn takes(&self, place: usize) -> bool {
        place < self.places
    }

    /// Asks for the next piece; first of all of the vector of a node whose edges were followed, if it had such a place among the nearest.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    pub(super) unsafe fn ask(&self, blocks: &Blocks, followed: Option<(u32, usize)>) {
        if self.places == 0 {
            return;
        }
        if let Some((node, place)) = followed
            && self.takes(place)
        {
            // SAFETY: the caller vouches for the node.
            let vector = unsafe { self.vector(blocks, node) };
            let (at, bytes) = self.rest.replace(vector);
            prefetch_all(at, bytes);
        }
        let (at, bytes) = self.rest.get();
        let piece = bytes.min(PIECE);
        prefetch_all(at, piece);
        self.rest.set((at.wrapping_add(piece), bytes - piece));
    }

    /// Where the vector of a node is read, and how many bytes.
    ///
    /// # Safety
    /// As [`Ahead::ask`].
    #[inline(always)]
    unsafe fn vector(&self, blocks: &Blocks, node: u32) -> (*const u8, usize) {
        let copies = self.copies.load();
        // SAFETY: the caller vouches for the node.
        if let Some(place) = unsafe { Option::as_ref(&copies).and_then(|kept| kept.place(node)) } {
            return place;
        }
        // SAFETY: the caller vouches for the node.
        let row = unsafe { blocks.row(node) };
        let vector = self.originals.vector(row).unwrap_or_default();
        (vector.as_ptr(), vector.len())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::quantized::tests::ahead::Rows;
    use crate::vector8::Vector8;

    #[test]
    fn vectors_of_the_nearest_are_asked_for_in_pieces() {
        // Of the last row there is no vector.
        const ROWS: u64 = 6;
        let blocks = Blocks::new(16, true);
        for row in 0..ROWS {
            let node = blocks.claim().expect("room");
            // SAFETY: nobody else knows of the node.
            unsafe { blocks.write(node, row, Vector8::new(&[1; 16], 1.0)) };
        }
        let stride = 2 * PIECE + 1;
        let rows = Rows {
            bytes: vec![0; stride * (ROWS as usize - 1)],
            stride,
            asked: RefCell::default(),
        };
        let check = |ahead: &Ahead<'_>, followed, left: usize, asked: &[u64]| {
            // SAFETY: all nodes were written.
            unsafe { ahead.ask(&blocks, followed) };
            assert_eq!(ahead.rest.get().1, left, "{followed:?}");
            assert_eq!(rows.asked.take(), asked, "{followed:?}");
        };
        let copies = Copies::new();
        let of = (&rows as &dyn VectorSource, &copies);
        let ahead = Ahead::new(of, (2, stride));
        check(&ahead, None, 0, &[]);
        check(&ahead, Some((0, 0)), PIECE + 1, &[0]);
        check(&ahead, Some((1, 2)), 1, &[]);
        check(&ahead, None, 0, &[]);
        check(&ahead, Some((2, 1)), PIECE + 1, &[2]);
        // What is left of the one before comes at once.
        check(&ahead, Some((4, 0)), PIECE + 1, &[4]);
        // The row is gone.
        check(&ahead, Some((5, 0)), 0, &[5]);
        check(&Ahead::new(of, (0, 4)), Some((1, 0)), 0, &[]);
        check(&Ahead::new(of, (1, BYTES + 1)), Some((1, 0)), 0, &[]);
        let many = Ahead::new(of, (usize::MAX, stride));
        assert_eq!(many.places, BYTES / stride);
    }
}
