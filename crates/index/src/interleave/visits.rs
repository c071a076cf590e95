//! What was seen by a visit stays until it ends.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use shuttle::thread;

use super::explore;
use crate::sync::atomic::AtomicUsize;
use crate::sync::point;
use crate::visits::Visits;

const TURNS: usize = 4;

/// Parts that die one after the other, as of a moment, and are taken out when nobody sees them.
struct Structure {
    visits: Visits,
    /// Parts below this number are dead.
    moment: AtomicUsize,
    gone: [AtomicBool; TURNS],
}

impl Structure {
    /// Lets parts die one by one, and takes them out two by two.
    fn take_out(&self) {
        for part in 0..TURNS {
            self.moment.store(part + 1, SeqCst);
            self.visits.turn();
            if part % 2 == 0 {
                continue;
            }
            while !self.visits.are_over() {
                thread::yield_now();
            }
            for part in [part - 1, part] {
                self.gone[part].store(true, SeqCst);
            }
        }
    }

    fn visit(&self) {
        for _ in 0..2 {
            let visit = self.visits.enter();
            let again = visit.clone();
            let alive = self.moment.load(SeqCst)..TURNS;
            drop(visit);
            for part in alive {
                point();
                assert!(!self.gone[part].load(SeqCst), "part {part} is seen");
            }
            drop(again);
        }
    }
}

#[test]
fn nothing_goes_that_a_visit_sees() {
    explore(1, || {
        let structure = Structure {
            visits: Visits::new(),
            moment: AtomicUsize::new(0),
            gone: [const { AtomicBool::new(false) }; TURNS],
        };
        thread::scope(|scope| {
            scope.spawn(|| structure.take_out());
            scope.spawn(|| structure.visit());
            scope.spawn(|| structure.visit());
        });
        assert!(structure.gone.iter().all(|gone| gone.load(SeqCst)));
    });
}
