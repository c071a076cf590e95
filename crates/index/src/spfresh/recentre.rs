//! Postings whose vectors have moved away from their centroid.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::SpFresh;
use super::edit::Edit;
use super::posting::{Centroid, Posting};
use super::shard::{Shard, Writer};
use crate::error::Result;

/// A posting gets another centroid if its mean is so far from the one that it has: squared, and as part of the mean squared
/// distance of its vectors from their mean. By chance the mean of a hundred vectors is off by a hundredth.
const STRAYED: f32 = 0.1;
/// Part of the squared lengths that rounding may make of it: for an eight-bit code, that of the centroid, about half of this.
const ROUNDING: f32 = 1e-4;

impl SpFresh {
    /// Gives a posting the mean of its vectors for a centroid, if that came to lie far from the one that it has: rows went, and others came
    /// elsewhere, but never so many that it was split. Queries are compared with centroids, and would not find the way to it. What
    /// is nearer to another centroid then goes there, and what is nearer to the new one comes. Returns the number that the posting has then.
    pub(super) fn recentre(&self, (shard, writer): (&Shard, &mut Writer), id: u64) -> Result<u64> {
        let directory = shard.directory.load_full();
        let Some(posting) = directory.get(id) else {
            return Ok(id);
        };
        let Some(mean) = self.strayed(posting) else {
            return Ok(id);
        };
        let around = self.around(&directory, posting);
        let centroid = Arc::new(Centroid::new(self.encoder(), &mean));
        let new = writer.number();
        let mut edit = Edit::new(&directory, self.encoder(), &self.layout);
        edit.take(id);
        edit.create(new, Arc::clone(&centroid));
        for member in posting.members(&self.layout) {
            let vector = member.vector();
            let mut nearest = (self.between(vector, &centroid), new);
            for other in around.iter().filter(|_| member.own) {
                let distance = self.between(vector, &other.centroid);
                if distance < nearest.0 {
                    nearest = (distance, other.id);
                }
            }
            edit.push(nearest.1, member);
        }
        self.join(&[(new, &*centroid)], &around, &mut edit);
        let directory = edit.finish(&self.store)?;
        shard.show(directory);
        writer.free.push(id);
        shard.moves.fetch_add(1, Ordering::Release);
        let mut touched: Vec<u64> = around.iter().map(|posting| posting.id).collect();
        touched.push(new);
        self.split_long((shard, writer), touched)?;
        Ok(new)
    }

    /// The mean of the vectors of a posting, if it lies far from the centroid.
    pub(super) fn strayed(&self, posting: &Posting) -> Option<Vec<f32>> {
        let mut mean = vec![0f32; self.layout.dim];
        let mut norms = 0f32;
        for member in posting.members(&self.layout) {
            let sums = mean.iter_mut().zip(member.floats());
            sums.for_each(|(sum, x)| *sum += x);
            norms += member.norm;
        }
        let count = posting.len().max(1) as f32;
        mean.iter_mut().for_each(|sum| *sum /= count);
        let spread = norms / count - mean.iter().map(|x| x * x).sum::<f32>();
        let away = posting.centroid.floats().zip(&mean);
        let away: f32 = away.map(|(x, y)| (x - y) * (x - y)).sum();
        // Equal vectors differ from their mean by rounding. Infinite ones have none.
        let least = ROUNDING * norms / count;
        (away.is_finite() && away > STRAYED * spread.max(0.0) + least).then_some(mean)
    }
}
