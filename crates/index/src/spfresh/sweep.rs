//! Rows that died.

use std::sync::atomic::Ordering;

use super::SpFresh;
use super::edit::Edit;
use super::shard::Shard;
use crate::error::Result;

/// What a part of a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Rows that left.
    pub rows: u64,
    /// Where the next part begins; `None` once all postings were swept.
    pub next: Option<u64>,
}

impl SpFresh {
    /// Takes dead rows out of `postings` postings from address `from` on, merges those that got too short, and gives those another
    /// centroid whose vectors moved away from theirs. Whoever calls it again with [`Swept::next`] gets to the end of all
    /// shards; the first address is 0.
    ///
    /// Searches that see the rows must have ended: see [`SpFresh::is_over`].
    ///
    /// # Errors
    /// If the file cannot be written; what was swept of postings before is.
    pub fn sweep(&self, dead: &dyn Fn(u64) -> bool, from: u64, postings: usize) -> Result<Swept> {
        let mut rows = 0;
        let next = self.step_by_step(from, postings, |shard, from, left| {
            let part = self.sweep_shard(shard, dead, from, left)?;
            rows += part.rows;
            Ok(part.next)
        })?;
        Ok(Swept { rows, next })
    }

    /// Sweeps postings of one shard, of which `left` are still to be swept.
    fn sweep_shard(
        &self,
        shard: &Shard,
        dead: &dyn Fn(u64) -> bool,
        from: u64,
        left: &mut usize,
    ) -> Result<Swept> {
        let mut writer = shard.writer.lock();
        let directory = shard.directory.load_full();
        let mut edit = Edit::new(&directory, self.encoder(), &self.layout);
        let (mut rows, mut short, mut changed) = (0, Vec::new(), Vec::new());
        let mut ids = directory.from(from);
        for posting in ids.by_ref().take(*left) {
            *left -= 1;
            let mut places = Vec::new();
            for (place, member) in posting.members(&self.layout).enumerate() {
                if dead(member.row) {
                    places.push(place);
                    rows += u64::from(member.own);
                }
            }
            if !places.is_empty() {
                edit.remove(posting.id, &places);
                changed.push(posting.id);
            }
            if posting.len() - places.len() < self.params.merge {
                short.push(posting.id);
            }
        }
        let next = ids.next().map(|posting| posting.id);
        writer.swept = next.unwrap_or(0);
        let swept = edit.finish(&self.store)?;
        shard.show(swept);
        self.rows.fetch_sub(rows, Ordering::Release);
        for id in short {
            self.merge((shard, &mut writer), id)?;
        }
        for id in changed {
            let id = self.recentre((shard, &mut writer), id)?;
            self.resettle((shard, &mut writer), id)?;
        }
        Ok(Swept { rows, next })
    }
}
