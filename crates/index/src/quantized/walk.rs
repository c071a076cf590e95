//! The walk through the graph.

use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::{Base, SLOTS};

use super::QuantizedGraph;
use super::block::NONE;
use super::elsewhere::{NARROW, WIDE};
use super::front::Front;
use super::level::Level;
use super::link::FAR;
use super::scratch::Scratch;
use crate::candidate::Candidate;

/// Places in the front up to which a candidate's edges are asked for as soon as it is found.
pub(super) const NEAR: usize = 4;
/// Neighbours that are compared before the limit is looked at again, on the levels above the lowest, where one node is
/// mostly looked for.
pub(super) const FEW: usize = 3;
/// Part of an estimate's standard error by which it is lowered, so that few are passed over that are near enough.
pub(super) const SLACK: f32 = 0.25;

/// What a walk does with a node of its lowest level that was near enough when it was met.
pub(super) trait Admit {
    /// Adds to `found` what the node stands for, and does not count it in the front if that is nothing; or tightens it by what `held` holds
    /// of what it takes.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    unsafe fn admit(
        &self,
        level: &Level,
        fronts: (&mut Front, &mut Front),
        found: &mut Vec<Candidate>,
        node: Candidate,
    );

    /// Passes by what in the front is too far to lead to what is looked for; told after some nodes of the lowest level were taken.
    ///
    /// # Safety
    /// The nodes in the front were written, and the writes happened before.
    #[inline(always)]
    unsafe fn narrow(&self, _level: &Level, _front: &mut Front) {}

    /// Told what a walk holds that begins anew, since all that it met is far: see `elsewhere`.
    fn begin_anew(&self, _fronts: (&Front, &mut Front)) {}

    /// Asks for what is read when the walk has ended. Told after each step on the lowest level that compares, takes up or follows edges, when memory
    /// was asked for that the next one reads; with the node whose edges were followed, if some were, and its place in the front.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    unsafe fn look_ahead(&self, _level: &Level, _followed: Option<(u32, usize)>) {}
}

/// Takes every node that stays in the graph: for building. One that leaves does not count.
pub(super) struct Staying;

impl Admit for Staying {
    #[inline(always)]
    unsafe fn admit(
        &self,
        level: &Level,
        (front, _): (&mut Front, &mut Front),
        found: &mut Vec<Candidate>,
        node: Candidate,
    ) {
        // SAFETY: the caller vouches for the node.
        if unsafe { level.blocks.is_leaving(node.node()) } {
            front.discount(node);
        } else {
            found.push(node);
        }
    }
}

/// A walk for one query, from the highest level down to the one that is searched.
///
/// On each level it follows the edges of the nodes nearest to the query: on the lowest of `ef`, or as many
/// as `admit` leaves in the front, and of one or some above (see `elsewhere`). A node's
/// neighbours are estimated from its edges alone, or by their signs (`by_signs`). Only for those that may be near enough, by the error that an estimate
/// has, their own codes are read.
///
/// It goes in steps, and each ends when memory was asked for that the next one reads: so a thread can take steps of
/// several walks in turn, and need not wait.
pub(super) struct Walk<'a, A> {
    pub(super) graph: &'a QuantizedGraph,
    pub(super) admit: A,
    ef: usize,
    /// Nodes of each level above the one that is searched whose edges it follows.
    pub(super) above: usize,
    /// Whether it may look elsewhere.
    pub(super) looks: bool,
    /// The level on which it is.
    height: usize,
    /// Whether it has followed the edges of a node there that stays, if it is above the one that is searched.
    has_followed: bool,
    /// The level on which it ends.
    pub(super) bottom: usize,
    /// How far what it found is before it looked elsewhere, once it does.
    pub(super) before: Option<f32>,
    /// Which of `scratch.fresh` were asked for, and are compared next.
    pub(super) asked: std::ops::Range<usize>,
    pub(super) scratch: Box<Scratch>,
}

impl<'a, A: Admit> Walk<'a, A> {
    /// A walk for the query in `scratch`, which is ready for estimates, from level `top`, or the highest below it that has nodes,
    /// to level `bottom`: there it follows the edges of `ef` nodes, and on each level above of as many as it is told. The scratch
    /// comes back as an error if there are no nodes.
    pub(super) fn new(
        graph: &'a QuantizedGraph,
        (bottom, top): (usize, usize),
        (ef, above): (usize, usize),
        admit: A,
        scratch: Box<Scratch>,
    ) -> Result<Self, Box<Scratch>> {
        let mut walk = Walk {
            graph,
            admit,
            ef,
            above,
            looks: false,
            height: 0,
            has_followed: false,
            bottom,
            before: None,
            asked: 0..0,
            scratch,
        };
        match walk.begin_above(top) {
            true => Ok(walk),
            false => Err(walk.scratch),
        }
    }

    /// Begins on level `top`, or the highest below it that has nodes; false if there are none.
    pub(super) fn begin_above(&mut self, top: usize) -> bool {
        let begin = |(height, level): (usize, &Level)| level.entry().map(|entry| (height, entry));
        let levels = self.graph.levels.iter().enumerate();
        let mut levels = levels.take(top + 1).skip(self.bottom).rev();
        let Some((height, entry)) = levels.find_map(begin) else {
            return false;
        };
        self.height = height;
        // SAFETY: an entry was written before it became one.
        unsafe {
            let (blocks, encoder) = (&self.level().blocks, self.graph.encoder());
            let distance = blocks.distance(encoder, &self.scratch.query, entry);
            self.begin(Candidate::new(distance, entry));
        }
        true
    }

    /// A walk for the query in `scratch`, which is ready for estimates, over the lowest level from `start`.
    ///
    /// # Safety
    /// The start was written, and the write happened before.
    pub(super) unsafe fn lowest(
        graph: &'a QuantizedGraph,
        start: Candidate,
        ef: usize,
        admit: A,
        scratch: Box<Scratch>,
    ) -> Self {
        let mut walk = Walk {
            graph,
            admit,
            ef,
            above: WIDE,
            looks: false,
            height: 0,
            has_followed: false,
            bottom: 0,
            before: None,
            asked: 0..0,
            scratch,
        };
        // SAFETY: the caller vouches for the start.
        unsafe { walk.begin(start) };
        walk
    }

    /// Ends early. On its way down it has found nodes of a level above, which stand for no rows yet.
    pub(super) fn cut(&mut self) {
        if self.height > self.bottom {
            self.take_back();
        } else {
            self.take_all();
        }
    }

    /// Takes all steps.
    pub(super) fn run(&mut self) {
        while self.step() {}
    }

    /// Takes a step; false if the walk has ended. What it found is then in `scratch.found`.
    #[inline(always)]
    pub(super) fn step(&mut self) -> bool {
        // SAFETY: the entry was written before it became one, and every link leads to a node that was written before
        // it was linked. Nodes of a level stand for nodes of the one below that were written before.
        unsafe {
            if !self.asked.is_empty() {
                self.compare();
                self.ask();
                self.look_ahead(None);
                return true;
            }
            if self.take_up() {
                self.look_ahead(None);
                return true;
            }
            if self.has_seen_all() {
                return self.go_down();
            }
            if let Some((node, distance, place)) = self.scratch.front.pop() {
                let is_above = self.height > self.bottom;
                self.has_followed |= is_above && !self.level().blocks.is_leaving(node);
                self.follow(node, distance);
                self.ask();
                self.look_ahead(Some((node, place)));
                return true;
            }
            if self.height == self.bottom {
                return self.look_elsewhere();
            }
            self.go_down()
        }
    }

    /// Whether hardly anything is behind the nearest that was not estimated: of a small level the edges of one node lead to all others, if
    /// inserts look at as many. An estimate may have passed over the nearest. Who follows those of one node only need not look.
    #[inline(always)]
    fn has_seen_all(&self) -> bool {
        self.has_followed
            && self.above == NARROW
            && self.graph.params.ef_construction >= SLOTS
            && self.level().is_small()
    }

    /// Begins on the level below, or ends.
    ///
    /// # Safety
    /// As [`Walk::step`] says.
    unsafe fn go_down(&mut self) -> bool {
        let blocks = &self.level().blocks;
        let found = &self.scratch.found;
        // SAFETY: the caller vouches for what was found.
        unsafe {
            let stays = |found: &&Candidate| !blocks.is_leaving(found.node());
            let below = |found: &Candidate| {
                Candidate::new(found.distance(), blocks.row(found.node()) as u32)
            };
            let nearest = found.iter().min().map(below);
            let staying = found.iter().filter(stays).min().map(below);
            let Some(nearest) = nearest else {
                self.height = self.bottom;
                self.take_back();
                return false;
            };
            self.height -= 1;
            let is_before = |before: f32| before <= nearest.distance();
            if self.height == self.bottom && self.before.is_some_and(is_before) {
                self.scratch.start = Some(nearest);
                self.take_back();
                return false;
            }
            // All below one that leaves may leave too; but it may be the only one near those that stay.
            let start = staying.unwrap_or(nearest);
            self.begin(start);
            if FAR * nearest.distance() < start.distance() {
                self.begin_there_too(nearest);
            }
            true
        }
    }

    pub(super) fn level(&self) -> &'a Level {
        &self.graph.levels[self.height]
    }

    /// Begins on a level.
    ///
    /// # Safety
    /// As [`Admit::admit`].
    unsafe fn begin(&mut self, start: Candidate) {
        let level = self.level();
        self.has_followed = false;
        let mut ef = self.above;
        if self.height == self.bottom {
            ef = self.ef;
            self.scratch.start = Some(start);
        }
        let Scratch {
            visited,
            front,
            found,
            later,
            ..
        } = &mut *self.scratch;
        match level.blocks.cut() {
            // Neighbours that were estimated are passed over.
            true => visited.clear_both(level.blocks.claimed() as usize),
            false => visited.clear(level.blocks.claimed() as usize),
        }
        front.clear(ef);
        found.clear();
        later.clear();
        visited.meet(start.node());
        front.push(start.distance(), start.node());
        level.blocks.prefetch_edges(start.node());
        // SAFETY: the caller vouches for the node.
        unsafe { self.take(start) };
    }

    /// Begins at a second node.
    ///
    /// # Safety
    /// As [`Admit::admit`].
    #[cold]
    unsafe fn begin_there_too(&mut self, start: Candidate) {
        let Scratch { visited, front, .. } = &mut *self.scratch;
        if visited.meet(start.node()) && front.push(start.distance(), start.node()).is_some() {
            // SAFETY: the caller vouches for the node.
            unsafe { self.take(start) };
        }
    }

    /// # Safety
    /// As [`Admit::admit`].
    #[inline(always)]
    unsafe fn take(&mut self, node: Candidate) {
        let level = self.level();
        let Scratch {
            front, held, found, ..
        } = &mut *self.scratch;
        if self.height == self.bottom {
            // SAFETY: the caller vouches for the node.
            unsafe { self.admit.admit(level, (front, held), found, node) };
        } else {
            found.push(node);
        }
    }

    /// Estimates the neighbours of `node`, and leaves those that may be near enough in `scratch.fresh`.
    ///
    /// # Safety
    /// As [`Admit::admit`].
    #[inline(always)]
    unsafe fn follow(&mut self, node: u32, distance: f32) {
        let blocks = &self.level().blocks;
        self.scratch.stats.nodes_popped += 1;
        self.scratch.stats.bytes_touched += blocks.edge_bytes() as u64;
        self.scratch.fresh.clear();
        if !blocks.coded() {
            // SAFETY: the caller vouches for the node.
            return unsafe { self.follow_without_codes(node) };
        }
        let Scratch {
            lut,
            visited,
            front,
            fresh,
            ..
        } = &mut *self.scratch;
        let base = Base {
            distance,
            slack: SLACK * distance.sqrt(),
        };
        let mut estimates = [0f32; SLOTS];
        // SAFETY: the caller vouches for the node.
        unsafe {
            let rabitq = self.graph.encoder().rabitq;
            let mut near =
                rabitq.estimate(lut, blocks.block(node), base, front.limit(), &mut estimates);
            let ids = blocks.ids(node);
            while near != 0 {
                let slot = near.trailing_zeros() as usize;
                near &= near - 1;
                let neighbor = ids[slot].load(Ordering::Acquire);
                if neighbor != NONE && !visited.has_met(neighbor) {
                    fresh.push(Candidate::new(estimates[slot], neighbor));
                }
            }
        }
        // The nearest by estimate first: they tighten the limit for the others.
        if fresh.len() > FEW {
            fresh.sort_unstable();
        }
    }

    /// Asks for the codes of the next neighbours that may be near enough, and for the edges that are likely followed
    /// next.
    #[inline(always)]
    pub(super) fn ask(&mut self) {
        let blocks = &self.level().blocks;
        let Scratch {
            visited,
            front,
            fresh,
            later,
            ..
        } = &mut *self.scratch;
        let limit = front.limit();
        let begin = self.asked.end.min(fresh.len());
        let most = if self.height > self.bottom {
            FEW
        } else if !(blocks.coded() || blocks.cut()) {
            blocks.batch()
        } else if begin == 0 {
            blocks.first()
        } else if later.is_full() {
            blocks.batch()
        } else {
            // Of the others those that may be nearer than what is followed next.
            let next = front.next_distance();
            let near = fresh[begin..].partition_point(|c| c.distance() < next);
            later.add(&fresh[begin + near..], limit);
            fresh.truncate(begin + near);
            blocks.batch()
        };
        let batch = fresh[begin..].iter().take(most);
        let count = batch.take_while(|c| c.distance() < limit).count();
        for neighbor in &mut fresh[begin..begin + count] {
            if visited.meet(neighbor.node()) {
                blocks.prefetch_vector(neighbor.node());
            } else {
                // Edges of several nodes lead to it that was left for later.
                *neighbor = Candidate::new(f32::INFINITY, NONE);
            }
        }
        if let Some(next) = front.peek() {
            blocks.prefetch_edges(next);
        }
        // With none left, the next step follows other edges.
        self.asked = if count == 0 {
            0..0
        } else {
            begin..begin + count
        };
    }

    /// # Safety
    /// As [`Admit::look_ahead`].
    #[inline(always)]
    unsafe fn look_ahead(&self, followed: Option<(u32, usize)>) {
        if self.height == self.bottom {
            // SAFETY: the caller vouches for the node.
            unsafe { self.admit.look_ahead(self.level(), followed) };
        }
    }

    /// Compares the neighbours that were asked for.
    ///
    /// # Safety
    /// They were written, and the writes happened before.
    #[inline(always)]
    unsafe fn compare(&mut self) {
        let blocks = &self.level().blocks;
        let encoder = self.graph.encoder();
        let mut count = 0;
        for place in self.asked.clone() {
            let neighbor = self.scratch.fresh[place].node();
            if neighbor == NONE {
                continue;
            }
            count += 1;
            // SAFETY: the caller vouches for the neighbours.
            unsafe {
                let distance = blocks.distance(encoder, &self.scratch.query, neighbor);
                if let Some(place) = self.scratch.front.push(distance, neighbor) {
                    if place < NEAR {
                        blocks.prefetch_edges(neighbor);
                    }
                    self.take(Candidate::new(distance, neighbor));
                }
            }
        }
        self.scratch.stats.distance_computations += count;
        self.scratch.stats.bytes_touched += count * blocks.vector_bytes() as u64;
        if self.height == self.bottom {
            let level = self.level();
            // SAFETY: the caller vouches for what is compared, and walks hold nothing else.
            unsafe { self.admit.narrow(level, &mut self.scratch.front) };
        }
    }
}
