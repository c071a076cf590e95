//! Seeded clusters, and queries from them.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};

use crate::Outcome;

/// Name of the dataset.
pub const DATASET: &str = "clusters";
const CLUSTERS: u64 = 1_000;

/// A number from -1 to 1, by splitmix64.
fn number(seed: u64) -> f32 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn vector(row: u64, dim: usize) -> Vec<f32> {
    let cluster = row % CLUSTERS;
    let element = |at: u64| number(cluster << 20 | at) + 0.7 * number((row + 1) << 24 | at);
    (0..dim as u64).map(element).collect()
}

/// Rows from `first` on.
pub fn batch(first: u64, rows: u64, dim: usize) -> Outcome<RecordBatch> {
    let numbers: Vec<f32> = (first..first + rows)
        .flat_map(|row| vector(row, dim))
        .collect();
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let numbers = Arc::new(Float32Array::from(numbers));
    let vectors = FixedSizeListArray::try_new(item, i32::try_from(dim)?, numbers, None)?;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(
        first as i64..(first + rows) as i64,
    ));
    Ok(RecordBatch::try_from_iter([
        ("id", ids),
        ("vector", Arc::new(vectors) as _),
    ])?)
}

/// Queries, none of which is a row.
pub fn queries(count: usize, dim: usize) -> Vec<Vec<f32>> {
    (0..count as u64)
        .map(|at| vector((1 << 32) + at, dim))
        .collect()
}
