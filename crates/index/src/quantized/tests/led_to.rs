//! No node of a graph is without edges that lead to it.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use longbow_kernels::{Metric, Scalar};

use crate::error::Result;
use crate::led_to::KEPT;
use crate::mix::{drawn, mix};
use crate::quantized::block::{FREE, NONE};
use crate::quantized::{Progress, QuantizedGraph, QuantizedParams};
use crate::space::Space;

fn graph(dim: usize, edge_codes: bool) -> Result<QuantizedGraph> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim,
    };
    let params = QuantizedParams {
        ef_construction: 40,
        edge_codes,
        ..QuantizedParams::default()
    };
    QuantizedGraph::new(space, params)
}

fn insert(graph: &QuantizedGraph, row: u64, vector: &[f32]) -> Result<()> {
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    graph.insert(row, &bytes)
}

/// Checks that edges are counted as they are, and that the walk of all edges from where searches begin comes to every
/// node. Returns how many nodes fewer than [`KEPT`] edges lead to.
fn check(graph: &QuantizedGraph, what: &str) -> usize {
    let blocks = &graph.ground().blocks;
    let nodes = blocks.claimed() as usize;
    let mut led_to = vec![0u16; nodes];
    // SAFETY: no insert runs.
    let ids = |node: usize| unsafe { blocks.ids(node as u32) }.iter();
    let ids = |node| ids(node).map(|id| id.load(Ordering::Relaxed) as usize);
    let ids = |node| ids(node).filter(|id| *id != NONE as usize);
    // SAFETY: no insert runs.
    let taken = |node: &usize| unsafe { blocks.row(*node as u32) } != FREE;
    let taken: Vec<usize> = (0..nodes).filter(taken).collect();
    for node in &taken {
        ids(*node).for_each(|id| led_to[id] += 1);
    }
    let mut seen = vec![false; nodes];
    let mut next: Vec<usize> = graph.ground().entry().iter().map(|e| *e as usize).collect();
    while let Some(node) = next.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            next.extend(ids(node));
        }
    }
    for node in &taken {
        // SAFETY: no insert runs.
        let counted = unsafe { blocks.led_to(*node as u32) }.get();
        assert_eq!(counted, led_to[*node], "{what}: edges to node {node}");
        assert!(seen[*node], "{what}: nothing leads to node {node}");
    }
    let few = |node: &&usize| led_to[**node] < KEPT;
    taken.iter().filter(few).count()
}

#[test]
fn rows_that_stay_are_led_to_however_many_others_are_replaced() -> Result<()> {
    const DIM: usize = 32;
    const ROWS: u64 = 2_000;
    for edge_codes in [true, false] {
        let graph = graph(DIM, edge_codes)?;
        let mut next = drawn(7);
        let centres: Vec<f32> = (0..20 * DIM).map(|_| next() * 4.0).collect();
        let mut vector = |row: u64| -> Vec<f32> {
            let centre = &centres[mix(row) as usize % 20 * DIM..][..DIM];
            centre.iter().map(|x| x + next()).collect()
        };
        let mut live: Vec<u64> = (0..ROWS).collect();
        for row in 0..ROWS {
            insert(&graph, row, &vector(row))?;
        }
        let mut row = ROWS;
        for round in 0..20 {
            let mut dead = HashSet::new();
            for _ in 0..ROWS / 4 {
                insert(&graph, row, &vector(row))?;
                // The first half is never touched.
                let at = (ROWS / 2 + mix(row) % (ROWS / 2)) as usize;
                dead.insert(std::mem::replace(&mut live[at], row));
                row += 1;
            }
            graph.retire(&|row| dead.contains(&row))?;
            while graph.remove(64) != Progress::Ended {}
            let few = check(
                &graph,
                &format!("codes of edges: {edge_codes}, round {round}"),
            );
            assert!(few < 10, "{few} nodes are led to by fewer than {KEPT}");
        }
    }
    Ok(())
}

/// Every row is as far from every other, and one is nearer to all: nobody's neighbours are worth more than others.
#[test]
fn rows_all_as_far_from_each_other_are_led_to() -> Result<()> {
    const DIM: usize = 1_024;
    for edge_codes in [true, false] {
        let graph = graph(DIM, edge_codes)?;
        let mut vector = [0.0; DIM];
        insert(&graph, 0, &vector)?;
        for row in 0..DIM {
            vector[row] = 1.0;
            insert(&graph, row as u64 + 1, &vector)?;
            vector[row] = 0.0;
        }
        check(&graph, &format!("codes of edges: {edge_codes}"));
    }
    Ok(())
}

#[test]
fn edges_of_a_graph_that_was_read_are_counted() -> Result<()> {
    for edge_codes in [true, false] {
        let graph = graph(16, edge_codes)?;
        let mut next = drawn(3);
        for row in 0..500 {
            let vector: Vec<f32> = (0..16).map(|_| next()).collect();
            insert(&graph, row, &vector)?;
        }
        let mut saved = Vec::new();
        graph.save(&mut saved)?;
        let read = QuantizedGraph::load(graph.space(), graph.params(), &saved)?;
        check(&read, &format!("codes of edges: {edge_codes}"));
    }
    Ok(())
}
