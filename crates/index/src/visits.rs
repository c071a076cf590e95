//! Who is inside a structure that is read without locks, so that whoever takes a part out of it knows when nobody can
//! see that part any more.

use std::sync::Arc;

use crate::sync::ArcSwap;
use crate::sync::Mutex;

/// A search or an insert that is inside, from when it was made until it is dropped.
#[derive(Debug, Clone)]
#[must_use = "the visit ends when it is dropped"]
pub struct Visit(#[expect(dead_code, reason = "it counts by being held")] Arc<()>);

/// The visits of one structure, by the time in which they began.
pub(crate) struct Visits {
    now: ArcSwap<()>,
    /// Times that are over, with visits that may not be.
    past: Mutex<Vec<Arc<()>>>,
}

impl Visits {
    pub(crate) fn new() -> Self {
        Visits {
            now: ArcSwap::from_pointee(()),
            past: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn enter(&self) -> Visit {
        Visit(self.now.load_full())
    }

    /// Begins a new time: visits from now on see all that was done before.
    pub(crate) fn turn(&self) {
        let mut past = self.past.lock();
        past.push(self.now.swap(Arc::new(())));
    }

    /// Whether all visits that began before the last turn have ended. What they read happened before.
    pub(crate) fn are_over(&self) -> bool {
        let mut past = self.past.lock();
        past.retain_mut(|time| Arc::get_mut(time).is_none());
        past.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_waits_for_the_visits_before_it_and_for_no_others() {
        let visits = Visits::new();
        let before = visits.enter();
        let again = before.clone();
        assert!(visits.are_over(), "nothing was asked to be over");
        visits.turn();
        let after = visits.enter();
        visits.turn();
        drop(before);
        assert!(!visits.are_over());
        drop(again);
        assert!(!visits.are_over(), "one began after the first turn");
        drop(after);
        let _last = visits.enter();
        assert!(visits.are_over());
    }
}
