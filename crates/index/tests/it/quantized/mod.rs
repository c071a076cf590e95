//! The graph of quantised vectors.

mod checkpoint;
mod concurrent;
mod damage;
mod ended;
mod equals;
mod exact;
mod filtered;
mod hard;
mod removal;
mod visible;
mod whole;

use longbow_index::VectorIndex as _;
use longbow_index::{
    Metric, Neighbor, QuantizedGraph, QuantizedParams, Query, Result, Scalar, SearchStats, Space,
};

use crate::common::{Data, Dice, all, as_query, encode, kinds};

/// An empty graph whose origin is the mean of the first thousand vectors.
fn prepared(data: &Data, params: QuantizedParams) -> Result<QuantizedGraph> {
    let graph = QuantizedGraph::new(data.space, params)?;
    graph.prepare(data.bytes.chunks_exact(data.space.row_bytes()).take(1000));
    Ok(graph)
}

fn fill(graph: &QuantizedGraph, data: &Data) -> Result<()> {
    (0..data.rows() as u64).try_for_each(|row| graph.insert(row, data.vector(row)))
}

fn build(data: &Data) -> Result<QuantizedGraph> {
    let graph = prepared(data, QuantizedParams::default())?;
    fill(&graph, data)?;
    assert_eq!(graph.len(), data.rows());
    Ok(graph)
}

fn search(
    graph: &QuantizedGraph,
    data: &Data,
    query: &Query,
    k: usize,
    ef: usize,
) -> Vec<Neighbor> {
    graph.search(query, k, ef, &all, data, &mut SearchStats::default())
}

fn floats(dim: usize, metric: Metric) -> Space {
    Space {
        scalar: Scalar::F32,
        metric,
        dim,
    }
}

/// A stored vector as a query.
fn query_of(data: &Data, row: u64) -> Result<Query> {
    let mut values = vec![0.0; data.space.dim];
    longbow_kernels::Kernels::get().decode(data.space.scalar, data.vector(row), &mut values);
    Query::new(data.space, &values)
}

/// Share of every `step`th row that a search for its own vector finds first, or a row at the same distance.
fn found_by_itself(graph: &QuantizedGraph, data: &Data, step: usize) -> Result<f64> {
    let (mut hits, mut wanted) = (0, 0);
    for row in (0..data.rows() as u64).step_by(step) {
        let query = query_of(data, row)?;
        let own = query.distance(data.vector(row));
        let found = search(graph, data, &query, 1, 64);
        hits += usize::from(found.first().is_some_and(|first| first.distance <= own));
        wanted += 1;
    }
    Ok(f64::from(hits as u32) / f64::from(wanted))
}

/// `rows` vectors that `point` makes of their numbers, and 50 queries that it makes of random ones.
fn made(
    space: Space,
    rows: usize,
    mut point: impl FnMut(&mut Dice, usize) -> Vec<f32>,
) -> Result<Data> {
    let mut dice = Dice(23);
    let bytes = (0..rows)
        .flat_map(|row| encode(space.scalar, &point(&mut dice, row)))
        .collect();
    let queries: Result<Vec<Query>> = (0..50)
        .map(|_| {
            let like = dice.below(rows as u64) as usize;
            Query::new(space, &as_query(space.scalar, &point(&mut dice, like)))
        })
        .collect();
    Ok(Data {
        space,
        bytes,
        queries: queries?,
    })
}
