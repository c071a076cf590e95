//! First parts of blocks that are kept in memory beside the file.
//!
//! Where file and rows are larger than memory, the system drives out what was not read for longest; and as each search reads
//! a few hundred pages of rows once, it drives out first parts too, of which every search reads a hundred. A copy of their own
//! stays. Useful where not all fits into memory; where it does, it would be there twice.

use std::sync::Arc;

use super::SpFresh;
use super::block::Block;
use super::posting::Posting;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Postings whose first parts are asked for together before they are copied.
const TOGETHER: usize = 64;
/// What a copy takes beside its bytes.
const BESIDE: usize = 64;

/// How many bytes are kept, and how many may be.
#[derive(Debug)]
pub(super) struct Kept {
    /// Of one copy.
    each: usize,
    bytes: AtomicUsize,
    most: AtomicUsize,
}

impl Kept {
    /// Nothing yet, of first parts of so many bytes.
    pub(super) fn of(first: usize) -> Self {
        Kept {
            each: first + BESIDE,
            bytes: AtomicUsize::default(),
            most: AtomicUsize::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_any(&self) -> bool {
        self.bytes() > 0
    }

    /// Counts one more copy, if there may be one.
    pub(super) fn take(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let more = |kept: usize| Some(kept + self.each).filter(|all| *all <= most);
        let taken = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok()
    }

    /// Counts one less.
    pub(super) fn give_back(&self) {
        self.bytes.fetch_sub(self.each, Ordering::Relaxed);
    }

    fn has_room(&self) -> bool {
        self.bytes() + self.each <= self.most.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.bytes() > self.most.load(Ordering::Relaxed)
    }
}

impl SpFresh {
    /// Keeps in memory what searches read of more blocks, of so many as take at most `bytes`. From then on as much is kept, also
    /// while other blocks take the place of these. Who lets go meanwhile is heard, but for `bytes`.
    pub fn keep(&self, bytes: usize) {
        let kept = &self.store.kept;
        let all = self.store.used() * kept.each;
        let is_mapped = self.store.bytes(0).is_some();
        if !is_mapped || kept.bytes() >= all {
            return;
        }
        kept.most.fetch_max(kept.bytes() + bytes, Ordering::Relaxed);
        for directory in self.directories() {
            if !kept.has_room() {
                break;
            }
            let postings: Vec<&Arc<Posting>> = directory.iter().collect();
            for some in postings.chunks(TOGETHER) {
                if !kept.has_room() {
                    break;
                }
                self.ask_for_firsts(some.iter().copied());
                blocks(some).for_each(|block| block.keep());
            }
        }
        kept.most.fetch_min(kept.bytes(), Ordering::Relaxed);
    }

    /// Lets go of so many bytes of what is kept, or of all. Returns how many that were, which is less if searches still hold
    /// blocks that others took the place of.
    pub fn let_go(&self, bytes: usize) -> usize {
        let kept = &self.store.kept;
        let most = kept.bytes().saturating_sub(bytes);
        kept.most.fetch_min(most, Ordering::Relaxed);
        let mut copies = 0;
        for directory in self.directories() {
            let postings: Vec<&Arc<Posting>> = directory.iter().collect();
            let over = blocks(&postings).take_while(|_| kept.is_over());
            copies += over.filter(|block| block.let_go()).count();
        }
        copies * kept.each
    }

    /// Bytes that are kept in memory of what searches read of each block.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.store.kept.bytes()
    }

    /// Has the first parts of all blocks of some postings be read, side by side, as far as they are not kept.
    pub(super) fn ask_for_firsts<'a>(&self, postings: impl Iterator<Item = &'a Arc<Posting>>) {
        let blocks = postings.flat_map(|posting| &posting.blocks);
        for block in blocks.filter(|block| !block.is_kept()) {
            let first = block.read(&self.layout).first_part();
            self.store.file.will_need(first);
        }
    }

    /// The same for what is not kept of any.
    pub(super) fn ask_for_seconds<'a>(&self, postings: impl Iterator<Item = &'a Arc<Posting>>) {
        for block in postings.flat_map(|posting| &posting.blocks) {
            let second = block.read(&self.layout).second_part();
            self.store.file.will_need(second);
        }
    }
}

fn blocks<'a>(postings: &[&'a Arc<Posting>]) -> impl Iterator<Item = &'a Arc<Block>> {
    postings.iter().flat_map(|posting| &posting.blocks)
}
