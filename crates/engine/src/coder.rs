//! The thread that makes codes of rows that wait for a graph, while there are searches.
//!
//! A search compares such rows by their vectors until they have codes, at thirty times the price. Those of large puts have codes
//! as soon as they are seen; rows that come a few at a time, and what a put leaves, are coded here. Threads that stand back for all others
//! may be long at them, on a processor that the searches have, or at other work before: so this is a thread of its own, which
//! displaces those. Its work is a twentieth of theirs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::coded_tail::Maker;
use crate::column_index::ColumnIndex;
use crate::indexer;
use crate::shared::Shared;

/// How long rows that come one by one are left to be coded together.
const NAP: Duration = Duration::from_millis(5);
/// How often searches are forgotten bit by bit.
const LOOK: Duration = Duration::from_millis(500);
/// Looks for which a search is remembered: some seconds.
const LOOKS: u32 = 8;

/// Whether an index whose waiting rows have codes was searched of late.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    /// Looks for which searches are still remembered.
    looks: AtomicU32,
}

impl Searched {
    /// Whether there were searches of late, which would wait for codes of the rows that come.
    pub fn is_of_late(&self) -> bool {
        self.looks.load(Ordering::Relaxed) > 0
    }

    /// There is a search.
    pub fn note(&self) {
        if self.looks.load(Ordering::Relaxed) != LOOKS {
            self.looks.store(LOOKS, Ordering::Relaxed);
        }
    }

    fn forget_some(&self) {
        let less = |left: u32| left.checked_sub(1);
        // Where none is left there is nothing to forget.
        let _ = self
            .looks
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// What the thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Coder {
    bell: Bell,
    /// Whether any index was.
    searched: Searched,
}

impl Coder {
    /// There is a search by an index whose waiting rows have codes; it misses many of them, or not.
    pub fn note_search(&self, index: &ColumnIndex, misses: bool) {
        index.searched.note();
        self.searched.note();
        if misses {
            self.bell.ring();
        }
    }

    /// Rows may have come.
    pub fn note_rows(&self) {
        if self.searched.is_of_late() {
            self.bell.ring();
        }
    }

    /// Everything is to end.
    pub fn stop(&self) {
        self.bell.ring_all();
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
            for dataset in shared.catalog.datasets().iter() {
                let indexes = dataset.indexes();
                indexes.iter().for_each(|of| of.searched.forget_some());
            }
            coder.searched.forget_some();
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
                && index.searched.is_of_late()
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
        let searched = Searched::default();
        assert!(!searched.is_of_late());
        searched.note();
        for _ in 0..LOOKS {
            assert!(searched.is_of_late());
            searched.forget_some();
        }
        assert!(!searched.is_of_late());
        searched.forget_some();
        assert!(!searched.is_of_late());
    }
}
