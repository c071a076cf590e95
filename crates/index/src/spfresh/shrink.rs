//! A file that became longer than what is in it.

use std::sync::Arc;

use super::SpFresh;
use super::posting::Posting;
use crate::error::Result;

impl SpFresh {
    /// Moves blocks from the end of the file into free slots before, of `postings` postings from number `from` on, so that
    /// [`SpFresh::hold`] can cut it: a slot that the last checkpoint names is free only once another holds. Returns where the next part
    /// begins; `None` once all postings were passed, or if there is too little to gain.
    ///
    /// # Errors
    /// If the file cannot be written; what was moved before is.
    pub fn shrink(&self, from: u64, postings: usize) -> Result<Option<u64>> {
        let _writer = self.writer.lock();
        let Some(end) = self.store.could_end() else {
            return Ok(None);
        };
        let before = self.directory.load_full();
        let mut directory = (*before).clone();
        let mut ids = before.from(from);
        for posting in ids.by_ref().take(postings) {
            if posting.blocks.iter().all(|block| block.slot() < end) {
                continue;
            }
            let mut blocks = Vec::with_capacity(posting.blocks.len());
            for block in &posting.blocks {
                let moved = match block.slot() < end {
                    true => None,
                    false => block.moved_before(end)?.map(Arc::new),
                };
                blocks.push(moved.unwrap_or_else(|| Arc::clone(block)));
            }
            directory.put(Posting {
                id: posting.id,
                centroid: Arc::clone(&posting.centroid),
                blocks,
            });
        }
        self.directory.store(Arc::new(directory));
        Ok(ids.next().map(|posting| posting.id))
    }

    /// Whether so much of the file is in no use, or will be once another checkpoint holds, that [`SpFresh::shrink`] has
    /// something to do.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.store.is_sparse()
    }
}
