//! No node of a graph is without edges that lead to it.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use longbow_kernels::{Metric, Scalar};

use crate::error::Result;
use crate::led_to::{KEPT, insert_by_threads};
use crate::mix::{drawn, mix};
use crate::quantized::block::{FREE, NONE};
use crate::quantized::level::Level;
use crate::quantized::{Progress, QuantizedGraph, QuantizedParams};
use crate::space::Space;

pub(super) fn graph(dim: usize, edge_codes: bool) -> Result<QuantizedGraph> {
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

pub(super) fn insert(graph: &QuantizedGraph, row: u64, vector: &[f32]) -> Result<()> {
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    graph.insert(row, &bytes)
}

impl QuantizedGraph {
    /// Checks that edges are counted as they are, and lead to nodes that are there, while no insert runs and nothing leaves.
    pub(crate) fn check_edges(&self, what: &str) {
        for level in &self.levels {
            let nodes = level.blocks.claimed();
            // SAFETY: no insert runs.
            let is_taken = |node: u32| unsafe { level.blocks.row(node) } != FREE;
            let mut led_to = vec![0u16; nodes as usize];
            for id in (0..nodes)
                .filter(|node| is_taken(*node))
                .flat_map(|node| level.edges(node))
            {
                led_to[id as usize] += 1;
                assert!(is_taken(id), "{what}: an edge to {id}, which is free");
            }
            for node in (0..nodes).filter(|node| is_taken(*node)) {
                // SAFETY: no insert runs.
                let counted = unsafe { level.blocks.led_to(node) }.get();
                assert_eq!(
                    counted, led_to[node as usize],
                    "{what}: edges to node {node}"
                );
            }
        }
    }
}

impl Level {
    /// Where the edges of a node lead, while no insert runs.
    fn edges(&self, node: u32) -> impl Iterator<Item = u32> {
        // SAFETY: the caller says so.
        let ids = unsafe { self.blocks.ids(node) }.iter();
        ids.map(|id| id.load(Ordering::Relaxed))
            .filter(|id| *id != NONE)
    }
}

/// Which nodes of the lowest level a walk of all edges comes to.
pub(super) fn reached_from(graph: &QuantizedGraph, node: u32) -> Vec<bool> {
    let level = graph.ground();
    let mut seen = vec![false; level.blocks.claimed() as usize];
    let mut next = vec![node];
    while let Some(node) = next.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            next.extend(level.edges(node));
        }
    }
    seen
}

/// Checks the edges, and that the walk of all those of the lowest level from where searches begin comes to every node.
/// Returns how many nodes fewer than [`KEPT`] edges lead to.
pub(super) fn check(graph: &QuantizedGraph, what: &str) -> usize {
    graph.check_edges(what);
    let level = graph.ground();
    let seen = level
        .entry()
        .map_or_else(Vec::new, |entry| reached_from(graph, entry));
    let mut few = 0;
    for node in 0..level.blocks.claimed() {
        // SAFETY: no insert runs.
        let (row, led_to) = unsafe { (level.blocks.row(node), level.blocks.led_to(node).get()) };
        assert!(
            row == FREE || seen[node as usize],
            "{what}: nothing leads to node {node}"
        );
        few += usize::from(row != FREE && led_to < KEPT);
    }
    few
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
            // Others come while these leave.
            while graph.remove(16) != Progress::Ended {
                insert(&graph, row, &vector(row))?;
                live.push(row);
                row += 1;
            }
            let few = check(
                &graph,
                &format!("codes of edges: {edge_codes}, round {round}"),
            );
            assert!(few < 10, "{few} nodes are led to by fewer than {KEPT}");
        }
    }
    Ok(())
}

/// Every row is as far from every other, and one may be nearer to all: nobody's neighbours are worth more than others.
#[test]
fn rows_all_as_far_from_each_other_are_led_to() -> Result<()> {
    const DIM: usize = 1_024;
    for (edge_codes, has_centre) in [(true, true), (true, false), (false, true), (false, false)] {
        let graph = graph(DIM, edge_codes)?;
        let mut vector = [0.0; DIM];
        if has_centre {
            insert(&graph, DIM as u64, &vector)?;
        }
        let mut add = |row: usize| {
            vector[row] = 1.0;
            let inserted = insert(&graph, row as u64, &vector);
            vector[row] = 0.0;
            inserted
        };
        let mut rows = 0..DIM;
        rows.by_ref().take(DIM / 2).try_for_each(&mut add)?;
        let what = format!("codes of edges: {edge_codes}, a centre: {has_centre}");
        check(&graph, &what);
        // Others come while some leave, those first that are around the centre.
        graph.retire(&|row| row < DIM as u64 / 4)?;
        while graph.remove(1) != Progress::Ended {
            rows.by_ref().take(2).try_for_each(&mut add)?;
        }
        check(&graph, &what);
    }
    Ok(())
}

#[test]
fn rows_of_many_threads_are_led_to() -> Result<()> {
    const DIM: usize = 24;
    let graph = graph(DIM, true)?;
    insert_by_threads(DIM, |row, vector| insert(&graph, row, vector))?;
    graph.check_edges("four threads");
    for node in 0..graph.ground().blocks.claimed() {
        // SAFETY: no insert runs.
        let (led_to, twin) = unsafe {
            let blocks = &graph.ground().blocks;
            (blocks.led_to(node).get(), blocks.twin(node))
        };
        assert_eq!(twin, NONE, "all vectors differ");
        assert!(led_to > 0, "nothing leads to node {node}");
    }
    Ok(())
}

#[test]
fn edges_of_a_graph_that_was_read_are_counted_and_lost_nodes_led_to() -> Result<()> {
    for edge_codes in [true, false] {
        let graph = graph(16, edge_codes)?;
        let mut next = drawn(3);
        for row in 0..500 {
            let vector: Vec<f32> = (0..16).map(|_| next()).collect();
            insert(&graph, row, &vector)?;
        }
        // As files may be that were written before edges were counted.
        let blocks = &graph.ground().blocks;
        for node in 0..500 {
            // SAFETY: no insert runs.
            let ids = unsafe { blocks.ids(node) }.iter();
            let lost = |id: u32| id != NONE && id % 100 == 7;
            let lost = ids
                .map(|id| id.load(Ordering::Relaxed))
                .enumerate()
                .filter(|(_, id)| lost(*id));
            // SAFETY: as above.
            lost.for_each(|(slot, _)| unsafe { blocks.clear_edge(node, slot) });
        }
        let mut saved = Vec::new();
        graph.save(&mut saved)?;
        let read = QuantizedGraph::load(graph.space(), graph.params(), &saved)?;
        check(&read, &format!("codes of edges: {edge_codes}"));
    }
    Ok(())
}
