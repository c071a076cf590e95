//! New rows.

use std::sync::atomic::Ordering;

use super::SpFresh;
use super::block::Member;
use super::edit::Edit;
use super::route::route;
use super::shard::Shard;
use crate::encode::Encoded;
use crate::error::Result;

/// A vector is on the boundary of a posting whose centroid is this much farther, squared, than the nearest.
const BOUNDARY: f32 = 1.3;
/// Centroids that are looked at for each posting that a vector may be in.
const CANDIDATES: usize = 4;

impl SpFresh {
    /// Adds a row to its shard. Threads that add rows find their postings side by side, and write one after the other where
    /// the shard is the same.
    ///
    /// # Errors
    /// If the vector has another length, or the file cannot be written; the row is not in the index then.
    pub fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        self.space.check(row, vector)?;
        let mut encoded = Encoded::default();
        self.encoder().stored(vector, &mut encoded);
        // As it will be read, so that it is where it looks nearest.
        let mut decoded = Encoded::default();
        // SAFETY: the code is as long as the encoder's dimension.
        unsafe { self.encoder().decoded(encoded.vector(), &mut decoded) };
        let code = encoded.vector();
        let member = Member {
            row,
            own: true,
            code: encoded.code(),
            scale: code.scale,
            norm: code.norm,
            sum: code.sum,
        };
        let shard = &self.shards[route(row, self.shards.len())];
        loop {
            let moves = shard.moves.load(Ordering::Acquire);
            let homes = self.homes(shard, &decoded);
            let mut writer = shard.writer.lock();
            // Where postings were split or merged meanwhile, another may be nearer.
            if moves == shard.moves.load(Ordering::Acquire) {
                let homes = match homes.is_empty() {
                    true => self.begin((shard, &mut writer), &decoded, member)?,
                    false => self.append(shard, homes, member)?,
                };
                self.rows.fetch_add(1, Ordering::Release);
                // The row is there. What stays too long because a split cannot be written is split after a later row, and
                // if that cannot be written either, its insert tells.
                let _ = self
                    .recentre_grown((shard, &mut writer), &homes)
                    .and_then(|()| self.split_long((shard, &mut writer), homes));
                return Ok(());
            }
        }
    }

    /// The postings of a shard that a vector belongs into, its own first; none if it is to begin one.
    fn homes(&self, shard: &Shard, vector: &Encoded) -> Vec<u64> {
        let directory = shard.directory.load_full();
        let count = match self.params.replicas {
            1 => 1,
            many => many * CANDIDATES,
        };
        let near = self.nearest(&directory, vector, count);
        let Some((first, nearest)) = near.first() else {
            // So long a vector is near no centroid as far as can be reckoned.
            return directory.iter().take(1).map(|any| any.id).collect();
        };
        let own = directory.get(*first);
        if own.is_some_and(|own| self.is_outlying(&directory, own, *nearest)) {
            return Vec::new();
        }
        let mut homes: Vec<u64> = Vec::with_capacity(self.params.replicas);
        for (id, distance) in &near {
            if homes.len() == self.params.replicas || *distance > BOUNDARY * nearest {
                break;
            }
            let Some(posting) = directory.get(*id) else {
                continue;
            };
            // One that is nearer to a posting which the vector is in than to the vector is found by the same searches.
            let stands_in = |home: &u64| {
                directory.get(*home).is_some_and(|home| {
                    // SAFETY: centroids have codes of the encoder's dimension.
                    let between = unsafe {
                        self.encoder()
                            .between(home.centroid.vector(), posting.centroid.vector())
                    };
                    between <= *distance
                })
            };
            if !homes.iter().any(stands_in) {
                homes.push(*id);
            }
        }
        homes
    }

    /// Writes a vector into its postings. Whoever calls it holds the lock of the writer.
    fn append(&self, shard: &Shard, homes: Vec<u64>, member: Member<'_>) -> Result<Vec<u64>> {
        let before = shard.directory.load();
        let mut edit = Edit::new(&before, self.encoder(), &self.layout);
        for (place, home) in homes.iter().enumerate() {
            let own = place == 0;
            edit.push(*home, Member { own, ..member });
        }
        let directory = edit.finish(&self.store)?;
        shard.show(directory);
        Ok(homes)
    }
}
