use super::shard;
use crate::error::{Error, Result};

/// How postings are kept. What is asked of a search, the number of postings that it reads, comes with the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpFreshParams {
    /// Vectors above which a posting is split, 32 to 4,096.
    pub split: usize,
    /// Vectors below which a posting is merged into its neighbours, less than a third of `split`.
    pub merge: usize,
    /// Postings that a vector on a boundary is in, at most: 1 to 8.
    pub replicas: usize,
    /// Postings around one that is split that are looked through for vectors that are nearer to a half, at most.
    pub reassign: usize,
    /// Parts with postings of their own, by the row, 1 to 64: rows of different ones are inserted side by side. What a
    /// search reads does not depend on it. An index that is loaded has as many as when it was saved.
    pub shards: usize,
    /// Whether an exact search passes over postings that are too far, by true bounds; what it finds is
    /// the same, but for vectors whose length is beyond `f32::MAX`.
    pub exact_shard_prune: bool,
    /// From which the rotation is drawn.
    pub seed: u64,
}

impl Default for SpFreshParams {
    fn default() -> Self {
        SpFreshParams {
            split: 192,
            merge: 24,
            replicas: 2,
            reassign: 32,
            shards: 1,
            exact_shard_prune: true,
            seed: 42,
        }
    }
}

impl SpFreshParams {
    pub(super) fn check(&self) -> Result<()> {
        let limits = [
            ("split", self.split, 32, 4_096),
            ("merge", self.merge, 1, self.split / 3),
            ("replicas", self.replicas, 1, 8),
            ("reassign", self.reassign, 1, 1_024),
            ("shards", self.shards, 1, shard::MOST),
        ];
        match limits
            .into_iter()
            .find(|(_, got, min, max)| !(min..=max).contains(&got))
        {
            None => Ok(()),
            Some((name, got, min, max)) => Err(Error::Parameter {
                name,
                got,
                min,
                max,
            }),
        }
    }
}
