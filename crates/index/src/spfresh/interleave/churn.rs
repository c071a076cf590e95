//! Two threads that have the same postings split and merged, while others search, sweep and save.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use shuttle::thread;

use super::file::{Contents, Mapped};
use super::{PARAMS, Rows, SPACE, empty, own};
use crate::interleave::explore;
use crate::mix::mix;
use crate::space::Query;
use crate::spfresh::SpFresh;
use crate::spfresh::tests::misplaced;
use crate::stats::SearchStats;
use crate::sync::atomic::AtomicU64;

/// Rows that are there at the begin, of all clusters in turn.
const FIRST: u64 = 48;
/// Rows that each of two threads adds, of the last two clusters.
const EACH: u64 = 24;
const ALL: u64 = FIRST + 2 * EACH;
const CLUSTERS: u64 = 4;
/// Moments at each of which more of the first rows die.
const MOMENTS: u64 = 2;
/// Whether a row is dead as of a moment: of the first ones two clusters die, then one more.
fn is_dead(row: u64, moment: u64) -> bool {
    row < FIRST && moment >= 1 && row % CLUSTERS <= moment
}

fn vector(row: u64) -> [f32; 8] {
    let cluster = match row {
        0..FIRST => row % CLUSTERS,
        row => CLUSTERS - 2 + row % 2,
    };
    let number = |seed: u64| (mix(seed) >> 40) as f32 / 8_388_608.0 - 1.0;
    std::array::from_fn(|at| {
        let at = at as u64;
        number(cluster << 8 | at) + 0.6 * number(1 << 32 | row << 8 | at)
    })
}

const UNKNOWN: u8 = 0;
const BEGUN: u8 = 1;
const ACKNOWLEDGED: u8 = 2;

struct World {
    index: SpFresh,
    file: Mapped,
    rows: Rows,
    queries: [Query; 2],
    /// How far the insert of each row is.
    states: [AtomicU8; ALL as usize],
    moment: AtomicU64,
}

impl World {
    fn new() -> Self {
        let (index, file) = empty(PARAMS);
        let query = |row| Query::new(SPACE, &vector(row)).expect("a vector of the space");
        let world = World {
            index,
            file,
            rows: Rows::new(ALL, vector),
            queries: [query(0), query(ALL - 1)],
            states: [const { AtomicU8::new(UNKNOWN) }; ALL as usize],
            moment: AtomicU64::new(0),
        };
        world.insert(0..FIRST);
        world
    }

    fn insert(&self, rows: Range<u64>) {
        for row in rows {
            self.states[row as usize].store(BEGUN, SeqCst);
            self.rows.insert(&self.index, row);
            self.states[row as usize].store(ACKNOWLEDGED, SeqCst);
        }
    }

    /// Rows whose insert has come so far, and that live as of a moment.
    fn rows(&self, state: u8, moment: u64) -> BTreeSet<u64> {
        let come = |row: &u64| self.states[*row as usize].load(SeqCst) >= state;
        let alive = |row: &u64| !is_dead(*row, moment);
        (0..ALL).filter(come).filter(alive).collect()
    }

    fn sweep(&self) {
        for moment in 1..=MOMENTS {
            self.moment.store(moment, SeqCst);
            self.index.turn();
            while !self.index.is_over() {
                thread::yield_now();
            }
            self.sweep_all(moment);
        }
    }

    /// Sweeps all postings one by one, and returns how many rows left.
    fn sweep_all(&self, moment: u64) -> u64 {
        let (mut from, mut rows) = (Some(0), 0);
        while let Some(begin) = from {
            let swept = self.index.sweep(&|row| is_dead(row, moment), begin, 1);
            let swept = swept.expect("no file fails");
            (from, rows) = (swept.next, rows + swept.rows);
        }
        rows
    }

    fn search(&self) {
        for query in self.queries.iter().chain(&self.queries[..1]) {
            let _visit = self.index.enter();
            let moment = self.moment.load(SeqCst);
            let must = self.rows(ACKNOWLEDGED, moment);
            let visible = |row: u64| {
                let state = self
                    .states
                    .get(row as usize)
                    .map(|state| state.load(SeqCst));
                assert!(state.is_some_and(|state| state >= BEGUN), "row {row}");
                !is_dead(row, moment)
            };
            let stats = &mut SearchStats::default();
            let (k, rows) = (2 * ALL as usize, (&visible as _, None));
            let found = self
                .index
                .search(query, (k, usize::MAX), rows, &self.rows, stats);
            let each: BTreeSet<u64> = found.iter().map(|found| found.row).collect();
            assert_eq!(each.len(), found.len(), "a row is there twice");
            let missed: Vec<&u64> = must.difference(&each).collect();
            assert!(missed.is_empty(), "missed {missed:?} as of {moment}");
        }
    }

    /// Has first parts of blocks be kept, and let go of.
    fn keep(&self) {
        for bytes in [100_000, 1_024, 4_096] {
            self.index.keep(bytes);
            self.index.let_go(bytes);
        }
        self.index.keep(2_048);
    }

    /// Makes checkpoints, of which each holds until the next one does, and returns the last.
    fn save(&self) -> Checkpoint {
        let mut held: Option<Checkpoint> = None;
        for _ in 0..2 {
            let before = self.rows(ACKNOWLEDGED, MOMENTS);
            let mut bytes = Vec::new();
            self.index.save(&mut bytes).expect("no file fails");
            let then = own(&load(&bytes, &self.file.synced()));
            let new = Checkpoint { bytes, rows: then };
            let rows: BTreeSet<u64> = new.rows.iter().copied().collect();
            assert_eq!(rows.len(), new.rows.len(), "a row is saved twice");
            assert!(before.is_subset(&rows) && rows.is_subset(&self.rows(BEGUN, 0)));
            new.check(&self.file);
            if let Some(held) = &held {
                held.check(&self.file);
            }
            self.index.hold().expect("no file fails");
            if let Some(end) = self.index.could_end() {
                let next = self.index.shrink(end, 0, usize::MAX);
                assert_eq!(next.expect("no file fails"), None);
            }
            held = Some(new);
        }
        held.expect("one was made")
    }

    /// After all: each row that lives is in one posting as its own, and postings are as they shall be.
    fn check(&self) {
        while self.sweep_all(MOMENTS) > 0 {}
        let alive: Vec<u64> = (0..ALL).filter(|row| !is_dead(*row, MOMENTS)).collect();
        assert_eq!(own(&self.index), alive);
        assert_eq!(self.index.len(), alive.len());
        let directory = &self.index.directories()[0];
        assert_eq!(directory.centroids.len(), directory.len());
        for posting in directory.iter() {
            let len = posting.len();
            assert!((PARAMS.merge..=PARAMS.split).contains(&len), "{len}");
        }
        // A split puts some vectors into the other half, so that both are about alike in size; those are not much nearer.
        let (_, wrong) = misplaced(&self.index, 0.5);
        assert_eq!(wrong, 0, "vectors in wrong postings");
        let moves = self.index.shards[0].moves.load(SeqCst);
        assert!(moves >= 5, "{moves} splits and merges");
    }
}

/// What was saved, and the rows that were there.
struct Checkpoint {
    bytes: Vec<u8>,
    rows: Vec<u64>,
}

impl Checkpoint {
    /// With the file as it is now, it is what was saved.
    fn check(&self, file: &Mapped) {
        assert_eq!(own(&load(&self.bytes, &file.contents())), self.rows);
    }
}

fn load(bytes: &[u8], contents: &Contents) -> SpFresh {
    let layout = SpFresh::layout(SPACE, PARAMS).expect("good parameters");
    let file = Box::new(Mapped::with(layout.places, contents));
    SpFresh::load(SPACE, PARAMS, bytes, file).expect("it was saved")
}

#[test]
fn rows_that_were_acknowledged_are_found_once_and_what_was_saved_stays() {
    explore(4, || {
        let world = World::new();
        let held = thread::scope(|scope| {
            scope.spawn(|| world.insert(FIRST..FIRST + EACH));
            scope.spawn(|| world.insert(FIRST + EACH..ALL));
            scope.spawn(|| world.sweep());
            scope.spawn(|| world.search());
            scope.spawn(|| world.keep());
            scope.spawn(|| world.keep());
            scope.spawn(|| world.save()).join()
        });
        world.check();
        let kept = world.index.kept_bytes();
        assert_eq!(world.index.let_go(kept), kept, "each copy counts once");
        assert_eq!(world.index.kept_bytes(), 0, "each copy counts once");
        let held = held.expect("no thread panics");
        held.check(&world.file);
    });
}
