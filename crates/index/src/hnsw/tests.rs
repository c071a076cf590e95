//! No node of a graph is without links that lead to it.

use longbow_kernels::{Metric, Scalar};

use super::{Hnsw, HnswParams};
use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::mix::{drawn, mix};
use crate::space::Space;

fn graph(metric: Metric, dim: usize) -> Result<Hnsw> {
    let space = Space {
        scalar: Scalar::F32,
        metric,
        dim,
    };
    let params = HnswParams {
        m: 8,
        ef_construction: 40,
        ..HnswParams::default()
    };
    Hnsw::new(space, params)
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn insert(graph: &Hnsw, row: u64, vector: &[f32]) -> Result<()> {
    graph.insert(row, &bytes(vector))
}

/// The vectors of all rows.
struct Rows(Vec<Vec<u8>>);

impl VectorSource for Rows {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.0.get(row as usize).map(Vec::as_slice)
    }
}

/// Checks that links are counted as they are, and that the walk of all links of the ground from the entry comes to every
/// node.
fn check(graph: &Hnsw) {
    let space = graph.space();
    let nodes = graph.nodes.claimed() as usize;
    // SAFETY: no insert runs.
    let links = |node: usize| unsafe { graph.nodes.links(node as u32, 0) };
    let mut led_to = vec![0u16; nodes];
    (0..nodes)
        .flat_map(links)
        .for_each(|link| led_to[link as usize] += 1);
    let mut seen = vec![false; nodes];
    let mut next: Vec<usize> = graph
        .entry()
        .iter()
        .map(|(node, _)| *node as usize)
        .collect();
    while let Some(node) = next.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            next.extend(links(node).map(|link| link as usize));
        }
    }
    for node in 0..nodes {
        // SAFETY: no insert runs.
        let counted = unsafe { graph.nodes.led_to(node as u32) }.get();
        assert_eq!(counted, led_to[node], "{space:?}: links to node {node}");
        assert!(seen[node], "{space:?}: nothing leads to node {node}");
    }
}

/// By inner product some are among the nearest of nobody; in clusters a row loses links to those that come later.
#[test]
fn rows_in_clusters_are_led_to() -> Result<()> {
    for (metric, dim) in [
        (Metric::Euclidean, 64),
        (Metric::Cosine, 64),
        (Metric::Dot, 16),
        (Metric::Dot, 64),
    ] {
        let graph = graph(metric, dim)?;
        let mut rows = Rows(Vec::new());
        let mut next = drawn(7);
        let centres: Vec<f32> = (0..50 * dim).map(|_| next() * 4.0 - 2.0).collect();
        for row in 0..10_000 {
            let centre = &centres[mix(row) as usize % 50 * dim..][..dim];
            let vector: Vec<f32> = centre.iter().map(|x| x + next()).collect();
            insert(&graph, row, &vector)?;
            rows.0.push(bytes(&vector));
        }
        check(&graph);
        let mut saved = Vec::new();
        graph.save(&mut saved)?;
        check(&Hnsw::load(graph.space(), graph.params(), &saved, &rows)?);
    }
    Ok(())
}

/// Every row is as far from every other, and one may be nearer to all: nobody's links are worth more than others.
#[test]
fn rows_all_as_far_from_each_other_are_led_to() -> Result<()> {
    const DIM: usize = 500;
    for metric in [Metric::Euclidean, Metric::Cosine, Metric::Dot] {
        for has_centre in [false, true] {
            let graph = graph(metric, DIM)?;
            let mut vector = [0.0; DIM];
            if has_centre {
                insert(&graph, DIM as u64, &vector)?;
            }
            for row in 0..DIM {
                vector[row] = 1.0;
                insert(&graph, row as u64, &vector)?;
                vector[row] = 0.0;
            }
            check(&graph);
        }
    }
    Ok(())
}

#[test]
fn rows_of_many_threads_are_led_to() -> Result<()> {
    const DIM: usize = 24;
    let graph = graph(Metric::Euclidean, DIM)?;
    std::thread::scope(|scope| {
        let thread = |first: u64| -> Result<()> {
            let mut next = drawn(first + 1);
            for row in (first..4_000).step_by(4) {
                // Many are as far from each other.
                let vector: Vec<f32> = (0..DIM).map(|_| next().round()).collect();
                insert(&graph, row, &vector)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..4)
            .map(|first| scope.spawn(move || thread(first)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|of| of.join().expect("no panic"))
    })?;
    check(&graph);
    Ok(())
}
