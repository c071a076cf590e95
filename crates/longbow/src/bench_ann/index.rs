//! The indexes that can be measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longbow_index::flat::Flat;
use longbow_index::{
    Hnsw, HnswParams, Neighbor, QuantizedGraph, QuantizedParams, Query, SearchStats, Space,
    VectorIndex, VectorSource,
};

use super::error::Error;
use super::vectors::Vectors;

/// Which index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The graph of whole vectors.
    Hnsw,
    /// The graph of quantised vectors.
    Rabitq,
    /// The same without codes of edges.
    Sq8,
    /// The exact scan.
    Flat,
}

impl Choice {
    /// All of them.
    pub const ALL: [Choice; 4] = [Choice::Hnsw, Choice::Rabitq, Choice::Sq8, Choice::Flat];

    /// As the command line and the report name it.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Hnsw => "hnsw",
            Choice::Rabitq => "rabitq",
            Choice::Sq8 => "sq8",
            Choice::Flat => "flat",
        }
    }

    /// The graph that keeps its vectors so, if this is one and does not say otherwise itself.
    pub fn quantized(self, quantization: &str) -> Option<Choice> {
        let mut graphs = [Choice::Hnsw, Choice::Rabitq, Choice::Sq8].into_iter();
        match self {
            Choice::Hnsw => graphs.find(|graph| graph.quantization() == quantization),
            other => (other.quantization() == quantization).then_some(other),
        }
    }

    /// How it keeps its vectors.
    pub const fn quantization(self) -> &'static str {
        match self {
            Choice::Hnsw | Choice::Flat => "none",
            Choice::Rabitq => "rabitq",
            Choice::Sq8 => "sq8",
        }
    }
}

/// An index that was built, as the benchmark sees it.
pub trait Index: Send + Sync {
    /// The `k` nearest rows, nearest first, by a search of breadth `effort`. The query comes as a caller has it: to
    /// prepare it is part of the search.
    fn search(
        &self,
        query: &[f32],
        k: usize,
        effort: usize,
        stats: &mut SearchStats,
    ) -> Result<Vec<Neighbor>, Error>;

    /// The same for many queries in one call; `None` from an index that has no such call.
    fn search_batch(
        &self,
        _queries: &[Vec<f32>],
        _k: usize,
        _effort: usize,
        _stats: &mut SearchStats,
    ) -> Option<Result<Vec<Vec<Neighbor>>, Error>> {
        None
    }

    /// Bytes that it takes, the vectors that it compares included.
    fn memory_bytes(&self) -> usize;
}

/// An index, the vectors that it was built of, and how many bytes of these it needs besides its own.
struct OneByOne<T>(T, Arc<Vectors>, usize);

impl VectorSource for Vectors {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        let row = usize::try_from(row).ok().filter(|row| *row < self.rows())?;
        Some(self.row(row))
    }
}

impl<T: VectorIndex> Index for OneByOne<T> {
    fn search(
        &self,
        query: &[f32],
        k: usize,
        effort: usize,
        stats: &mut SearchStats,
    ) -> Result<Vec<Neighbor>, Error> {
        let query = Query::new(self.0.space(), query)?;
        Ok(self
            .0
            .search(&query, k, effort, &|_| true, self.1.as_ref(), stats))
    }

    fn search_batch(
        &self,
        queries: &[Vec<f32>],
        k: usize,
        effort: usize,
        stats: &mut SearchStats,
    ) -> Option<Result<Vec<Vec<Neighbor>>, Error>> {
        let space = self.0.space();
        let queries: longbow_index::Result<Vec<Query>> = queries
            .iter()
            .map(|query| Query::new(space, query))
            .collect();
        let all = |_| true;
        Some(queries.map_err(Error::from).map(|queries| {
            self.0
                .search_batch(&queries, k, effort, &all, self.1.as_ref(), stats)
        }))
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes() + self.2
    }
}

/// Vectors of which the origin of a quantised graph is the mean.
const SAMPLE: usize = 1_000;

/// Builds an index of `base`, whose rows are numbered from 0, by `threads` threads at once.
pub fn build(
    choice: Choice,
    space: Space,
    params: HnswParams,
    base: &Arc<Vectors>,
    threads: usize,
) -> Result<Box<dyn Index>, Error> {
    Ok(match choice {
        Choice::Hnsw => Box::new(OneByOne(
            filled(Hnsw::new(space, params)?, base, threads)?,
            base.clone(),
            0,
        )),
        Choice::Rabitq | Choice::Sq8 => {
            let index = QuantizedGraph::new(
                space,
                QuantizedParams {
                    ef_construction: params.ef_construction,
                    seed: params.seed,
                    edge_codes: choice == Choice::Rabitq,
                },
            )?;
            let step = base.rows().div_ceil(SAMPLE).max(1);
            index.prepare((0..base.rows()).step_by(step).map(|row| base.row(row)));
            let index = filled(index, base, threads)?;
            let besides = base.rows() * space.row_bytes() + index.kept_bytes();
            Box::new(OneByOne(index, base.clone(), besides))
        }
        // Its inserts take turns at one lock, and keep the order of the rows when one thread does them.
        Choice::Flat => Box::new(OneByOne(
            filled(Flat::new(space), base, 1)?,
            base.clone(),
            0,
        )),
    })
}

fn filled<T: VectorIndex>(index: T, base: &Vectors, threads: usize) -> Result<T, Error> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Error> {
        loop {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= base.rows() {
                return Ok(());
            }
            index.insert(row as u64, base.row(row))?;
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let theirs = others.into_iter().map(|other| other.join());
        theirs.fold(mine, |all, one| all.and(one.unwrap_or(Err(Error::Thread))))
    })?;
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::super::vectors::tests::vectors;
    use super::*;
    use longbow_index::Metric;

    #[test]
    fn each_choice_holds_every_row_however_many_threads_built_it() {
        let floats: Vec<f32> = (0..400u16).map(f32::from).collect();
        let base = Arc::new(vectors(2, &floats));
        let space = Space {
            scalar: base.scalar,
            metric: Metric::Euclidean,
            dim: 2,
        };
        for (choice, threads) in [
            (Choice::Hnsw, 1),
            (Choice::Hnsw, 3),
            (Choice::Rabitq, 1),
            (Choice::Rabitq, 3),
            (Choice::Sq8, 3),
            (Choice::Flat, 3),
        ] {
            let index = build(choice, space, HnswParams::default(), &base, threads).expect("valid");
            let mut stats = SearchStats::default();
            let found = index
                .search(&[100.0, 101.0], 200, 200, &mut stats)
                .expect("valid");
            assert_eq!((found.len(), found[0].row), (200, 50), "{choice:?}");
            assert!(stats.distance_computations >= 200);
            assert!(index.memory_bytes() >= 400 * 4);
            let other = index.search(&[1.0], 1, 10, &mut stats);
            assert!(matches!(other, Err(Error::Index(_))));
        }
    }
}
