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
        if share == Share::Most {
            // SAFETY: the caller vouches for the start.
            unsafe { self.go_through(start) };
            return;
        }
        let more = share.wider(self.ef);
        self.ef = self.ef.saturating_add(more);
        self.scratch.front.widen(more);
        if share > Share::Few {
            return;
        }
        let graph = self.passing.graph;
        if FilterCost::elsewhere(entries.passing, graph.encoder().dim(), self.ef).is_scan() {
            self.give_up();
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
    fn give_up(&mut self) {
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

    /// Goes through all nodes from now on.
    ///
    /// # Safety
    /// The start was written, and the write happened before.
    unsafe fn go_through(&mut self, start: Candidate) {
        self.is_through = true;
        let Scratch {
            front, held, found, ..
        } = &mut *self.scratch;
        held.clear(self.ef);
        front.open();
        for node in found {
            held.push(node.distance(), node.node());
        }
        // What does not pass around the start was passed over.
        // SAFETY: the caller vouches for the start.
        unsafe { self.follow(start.node(), start.distance()) };
    }
}
