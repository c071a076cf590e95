//! Rows that come in haste are led to and found, before and after the rest is done for them.

use std::ops::Range;

use super::led_to::{check, graph, insert};
use crate::error::Result;
use crate::mix::drawn;
use crate::quantized::block::FREE;
use crate::quantized::{Progress, QuantizedGraph};

const DIM: usize = 48;

/// A graph of some rows, the vectors of these and of more, around ten centres.
fn begun(edge_codes: bool, rows: usize, more: usize) -> Result<(QuantizedGraph, Vec<Vec<f32>>)> {
    let graph = graph(DIM, edge_codes)?;
    let mut next = drawn(5);
    let centres: Vec<f32> = (0..10 * DIM).map(|_| next() * 3.0).collect();
    let mut vector = |row: usize| -> Vec<f32> {
        let centre = &centres[row * 7 % 10 * DIM..][..DIM];
        centre.iter().map(|x| x + next()).collect()
    };
    let vectors: Vec<Vec<f32>> = (0..rows + more).map(&mut vector).collect();
    let mut numbered = (0..).zip(&vectors[..rows]);
    numbered.try_for_each(|(row, vector)| insert(&graph, row, vector))?;
    Ok((graph, vectors))
}

fn insert_in_haste(graph: &QuantizedGraph, rows: Range<u64>, vectors: &[Vec<f32>]) -> Result<()> {
    for row in rows {
        let vector = vectors[row as usize].iter();
        let bytes: Vec<u8> = vector.flat_map(|x| x.to_le_bytes()).collect();
        graph.insert_in_haste(row, &bytes)?;
    }
    Ok(())
}

fn checkpoint(graph: &QuantizedGraph) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    graph.save(&mut bytes)?;
    Ok(bytes)
}

/// Edges to the nodes of some rows, per row.
fn led_to(graph: &QuantizedGraph, rows: Range<u64>) -> f64 {
    let blocks = &graph.ground().blocks;
    // SAFETY: no insert runs.
    let of = |node: u32| unsafe { (blocks.row(node), blocks.led_to(node).get()) };
    let count = |node| match of(node) {
        (row, edges) if row != FREE && rows.contains(&row) => f64::from(edges),
        _ => 0.0,
    };
    let edges: f64 = (0..blocks.claimed()).map(count).sum();
    edges / (rows.end - rows.start) as f64
}

#[test]
fn what_was_left_undone_is_done_once() -> Result<()> {
    for edge_codes in [true, false] {
        let empty = graph(DIM, edge_codes)?;
        assert!(!empty.refine(10) && !empty.is_prepared());
        let (graph, vectors) = begun(edge_codes, 2_000, 400)?;
        assert!(!graph.refine(10), "nothing was in haste");
        insert_in_haste(&graph, 2_000..2_400, &vectors)?;
        assert!(graph.hasty() >= 400, "{} nodes", graph.hasty());
        check(&graph, "in haste");
        let before = led_to(&graph, 2_000..2_400);
        while graph.refine(7) {}
        assert_eq!(graph.hasty(), 0);
        check(&graph, "refined");
        let after = led_to(&graph, 2_000..2_400);
        assert!(
            before < 18.0 && after > 1.3 * before,
            "{before} edges led to each, then {after}"
        );
    }
    Ok(())
}

#[test]
fn a_checkpoint_tells_what_was_left_undone() -> Result<()> {
    for edge_codes in [true, false] {
        let (graph, vectors) = begun(edge_codes, 1_000, 300)?;
        let mut saved = vec![(checkpoint(&graph)?, 0)];
        insert_in_haste(&graph, 1_000..1_300, &vectors)?;
        // A third of those in haste leaves, and their nodes are not numbered at last.
        graph.retire(&|row| row >= 1_200)?;
        saved.push((checkpoint(&graph)?, graph.hasty()));
        for _ in 0..5 {
            graph.remove(8);
        }
        saved.push((checkpoint(&graph)?, graph.hasty()));
        while graph.remove(8) != Progress::Ended {}
        saved.push((checkpoint(&graph)?, graph.hasty()));
        for (bytes, hasty) in saved {
            let again = QuantizedGraph::load(graph.space, graph.params, &bytes)?;
            assert_eq!(again.hasty(), hasty);
            let of_haste = 1_000..1_200;
            let before = led_to(&again, of_haste.clone());
            while again.refine(9) {}
            let after = led_to(&again, of_haste);
            assert!(
                hasty == 0 || hasty >= 200 && after > 1.15 * before,
                "{hasty} nodes, {before} edges led to each, then {after}"
            );
            again.check_edges("refined after a start");
        }
    }
    Ok(())
}

#[test]
fn nodes_that_leave_are_done_no_more() -> Result<()> {
    for edge_codes in [true, false] {
        let (graph, vectors) = begun(edge_codes, 1_000, 1_500)?;
        let mut row = 1_000;
        for round in 0..5 {
            insert_in_haste(&graph, row..row + 200, &vectors)?;
            // Half of those in haste among them.
            graph.retire(&|dead| dead >= row - 200 && dead < row + 100)?;
            assert!(graph.hasty() >= 100 && graph.hasty() < 150);
            row += 200;
            // Others come in haste meanwhile, and what is left is done by another thread.
            std::thread::scope(|scope| -> Result<()> {
                let refining = scope.spawn(|| while graph.refine(3) {});
                let last = row + 100;
                while graph.remove(8) != Progress::Ended && row < last {
                    insert_in_haste(&graph, row..row + 1, &vectors)?;
                    row += 1;
                }
                refining.join().expect("no panic");
                Ok(())
            })?;
            while graph.remove(8) != Progress::Ended {}
            while graph.refine(50) {}
            check(&graph, &format!("codes {edge_codes}, round {round}"));
        }
    }
    Ok(())
}
