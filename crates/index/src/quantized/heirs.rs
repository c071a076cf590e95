//! Dead rows whose nodes stay, since others with the same code hang behind them that live: twins are found through the first alone.
//!
//! Who puts rows anew whose vectors did not change makes each a twin of its own dead version. Those would stay for ever, and
//! walks go through them. So when the dead leave, such a node takes the row of the first living one behind it, its heir, and that one's
//! node leaves in its place: no edge changes, since codes are the same.
//!
//! One that stands on the levels above stays as it is, and so does one whose heirs were drawn for them: by its row is told whether a node was.
//!
//! 1. When nobody sees the dead rows any more, nodes take the rows of their heirs, which are then in their chains twice: who
//!    reads a chain skips those behind the first that have its row.
//! 2. When the walks have ended that may have read the row of a node before, the heir takes the row that is dead, and the chain passes it
//!    by, as all twins that leave.

use std::collections::HashSet;

use super::QuantizedGraph;
use super::block::{FREE, NONE};
use super::removal::{FOLLOWS, LEADS, LEAVES};
use crate::candidate::Candidate;

/// A node whose row is dead, and the first behind it whose row lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heir {
    /// The one that stays.
    pub(super) node: u32,
    /// Its row, which is dead.
    pub(super) gone: u64,
    /// The one that leaves.
    pub(super) heir: u32,
}

/// Stands on the level above, too.
const ABOVE: u8 = 8;

impl QuantizedGraph {
    /// Marks the heirs on the lowest level, where nodes that lead and follow others and nodes that leave are marked, and lists them.
    ///
    /// # Safety
    /// All nodes that were claimed are written.
    pub(super) unsafe fn mark_heirs(
        &self,
        dead: &dyn Fn(u64) -> bool,
        marks: &mut [u8],
    ) -> Vec<Heir> {
        let (blocks, above) = (&self.ground().blocks, &self.levels[1].blocks);
        for node in 0..above.claimed() {
            // SAFETY: the caller vouches for the nodes.
            let row = unsafe { above.row(node) };
            if row != FREE {
                marks[row as usize] |= ABOVE;
            }
        }
        let cannot = |row: u64| dead(row) || self.draw_level(row) > 0;
        let mut heirs = Vec::new();
        for node in 0..blocks.claimed() {
            if marks[node as usize] & (LEADS | FOLLOWS | LEAVES | ABOVE) != LEADS {
                continue;
            }
            // SAFETY: the caller vouches for the nodes.
            unsafe {
                let gone = blocks.row(node);
                if !dead(gone) {
                    continue;
                }
                let mut heir = blocks.twin(node);
                while heir != NONE && cannot(blocks.row(heir)) {
                    heir = blocks.twin(heir);
                }
                if heir != NONE {
                    marks[heir as usize] |= LEAVES;
                    blocks.leave(heir);
                    heirs.push(Heir { node, gone, heir });
                }
            }
        }
        heirs
    }

    /// Gives nodes the rows of their heirs. Nobody sees those that they had.
    pub(super) fn inherit(&self, heirs: &[Heir]) {
        let blocks = &self.ground().blocks;
        for Heir { node, heir, .. } in heirs {
            // SAFETY: listed nodes were written.
            unsafe {
                let row = blocks.row(*heir);
                // Before it gets the row: who finds the node by that compares this copy. Nobody compares the one before, of a row that
                // is dead for all.
                self.copies.hand_on(*node, *heir);
                blocks.set_row(*node, row);
                // Behind it: who finds the node by this row reads this row.
                self.places.move_to(row, *node);
            }
        }
        let gone = heirs.iter().map(|of| (of.gone, of.node));
        self.places.forget(gone);
    }

    /// Gives heirs the rows that are dead, when nobody looks into their nodes any more for those that they had.
    pub(super) fn disinherit(&self, heirs: &[Heir]) {
        for Heir { gone, heir, .. } in heirs {
            // SAFETY: listed nodes were written.
            unsafe { self.ground().blocks.set_row(*heir, *gone) };
        }
    }

    /// Lets whoever asks for the rows of nodes whose twins have all left not look into their blocks any more.
    ///
    /// # Safety
    /// All nodes that were claimed are written, and none is written meanwhile.
    pub(super) unsafe fn forget_twins(&self, marks: &[u8]) {
        for node in 0..self.ground().blocks.claimed() {
            // SAFETY: the caller vouches for the nodes.
            unsafe {
                if marks[node as usize] & LEADS == 0 && self.places.row(node).is_none() {
                    let row = self.ground().blocks.row(node);
                    self.places.look_no_more(node, row);
                }
            }
        }
    }

    /// Of what two walks of the lowest level found for a search, which is sorted, leaves each row once: between them a node may have taken the row of
    /// its heir. Such have the same code.
    pub(super) fn keep_each_row_once(&self, found: &mut Vec<Candidate>) {
        let mut pairs = found.windows(2);
        if pairs.all(|pair| pair[0].distance() < pair[1].distance()) {
            return;
        }
        let mut rows = HashSet::with_capacity(found.len());
        // SAFETY: walks find nodes that were written.
        found.retain(|of| rows.insert(unsafe { self.ground().blocks.row(of.node()) }));
    }
}

#[cfg(test)]
mod tests {
    use longbow_kernels::{Metric, Scalar};

    use super::*;
    use crate::checkpoint::VectorSource;
    use crate::error::Result;
    use crate::filtered::{Entries, Filtered};
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
        let number = |at| (mix((row % ROWS) << 8 | at) >> 40) as f32 / 8_388_608.0 - 1.0;
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
        let visible = |row: u64| live[row as usize];
        let stats = &mut SearchStats::default();
        for row in 0..ROWS {
            let elements = vector(row);
            let elements = elements.as_chunks::<4>().0.iter();
            let floats: Vec<f32> = elements.map(|x| f32::from_le_bytes(*x)).collect();
            let query = Query::new(SPACE, &floats)?;
            let equal = (row..3 * ROWS).step_by(ROWS as usize);
            let expected: Vec<u64> = equal.filter(|row| visible(*row)).collect();
            // More than are equal, so that none comes twice in the place of others.
            let k = expected.len() + 3;
            let filtered = Filtered {
                k,
                ef: 32,
                passes: &visible,
                entries: Entries {
                    rows: &expected,
                    passing: None,
                    coded: None,
                },
                is_over: None,
            };
            for found in [
                graph.search(&query, k, 32, &visible, &rows, stats),
                graph.search_filtered(&query, filtered, &rows, stats),
            ] {
                let mut told: Vec<u64> = found.iter().map(|found| found.row).collect();
                told[..expected.len()].sort_unstable();
                assert_eq!(told[..expected.len()], expected);
                told.sort_unstable();
                told.dedup();
                assert_eq!(told.len(), k, "each once");
            }
            let mut missing = Vec::new();
            let asked = expected.iter().copied();
            let found = graph.scan_rows(&query, k, asked, &rows, (&mut missing, stats));
            assert_eq!((found.len(), missing), (expected.len(), Vec::new()));
        }
        Ok(())
    }

    /// Nodes of dead rows that may stay: those that stand above, and those of whose heirs all were drawn for that.
    fn kept_at_most(graph: &QuantizedGraph) -> u64 {
        let drawn = (0..3 * ROWS).filter(|row| graph.draw_level(*row) > 0);
        graph.levels[1].blocks.taken() + drawn.count() as u64
    }

    /// The same of a graph that is read from what it is written as, of which what is dead leaves.
    fn check_saved(graph: &QuantizedGraph, live: impl Fn(u64) -> bool + Sync) -> Result<()> {
        check(graph, &live)?;
        let mut bytes = Vec::new();
        graph.save(&mut bytes)?;
        let again = QuantizedGraph::load(SPACE, graph.params(), &bytes)?;
        check(&again, &live)?;
        // What hangs behind dead ones that all leave is the first then, and leaves next.
        for _ in 0..2 {
            again.retire(&|row| !live(row))?;
            while again.remove(64) != Progress::Ended {}
        }
        check(&again, &live)?;
        let living = (0..3 * ROWS).filter(|row| live(*row));
        let most = living.count() as u64 + kept_at_most(&again);
        assert!(again.len() as u64 <= most, "{} of {most}", again.len());
        Ok(())
    }

    #[test]
    fn nodes_take_the_rows_of_their_heirs() -> Result<()> {
        let graph = QuantizedGraph::new(SPACE, QuantizedParams::default())?;
        for row in 0..2 * ROWS {
            graph.insert(row, &vector(row))?;
        }
        check_saved(&graph, |row| row < 2 * ROWS)?;
        let second = |row: u64| (ROWS..2 * ROWS).contains(&row);
        let left = graph.retire(&|row| row < ROWS)? as u64;
        let kept = ROWS - left;
        assert!(kept <= kept_at_most(&graph), "{kept}");
        let before = graph.enter();
        check_saved(&graph, second)?;
        // Who entered since does not see the dead, and may have looked at the row of a node before that took another's.
        let mut steps = 0;
        while graph.remove(64) == Progress::Working {
            check_saved(&graph, second)?;
            steps += 1;
        }
        assert_eq!(steps, 1 + left.div_ceil(64));
        check_saved(&graph, second)?;
        drop(before);
        while graph.remove(64) == Progress::Working {
            check_saved(&graph, second)?;
        }
        while graph.remove(64) != Progress::Ended {}
        assert_eq!(graph.len() as u64, ROWS + kept);
        check_saved(&graph, second)?;
        // Again and again: what left gives its place to what comes.
        for row in 2 * ROWS..3 * ROWS {
            graph.insert(row, &vector(row))?;
        }
        let dead = |row: u64| row < 2 * ROWS && row % 3 < 2;
        assert!(graph.retire(&dead)? as u64 >= ROWS / 3 * 2 - kept_at_most(&graph));
        while graph.remove(64) != Progress::Ended {}
        check_saved(&graph, |row| row >= ROWS && !dead(row))?;
        assert!(u64::from(graph.ground().blocks.claimed()) <= 2 * ROWS + kept);
        Ok(())
    }
}
