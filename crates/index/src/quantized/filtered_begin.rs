//! How a walk with a filter goes on once it has seen what is around its start.

use super::filtered::Entries;
use super::filtered_walk::FilteredWalk;
use super::scratch::Scratch;
use super::share::Share;
use crate::candidate::Candidate;
use crate::filter_cost::FilterCost;
use longbow_kernels::rabitq::SLOTS;

impl FilteredWalk<'_> {
    /// Judges by what is around the start how much passes near the query. The less that is, the less does a walk see of all
    /// that passes, and so it holds more. Should there be next to nothing, it also begins at the entries.
    ///
    /// # Safety
    /// The start was written, and the write happened before.
    pub(super) unsafe fn judge(&mut self, start: Candidate, entries: Entries<'_>) {
        let share = Share::of(self.passed, self.looked);
        if share == Share::Most && self.may_go_through {
            self.end();
            self.through = Some(start);
            return;
        }
        let more = share.wider(self.ef);
        self.ef = self.ef.saturating_add(more);
        self.scratch.front.widen(more);
        if share > Share::Few {
            return;
        }
        let graph = self.passing.graph;
        let elsewhere = |passing| FilterCost::elsewhere(passing, graph.encoder().dim(), self.ef);
        if entries
            .passing
            .map(elsewhere)
            .is_some_and(|cost| cost.is_scan())
        {
            self.end();
            return;
        }
        self.most_behind = SLOTS;
        self.is_sparse = share == Share::Few;
        let Scratch { visited, fresh, .. } = &mut *self.scratch;
        fresh.clear();
        self.met = true;
        // Only now: most walks need none, and to look one up takes some cache lines.
        for entry in graph.entries(entries.rows) {
            // SAFETY: nodes that were remembered were written.
            if unsafe { self.passing.node(entry) } && visited.meet(entry) {
                fresh.push(Candidate::new(0.0, entry));
            }
        }
    }

    /// Ends with nothing found.
    #[cold]
    fn end(&mut self) {
        let Scratch {
            front,
            around,
            found,
            ..
        } = &mut *self.scratch;
        front.clear(1);
        around.clear();
        found.clear();
    }
}
