//! The walk of a search with a filter that most rows pass.
//!
//! Useful where a walk that looks behind what does not pass would compare more than one that goes through it: this one follows the
//! edges of all nodes, and ends when it holds enough that pass. Not useful where nothing passes around the query, however much
//! does elsewhere: it gives up then, after a number of nodes by its effort.

use std::cell::Cell;

use super::QuantizedGraph;
use super::ahead::Ahead;
use super::elsewhere::NARROW;
use super::front::Front;
use super::level::{LEVELS, Level};
use super::passing::Passing;
use super::scratch::Scratch;
use super::walk::{Admit, Walk};
use crate::candidate::Candidate;
use crate::narrow::Narrow;
use longbow_kernels::Metric;

/// Nodes that do not pass, for each that is to be held, after which a walk gives up.
const IN_VAIN: usize = 16;
/// The same where much is to be held, beyond as many as are held at the end: a front is good for some thousands.
const FAR_IN_VAIN: usize = 2;
const MOST_IN_VAIN: usize = 4096;
/// The same for any effort.
const FEWEST_IN_VAIN: usize = 64;
/// Of ten rows, how many must pass.
const OF_TEN: u64 = 4;

/// Takes nodes that pass, and holds the front to what is nearer than the farthest of as many as the effort, and not too far.
pub(super) struct Through<'a> {
    passing: Passing<'a>,
    narrow: Narrow,
    /// By how much the query was rounded.
    own: f32,
    /// Nodes that may be met and not pass, of which so many are left.
    in_vain: usize,
    left: Cell<usize>,
    /// What it had found out when it began anew.
    was_opposed: Cell<bool>,
    /// How many nodes may not pass and be nearer than all that do by chance.
    by_chance: usize,
    ahead: Ahead<'a>,
}

impl Through<'_> {
    /// Whether a walk that has ended found that what passes lies elsewhere than around the query: it gave up, or
    /// more that do not pass are nearer than all that do, than by chance.
    pub(super) fn is_opposed(&self, scratch: &Scratch) -> bool {
        self.finds_opposed(&scratch.front, &scratch.held)
    }

    fn finds_opposed(&self, front: &Front, held: &Front) -> bool {
        // Where it began anew in vain, the front is of another level.
        let nearer = held.nearest().map_or(self.was_opposed.get(), |nearest| {
            front.nearer(nearest) > self.by_chance
        });
        self.left.get() == 0 || nearer
    }
}

impl Admit for Through<'_> {
    #[inline(always)]
    unsafe fn admit(
        &self,
        level: &Level,
        (front, held): (&mut Front, &mut Front),
        found: &mut Vec<Candidate>,
        node: Candidate,
    ) {
        let before = found.len();
        // SAFETY: the caller vouches for the node.
        unsafe { self.passing.take_compared(node, found) };
        if found.len() > before {
            held.push(node.distance(), node.node());
            // SAFETY: what is held was met as this node was.
            unsafe { level.narrow((self.narrow, self.own), held) };
            // Nothing beyond as many as are held is of use.
            if held.limit() < f32::INFINITY {
                front.tighten(held.limit());
            }
            return;
        }
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if left == 0 {
            front.pass_by(f32::NEG_INFINITY);
        }
    }

    fn begin_anew(&self, (front, held): (&Front, &mut Front)) {
        self.was_opposed.set(self.finds_opposed(front, held));
        self.left.set(self.in_vain);
        // What it meets again is not to be held twice.
        held.restart();
    }

    #[inline(always)]
    unsafe fn look_ahead(&self, level: &Level, followed: Option<(u32, usize)>) {
        // SAFETY: the caller vouches for the node.
        unsafe {
            let passes = |of: &(u32, usize)| self.ahead.takes(of.1) && self.passing.node(of.0);
            self.ahead.ask(&level.blocks, followed.filter(passes));
        }
    }
}

/// Whether so many of all rows pass that the walk goes through the others, as far as is known beforehand.
pub(super) fn is_for(passing: u64, rows: usize) -> bool {
    passing.saturating_mul(10) >= (rows as u64).saturating_mul(OF_TEN)
}

impl<'a> Through<'a> {
    fn new(
        passing: Passing<'a>,
        by_chance: usize,
        (narrow, own): (Narrow, f32),
        ahead: Ahead<'a>,
    ) -> Self {
        let ef = narrow.most;
        let few = ef.saturating_mul(IN_VAIN).saturating_add(FEWEST_IN_VAIN);
        let many = ef.saturating_mul(FAR_IN_VAIN).saturating_add(MOST_IN_VAIN);
        Through {
            passing,
            narrow,
            own,
            in_vain: few.min(many),
            left: Cell::new(few.min(many)),
            was_opposed: Cell::new(false),
            by_chance,
            ahead,
        }
    }

    /// A walk from the highest level, or from a node of the lowest, which was written; the scratch comes back as an error if there are no nodes.
    ///
    /// # Safety
    /// If there is a start, it was written, and the write happened before.
    pub(super) unsafe fn walk(
        passing: Passing<'a>,
        (by_chance, narrow, ahead): (usize, Narrow, Ahead<'a>),
        start: Option<Candidate>,
        mut scratch: Box<Scratch>,
    ) -> Result<Walk<'a, Self>, Box<Scratch>> {
        let graph: &QuantizedGraph = passing.graph;
        scratch.held.clear(narrow.most);
        // What is held says how much the front holds.
        let all = usize::MAX;
        let limits = (narrow, scratch.query.own_scale());
        let admit = Through::new(passing, by_chance, limits, ahead);
        if let Some(start) = start {
            // SAFETY: the caller vouches for the start.
            return Ok(unsafe { Walk::lowest(graph, start, all, admit, scratch) });
        }
        // It goes through what does not pass, too, and so can tell as one without a filter where all that it meets is far.
        let looks = graph.space.metric != Metric::Dot;
        let above = if looks { NARROW } else { graph.breadth() };
        let mut walk = Walk::new(graph, (0, LEVELS - 1), (all, above), admit, scratch)?;
        walk.looks = looks;
        Ok(walk)
    }
}
