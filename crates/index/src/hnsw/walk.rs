//! The walk over one level of a graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Hnsw;
use super::nodes::NONE;
use super::scratch::Scratch;
use super::vectors::Probe;
use crate::candidate::Candidate;
use crate::narrow::Narrow;
use crate::vector_index::IsOver;
use crate::visited::Visited;

/// Neighbours whose vectors are asked for while the others are still being looked up.
const EARLY: usize = 4;

/// What a walk does with a node that is near enough.
pub(crate) trait Admit {
    /// Adds to `scratch.found` what the node stands for.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    unsafe fn admit(&self, graph: &Hnsw, probe: Probe<'_>, node: Candidate, found: &mut Found<'_>);

    /// Whether the walk is to end with what it has found.
    #[inline(always)]
    fn is_over(&self) -> bool {
        false
    }
}

/// Tells of which twins of what a walk found are rows to be found, too.
pub(crate) trait Passes {
    fn passes(&self, row: u64) -> bool;
}

/// Nodes of a walk between which it is asked whether it is to end: some microseconds.
const UNASKED: u64 = 16;

/// As many of the nearest nodes so far as a walk holds.
pub(crate) struct Found<'a> {
    heap: &'a mut BinaryHeap<Candidate>,
    narrow: Narrow,
    /// Those by which it is seen what is too far,
    nearest: &'a mut BinaryHeap<Candidate>,
    /// and what is.
    reach: f32,
    /// Vectors that were compared beyond those that the walk itself compared.
    compared: u64,
}

impl Found<'_> {
    /// Whether a walk has nothing to look for behind a node, or wherever is farther.
    #[inline(always)]
    fn is_too_far(&self, candidate: Candidate) -> bool {
        let is_beyond = |farthest: &Candidate| candidate > *farthest;
        candidate.distance() > self.reach
            || self.is_full() && self.heap.peek().is_some_and(is_beyond)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.heap.len() >= self.narrow.most
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, candidate: Candidate) {
        push(self.heap, self.narrow.most, candidate);
        if self.narrow.narrows() && push(self.nearest, self.narrow.nth, candidate) {
            let nth = self
                .nearest
                .peek()
                .filter(|_| self.nearest.len() >= self.narrow.nth);
            self.reach = nth.map_or(f32::INFINITY, |nth| self.narrow.reach(nth.distance()));
        }
    }

    #[inline(always)]
    fn takes(&self, candidate: Candidate) -> bool {
        let is_nearer = |farthest: &Candidate| candidate < *farthest;
        candidate.distance() <= self.reach
            && (!self.is_full() || self.heap.peek().is_some_and(is_nearer))
    }
}

/// Adds a candidate to the nearest so many; false if it is none of them.
#[inline(always)]
fn push(heap: &mut BinaryHeap<Candidate>, most: usize, candidate: Candidate) -> bool {
    if heap.len() < most {
        heap.push(candidate);
        return true;
    }
    match heap.peek_mut() {
        Some(mut farthest) if candidate < *farthest => {
            *farthest = candidate;
            true
        }
        _ => false,
    }
}

/// Takes every node as it is: for building.
pub(crate) struct Everything;

impl Admit for Everything {
    #[inline(always)]
    unsafe fn admit(&self, _: &Hnsw, _: Probe<'_>, node: Candidate, found: &mut Found<'_>) {
        found.push(node);
    }
}

/// Takes nodes and their twins, of rows that are visible: for searching.
pub(crate) struct Visible<'a> {
    pub(crate) row: &'a (dyn Fn(u64) -> bool + Sync),
    /// Whether the walk is to end.
    pub(crate) is_over: Option<IsOver<'a>>,
}

impl Admit for Visible<'_> {
    #[inline(always)]
    unsafe fn admit(&self, graph: &Hnsw, probe: Probe<'_>, node: Candidate, found: &mut Found<'_>) {
        // SAFETY: the caller vouches for the node.
        unsafe { take(self.row, graph, probe, node, found) };
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.is_over.is_some_and(|is_over| is_over())
    }
}

impl Passes for Visible<'_> {
    fn passes(&self, row: u64) -> bool {
        (self.row)(row)
    }
}

/// Adds a node, or the first of its twins whose row passes; tells whether there is one. Its other twins do not bound the walk: or else,
/// where many rows are equal and others that are nearer to the query lie behind them, it would end at those.
///
/// # Safety
/// As [`Admit::admit`].
#[inline(always)]
pub(super) unsafe fn take(
    passes: &(dyn Fn(u64) -> bool + Sync),
    graph: &Hnsw,
    probe: Probe<'_>,
    node: Candidate,
    found: &mut Found<'_>,
) -> bool {
    // SAFETY: the caller vouches for the node, and a twin that was read was written before it was chained.
    unsafe {
        if passes(graph.nodes.row(node.node())) {
            found.push(node);
            return true;
        }
        let mut twin = graph.nodes.twin(node.node());
        while twin != NONE {
            if passes(graph.nodes.row(twin)) {
                // Where the metric is cosine, lengths of twins may differ, and so may the last digits.
                found.compared += 1;
                found.push(Candidate::new(graph.vectors.distance(probe, twin), twin));
                return true;
            }
            twin = graph.nodes.twin(twin);
        }
        false
    }
}

impl Hnsw {
    /// Walks one level from `entry` and leaves the nearest nodes that `admit` takes in `scratch.found`, as many as the walk holds.
    ///
    /// All nodes near enough are walked through, also those that are not taken, until as many that were taken bound
    /// the walk, all others are too far, or no node is left. This is SEARCH-LAYER of Malkov and Yashunin (arXiv 1603.09320, algorithm 2) with
    /// results and bound held apart from the nodes that are walked through.
    ///
    /// # Safety
    /// `entry` was written before, and has this level.
    pub(crate) unsafe fn walk<A: Admit>(
        &self,
        probe: Probe<'_>,
        entry: Candidate,
        level: u32,
        narrow: Narrow,
        admit: &A,
        scratch: &mut Scratch,
    ) {
        let Scratch {
            visited,
            open,
            found,
            nearest,
            fresh,
            distances,
            near,
            stats,
        } = scratch;
        visited.clear(self.nodes.claimed() as usize);
        open.clear();
        found.clear();
        nearest.clear();
        let mut found = Found {
            heap: found,
            narrow,
            nearest,
            reach: f32::INFINITY,
            compared: 0,
        };
        visited.meet(entry.node());
        open.push(Reverse(entry));
        // SAFETY: the caller vouches for the entry, and every link leads to a node that was written before it was
        // linked and has the level of the link.
        unsafe {
            admit.admit(self, probe, entry, &mut found);
            while let Some(Reverse(nearest)) = open.pop() {
                if found.is_too_far(nearest) {
                    break;
                }
                stats.nodes_popped += 1;
                if stats.nodes_popped.is_multiple_of(UNASKED) && admit.is_over() {
                    break;
                }
                fresh.clear();
                // The next node is known unless a nearer one turns up; by then its links have come.
                if let Some(Reverse(next)) = open.peek() {
                    self.nodes.prefetch(next.node());
                }
                self.meet_links(nearest.node(), level, visited, fresh);
                self.vectors.distances(probe, fresh, distances);
                stats.distance_computations += fresh.len() as u64;
                near.clear();
                for (node, distance) in fresh.iter().zip(distances.iter()) {
                    let candidate = Candidate::new(*distance, *node);
                    if found.takes(candidate) {
                        self.nodes.prefetch(*node);
                        near.push(candidate);
                    }
                }
                for candidate in near.iter().copied() {
                    if found.takes(candidate) {
                        open.push(Reverse(candidate));
                        admit.admit(self, probe, candidate, &mut found);
                    }
                }
            }
        }
        stats.distance_computations += found.compared;
    }

    /// Adds the neighbours of a node that were not met to `fresh`, and asks for the vectors of the first.
    ///
    /// # Safety
    /// The node was written before, and has this level.
    #[inline(always)]
    unsafe fn meet_links(
        &self,
        node: u32,
        level: u32,
        visited: &mut Visited,
        fresh: &mut Vec<u32>,
    ) {
        // SAFETY: the caller vouches for the node.
        let links = unsafe { self.nodes.links(node, level) };
        links.for_each(|link| {
            if visited.meet(link) {
                if fresh.len() < EARLY {
                    self.vectors.prefetch(link);
                }
                fresh.push(link);
            }
        });
    }

    /// Goes from `from` to ever nearer neighbours on one level until there is none.
    ///
    /// # Safety
    /// `from` was written before, and has this level.
    pub(crate) unsafe fn descend(
        &self,
        probe: Probe<'_>,
        from: Candidate,
        level: u32,
        scratch: &mut Scratch,
    ) -> Candidate {
        let Scratch {
            fresh,
            distances,
            stats,
            ..
        } = scratch;
        let mut nearest = from;
        loop {
            let here = nearest;
            stats.nodes_popped += 1;
            fresh.clear();
            // SAFETY: as in `walk`.
            unsafe {
                fresh.extend(self.nodes.links(here.node(), level));
                self.vectors.distances(probe, fresh, distances);
            }
            stats.distance_computations += fresh.len() as u64;
            for (node, distance) in fresh.iter().zip(distances.iter()) {
                nearest = nearest.min(Candidate::new(*distance, *node));
            }
            if nearest == here {
                return nearest;
            }
        }
    }
}
