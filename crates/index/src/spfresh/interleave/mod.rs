//! Threads that change the same postings, and others that search, sweep and save meanwhile.

mod churn;
mod file;
mod slots;
mod sweep;

use longbow_kernels::{Metric, Scalar};

use super::{SpFresh, SpFreshParams};
use crate::checkpoint::VectorSource;
use crate::space::Space;
use file::Mapped;

const SPACE: Space = Space {
    scalar: Scalar::F32,
    metric: Metric::Euclidean,
    dim: 8,
};

/// Postings as short as they can be, so that few rows split them again and again.
const PARAMS: SpFreshParams = SpFreshParams {
    split: 32,
    merge: 8,
    replicas: 2,
    reassign: 16,
    seed: 1,
    shards: 1,
    exact_shard_prune: true,
};

/// The vectors of rows that are numbered from 0.
struct Rows(Vec<Vec<u8>>);

impl Rows {
    fn new(count: u64, vector: impl Fn(u64) -> [f32; 8]) -> Self {
        let bytes = |row| vector(row).iter().flat_map(|x| x.to_le_bytes()).collect();
        Rows((0..count).map(bytes).collect())
    }

    fn insert(&self, index: &SpFresh, row: u64) {
        let vector = &self.0[row as usize];
        index.insert(row, vector).expect("no file fails");
    }
}

impl VectorSource for Rows {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.0.get(row as usize).map(Vec::as_slice)
    }
}

/// An empty index and its file.
fn empty(params: SpFreshParams) -> (SpFresh, Mapped) {
    let layout = SpFresh::layout(SPACE, params).expect("good parameters");
    let file = Mapped::new(layout.places);
    let index = SpFresh::new(SPACE, params, Box::new(file.clone()));
    (index.expect("good parameters"), file)
}

/// The rows of an index in order, each as often as a posting has it as its own.
fn own(index: &SpFresh) -> Vec<u64> {
    let directory = &index.directories()[0];
    let members = directory
        .iter()
        .flat_map(|posting| posting.members(&index.layout));
    let own = members.filter(|member| member.own);
    let mut rows: Vec<u64> = own.map(|member| member.row).collect();
    rows.sort_unstable();
    rows
}
