//! Which node holds a row, and which row a node holds.

use crate::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::sync::RwLock;

use super::block::NONE;
use crate::chunks::Chunks;
use crate::mix::mix;

/// Rows of a page. Rows come in about ascending order, so pages fill; a page is given up when its last row leaves.
const PAGE: usize = 64;
/// In place of a row: the node's block tells more than fits here.
const LOOK: u32 = u32::MAX;

/// Rows and nodes of the lowest level, both ways, apart from the blocks: a walk that asks for the rows of many nodes reads
/// four bytes of each that lie close together, instead of a cache line of each.
///
/// It takes four bytes a node and four to five a row, or up to four times that
/// where rows die all over the pages, and few are left on each.
pub(super) struct Places {
    /// The row of each node as a `u32`, or [`LOOK`]: it is larger, or twins hang behind the node.
    rows: Chunks,
    pages: RwLock<HashMap<u64, Box<Page>, BuildHasherDefault<Mixed>>>,
}

/// The nodes of the rows of a page, or [`NONE`].
type Page = [AtomicU32; PAGE];

impl Places {
    pub(super) fn new() -> Self {
        Places {
            rows: Chunks::new(size_of::<u32>()),
            pages: RwLock::default(),
        }
    }

    /// Remembers a row and the node that holds it, which was written, and to which nothing leads yet.
    pub(super) fn set(&self, row: u64, node: u32) {
        self.rows.reserve(node);
        let short = u32::try_from(row).unwrap_or(LOOK);
        // SAFETY: the item was reserved, and nobody reads it before something leads to the node.
        unsafe { self.rows.at(node).cast::<u32>().write(short) };
        let (page, place) = split(row);
        if let Some(page) = self.pages.read().get(&page) {
            return page[place].store(node, Ordering::Release);
        }
        let mut pages = self.pages.write();
        let page = pages
            .entry(page)
            .or_insert_with(|| Box::new([const { AtomicU32::new(NONE) }; PAGE]));
        page[place].store(node, Ordering::Release);
    }

    /// Remembers another node for a row that is remembered: one behind which the other hangs, so that its block is looked into.
    pub(super) fn move_to(&self, row: u64, node: u32) {
        let (page, place) = split(row);
        if let Some(page) = self.pages.read().get(&page) {
            page[place].store(node, Ordering::Release);
        }
    }

    /// Lets whoever asks for the row of a node look into its block from now on.
    ///
    /// # Safety
    /// The node was remembered.
    pub(super) unsafe fn look_at(&self, node: u32) {
        // SAFETY: the caller vouches for the node.
        unsafe { self.short(node) }.store(LOOK, Ordering::Release);
    }

    /// The row of a node that has no twins any more.
    ///
    /// # Safety
    /// The node was remembered, and none is written meanwhile.
    pub(super) unsafe fn look_no_more(&self, node: u32, row: u64) {
        let short = u32::try_from(row).unwrap_or(LOOK);
        // SAFETY: the caller vouches for the node.
        unsafe { self.short(node) }.store(short, Ordering::Release);
    }

    /// The row of a node without twins, if it is short enough; else its block tells.
    ///
    /// # Safety
    /// The node was remembered, and that happened before.
    #[inline(always)]
    pub(super) unsafe fn row(&self, node: u32) -> Option<u64> {
        // SAFETY: the caller vouches for the node.
        let short = unsafe { self.short(node) }.load(Ordering::Acquire);
        (short != LOOK).then_some(u64::from(short))
    }

    /// # Safety
    /// As [`Places::row`].
    #[inline(always)]
    unsafe fn short(&self, node: u32) -> &AtomicU32 {
        // SAFETY: the caller vouches that it was written; since then it is accessed as an atomic only.
        unsafe { &*self.rows.at(node).cast::<AtomicU32>().as_ptr() }
    }

    /// Hands the node of each row to `found`, or `None` for one that is not in the graph.
    pub(super) fn find(
        &self,
        rows: impl Iterator<Item = u64>,
        mut found: impl FnMut(u64, Option<u32>),
    ) {
        let pages = self.pages.read();
        let mut last: (u64, Option<&Page>) = (u64::MAX, None);
        for row in rows {
            let (page, place) = split(row);
            if page != last.0 {
                last = (page, pages.get(&page).map(|page| &**page));
            }
            let node = last
                .1
                .map_or(NONE, |page| page[place].load(Ordering::Acquire));
            found(row, (node != NONE).then_some(node));
        }
    }

    /// Forgets rows that those nodes hold.
    pub(super) fn forget(&self, places: impl Iterator<Item = (u64, u32)>) {
        let mut pages = self.pages.write();
        for (row, node) in places {
            let (number, place) = split(row);
            let Some(page) = pages.get_mut(&number) else {
                continue;
            };
            let held = page[place].get_mut();
            if *held == node {
                *held = NONE;
            }
            if page.iter_mut().all(|node| *node.get_mut() == NONE) {
                pages.remove(&number);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        // A map is about two thirds full.
        let page = size_of::<Page>() + size_of::<(u64, Box<Page>)>() * 3 / 2;
        self.rows.bytes() + self.pages.read().len() * page
    }
}

/// The page of a row, and its place there.
#[inline(always)]
fn split(row: u64) -> (u64, usize) {
    (row / PAGE as u64, (row % PAGE as u64) as usize)
}

/// Hashes the numbers of pages.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(places: &Places, rows: &[u64]) -> Vec<Option<u32>> {
        let mut nodes = Vec::new();
        places.find(rows.iter().copied(), |_, node| nodes.push(node));
        nodes
    }

    #[test]
    fn rows_and_nodes_are_found_by_each_other() {
        let places = Places::new();
        let large = u64::from(u32::MAX);
        for (node, row) in (0..).zip([7, 0, 63, 64, large - 1, large, u64::MAX - 1]) {
            places.set(row, node);
        }
        let rows = [0, 7, 8, 64, 63, u64::MAX - 1, 65, large, large - 1, 1 << 40];
        let [a, b, c, d, e, f, g] = [0, 1, 2, 3, 4, 5, 6].map(Some);
        assert_eq!(
            nodes(&places, &rows),
            [b, a, None, d, c, g, None, f, e, None]
        );
        // SAFETY: these nodes were remembered.
        unsafe {
            let rows = [0, 1, 2, 3, 4, 5, 6].map(|node| places.row(node));
            let expected = [Some(7), Some(0), Some(63), Some(64), Some(large - 1)];
            assert_eq!(rows[..5], expected);
            assert_eq!(rows[5..], [None, None]);
            places.look_at(2);
            assert_eq!(places.row(2), None);
        }
    }

    #[test]
    fn what_leaves_gives_up_its_page() {
        let places = Places::new();
        // The first brings the directory with it.
        places.set(0, 0);
        places.forget([(0, 0)].into_iter());
        let empty = places.bytes();
        (0..1000).for_each(|row| places.set(row, row as u32));
        let full = places.bytes();
        // Another node holds the row by now.
        places.forget([(5, 6)].into_iter());
        assert_eq!(nodes(&places, &[5]), [Some(5)]);
        places.forget(
            (0..1000)
                .filter(|row| row % 10 != 0)
                .map(|row| (row, row as u32)),
        );
        assert_eq!(places.bytes(), full, "a row of each page is left");
        assert_eq!(nodes(&places, &[10, 11]), [Some(10), None]);
        places.forget((0..1000).step_by(10).map(|row| (row, row as u32)));
        assert_eq!(nodes(&places, &[10, 11]), [None, None]);
        assert_eq!(places.bytes() - empty, 4 * 999, "rows of nodes stay");
        assert!(full - empty < 10 * 1000, "{}", full - empty);
    }
}
