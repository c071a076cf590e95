//! Rows come into a small graph of quantised vectors and leave it, while it is searched.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use longbow_kernels::{Metric, Scalar};
use shuttle::thread;

use super::explore;
use crate::checkpoint::VectorSource;
use crate::error::{Error, Result};
use crate::mix::mix;
use crate::quantized::{Progress, QuantizedGraph, QuantizedParams};
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::sync::atomic::AtomicU64;
use crate::vector_index::VectorIndex;

const SPACE: Space = Space {
    scalar: Scalar::F32,
    metric: Metric::Euclidean,
    dim: 8,
};
/// Rows that are there at the begin, or that a third thread adds.
const FIRST: u64 = 6;
/// Rows that each of two threads adds.
const EACH: u64 = 4;
const ALL: u64 = FIRST + 2 * EACH;
/// Of the first rows, these die at the first moment.
const DEAD: Range<u64> = 0..3;

/// The last of the first thread.
const ODD: u64 = FIRST + EACH - 1;

/// The first three of each thread's rows have the vectors of first rows, and become their twins.
fn vector(row: u64) -> [f32; 8] {
    let twin = row >= FIRST && (row - FIRST) % EACH < 3;
    let seed = if twin { 1 + (row - FIRST) % EACH } else { row };
    std::array::from_fn(|at| (mix(seed << 8 | at as u64) >> 40) as f32 / 8_388_608.0 - 1.0)
}

fn bytes(row: u64) -> Vec<u8> {
    vector(row).iter().flat_map(|x| x.to_le_bytes()).collect()
}

struct Rows(Vec<Vec<u8>>);

impl VectorSource for Rows {
    fn vector(&self, row: u64) -> Option<&[u8]> {
        self.0.get(row as usize).map(Vec::as_slice)
    }
}

const UNKNOWN: u8 = 0;
const BEGUN: u8 = 1;
const ACKNOWLEDGED: u8 = 2;

struct World {
    graph: QuantizedGraph,
    rows: Rows,
    /// How far the insert of each row is.
    states: [AtomicU8; ALL as usize],
    moment: AtomicU64,
}

impl World {
    fn new(edge_codes: bool) -> Self {
        let params = QuantizedParams {
            ef_construction: 8,
            seed: 1,
            edge_codes,
        };
        World {
            graph: QuantizedGraph::new(SPACE, params).expect("good parameters"),
            rows: Rows((0..ALL).map(bytes).collect()),
            states: [const { AtomicU8::new(UNKNOWN) }; ALL as usize],
            moment: AtomicU64::new(0),
        }
    }

    /// A world of whole numbers, but for one element of row [`ODD`] and of those from `odd` on. A graph that is prepared keeps copies of all
    /// other vectors.
    fn of_whole_numbers(odd: u64) -> Self {
        let mut world = World::new(true);
        for (row, bytes) in (0..).zip(&mut world.rows.0) {
            let odd = if row == ODD || row >= odd { 0.5 } else { 0.0 };
            let whole = vector(row).map(|x| (100.0 * x).round() + odd);
            *bytes = whole.iter().flat_map(|x| x.to_le_bytes()).collect();
        }
        let first = &world.rows.0[..FIRST as usize];
        world.graph.prepare(first.iter().map(Vec::as_slice));
        world
    }

    fn insert(&self, rows: Range<u64>) {
        self.insert_by(rows, |row, vector| self.graph.insert(row, vector));
    }

    fn insert_in_haste(&self, rows: Range<u64>) {
        self.insert_by(rows, |row, vector| self.graph.insert_in_haste(row, vector));
    }

    fn insert_by(&self, rows: Range<u64>, insert: impl Fn(u64, &[u8]) -> Result<()>) {
        for row in rows {
            self.states[row as usize].store(BEGUN, SeqCst);
            insert(row, &self.rows.0[row as usize]).expect("there is room");
            self.states[row as usize].store(ACKNOWLEDGED, SeqCst);
        }
    }

    /// Writes a checkpoint, unless rows come just then, and reads it.
    fn save(&self) {
        let mut bytes = Vec::new();
        match self.graph.save(&mut bytes) {
            Ok(_) => {
                let again = QuantizedGraph::load(SPACE, self.graph.params(), &bytes);
                let again = again.expect("a checkpoint");
                again.check_edges("a checkpoint");
                let query = Query::new(SPACE, &vector(1)).expect("a vector of the space");
                let (alive, stats) = (|row| !DEAD.contains(&row), &mut SearchStats::default());
                let found = again.search(&query, ALL as usize, 64, &alive, &self.rows, stats);
                let each: BTreeSet<u64> = found.iter().map(|found| found.row).collect();
                assert_eq!(each.len(), found.len(), "a row was written twice");
            }
            Err(Error::Busy) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Lets the dead ones leave, one node at a time.
    fn remove(&self) {
        self.moment.store(1, SeqCst);
        let dead = |row: u64| DEAD.contains(&row);
        let mut count = self.graph.retire(&dead);
        while let Err(Error::Busy) = count {
            thread::yield_now();
            count = self.graph.retire(&dead);
        }
        loop {
            match self.graph.remove(1) {
                Progress::Ended => break,
                Progress::Working => {}
                Progress::Waiting => thread::yield_now(),
            }
        }
    }

    /// Rows that were acknowledged and live as of a moment.
    fn rows(&self, moment: u64) -> BTreeSet<u64> {
        let come = |row: &u64| self.states[*row as usize].load(SeqCst) == ACKNOWLEDGED;
        let alive = |row: &u64| moment == 0 || !DEAD.contains(row);
        (0..ALL).filter(come).filter(alive).collect()
    }

    fn search(&self, row: u64) {
        let query = Query::new(SPACE, &vector(row)).expect("a vector of the space");
        for _ in 0..2 {
            let _visit = self.graph.enter();
            let moment = self.moment.load(SeqCst);
            let must = self.rows(moment);
            let (k, stats) = (ALL as usize, &mut SearchStats::default());
            let mut missing = Vec::new();
            let places = must.iter().copied();
            let scanned =
                self.graph
                    .scan_rows(&query, k, places, &self.rows, (&mut missing, stats));
            assert_eq!((scanned.len(), missing), (must.len(), Vec::new()));
            let visible = |row: u64| {
                let state = self
                    .states
                    .get(row as usize)
                    .map(|state| state.load(SeqCst));
                assert!(state.is_some_and(|state| state >= BEGUN), "row {row}");
                moment == 0 || !DEAD.contains(&row)
            };
            let found = self
                .graph
                .search(&query, k, 64, &visible, &self.rows, stats);
            let each: BTreeSet<u64> = found.iter().map(|found| found.row).collect();
            assert_eq!(each.len(), found.len(), "a row is there twice");
            for found in &found {
                assert_eq!(
                    found.distance,
                    query.distance(&self.rows.0[found.row as usize])
                );
            }
            let missed: Vec<&u64> = must.difference(&each).collect();
            assert!(missed.is_empty(), "missed {missed:?} as of {moment}");
        }
    }
}

fn rows_come_and_go(edge_codes: bool, begun: bool) {
    explore(8, move || {
        let world = World::new(edge_codes);
        if begun {
            world.insert(0..FIRST);
        }
        thread::scope(|scope| {
            if !begun {
                scope.spawn(|| world.insert(0..FIRST));
            }
            scope.spawn(|| world.insert(FIRST..FIRST + EACH));
            scope.spawn(|| world.insert(FIRST + EACH..ALL));
            scope.spawn(|| world.remove());
            scope.spawn(|| world.search(1));
        });
        world.search(ALL - 1);
        // One that died stays where it came after the others left, or stands on the levels above and a twin hangs behind it.
        let left = ALL as usize - world.graph.len();
        let least = usize::from(begun);
        assert!((least..=3).contains(&left), "{left} nodes left");
        world.graph.check_edges("rows came and went");
    });
}

#[test]
fn no_row_is_missed_that_was_acknowledged() {
    rows_come_and_go(true, true);
}

#[test]
fn no_row_is_missed_where_edges_have_no_codes() {
    rows_come_and_go(false, true);
}

#[test]
fn no_row_is_missed_in_a_graph_that_several_begin() {
    rows_come_and_go(true, false);
}

#[test]
fn no_row_is_missed_that_came_in_haste() {
    explore(8, || {
        let world = World::new(true);
        world.insert_in_haste(0..FIRST);
        thread::scope(|scope| {
            scope.spawn(|| world.insert_in_haste(FIRST..ALL));
            scope.spawn(|| while world.graph.refine(1) {});
            scope.spawn(|| world.remove());
            scope.spawn(|| world.save());
            scope.spawn(|| world.search(1));
        });
        world.save();
        while world.graph.refine(1) {}
        world.search(ALL - 1);
        world.graph.check_edges("rows came in haste");
    });
}

/// Twins of dead rows are found all the while, though nodes that they hang behind take their rows.
#[test]
fn no_row_is_missed_whose_node_is_another_then() {
    explore(4, || {
        let world = World::new(true);
        world.insert(0..ALL);
        thread::scope(|scope| {
            scope.spawn(|| world.remove());
            scope.spawn(|| world.save());
            scope.spawn(|| world.search(1));
        });
        world.search(2);
        assert_eq!(world.graph.len(), ALL as usize - 3);
        world.graph.check_edges("nodes have other rows");
    });
}

/// What makes the copies of vectors end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Never,
    /// Someone needs their memory.
    LetGo,
    /// Too many that come are odd.
    Odd,
}

/// Rows come and go of which some have no copies, and the copies end meanwhile or not.
fn whole_rows_come_and_go(end: End) {
    explore(8, move || {
        let odd = if end == End::Odd { FIRST } else { ALL };
        let world = World::of_whole_numbers(odd);
        world.insert(0..FIRST);
        assert!(world.graph.kept_bytes() > 0);
        thread::scope(|scope| {
            scope.spawn(|| world.insert(FIRST..FIRST + EACH));
            scope.spawn(|| world.insert(FIRST + EACH..ALL));
            scope.spawn(|| world.remove());
            scope.spawn(|| world.search(1));
            if end == End::LetGo {
                scope.spawn(|| world.graph.let_go());
            }
        });
        world.search(ODD);
        assert_eq!(world.graph.kept_bytes() > 0, end == End::Never);
    });
}

/// Who met a node whose vector has no copy reads the vector.
#[test]
fn distances_are_those_of_the_rows_where_one_has_no_copy() {
    whole_rows_come_and_go(End::Never);
}

/// Who met a node looks for its copy only then, and finds none or its own.
#[test]
fn distances_are_those_of_the_rows_while_copies_end() {
    whole_rows_come_and_go(End::LetGo);
    whole_rows_come_and_go(End::Odd);
}
