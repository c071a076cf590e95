use longbow_kernels::{Metric, Scalar};

use super::directory::Directory;
use crate::encode::{Encoded, Encoder};
use crate::error::{Error, Result};
use crate::quantized::{Progress, QuantizedGraph, QuantizedParams};
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::visits::Visit;

/// Postings up to which all centroids are compared, which takes less than to walk a graph.
const FEW: usize = 64;
/// Candidates of a walk for each centroid that is looked for, in eighths, and besides.
const BREADTH: (usize, usize) = (10, 16);
/// Nodes that leave the graph in one step.
const STEP: usize = 64;
/// Centroids that are gone for one that is there, at which they leave the graph.
const GONE: usize = 8;
/// Vectors from which on the edges of the graph get codes.
const CODED: usize = 64;

/// The graph over the centroids. It holds all that a directory has, and some that are gone.
pub(super) struct Centroids {
    space: Space,
    graph: QuantizedGraph,
}

impl Centroids {
    /// Of rotated vectors of so many elements.
    pub(super) fn new(dim: usize) -> Self {
        let space = Space {
            scalar: Scalar::F32,
            metric: Metric::Euclidean,
            dim,
        };
        let params = QuantizedParams {
            edge_codes: dim >= CODED,
            ..QuantizedParams::default()
        };
        Centroids {
            space,
            graph: QuantizedGraph::new(space, params).expect("default parameters are in range"),
        }
    }

    /// Begins a visit: centroids that are there stay in the graph until it ends.
    pub(super) fn enter(&self) -> Visit {
        self.graph.enter()
    }

    pub(super) fn insert(&self, id: u64, centroid: &[u8]) -> Result<()> {
        self.graph.insert(id, centroid)
    }

    /// The `count` nearest of the directory's centroids, nearest first, with their squared distances.
    pub(super) fn nearest(
        &self,
        encoder: &Encoder,
        query: &Encoded,
        (directory, count): (&Directory, usize),
        stats: &mut SearchStats,
    ) -> Vec<(u64, f32)> {
        if directory.len() <= FEW.max(count) {
            return scan(encoder, query, (directory, count), stats);
        }
        let Ok(asked) = Query::new(self.space, &query.floats) else {
            return scan(encoder, query, (directory, count), stats);
        };
        let breadth = count * BREADTH.0 / 8 + BREADTH.1;
        let there = |id| directory.get(id).is_some();
        let mut each = [SearchStats::default()];
        let mut found =
            self.graph
                .search_each(&[asked], (count, breadth), &there, directory, &mut each);
        *stats += each[0];
        let found = found.pop().unwrap_or_default();
        if found.is_empty() {
            return scan(encoder, query, (directory, count), stats);
        }
        found.iter().map(|one| (one.row, one.distance)).collect()
    }

    /// Lets centroids leave the graph that are not in the directory, some of them at a time.
    pub(super) fn tidy(&self, directory: &Directory) {
        if self.graph.remove(STEP) != Progress::Ended {
            return;
        }
        let gone = self.graph.len().saturating_sub(directory.len());
        if gone > FEW.max(directory.len() / GONE) {
            match self.graph.retire(&|id| directory.get(id).is_none()) {
                Ok(_) | Err(Error::Busy) => {}
                Err(error) => unreachable!("retiring needs no more than a still graph: {error}"),
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.graph.memory_bytes()
    }
}

/// As [`Centroids::nearest`], by comparing all.
fn scan(
    encoder: &Encoder,
    query: &Encoded,
    (directory, count): (&Directory, usize),
    stats: &mut SearchStats,
) -> Vec<(u64, f32)> {
    let mut all: Vec<(u64, f32)> = directory
        .iter()
        .map(|posting| {
            // SAFETY: a centroid's code has the dimension of the encoder.
            let distance = unsafe { encoder.distance(query, posting.centroid.vector()) };
            (posting.id, distance)
        })
        .collect();
    stats.distance_computations += all.len() as u64;
    let nearer = |a: &(u64, f32), b: &(u64, f32)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
    if count < all.len() {
        all.select_nth_unstable_by(count, nearer);
        all.truncate(count);
    }
    all.sort_unstable_by(nearer);
    all
}
