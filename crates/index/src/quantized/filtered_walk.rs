//! The walk of a search that a filter restricts.
//!
//! A walk that goes through all nodes, and takes those that pass, follows the edges of so many more nodes as fewer pass.
//! This one goes along those that pass: from a node to its neighbours that pass, and where those are few, to the
//! neighbours that pass of its neighbours that do not (Patel et al., ACORN, arXiv 2403.04871, by which the graph among those
//! that pass is about as dense as the whole one). What differs from ACORN:
//!
//! - The codes of a node's edges, or its neighbours' signs, tell which of these are near enough to look behind. Of those only the numbers of
//!   their neighbours are read, two cache lines; and the signs of which pass, where edges have no codes.
//! - Where most pass, to look behind the others would compare more than going through them does: there it leaves the search to
//!   a walk that does (`through.rs`).
//! - A filter that opposes the query leaves nothing around it. So the walk begins at rows that pass, too, which the caller
//!   names (`entries`).
//! - Should what passes fall into parts that are not two edges from each other, the walk goes on through the nearest nodes
//!   that do not pass, which it keeps for this, as far as its effort allows.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::{Base, SLOTS};

use super::ahead::Ahead;
use super::block::{Blocks, NONE};
use super::passing::Passing;
use super::scratch::Scratch;
use super::walk::{FEW, NEAR, SLACK};
use crate::candidate::Candidate;
use crate::filtered::Entries;

/// Neighbours that pass, near enough by estimate, with which a walk need not look behind those that do not.
const ENOUGH: usize = 16;
/// Neighbours that do not pass, and that a walk looks behind at most.
const BEHIND: usize = 16;
/// Nodes that do not pass, and whose edges are followed at most, as a multiple of the effort.
const BRIDGES: usize = 8;
/// The same for any effort.
const FEWEST_BRIDGES: usize = 64;

/// How far a walk has come with its begin.
#[derive(Clone, Copy)]
enum Begin<'a> {
    /// At the start.
    At(Candidate, Entries<'a>),
    /// What is around the start was looked at.
    Around(Candidate, Entries<'a>),
    Over,
}

/// A walk over the lowest level, in steps as `Walk` takes them.
pub(super) struct FilteredWalk<'a> {
    pub(super) passing: Passing<'a>,
    pub(super) ef: usize,
    ahead: Ahead<'a>,
    /// Which of `scratch.fresh` were asked for, and are compared next.
    asked: std::ops::Range<usize>,
    /// Whether those in `scratch.fresh` were met when they were put there.
    pub(super) met: bool,
    begin: Begin<'a>,
    /// Whether so few pass that the walk also goes through the nearest that do not.
    pub(super) is_sparse: bool,
    /// Whether it ends where a walk through all nodes is better,
    pub(super) may_go_through: bool,
    /// and where that is to begin.
    pub(super) through: Option<Candidate>,
    /// Whether it is known that what passes lies elsewhere than around the query.
    pub(super) is_opposed: bool,
    /// Whether it holds as many as it takes then,
    pub(super) is_wide: bool,
    /// or ended, since a scan of what passes is the better way.
    pub(super) is_left: bool,
    /// Nodes that were looked at around the start, and those of them that pass.
    pub(super) looked: usize,
    pub(super) passed: usize,
    /// Neighbours that pass that are to be compared for the node whose edges are followed.
    wanted: usize,
    /// Nodes that do not pass, and whose edges were followed.
    bridges: usize,
    /// Neighbours that do not pass, and that it looks behind at most.
    pub(super) most_behind: usize,
    pub(super) scratch: Box<Scratch>,
}

impl<'a> FilteredWalk<'a> {
    /// A walk for the query in `scratch`, whose table is filled, from `start`, and from `entries` if little passes around it.
    ///
    /// # Safety
    /// The start was written, and the write happened before.
    pub(super) unsafe fn new(
        passing: Passing<'a>,
        (ef, ahead): (usize, Ahead<'a>),
        (start, entries): (Candidate, Entries<'a>),
        scratch: Box<Scratch>,
    ) -> Self {
        let mut walk = FilteredWalk {
            passing,
            ef,
            ahead,
            asked: 0..0,
            met: false,
            is_sparse: false,
            may_go_through: false,
            is_opposed: false,
            is_wide: false,
            is_left: false,
            through: None,
            begin: Begin::At(start, entries),
            wanted: 0,
            looked: 0,
            passed: 0,
            bridges: 0,
            most_behind: BEHIND,
            scratch,
        };
        let blocks = walk.blocks();
        let Scratch {
            visited,
            front,
            around,
            found,
            fresh,
            behind,
            ..
        } = &mut *walk.scratch;
        visited.clear_both(blocks.claimed() as usize);
        front.clear(ef);
        around.clear();
        found.clear();
        fresh.clear();
        behind.clear();
        visited.meet(start.node());
        blocks.prefetch_edges(start.node());
        // SAFETY: the caller vouches for the node.
        unsafe {
            if passing.node(start.node()) {
                front.push(start.distance(), start.node());
                passing.take(start, found);
            }
        }
        walk
    }

    #[inline(always)]
    pub(super) fn blocks(&self) -> &'a Blocks {
        &self.passing.graph.ground().blocks
    }

    /// Takes a step; false if the walk has ended. What it found is then in `scratch.found`.
    #[inline(always)]
    pub(super) fn step(&mut self) -> bool {
        let mut followed = None;
        // SAFETY: every link leads to a node that was written before it was linked.
        unsafe {
            if !self.asked.is_empty() {
                self.compare();
            } else if !self.scratch.behind.is_empty() {
                self.look_behind();
            } else {
                match self.begin {
                    Begin::At(start, entries) => {
                        self.begin = Begin::Around(start, entries);
                        self.scratch.front.pop();
                        self.follow(start.node(), start.distance());
                    }
                    Begin::Around(start, entries) => {
                        self.begin = Begin::Over;
                        self.judge(start, entries);
                    }
                    Begin::Over => {
                        let next = self.scratch.front.pop();
                        // All in the front pass.
                        followed = next.map(|(node, _, place)| (node, place));
                        let next = next.map(|(node, distance, _)| (node, distance));
                        let Some((node, distance)) = next.or_else(|| self.bridge()) else {
                            return false;
                        };
                        self.follow(node, distance);
                    }
                }
            }
        }
        self.ask();
        // SAFETY: nodes in the front were written.
        unsafe { self.ahead.ask(self.blocks(), followed) };
        true
    }

    /// The nearest node that does not pass and was not looked behind yet, if the walk should go on through it.
    ///
    /// # Safety
    /// The nodes that the walk has met were written.
    #[cold]
    unsafe fn bridge(&mut self) -> Option<(u32, f32)> {
        let blocks = self.blocks();
        let encoder = self.passing.graph.encoder();
        let Scratch {
            query,
            visited,
            around,
            front,
            found,
            stats,
            ..
        } = &mut *self.scratch;
        let most = if found.len() < self.ef {
            self.ef
                .saturating_mul(BRIDGES)
                .saturating_add(FEWEST_BRIDGES)
        } else if self.is_sparse && around.peek()?.0.distance() < front.limit() {
            self.ef / 2
        } else {
            0
        };
        if self.bridges >= most {
            return None;
        }
        self.bridges += 1;
        let mut node = around.pop()?.0.node();
        // Not where it looked behind already, nor where all is too far.
        while !visited.meet(node) {
            node = around.pop()?.0.node();
        }
        stats.distance_computations += 1;
        stats.bytes_touched += blocks.vector_bytes() as u64;
        // SAFETY: the caller vouches for the node.
        let distance = unsafe { blocks.distance(encoder, query, node) };
        Some((node, distance))
    }

    /// Estimates the neighbours of `node`, and leaves those that may be near enough in `scratch.fresh`, if they pass, and in
    /// `scratch.behind`, if they do not.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    pub(super) unsafe fn follow(&mut self, node: u32, distance: f32) {
        let blocks = self.blocks();
        let scratch = &mut *self.scratch;
        scratch.fresh.clear();
        self.met = false;
        scratch.stats.nodes_popped += 1;
        scratch.stats.bytes_touched += blocks.edge_bytes() as u64;
        // SAFETY: the caller vouches for the node, and neighbours were written before they were linked.
        unsafe {
            if !blocks.coded() {
                self.follow_without_codes(node);
                return self.choose_behind();
            }
            let base = Base {
                distance,
                slack: SLACK * distance.sqrt(),
            };
            let mut estimates = [0f32; SLOTS];
            let rabitq = self.passing.graph.encoder().rabitq;
            let (lut, limit) = (&scratch.lut, scratch.front.limit());
            let mut near = rabitq.estimate(lut, blocks.block(node), base, limit, &mut estimates);
            let ids = blocks.ids(node);
            while near != 0 {
                let slot = near.trailing_zeros() as usize;
                near &= near - 1;
                let id = ids[slot].load(Ordering::Acquire);
                if id != NONE {
                    self.note(Candidate::new(estimates[slot], id));
                }
            }
        }
        self.choose_behind();
    }

    /// Whether what is too far is so from now on: at the begin it is not settled yet how much the walk holds.
    #[inline(always)]
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.begin, Begin::Over)
    }

    /// Keeps a neighbour that may be near enough, unless it was met: in `scratch.fresh` if it passes, in `scratch.behind` if not.
    ///
    /// # Safety
    /// It was written, and the write happened before.
    #[inline(always)]
    pub(super) unsafe fn note(&mut self, neighbor: Candidate) {
        let Scratch {
            visited,
            around,
            found,
            fresh,
            behind,
            ..
        } = &mut *self.scratch;
        let id = neighbor.node();
        if visited.has_met(id) {
            return;
        }
        if visited.was_passed_over(id) {
            behind.push(neighbor);
        // SAFETY: the caller vouches for the node.
        } else if unsafe { self.passing.node(id) } {
            fresh.push(neighbor);
        } else {
            visited.pass_over(id);
            behind.push(neighbor);
            if self.is_sparse || found.len() < self.ef {
                around.push(Reverse(neighbor));
            }
        }
    }

    /// Leaves in `scratch.behind` the nodes to whose neighbours the walk looks, since too few of those that it met pass.
    #[inline(always)]
    fn choose_behind(&mut self) {
        let Scratch { fresh, behind, .. } = &mut *self.scratch;
        self.looked += fresh.len() + behind.len();
        self.passed += fresh.len();
        // As many as there would be if all passed.
        let enough = ENOUGH.min(fresh.len() + behind.len());
        self.wanted = enough.saturating_sub(fresh.len());
        // The nearest by estimate first: they tighten the limit for the others.
        if fresh.len() > FEW {
            fresh.sort_unstable();
        }
        if self.wanted == 0 {
            behind.clear();
            return;
        }
        behind.sort_unstable();
        behind.truncate(self.most_behind);
        for via in behind.iter() {
            self.passing.graph.ground().blocks.prefetch_ids(via.node());
        }
    }

    /// Leaves in `scratch.fresh` the neighbours that pass of those in `scratch.behind`.
    ///
    /// # Safety
    /// The nodes there were written, and the writes happened before.
    #[inline(always)]
    unsafe fn look_behind(&mut self) {
        let blocks = self.blocks();
        let passing = self.passing;
        let Scratch {
            visited,
            front,
            around,
            found,
            fresh,
            behind,
            stats,
            ..
        } = &mut *self.scratch;
        fresh.clear();
        self.met = true;
        self.asked = 0..0;
        let limit = front.limit();
        for via in behind.drain(..) {
            if fresh.len() >= self.wanted || via.distance() >= limit {
                break;
            }
            if !visited.meet(via.node()) {
                continue;
            }
            stats.bytes_touched += size_of::<[u32; SLOTS]>() as u64;
            // Those of which nothing is known. Most are known, at random: so without branches.
            let mut new = [0u32; SLOTS];
            let mut count = 0;
            // SAFETY: the caller vouches for the node.
            for id in unsafe { blocks.ids(via.node()) } {
                let id = id.load(Ordering::Acquire);
                new[count] = id;
                count += usize::from(visited.is_new(id));
            }
            self.looked += count;
            for id in &new[..count] {
                // SAFETY: neighbours were written before they were linked.
                if unsafe { passing.node(*id) } {
                    visited.meet(*id);
                    self.passed += 1;
                    fresh.push(Candidate::new(0.0, *id));
                    continue;
                }
                visited.pass_over(*id);
                if self.is_sparse || found.len() < self.ef {
                    around.push(Reverse(Candidate::new(via.distance(), *id)));
                }
            }
        }
        if blocks.cut() {
            // SAFETY: what is linked was written.
            unsafe { self.estimate_fresh() };
        }
    }

    /// Asks for the codes of the next nodes that may be near enough, and for the edges that are likely followed next.
    #[inline(always)]
    fn ask(&mut self) {
        let blocks = self.blocks();
        let Scratch {
            visited,
            front,
            fresh,
            ..
        } = &mut *self.scratch;
        let limit = front.limit();
        let begin = self.asked.end.min(fresh.len());
        let batch = fresh[begin..].iter().take(blocks.batch());
        let count = batch.take_while(|c| c.distance() < limit).count();
        for neighbor in &mut fresh[begin..begin + count] {
            if self.met || visited.meet(neighbor.node()) {
                blocks.prefetch_vector(neighbor.node());
            } else {
                // Several edges lead to it.
                *neighbor = Candidate::new(f32::INFINITY, NONE);
            }
        }
        if let Some(next) = front.peek() {
            blocks.prefetch_edges(next);
        }
        self.asked = begin..begin + count;
        if count == 0 {
            // With none left, the next step goes elsewhere.
            fresh.clear();
            self.asked = 0..0;
        }
    }

    /// Compares the nodes that were asked for, all of which pass.
    ///
    /// # Safety
    /// They were written, and the writes happened before.
    #[inline(always)]
    unsafe fn compare(&mut self) {
        let blocks = self.blocks();
        let encoder = self.passing.graph.encoder();
        for place in self.asked.clone() {
            let Scratch {
                query,
                front,
                found,
                fresh,
                stats,
                ..
            } = &mut *self.scratch;
            let node = fresh[place].node();
            if node == NONE {
                continue;
            }
            stats.distance_computations += 1;
            stats.bytes_touched += blocks.vector_bytes() as u64;
            // SAFETY: the caller vouches for the nodes.
            unsafe {
                let distance = blocks.distance(encoder, query, node);
                let Some(place) = front.push(distance, node) else {
                    continue;
                };
                if place < NEAR {
                    blocks.prefetch_edges(node);
                }
                self.passing.take(Candidate::new(distance, node), found);
            }
        }
    }
}
