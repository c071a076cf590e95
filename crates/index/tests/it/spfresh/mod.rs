//! The index with its blocks in a file, here one in memory.

mod churn;
mod cold;
mod exact;
mod file;
mod kept;
mod recall;
mod saved;

use longbow_index::{BlockFile, Query, Result, SearchStats, SpFresh, SpFreshParams};

use crate::common::Data;
use file::MemoryFile;

/// An index that holds rows of the data.
fn build(data: &Data, params: SpFreshParams, rows: std::ops::Range<u64>) -> Result<SpFresh> {
    build_in(&MemoryFile::default(), data, params, rows)
}

/// An index with its blocks in a file.
fn build_in(
    file: &(impl BlockFile + Clone + 'static),
    data: &Data,
    params: SpFreshParams,
    rows: std::ops::Range<u64>,
) -> Result<SpFresh> {
    let index = SpFresh::new(data.space, params, Box::new(file.clone()))?;
    index.prepare((0..100.min(data.rows() as u64)).map(|row| data.vector(row)));
    rows.into_iter()
        .try_for_each(|row| index.insert(row, data.vector(row)))?;
    Ok(index)
}

/// An index as it is after it was saved and read again.
fn again(index: &SpFresh, file: &MemoryFile) -> Result<SpFresh> {
    let mut bytes = Vec::new();
    index.save(&mut bytes)?;
    let params = SpFreshParams::default();
    SpFresh::load(index.space(), params, &bytes, Box::new(file.clone()))
}

fn search(
    index: &SpFresh,
    data: &Data,
    query: &Query,
    (k, probes): (usize, usize),
    visible: &(dyn Fn(u64) -> bool + Sync),
) -> Vec<longbow_index::Neighbor> {
    let mut stats = SearchStats::default();
    index.search(query, (k, probes), (visible, None), data, &mut stats)
}

/// Mean share of the exact `k` nearest that are found.
fn recall(
    index: &SpFresh,
    data: &Data,
    (k, probes): (usize, usize),
    visible: &(dyn Fn(u64) -> bool + Sync),
) -> f64 {
    let (mut hits, mut all) = (0, 0);
    for query in &data.queries {
        let exact = data.exact(query, k, visible);
        let found = search(index, data, query, (k, probes), visible);
        assert_eq!(found.len(), exact.len(), "never short");
        hits += found.iter().filter(|one| exact.contains(one)).count();
        all += exact.len();
    }
    hits as f64 / all as f64
}
