//! The thread that makes codes of rows that wait for a graph, while there are searches.
//!
//! A search compares such rows by their vectors until they have codes, at thirty times the price. Threads that stand back for all others
//! may be long at them, on a processor that the searches have, or at other work before: so this is a thread of its own, which
//! displaces those. Its work is a twentieth of theirs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::coded_tail::Maker;
use crate::indexer;
use crate::shared::Shared;

/// How long rows that come one by one are left to be coded together.
const NAP: Duration = Duration::from_millis(5);
/// How often searches are forgotten bit by bit.
const LOOK: Duration = Duration::from_millis(500);
/// Looks for which a search is remembered: some seconds.
const LOOKS: u32 = 8;

/// What the thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Coder {
    bell: Bell,
    /// Looks for which searches of late are still remembered.
    searched: AtomicU32,
}

impl Coder {
    /// Whether there were searches of late, which would wait for codes of the rows that come.
    pub fn is_searched(&self) -> bool {
        self.searched.load(Ordering::Relaxed) > 0
    }

    /// There is a search, of an index whose waiting rows have codes; it misses many of them, or not.
    pub fn note_search(&self, misses: bool) {
        if self.searched.load(Ordering::Relaxed) != LOOKS {
            self.searched.store(LOOKS, Ordering::Relaxed);
        }
        if misses {
            self.bell.ring();
        }
    }

    /// Rows may have come.
    pub fn note_rows(&self) {
        if self.is_searched() {
            self.bell.ring();
        }
    }

    /// Everything is to end.
    pub fn stop(&self) {
        self.bell.ring_all();
    }

    fn forget_some(&self) {
        let less = |left: u32| left.checked_sub(1);
        // Where none is left there is nothing to forget.
        let _ = self
            .searched
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// The body of the thread.
pub(crate) fn run(shared: &Shared) {
    indexer::stand_back_a_little();
    let (coder, mut looked) = (&shared.coder, Instant::now());
    let is_stopping = || shared.stopping.load(Ordering::Acquire);
    while !is_stopping() {
        let worked = code_all(shared);
        // Also while rows come faster than they are coded, for searches that may have ended.
        if looked.elapsed() >= LOOK {
            coder.forget_some();
            looked = Instant::now();
        }
        if !worked {
            coder.bell.nap(NAP);
            coder.bell.wait(LOOK.saturating_sub(looked.elapsed()));
        }
    }
}

/// Makes codes of some rows that wait in each dataset; false if there were none.
fn code_all(shared: &Shared) -> bool {
    let mut worked = false;
    for dataset in shared.catalog.datasets().iter() {
        for index in dataset.indexes().iter() {
            let is_over = shared.stopping.load(Ordering::Acquire);
            worked |= !is_over
                && shared.coder.is_searched()
                && indexer::code(dataset, index, Maker::InHaste);
        }
    }
    worked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_remembered_for_some_looks() {
        let coder = Coder::default();
        assert!(!coder.is_searched());
        coder.note_search(false);
        for _ in 0..LOOKS {
            assert!(coder.is_searched());
            coder.forget_some();
        }
        assert!(!coder.is_searched());
        coder.forget_some();
        assert!(!coder.is_searched());
    }
}
