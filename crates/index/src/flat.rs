//! Exact search by comparing the query with every vector.

use crate::sync::RwLock;
use longbow_kernels::Kernels;

use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};
use crate::vector_index::VectorIndex;

/// Rows whose distances are found before any of them is looked at.
const BATCH: usize = 4096;

/// Compares `query` with the vectors in `rows`, which are those of the rows `first_row`, `first_row + 1`, … one
/// after the other, and offers those for which `visible` holds to `top`.
///
/// `visible` is asked only about rows that are near enough to enter `top`. The result is the same however the rows
/// are split over calls, and in whatever order.
///
/// # Panics
/// If `rows` is not a whole number of vectors of the query's space, or rows would pass `u64::MAX`.
pub fn scan(
    query: &Query,
    first_row: u64,
    rows: &[u8],
    visible: &dyn Fn(u64) -> bool,
    top: &mut TopK,
    stats: &mut SearchStats,
) {
    offer(
        query,
        rows,
        &|place| first_row + place as u64,
        visible,
        top,
        stats,
    );
}

fn offer(
    query: &Query,
    rows: &[u8],
    row_at: &dyn Fn(usize) -> u64,
    visible: &dyn Fn(u64) -> bool,
    top: &mut TopK,
    stats: &mut SearchStats,
) {
    let row_bytes = query.space().row_bytes();
    assert_eq!(
        rows.len() % row_bytes,
        0,
        "{} bytes are no whole number of vectors of {row_bytes}",
        rows.len()
    );
    let kernels = Kernels::get();
    let mut distances = vec![0.0; BATCH.min(rows.len() / row_bytes)];
    let mut pairs = Vec::new();
    for (number, batch) in rows.chunks(BATCH * row_bytes).enumerate() {
        let out = &mut distances[..batch.len() / row_bytes];
        query.distances(kernels, batch, out, &mut pairs);
        stats.distance_computations += out.len() as u64;
        for (place, distance) in out.iter().enumerate() {
            // Equal distances are let through: a smaller row among them wins.
            if *distance <= top.bound() {
                let row = row_at(number * BATCH + place);
                if visible(row) {
                    top.push(Neighbor {
                        row,
                        distance: *distance,
                    });
                }
            }
        }
    }
}

/// Vectors anywhere in memory that are scored by one call of a kernel.
const GATHER: usize = 64;

/// Compares `query` with vectors anywhere in memory, each given with its row, and offers them all to `top`.
///
/// Vectors are fetched ahead of the comparison, so this is the way to score few rows out of many.
///
/// # Panics
/// If a vector is not one of the query's space.
pub fn scan_rows<'a>(
    query: &Query,
    rows: impl IntoIterator<Item = (u64, &'a [u8])>,
    top: &mut TopK,
    stats: &mut SearchStats,
) {
    let kernels = Kernels::get();
    let mut rows = rows.into_iter().peekable();
    let (mut numbers, mut vectors) = (Vec::with_capacity(GATHER), Vec::with_capacity(GATHER));
    let (mut distances, mut pairs) = ([0.0; GATHER], Vec::new());
    while rows.peek().is_some() {
        numbers.clear();
        vectors.clear();
        for (row, vector) in rows.by_ref().take(GATHER) {
            numbers.push(row);
            vectors.push(vector);
        }
        let out = &mut distances[..vectors.len()];
        query.distances_to(kernels, &vectors, out, &mut pairs);
        stats.distance_computations += out.len() as u64;
        for (row, distance) in numbers.iter().zip(out.iter()) {
            top.push(Neighbor {
                row: *row,
                distance: *distance,
            });
        }
    }
}

/// An exact index that holds its vectors in one run of memory. Searches share it; an insert has it alone, shortly.
#[derive(Debug)]
pub struct Flat {
    space: Space,
    held: RwLock<Held>,
}

#[derive(Debug, Default)]
struct Held {
    rows: Vec<u64>,
    vectors: Vec<u8>,
}

impl Flat {
    /// An empty index.
    #[must_use]
    pub fn new(space: Space) -> Self {
        Flat {
            space,
            held: RwLock::default(),
        }
    }
}

impl VectorIndex for Flat {
    fn space(&self) -> Space {
        self.space
    }

    fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        self.space.check(row, vector)?;
        let mut held = self.held.write();
        held.rows.push(row);
        held.vectors.extend_from_slice(vector);
        Ok(())
    }

    fn search(
        &self,
        query: &Query,
        k: usize,
        _ef: usize,
        visible: &(dyn Fn(u64) -> bool + Sync),
        _originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        assert_eq!(
            query.space(),
            self.space,
            "the space of the query is that of the index"
        );
        let mut top = TopK::new(k);
        let held = self.held.read();
        offer(
            query,
            &held.vectors,
            &|place| held.rows[place],
            visible,
            &mut top,
            stats,
        );
        top.into_sorted()
    }

    fn len(&self) -> usize {
        self.held.read().rows.len()
    }

    fn memory_bytes(&self) -> usize {
        let held = self.held.read();
        size_of::<Self>() + held.rows.capacity() * size_of::<u64>() + held.vectors.capacity()
    }
}
