//! Searches and sweeps beside each other.

use super::SpFresh;
use crate::visits::Visit;

impl SpFresh {
    /// Begins a visit. Whoever says by a moment of its own which rows are visible begins one before that moment, and ends
    /// it after the search.
    pub fn enter(&self) -> Visit {
        self.visits.enter()
    }

    /// Marks the moment as of which rows are dead that will be swept out: visits from now on do not see them.
    pub fn turn(&self) {
        self.visits.turn();
    }

    /// Whether all visits have ended that began before the last [`SpFresh::turn`]: only then [`SpFresh::sweep`] may take out
    /// rows that were dead at that moment.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.visits.are_over()
    }
}
