//! Vectors that have a nearer centroid than their own, which came up too far from theirs to take them in.

use std::sync::atomic::Ordering;

use super::SpFresh;
use super::edit::Edit;
use super::shard::{Shard, Writer};
use crate::encode::Encoded;
use crate::error::Result;

/// A vector is looked at if its squared distance to its centroid is more than so many times that of all to theirs on average.
const FAR: f64 = 1.5;

impl SpFresh {
    /// Moves those vectors of a posting that are far from its centroid to the nearest ones. A split looks for vectors that
    /// have become nearer to a new centroid among those around; but where rows come up that are far from all, they were put
    /// into postings that have nothing else in common, and the centroid that a few of them get at last is near none of these.
    pub(super) fn resettle(&self, (shard, writer): (&Shard, &mut Writer), id: u64) -> Result<()> {
        let directory = shard.directory.load_full();
        let Some(posting) = directory.get(id) else {
            return Ok(());
        };
        let far = (FAR * directory.spread().mean()) as f32;
        if posting.reach.are_within(far) {
            return Ok(());
        }
        let mut edit = Edit::new(&directory, self.encoder(), &self.layout);
        let (mut places, mut touched) = (Vec::new(), Vec::new());
        let mut query = Encoded::default();
        for (place, member) in posting.members(&self.layout).enumerate() {
            let distance = self.between(member.vector(), &posting.centroid);
            if !member.own || distance <= far {
                continue;
            }
            let floats: Vec<f32> = member.floats().collect();
            self.encoder().rotated(&floats, &mut query);
            if let [(other, nearer)] = self.nearest(&directory, &query, 1)[..]
                && other != id
                && nearer < distance
            {
                places.push(place);
                touched.push(other);
                edit.push(other, member);
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        edit.remove(id, &places);
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|id| edit.len_of(*id) > self.params.split);
        let directory = edit.finish(&self.store)?;
        shard.show(directory);
        shard.moves.fetch_add(1, Ordering::Release);
        self.split_long((shard, writer), touched)
    }
}
