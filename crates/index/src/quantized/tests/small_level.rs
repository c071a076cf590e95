//! Levels of so few nodes that the edges of each lead to all others.

use super::led_to::{graph, insert};
use crate::candidate::Candidate;
use crate::error::Result;
use crate::mix::drawn;
use crate::quantized::QuantizedGraph;
use crate::quantized::elsewhere::NARROW;
use crate::quantized::level::LEVELS;
use crate::quantized::scratch::Scratch;
use crate::quantized::walk::{Staying, Walk};
use crate::space::Query;

const DIM: usize = 16;
/// Of which about one in 64 is on the level above.
const ROWS: u64 = 1_200;

fn vector(of: u64) -> Vec<f32> {
    std::iter::repeat_with(drawn(of)).take(DIM).collect()
}

fn ready(graph: &QuantizedGraph, query: u64) -> Result<Box<Scratch>> {
    let query = Query::new(graph.space(), &vector(query))?;
    let mut scratch = graph.prepare_query(&query).expect("a graph with nodes");
    graph.fill_lut(&mut scratch);
    Ok(scratch)
}

/// The node of the lowest level that stands below the nearest of the one above.
fn below_nearest(graph: &QuantizedGraph, scratch: &Scratch) -> u32 {
    let blocks = &graph.levels[1].blocks;
    // SAFETY: no insert runs.
    let distance = |node| unsafe { blocks.distance(graph.encoder(), &scratch.query, node) };
    let all = (0..blocks.claimed()).map(|node| Candidate::new(distance(node), node));
    let nearest = all.min().expect("a level with nodes");
    // SAFETY: as above.
    unsafe { blocks.row(nearest.node()) as u32 }
}

#[test]
fn of_a_small_level_the_edges_of_one_node_are_followed() -> Result<()> {
    const QUERIES: u64 = 40;
    for edge_codes in [true, false] {
        let graph = graph(DIM, edge_codes)?;
        for row in 0..ROWS {
            insert(&graph, row, &vector(row))?;
        }
        let above = graph.levels[1..]
            .iter()
            .filter(|level| level.entry().is_some());
        let small = above.inspect(|level| assert!(level.is_small())).count() as u64;
        assert!(graph.levels[1].blocks.claimed() > 8 && !graph.levels[0].is_small());
        let mut at_the_nearest = 0;
        for query in ROWS..ROWS + QUERIES {
            let scratch = ready(&graph, query)?;
            let walk = Walk::new(&graph, (0, LEVELS - 1), (1, NARROW), Staying, scratch);
            let Ok(mut walk) = walk else {
                panic!("a graph with nodes");
            };
            walk.run();
            let start = walk
                .scratch
                .start
                .expect("a walk that came to the lowest level");
            at_the_nearest += u64::from(start.node() == below_nearest(&graph, &walk.scratch));
            let all = walk.scratch.stats.nodes_popped;
            // SAFETY: the start was written.
            let mut lowest =
                unsafe { Walk::lowest(&graph, start, 1, Staying, ready(&graph, query)?) };
            lowest.run();
            assert_eq!(all, small + lowest.scratch.stats.nodes_popped);
        }
        // Estimates may pass over the nearest.
        let least = QUERIES * 3 / 4;
        assert!(at_the_nearest >= least, "{at_the_nearest} of {QUERIES}");
    }
    Ok(())
}
