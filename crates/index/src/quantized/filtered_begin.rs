//! How a walk with a filter goes on once it has seen what is around its start.

use std::sync::atomic::Ordering;

use super::block::NONE;
use super::filtered_walk::FilteredWalk;
use super::scratch::Scratch;
use super::share::Share;
use crate::candidate::Candidate;
use crate::filter_cost::FilterCost;
use crate::filtered::Entries;
use longbow_kernels::rabitq::SLOTS;

/// Entries that are looked at where some rows pass around the query, though few.
const FEW_ENTRIES: usize = 128;
/// Nodes that do not pass whose distance is computed, for each that may be nearer by chance.
const MOST_COMPARED: usize = 4;

impl FilteredWalk<'_> {
    /// Judges by what is around the start how much passes near the query. The less that is, the less does a walk see of all
    /// that passes, and so it holds more. Should there be next to nothing, it also begins at the entries.
    ///
    /// # Safety
    /// The start was written, and the write happened before.
    pub(super) unsafe fn judge(&mut self, start: Candidate, entries: Entries<'_>) {
        let share = match self.is_opposed {
            true => Share::Nothing,
            false => Share::of(self.passed, self.looked),
        };
        if share == Share::Most && self.may_go_through {
            self.end();
            self.through = Some(start);
            return;
        }
        let more = share.wider(self.ef);
        self.ef = self.ef.saturating_add(more);
        self.scratch.front.widen(more);
        self.is_wide = share == Share::Nothing;
        if share > Share::Few {
            return;
        }
        let graph = self.passing.graph;
        let elsewhere = |passing| FilterCost::elsewhere(passing, graph.encoder().dim(), self.ef);
        let is_worse = |cost: FilterCost| {
            cost.is_scan() || entries.coded.is_some_and(|coded| coded < cost.walk)
        };
        if entries.passing.map(elsewhere).is_some_and(is_worse) {
            self.is_left = true;
            self.end();
            return;
        }
        self.most_behind = SLOTS;
        self.is_sparse = share == Share::Few;
        // Only now: most walks need none, and to look one up takes some cache lines.
        let step = match share {
            Share::Nothing => 1,
            _ => entries.rows.len().div_ceil(FEW_ENTRIES).max(1),
        };
        self.begin_at(entries.rows.iter().copied().step_by(step));
    }

    /// Begins at the nearest of some rows, too.
    fn begin_at(&mut self, rows: impl Iterator<Item = u64>) {
        let graph = self.passing.graph;
        let blocks = &graph.ground().blocks;
        let Scratch {
            query,
            visited,
            front,
            found,
            fresh,
            stats,
            ..
        } = &mut *self.scratch;
        fresh.clear();
        graph.places.find(rows, |_, node| {
            fresh.extend(node.map(|node| Candidate::new(0.0, node)));
        });
        graph.compare_codes(query, fresh, stats);
        if fresh.len() > self.ef {
            fresh.select_nth_unstable(self.ef);
            fresh.truncate(self.ef);
        }
        for entry in fresh.drain(..) {
            let node = entry.node();
            // SAFETY: nodes that were remembered were written.
            unsafe {
                // A node that hangs on a chain of twins leads nowhere, and is found by the first of them.
                let mut ids = blocks.ids(node).iter();
                let leads_on = ids.any(|id| id.load(Ordering::Relaxed) != NONE);
                if leads_on && self.passing.node(node) && visited.meet(node) {
                    front.push(entry.distance(), node);
                    self.passing.take(entry, found);
                }
            }
        }
    }

    /// Whether a walk that has ended met more nodes that do not pass and are nearer than all that it found, than by chance,
    /// and has not taken it into account yet.
    pub(super) fn is_opposed(&mut self, by_chance: usize) -> bool {
        let Scratch {
            query,
            around,
            found,
            fresh,
            stats,
            ..
        } = &mut *self.scratch;
        let Some(nearest) = found.iter().min().map(|found| found.distance()) else {
            return false;
        };
        if self.is_wide || around.len() <= by_chance {
            return false;
        }
        // Most by the estimate of a node before them.
        fresh.clear();
        let nearer = around.iter().map(|other| other.0);
        fresh.extend(nearer.filter(|other| other.distance() < nearest));
        if fresh.len() > by_chance {
            let most = by_chance
                .saturating_mul(MOST_COMPARED)
                .saturating_add(FEW_ENTRIES);
            if fresh.len() > most {
                fresh.select_nth_unstable(most);
                fresh.truncate(most);
            }
            self.passing.graph.compare_codes(query, fresh, stats);
        }
        let nearer = fresh.iter().filter(|other| other.distance() < nearest);
        nearer.count() > by_chance
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
