//! Rows that died.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::SpFresh;
use super::edit::Edit;
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
    /// Takes dead rows out of `postings` postings from number `from` on, merges those that got too short, and gives
    /// those another centroid whose vectors moved away from theirs. Whoever
    /// calls it again with [`Swept::next`] gets to the end; the first number is 0.
    ///
    /// Searches that see the rows must have ended: see [`SpFresh::is_over`].
    ///
    /// # Errors
    /// If the file cannot be written; what was swept before is.
    pub fn sweep(&self, dead: &dyn Fn(u64) -> bool, from: u64, postings: usize) -> Result<Swept> {
        let mut writer = self.writer.lock();
        let directory = self.directory.load_full();
        let mut edit = Edit::new(&directory, self.encoder(), &self.layout);
        let (mut rows, mut short, mut changed) = (0, Vec::new(), Vec::new());
        let mut ids = directory.from(from);
        for posting in ids.by_ref().take(postings) {
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
        self.directory.store(Arc::new(swept));
        self.rows.fetch_sub(rows, Ordering::Release);
        for id in short {
            self.merge(&mut writer, id)?;
        }
        for id in changed {
            self.recentre(&mut writer, id)?;
        }
        Ok(Swept { rows, next })
    }
}
