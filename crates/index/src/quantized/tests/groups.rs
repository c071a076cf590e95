//! Rows in groups far from each other are found, whatever the order in which they come and others leave.

use std::collections::HashSet;
use std::iter;
use std::ops::Range;

use longbow_kernels::{Metric, Scalar};

use super::led_to::reached_from;
use crate::checkpoint::VectorSource;
use crate::error::Result;
use crate::filtered::{Entries, Filtered};
use crate::mix::{drawn, mix};
use crate::quantized::block::FREE;
use crate::quantized::{Progress, QuantizedGraph, QuantizedParams};
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::vector_index::VectorIndex;

const DIM: usize = 96;

/// Rows of groups, each of which is around a centre of its own.
struct Groups {
    next: Box<dyn FnMut() -> f32>,
    spread: f32,
    centres: Vec<Vec<f32>>,
    /// Vector and group of each row.
    rows: Vec<(Vec<f32>, usize)>,
    bytes: Vec<Vec<u8>>,
}

impl VectorSource for Groups {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.bytes.get(row as usize).map(Vec::as_slice)
    }
}

impl Groups {
    fn new(seed: u64, groups: usize, spread: f32) -> Self {
        let mut new = Groups {
            next: Box::new(drawn(seed)),
            spread,
            centres: Vec::new(),
            rows: Vec::new(),
            bytes: Vec::new(),
        };
        (0..groups).for_each(|_| new.add_group());
        new
    }

    fn add_group(&mut self) {
        let centre = (0..DIM).map(|_| (self.next)() - 0.5).collect();
        self.centres.push(centre);
    }

    /// Adds rows of some groups, and returns which they are.
    fn add(&mut self, groups: impl Iterator<Item = usize>) -> Range<u64> {
        let first = self.rows.len() as u64;
        for group in groups {
            let (spread, next) = (self.spread, &mut self.next);
            let centre = self.centres[group].iter();
            let vector: Vec<f32> = centre.map(|x| x + spread * (next() - 0.5)).collect();
            let bytes = vector.iter().flat_map(|x| x.to_le_bytes());
            self.bytes.push(bytes.collect());
            self.rows.push((vector, group));
        }
        first..self.rows.len() as u64
    }

    fn insert(&self, graph: &QuantizedGraph, mut rows: Range<u64>) -> Result<()> {
        rows.try_for_each(|row| graph.insert(row, &self.bytes[row as usize]))
    }

    /// Checks that hardly one of some rows is not found in its group by its own vector, neither among all nor among those that pass a
    /// filter that most pass.
    fn check(
        &self,
        graph: &QuantizedGraph,
        rows: impl Iterator<Item = u64>,
        dead: &HashSet<u64>,
        what: &str,
    ) -> Result<()> {
        let (mut asked, mut lost) = (0, [Vec::new(), Vec::new()]);
        let is_live = |row: u64| !dead.contains(&row);
        for row in rows {
            let (vector, group) = &self.rows[row as usize];
            let query = Query::new(graph.space(), vector)?;
            let mut stats = SearchStats::default();
            let passes = |other| is_live(other) && (other == row || !mix(other).is_multiple_of(10));
            let filtered = Filtered {
                k: 1,
                ef: 50,
                passes: &passes,
                entries: Entries {
                    rows: &[],
                    passing: Some(self.rows.len() as u64 / 10 * 9),
                    coded: None,
                },
                is_over: None,
            };
            let all = graph.search(&query, 1, 50, &is_live, self, &mut stats);
            let passing = graph.search_filtered(&query, filtered, self, &mut stats);
            asked += 1;
            for (found, lost) in [all, passing].iter().zip(&mut lost) {
                let of = |row: u64| self.rows[row as usize].1;
                if found.first().is_none_or(|found| of(found.row) != *group) {
                    lost.push(*group);
                }
            }
        }
        for (mut lost, among) in lost.into_iter().zip(["all", "those that pass"]) {
            let count = lost.len();
            lost.dedup();
            assert!(
                count * 100 <= asked,
                "{what}: {count} of {asked} rows are not found among {among}, of groups {lost:?}"
            );
        }
        Ok(())
    }
}

pub(super) fn graph(metric: Metric, dim: usize, edge_codes: bool) -> Result<QuantizedGraph> {
    let space = Space {
        scalar: Scalar::F32,
        metric,
        dim,
    };
    let params = QuantizedParams {
        edge_codes,
        ..QuantizedParams::default()
    };
    QuantizedGraph::new(space, params)
}

impl QuantizedGraph {
    /// Rows whose nodes are on the level above the lowest, too, while no insert runs.
    fn above(&self) -> HashSet<u64> {
        let blocks = &self.levels[1].blocks;
        // SAFETY: no insert runs, and nodes above stand for nodes of the lowest level.
        let below = (0..blocks.claimed()).map(|node| unsafe { blocks.row(node) });
        let taken = below.filter(|node| *node != FREE);
        // SAFETY: as above.
        let row = |node| unsafe { self.ground().blocks.row(node as u32) };
        taken.map(row).collect()
    }
}

/// Nor may a later row cut the way from one to another.
#[test]
fn groups_that_come_one_after_the_other_are_found() -> Result<()> {
    for (seed, groups, size, spread) in [
        (1, 20, 300, 0.3),
        (1, 20, 300, 0.1),
        (4, 20, 300, 0.03),
        (2, 20, 300, 0.01),
        (3, 200, 40, 0.1),
    ] {
        for edge_codes in [true, false] {
            let mut data = Groups::new(seed, groups, spread);
            let rows = data.add((0..groups * size).map(|row| row / size));
            let graph = graph(Metric::Cosine, DIM, edge_codes)?;
            graph.prepare(data.bytes.iter().step_by(6).map(Vec::as_slice));
            data.insert(&graph, rows.clone())?;
            let what = format!("{groups} groups of spread {spread}, codes of edges: {edge_codes}");
            data.check(&graph, rows.step_by(3), &HashSet::new(), &what)?;
            for group in 0..groups {
                let reached = reached_from(&graph, (group * size) as u32);
                assert!(reached.iter().all(|is| *is), "{what}: from group {group}");
            }
        }
    }
    Ok(())
}

/// The rows of the second are nearer to each other than to their codes.
#[test]
fn a_group_is_found_beside_one_that_codes_hardly_tell_apart() -> Result<()> {
    const FIRST: u64 = 300;
    for (seed, edge_codes) in [(1, true), (2, true), (3, true), (1, false), (2, false)] {
        let mut data = Groups::new(seed, 2, 0.003);
        data.add((0..10 * FIRST).map(|row| usize::from(row >= FIRST)));
        let graph = graph(Metric::Cosine, DIM, edge_codes)?;
        graph.prepare(data.bytes[..FIRST as usize].iter().map(Vec::as_slice));
        data.insert(&graph, 0..10 * FIRST)?;
        let what = format!("seed {seed}, codes of edges: {edge_codes}");
        data.check(&graph, 0..FIRST, &HashSet::new(), &what)?;
        data.check(
            &graph,
            (FIRST..10 * FIRST).step_by(9),
            &HashSet::new(),
            &what,
        )?;
    }
    Ok(())
}

#[test]
fn groups_that_stay_are_found_when_others_are_replaced() -> Result<()> {
    const GROUPS: usize = 40;
    const SIZE: usize = 100;
    /// Groups that stay.
    const STAY: usize = 12;
    for (seed, edge_codes) in [(6, true), (6, false), (7, true), (7, false)] {
        let mut data = Groups::new(seed, GROUPS, 0.1);
        data.add((0..GROUPS * SIZE).map(|row| row % GROUPS));
        let graph = graph(Metric::Cosine, DIM, edge_codes)?;
        graph.prepare(data.bytes.iter().step_by(4).map(Vec::as_slice));
        data.insert(&graph, 0..(GROUPS * SIZE) as u64)?;
        let mut dead = HashSet::new();
        let mut oldest = STAY;
        for _ in 0..8 {
            for _ in 0..12 {
                let rows = 0..data.rows.len() as u64;
                dead.extend(rows.filter(|row| data.rows[*row as usize].1 == oldest));
                oldest += 1;
                data.add_group();
                let new = data.add(iter::repeat_n(data.centres.len() - 1, SIZE));
                data.insert(&graph, new)?;
            }
            graph.retire(&|row| dead.contains(&row))?;
            while graph.remove(16) != Progress::Ended {}
        }
        let stay = |row: &u64| data.rows[*row as usize].1 < STAY;
        let rows = 0..data.rows.len() as u64;
        let what = format!("seed {seed}, codes of edges: {edge_codes}");
        data.check(&graph, rows.clone().filter(stay), &dead, &what)?;
        let live = rows.filter(|row| !dead.contains(row));
        data.check(&graph, live.step_by(7), &dead, &what)?;
    }
    Ok(())
}

/// Nodes at which walks for a group begin are succeeded by others of it, and serve until then.
#[test]
fn groups_are_found_while_rows_of_each_leave() -> Result<()> {
    const GROUPS: usize = 300;
    const SIZE: usize = 60;
    for edge_codes in [true, false] {
        let mut data = Groups::new(1, GROUPS, 0.05);
        data.add((0..GROUPS * SIZE).map(|row| row / SIZE));
        let graph = graph(Metric::Cosine, DIM, edge_codes)?;
        graph.prepare(data.bytes.iter().step_by(17).map(Vec::as_slice));
        let rows = 0..data.rows.len() as u64;
        data.insert(&graph, rows.clone())?;
        let mut dead = HashSet::new();
        for round in 0..2 {
            // One in four, and those on the level above but for a few, where walks begin.
            let above = graph.above();
            let leaves = |row: &u64| {
                mix(*row + round).is_multiple_of(4) || *row > 300 && above.contains(row)
            };
            dead.extend(rows.clone().filter(leaves));
            let what = format!("round {round}, codes of edges: {edge_codes}");
            let stay = rows.clone().filter(|row| !dead.contains(row));
            let stay: Vec<u64> = stay.step_by(3).collect();
            graph.retire(&|row| dead.contains(&row))?;
            let meanwhile = format!("while they leave, {what}");
            data.check(&graph, stay.iter().copied(), &dead, &meanwhile)?;
            while graph.remove(16) != Progress::Ended {}
            data.check(&graph, stay.into_iter(), &dead, &what)?;
        }
    }
    Ok(())
}
