//! First parts of blocks that are kept in memory beside the file.
//!
//! Where file and rows are larger than memory, the system drives out what was not read for longest; and as each search reads
//! a few hundred pages of rows once, it drives out first parts too, of which every search reads a hundred. A copy of their own
//! stays. Useful where not all fits into memory; where it does, it would be there twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::SpFresh;
use super::posting::Posting;

/// Postings whose first parts are asked for together before they are copied.
const TOGETHER: usize = 64;

/// How many bytes are kept, and how many may be.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: AtomicUsize,
    most: AtomicUsize,
}

impl Kept {
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_any(&self) -> bool {
        self.bytes() > 0
    }

    /// Counts so many bytes, if they may be kept too.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let more = |kept: usize| Some(kept + bytes).filter(|all| *all <= most);
        let taken = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.bytes() > self.most.load(Ordering::Relaxed)
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes() + bytes <= self.most.load(Ordering::Relaxed)
    }
}

impl SpFresh {
    /// Keeps in memory what searches read of each block, as far as that fits into `bytes`, also of blocks that are written
    /// from now on, and lets go of what does not. Returns how many bytes are kept.
    pub fn keep(&self, bytes: usize) -> usize {
        let kept = &self.store.kept;
        kept.most.store(bytes, Ordering::Relaxed);
        let first = self.layout.places.first;
        for directory in self.directories() {
            let postings: Vec<&Arc<Posting>> = directory.iter().collect();
            for some in postings.chunks(TOGETHER) {
                let blocks = || some.iter().flat_map(|posting| &posting.blocks);
                if kept.is_over() {
                    blocks()
                        .take_while(|_| kept.is_over())
                        .for_each(|block| block.let_go());
                } else if kept.has_room(first) {
                    self.ask_for_firsts(some.iter().copied());
                    blocks()
                        .take_while(|_| kept.has_room(first))
                        .for_each(|block| block.keep());
                } else {
                    return kept.bytes();
                }
            }
        }
        kept.bytes()
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
