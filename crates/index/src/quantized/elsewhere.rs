//! The second look of a walk that ended far from all that it found.
//!
//! Where rows lie in groups that are far from each other, all edges of most nodes lead to nodes of their own group. The few that
//! lead to another are where the groups are nearest to each other; a walk may follow the edges of one node after the other of a
//! wrong group, all about as far from the query, and come to none of those. Most searches need no more than
//! one node of each level above to begin well, and a walk that looks at more costs up to a third of their time. So
//! they look at one, and only a walk whose nearest node is much farther from the query than from its neighbours begins anew,
//! and looks at [`WIDE`]. Queries unlike all rows do so in vain, for a few nodes more.
//!
//! Searches with a filter that go along what passes can't tell: that may be far. They look at so many at once where there are groups. Those by
//! inner product can't either, for on the sphere queries are far from all.

use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::{Octets, SLOTS};

use super::QuantizedGraph;
use super::block::NONE;
use super::level::{LEVELS, Level};
use super::link::FAR;
use super::scratch::Scratch;
use super::walk::{Admit, Walk};
use crate::candidate::Candidate;

/// Nodes of each level above whose edges a walk follows at first.
pub(super) const NARROW: usize = 1;
/// Those whose edges it follows when it looks elsewhere.
pub(super) const WIDE: usize = 32;
/// Neighbours of a node that are nearer to it than a query that is far: fewer may be of a group of their own.
const MANY: usize = SLOTS / 4;

impl<A: Admit> Walk<'_, A> {
    /// Begins anew from above if all that was found is far, and the walk was a narrow one; false if it has ended.
    pub(super) fn look_elsewhere(&mut self) -> bool {
        if self.above >= WIDE {
            self.take_all();
            return false;
        }
        // Once is enough.
        self.above = WIDE;
        let nearest = self.scratch.front.first();
        let own = self.scratch.query.own_scale();
        // SAFETY: walks hold nodes that were written.
        let is_far = |node: &Candidate| unsafe { self.graph.is_far(self.level(), *node, own) };
        match nearest.filter(|nearest| self.looks && is_far(nearest)) {
            Some(nearest) => self.begin_anew(nearest.distance()),
            None => false,
        }
    }

    #[cold]
    fn begin_anew(&mut self, nearest: f32) -> bool {
        let above = &self.graph.levels[self.bottom + 1..];
        if above.first().and_then(Level::entry).is_none() {
            return false;
        }
        let Scratch {
            front,
            held,
            found,
            elsewhere,
            ..
        } = &mut *self.scratch;
        self.admit.begin_anew((front, held));
        elsewhere.clear();
        elsewhere.append(found);
        self.before = Some(nearest);
        let has_begun = self.begin_above(LEVELS - 1);
        if !has_begun {
            self.take_back();
        }
        has_begun
    }

    /// Leaves what had been found before it looked elsewhere.
    pub(super) fn take_back(&mut self) {
        self.scratch.found.clear();
        self.take_all();
    }

    /// Adds to what was found what had been before it looked elsewhere.
    pub(super) fn take_all(&mut self) {
        let Scratch {
            found, elsewhere, ..
        } = &mut *self.scratch;
        if self.before.take().is_some() {
            found.append(elsewhere);
            found.sort_unstable();
            found.dedup();
            if self.bottom == 0 {
                self.graph.keep_each_row_once(found);
            }
        }
    }
}

impl QuantizedGraph {
    /// Whether a query, which was rounded by steps of `own`, is much farther from the node nearest to it than many neighbours of that one are.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    pub(super) unsafe fn is_far(&self, level: &Level, nearest: Candidate, own: f32) -> bool {
        let blocks = &level.blocks;
        // SAFETY: the caller vouches for the node, and neighbours were written before they were linked.
        unsafe {
            // By what rounding adds to the distance of a code, equals would be far from each other.
            let scale = blocks.scale(nearest.node());
            let rounding = (scale * scale + own * own) * self.dim() as f32 / 12.0;
            let away = nearest.distance() - rounding;
            let ids = blocks.ids(nearest.node());
            let is_nearer = |length: f32| FAR * length < away;
            if blocks.coded() {
                let lengths = blocks.about_lengths(nearest.node()).into_iter();
                let linked = lengths
                    .zip(ids)
                    .filter(|(_, id)| id.load(Ordering::Relaxed) != NONE);
                return linked.filter(|(length, _)| is_nearer(*length)).count() > MANY;
            }
            let mut room = Octets::default();
            let here = blocks.here(nearest.node(), &mut room);
            if blocks.cut() {
                // To read the codes of all costs more than the rest of a short walk, and mostly their signs tell.
                let below = (nearest.node(), away / FAR);
                let about = blocks.lengths_by_signs(self.encoder(), here, below);
                if about.filter(|length| is_nearer(*length)).count() <= MANY {
                    return false;
                }
            }
            let (mut nearer, mut left) = (0, SLOTS);
            for id in ids {
                let id = id.load(Ordering::Acquire);
                left -= 1;
                let away = |id: u32| blocks.between(self.encoder(), here, id);
                nearer += usize::from(id != NONE && is_nearer(away(id)));
                if nearer > MANY || nearer + left <= MANY {
                    break;
                }
            }
            nearer > MANY
        }
    }
}
