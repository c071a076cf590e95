use std::ops::BitOrAssign;

use crate::sync::atomic::{AtomicU32, Ordering};

/// What a search found not to be in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Missed {
    /// First parts of blocks, of which a search reads all that it comes by.
    pub(super) first: bool,
    /// The rest of blocks, and rows, of which it reads a few.
    pub(super) rest: bool,
}

impl BitOrAssign for Missed {
    fn bitor_assign(&mut self, other: Self) {
        self.first |= other.first;
        self.rest |= other.rest;
    }
}

/// Searches that ask for their pages beforehand after one that had some read.
const SEARCHES: u32 = 256;

/// Whether pages of one kind are not in memory, as searches found lately. Then a search asks for all of that kind
/// that it is going to read before it reads the first of them, so that the disk reads them side by side; where all are in memory,
/// that would cost as much as the search itself.
#[derive(Debug, Default)]
pub(super) struct Cold(AtomicU32);

impl Cold {
    pub(super) fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Learns whether a search had something read. Searches side by side may count as one.
    pub(super) fn learn(&self, read: bool) {
        let left = self.0.load(Ordering::Relaxed);
        if read {
            self.0.store(SEARCHES, Ordering::Relaxed);
        } else if left > 0 {
            self.0.store(left - 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_cold_for_some_searches_after_one_that_read() {
        let cold = Cold::default();
        cold.learn(false);
        assert!(!cold.is());
        cold.learn(true);
        for _ in 0..SEARCHES {
            assert!(cold.is());
            cold.learn(false);
        }
        assert!(!cold.is());
    }
}
