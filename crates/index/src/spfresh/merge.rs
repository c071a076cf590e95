//! Postings that became too short.

use std::sync::atomic::Ordering;

use super::SpFresh;
use super::edit::Edit;
use super::shard::{Shard, Writer};
use crate::error::Result;

impl SpFresh {
    /// Takes a posting out if it is too short and does not stand apart, and puts its vectors into those of the nearest other centroids.
    pub(super) fn merge(&self, (shard, writer): (&Shard, &mut Writer), id: u64) -> Result<()> {
        let directory = shard.directory.load_full();
        let Some(posting) = directory.get(id) else {
            return Ok(());
        };
        if posting.len() >= self.params.merge {
            return Ok(());
        }
        let around = self.around(&directory, posting);
        if around.is_empty() && posting.len() > 0 {
            return Ok(());
        }
        if self.stands_apart(&directory, posting, &around) {
            return Ok(());
        }
        let mut edit = Edit::new(&directory, self.encoder(), &self.layout);
        edit.take(id);
        // Those from the other side of a boundary are in their own postings too.
        for member in posting.members(&self.layout).filter(|member| member.own) {
            let (home, _) = self.nearest_of(&member, &around).expect("there are others");
            edit.push(home.id, member);
        }
        let directory = edit.finish(&self.store)?;
        shard.show(directory);
        writer.free.push(id);
        shard.moves.fetch_add(1, Ordering::Release);
        self.split_long(
            (shard, writer),
            around.iter().map(|posting| posting.id).collect(),
        )
    }
}
