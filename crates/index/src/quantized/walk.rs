//! The walk through the graph.

use std::sync::atomic::Ordering;

use longbow_kernels::rabitq::{Base, SLOTS};

use super::QuantizedGraph;
use super::block::NONE;
use super::front::Front;
use super::level::Level;
use super::scratch::Scratch;
use crate::candidate::Candidate;

/// Places in the front up to which a candidate's edges are asked for as soon as it is found.
pub(super) const NEAR: usize = 8;
/// Neighbours that are compared before the limit is looked at again, on the levels above the lowest, where one node is
/// looked for.
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
/// On each level it follows the edges of the `ef` nodes nearest to the query (of one node, above the lowest; on the lowest of as many
/// as `admit` leaves in the front). A node's
/// neighbours are estimated from its edges alone. Only for those that may be near enough, by the error that an estimate
/// has, their own codes are read.
///
/// It goes in steps, and each ends when memory was asked for that the next one reads: so a thread can take steps of
/// several walks in turn, and need not wait.
pub(super) struct Walk<'a, A> {
    graph: &'a QuantizedGraph,
    pub(super) admit: A,
    ef: usize,
    /// The level on which it is.
    height: usize,
    /// The level on which it ends.
    bottom: usize,
    /// Which of `scratch.fresh` were asked for, and are compared next.
    asked: std::ops::Range<usize>,
    pub(super) scratch: Box<Scratch>,
}

impl<'a, A: Admit> Walk<'a, A> {
    /// A walk for the query in `scratch`, whose table is filled, from level `top`, or the highest below it that has nodes,
    /// to level `bottom`. The scratch comes back as an error if there are no nodes.
    pub(super) fn new(
        graph: &'a QuantizedGraph,
        (bottom, top): (usize, usize),
        ef: usize,
        admit: A,
        scratch: Box<Scratch>,
    ) -> Result<Self, Box<Scratch>> {
        let begin = |(height, level): (usize, &Level)| level.entry().map(|entry| (height, entry));
        let levels = graph.levels.iter().enumerate();
        let mut levels = levels.take(top + 1).skip(bottom).rev();
        let Some((height, entry)) = levels.find_map(begin) else {
            return Err(scratch);
        };
        let mut walk = Walk {
            graph,
            admit,
            ef,
            height,
            bottom,
            asked: 0..0,
            scratch,
        };
        let blocks = &graph.levels[height].blocks;
        // SAFETY: an entry was written before it became one.
        unsafe {
            let vector = blocks.vector(entry);
            let distance = graph.encoder().distance(&walk.scratch.query, vector);
            walk.begin(Candidate::new(distance, entry));
        }
        Ok(walk)
    }

    /// A walk for the query in `scratch`, whose table is filled, over the lowest level from `start`.
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
            height: 0,
            bottom: 0,
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
            self.scratch.found.clear();
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
                return true;
            }
            if let Some((node, distance)) = self.scratch.front.pop() {
                self.follow(node, distance);
                self.ask();
                return true;
            }
            if self.height == self.bottom {
                return false;
            }
            let blocks = &self.level().blocks;
            let found = || self.scratch.found.iter();
            // One that leaves does only where none stays: all below it may leave too.
            let staying = found().filter(|found| !blocks.is_leaving(found.node()));
            let Some(nearest) = staying.min().or_else(|| found().min()).copied() else {
                return false;
            };
            let below = blocks.row(nearest.node()) as u32;
            self.height -= 1;
            self.begin(Candidate::new(nearest.distance(), below));
            true
        }
    }

    fn level(&self) -> &'a Level {
        &self.graph.levels[self.height]
    }

    /// Begins on a level.
    ///
    /// # Safety
    /// As [`Admit::admit`].
    unsafe fn begin(&mut self, start: Candidate) {
        let level = self.level();
        let ef = if self.height == self.bottom {
            self.ef
        } else {
            1
        };
        let Scratch {
            visited,
            front,
            found,
            ..
        } = &mut *self.scratch;
        visited.clear(level.blocks.claimed() as usize);
        front.clear(ef);
        found.clear();
        visited.meet(start.node());
        front.push(start.distance(), start.node());
        level.blocks.prefetch_edges(start.node());
        // SAFETY: the caller vouches for the node.
        unsafe { self.take(start) };
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
        let Scratch {
            lut,
            visited,
            front,
            fresh,
            stats,
            ..
        } = &mut *self.scratch;
        let base = Base {
            distance,
            slack: SLACK * distance.sqrt(),
        };
        let mut estimates = [0f32; SLOTS];
        fresh.clear();
        stats.nodes_popped += 1;
        stats.bytes_touched += blocks.edge_bytes() as u64;
        if !blocks.coded() {
            // SAFETY: the caller vouches for the node.
            let ids = unsafe { blocks.ids(node) };
            let ids = ids.iter().map(|id| id.load(Ordering::Acquire));
            // Nothing is known of them.
            let new = ids.filter(|id| *id != NONE && !visited.has_met(*id));
            fresh.extend(new.map(|id| Candidate::new(0.0, id)));
            return;
        }
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
    fn ask(&mut self) {
        let blocks = &self.level().blocks;
        let Scratch {
            visited,
            front,
            fresh,
            ..
        } = &mut *self.scratch;
        let limit = front.limit();
        let begin = self.asked.end.min(fresh.len());
        let most = if self.height > self.bottom {
            FEW
        } else {
            blocks.batch()
        };
        let batch = fresh[begin..].iter().take(most);
        let count = batch.take_while(|c| c.distance() < limit).count();
        for neighbor in &mut fresh[begin..begin + count] {
            if visited.meet(neighbor.node()) {
                blocks.prefetch_vector(neighbor.node());
            } else {
                // Two edges lead to it, which a damaged checkpoint may say.
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

    /// Compares the neighbours that were asked for.
    ///
    /// # Safety
    /// They were written, and the writes happened before.
    #[inline(always)]
    unsafe fn compare(&mut self) {
        let blocks = &self.level().blocks;
        let encoder = self.graph.encoder();
        let count = self.asked.len() as u64;
        self.scratch.stats.distance_computations += count;
        self.scratch.stats.bytes_touched += count * blocks.vector_bytes() as u64;
        for place in self.asked.clone() {
            let neighbor = self.scratch.fresh[place].node();
            if neighbor == NONE {
                continue;
            }
            // SAFETY: the caller vouches for the neighbours.
            unsafe {
                let distance = encoder.distance(&self.scratch.query, blocks.vector(neighbor));
                if let Some(place) = self.scratch.front.push(distance, neighbor) {
                    if place < NEAR {
                        blocks.prefetch_edges(neighbor);
                    }
                    self.take(Candidate::new(distance, neighbor));
                }
            }
        }
    }
}
