//! A file that became longer than what is in it.

use std::sync::Arc;

use super::SpFresh;
use super::posting::Posting;
use super::shard::Shard;
use crate::error::Result;

impl SpFresh {
    /// Moves blocks behind `end`, which [`SpFresh::could_end`] told, into free slots before, of `postings` postings from
    /// address `from` on, and cuts the file at the end. A slot that the last checkpoint names is free only once another
    /// holds: then [`SpFresh::hold`] cuts the rest. Returns where the next part begins; `None` once all postings were passed.
    ///
    /// # Errors
    /// If the file cannot be written; what was moved of shards before stays moved.
    pub fn shrink(&self, end: u32, from: u64, postings: usize) -> Result<Option<u64>> {
        let next = self.step_by_step(from, postings, |shard, from, left| {
            self.shrink_shard(shard, end, from, left)
        })?;
        if next.is_none() {
            // Whoever searches still may hold some of what was moved; the next checkpoint cuts that.
            self.store.end_moving()?;
        }
        Ok(next)
    }

    fn shrink_shard(
        &self,
        shard: &Shard,
        end: u32,
        from: u64,
        left: &mut usize,
    ) -> Result<Option<u64>> {
        let _writer = shard.writer.lock();
        let before = shard.directory.load_full();
        let mut directory = (*before).clone();
        let next = {
            let mut ids = before.from(from);
            for posting in ids.by_ref().take(*left) {
                *left -= 1;
                if let Some(moved) = moved_before(end, posting)? {
                    directory.put(moved);
                }
            }
            ids.next().map(|posting| posting.id)
        };
        shard.show(directory);
        Ok(next)
    }

    /// Where the file could end, if so much of it is free that [`SpFresh::shrink`] is worth it.
    #[must_use]
    pub fn could_end(&self) -> Option<u32> {
        self.store.could_end()
    }

    /// Whether so much of the file is in no use, or will be once another checkpoint holds, that [`SpFresh::shrink`] has
    /// something to do then.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.store.is_sparse()
    }
}

/// A posting without blocks from slot `end` on, as far as there is room before; `None` if it has none.
fn moved_before(end: u32, posting: &Posting) -> Result<Option<Posting>> {
    if posting.blocks.iter().all(|block| block.slot() < end) {
        return Ok(None);
    }
    let mut blocks = Vec::with_capacity(posting.blocks.len());
    for block in &posting.blocks {
        let moved = match block.slot() < end {
            true => None,
            false => block.moved_before(end)?.map(Arc::new),
        };
        blocks.push(moved.unwrap_or_else(|| Arc::clone(block)));
    }
    Ok(Some(Posting {
        id: posting.id,
        centroid: Arc::clone(&posting.centroid),
        reach: posting.reach,
        blocks,
    }))
}
