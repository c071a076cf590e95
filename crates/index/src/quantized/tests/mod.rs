pub(super) mod ahead;
mod cut;
mod far_out;
mod groups;
mod haste;
mod led_to;
mod small_level;

use longbow_kernels::{Metric, Scalar};

use super::{QuantizedGraph, QuantizedParams};
use crate::error::Result;
use crate::space::Space;

/// Distances that were computed to insert vectors one after the other, by the room that all inserts shared.
fn compared(vectors: &[[f32; 4]]) -> Result<u64> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 4,
    };
    let graph = QuantizedGraph::new(space, QuantizedParams::default())?;
    for (row, vector) in vectors.iter().enumerate() {
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        graph.insert(row as u64, &bytes)?;
    }
    Ok(graph.pool.take().stats.distance_computations)
}

#[test]
fn equal_vectors_cost_no_more_to_insert_than_others() -> Result<()> {
    let points = |i: u32| {
        let x = (i as f32 * 0.618).fract();
        [x, (x * 57.0).fract(), (x * 91.0).fract(), i as f32 / 500.0]
    };
    let mut vectors: Vec<[f32; 4]> = (0..500).map(points).collect();
    let others = compared(&vectors)?;
    assert!(others > 500, "{others} distances for 500 vectors");
    vectors.extend([points(250); 10_000]);
    let all = compared(&vectors)?;
    let (before, each) = (others / 500, (all - others) / 10_000);
    assert!(
        each <= 2 * before,
        "{each} distances for each equal vector, {before} for each other"
    );
    Ok(())
}
