//! Dead rows whose nodes stay, since others with the same code hang behind them that live: twins are found through the first alone.
//!
//! Who puts rows anew whose vectors did not change makes each a twin of its own dead version. Those would stay for ever, and
//! walks go through them. So when the dead leave, such a node takes the row of the first living one behind it, its heir, and that one's
//! node leaves in its place: no edge changes, since codes are the same.
//! One that stands on the levels above stays as it is: whether it was drawn for them, its row tells.
//!
//! 1. When nobody sees the dead rows any more, nodes take the rows of their heirs, which are then in their chains twice: who
//!    reads a chain skips those behind the first that have its row.
//! 2. When the walks have ended that may have read the row of a node before, its chain passes the heir by, as all twins that leave.

use super::QuantizedGraph;
use super::block::{FREE, NONE};
use super::level::Level;
use super::removal::{FOLLOWS, LEADS, LEAVES};

/// A node whose row is dead, and the first behind it whose row lives.
pub(super) type Heir = (u32, u32);

/// Stands on the level above, too.
const ABOVE: u8 = 8;

/// Marks the heirs on the lowest level, where nodes that follow others and nodes that leave are marked, and lists them.
///
/// # Safety
/// All nodes of the two levels that were claimed are written.
pub(super) unsafe fn marked(
    (level, above): (&Level, &Level),
    dead: &dyn Fn(u64) -> bool,
    marks: &mut [u8],
) -> Vec<Heir> {
    let blocks = &level.blocks;
    for node in 0..above.blocks.claimed() {
        // SAFETY: the caller vouches for the nodes.
        let row = unsafe { above.blocks.row(node) };
        if row != FREE {
            marks[row as usize] |= ABOVE;
        }
    }
    let mut heirs = Vec::new();
    for node in 0..blocks.claimed() {
        if marks[node as usize] & (LEADS | FOLLOWS | LEAVES | ABOVE) != LEADS {
            continue;
        }
        // SAFETY: the caller vouches for the nodes.
        unsafe {
            if !dead(blocks.row(node)) {
                continue;
            }
            let mut heir = blocks.twin(node);
            while heir != NONE && dead(blocks.row(heir)) {
                heir = blocks.twin(heir);
            }
            if heir != NONE {
                marks[heir as usize] |= LEAVES;
                blocks.leave(heir);
                heirs.push((node, heir));
            }
        }
    }
    heirs
}

impl QuantizedGraph {
    /// Gives nodes the rows of their heirs. Nobody sees those that they had.
    pub(super) fn inherit(&self, heirs: &[Heir]) {
        let blocks = &self.ground().blocks;
        for (node, heir) in heirs {
            // SAFETY: listed nodes were written.
            unsafe {
                let (gone, row) = (blocks.row(*node), blocks.row(*heir));
                blocks.set_row(*node, row);
                // Behind it: who finds the node by this row reads this row.
                self.places.move_to(row, *node);
                self.places.forget(std::iter::once((gone, *node)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use longbow_kernels::{Metric, Scalar};

    use super::*;
    use crate::checkpoint::VectorSource;
    use crate::error::Result;
    use crate::mix::mix;
    use crate::quantized::{Progress, QuantizedParams};
    use crate::space::{Query, Space};
    use crate::stats::SearchStats;
    use crate::vector_index::VectorIndex;

    const SPACE: Space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 16,
    };
    /// Rows with vectors of their own; each later one has that of the row so many before it.
    const ROWS: u64 = 300;

    fn vector(row: u64) -> Vec<u8> {
        let number = |at| (mix(row % ROWS << 8 | at) >> 40) as f32 / 8_388_608.0 - 1.0;
        (0..SPACE.dim as u64)
            .flat_map(|at| number(at).to_le_bytes())
            .collect()
    }

    struct Rows(Vec<Vec<u8>>);

    impl VectorSource for Rows {
        fn vector(&self, row: u64) -> Option<&[u8]> {
            self.0.get(row as usize).map(Vec::as_slice)
        }
    }

    /// Checks that the rows that live are found by walks and scans, each once, and no others.
    fn check(graph: &QuantizedGraph, live: impl Fn(u64) -> bool + Sync) -> Result<()> {
        let rows = Rows((0..3 * ROWS).map(vector).collect());
        let live: Vec<bool> = (0..3 * ROWS).map(live).collect();
        for row in 0..ROWS {
            let floats: Vec<f32> = vector(row)
                .as_chunks::<4>()
                .0
                .iter()
                .map(|x| f32::from_le_bytes(*x))
                .collect();
            let query = Query::new(SPACE, &floats)?;
            let equal = (row..3 * ROWS).step_by(ROWS as usize);
            let expected: Vec<u64> = equal.filter(|row| live[*row as usize]).collect();
            let (stats, k) = (&mut SearchStats::default(), expected.len());
            let visible = |row: u64| live[row as usize];
            let found = graph.search(&query, k, 32, &visible, &rows, stats);
            let mut told: Vec<u64> = found.iter().map(|found| found.row).collect();
            told.sort_unstable();
            assert_eq!(told, expected);
            let mut missing = Vec::new();
            let asked = expected.iter().copied();
            let found = graph.scan_rows(&query, k, asked, &rows, (&mut missing, stats));
            assert_eq!((found.len(), missing), (k, Vec::new()));
        }
        Ok(())
    }

    /// The same of a graph that is read from what it is written as.
    fn check_saved(graph: &QuantizedGraph, live: impl Fn(u64) -> bool + Sync) -> Result<()> {
        check(graph, &live)?;
        let mut bytes = Vec::new();
        graph.save(&mut bytes)?;
        check(&QuantizedGraph::load(SPACE, graph.params(), &bytes)?, &live)
    }

    #[test]
    fn nodes_take_the_rows_of_their_heirs() -> Result<()> {
        let graph = QuantizedGraph::new(SPACE, QuantizedParams::default())?;
        for row in 0..2 * ROWS {
            graph.insert(row, &vector(row))?;
        }
        check_saved(&graph, |row| row < 2 * ROWS)?;
        let second = |row: u64| (ROWS..2 * ROWS).contains(&row);
        // Nodes that stand above stay besides.
        let above = graph.levels[1].blocks.taken();
        assert_eq!(graph.retire(&|row| row < ROWS)? as u64, ROWS - above);
        let before = graph.enter();
        check_saved(&graph, second)?;
        assert_eq!(graph.remove(64), Progress::Waiting);
        // Who entered since does not see the dead, and may have looked at the row of a node before that took another's.
        assert_eq!(graph.remove(64), Progress::Waiting);
        check_saved(&graph, second)?;
        drop(before);
        while graph.remove(64) != Progress::Ended {}
        assert_eq!(graph.len() as u64, ROWS + above);
        check_saved(&graph, second)?;
        // Again and again: what left gives its place to what comes.
        for row in 2 * ROWS..3 * ROWS {
            graph.insert(row, &vector(row))?;
        }
        let dead = |row: u64| row < 2 * ROWS && row % 3 < 2;
        assert_eq!(graph.retire(&dead)? as u64, ROWS / 3 * 2);
        while graph.remove(64) != Progress::Ended {}
        check_saved(&graph, |row| row >= ROWS && !dead(row))?;
        assert!(u64::from(graph.ground().blocks.claimed()) <= 2 * ROWS + above);
        Ok(())
    }
}
