//! No node of a graph is without links that lead to it.

use longbow_kernels::{Metric, Scalar};

use super::nodes::NONE;
use super::{Hnsw, HnswParams};
use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::led_to::insert_by_threads;
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

/// Where the links of a node on the ground lead, while no insert runs.
fn links(graph: &Hnsw, node: u32) -> impl Iterator<Item = u32> {
    // SAFETY: the caller says so.
    unsafe { graph.nodes.links(node, 0) }
}

/// Checks that links are counted as they are.
fn check_links(graph: &Hnsw) {
    let mut led_to = vec![0u16; graph.nodes.claimed() as usize];
    for link in (0..graph.nodes.claimed()).flat_map(|node| links(graph, node)) {
        led_to[link as usize] += 1;
    }
    for (node, led_to) in (0..).zip(led_to) {
        // SAFETY: no insert runs.
        let counted = unsafe { graph.nodes.led_to(node) }.get();
        assert_eq!(counted, led_to, "{:?}: links to node {node}", graph.space());
    }
}

/// Checks the links, and that the walk of all those of the ground from the entry comes to every node.
fn check(graph: &Hnsw) {
    check_links(graph);
    let mut seen = vec![false; graph.nodes.claimed() as usize];
    let mut next: Vec<u32> = graph.entry().iter().map(|(node, _)| *node).collect();
    while let Some(node) = next.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            next.extend(links(graph, node));
        }
    }
    let lost = seen.iter().position(|seen| !seen);
    assert_eq!(lost, None, "{:?}: nothing leads to a node", graph.space());
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
    insert_by_threads(DIM, |row, vector| insert(&graph, row, vector))?;
    check_links(&graph);
    for node in 0..graph.nodes.claimed() {
        // SAFETY: no insert runs.
        let (led_to, twin) = unsafe { (graph.nodes.led_to(node).get(), graph.nodes.twin(node)) };
        assert_eq!(twin, NONE, "all vectors differ");
        assert!(led_to > 0, "nothing leads to node {node}");
    }
    Ok(())
}
