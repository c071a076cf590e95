//! Nodes whose neighbours leave choose anew.

use crate::sync::atomic::{AtomicU32, Ordering};

use longbow_kernels::rabitq::{Octets, SLOTS};

use super::QuantizedGraph;
use super::block::NONE;
use super::insert::Pace;
use super::level::Level;
use super::link::{GUIDED, Why};
use super::scratch::Scratch;
use crate::candidate::Candidate;
use crate::led_to::KEPT;

/// Leaving nodes that are looked behind at most for one that stays.
const BEHIND: usize = 64;
/// With fewer to choose from, a walk finds others.
const FEWEST: usize = 8;

impl QuantizedGraph {
    /// Leads nodes of a level past those of their neighbours that leave.
    pub(super) fn repair(&self, height: usize, nodes: &[u32]) {
        let room = nodes.iter().fold(self.room(), |room, node| {
            // SAFETY: listed nodes were written, and stay so until the removal ends.
            unsafe { self.repair_one(height, *node, room) }
        });
        self.pool.give(room);
    }

    /// # Safety
    /// The node was written, and its place is not given to another meanwhile.
    unsafe fn repair_one(
        &self,
        height: usize,
        node: u32,
        mut scratch: Box<Scratch>,
    ) -> Box<Scratch> {
        let level = &self.levels[height];
        // SAFETY: the caller vouches for the node, and edges lead to nodes that were written.
        unsafe {
            let ids = || level.blocks.ids(node).iter();
            let neighbors = || ids().map(|id| id.load(Ordering::Acquire));
            // Edges that change places are not seen for a moment by who does not hold the node.
            let leads_to_leaving = || {
                let _change = level.lock(node);
                neighbors().any(|id| id != NONE && level.blocks.is_leaving(id))
            };
            if leads_to_leaving() {
                if self.gather(level, node, &mut scratch) < FEWEST {
                    scratch = self.look_for(height, node, scratch);
                    scratch.found.retain(|found| found.node() != node);
                }
                self.choose_anew(level, node, &mut scratch, |_| false);
            }
            // One that left may have been the only one to lead here.
            let stays = neighbors().filter(|id| *id != NONE && !level.blocks.is_leaving(*id));
            let mut room = Octets::default();
            let here = level.blocks.here(node, &mut room);
            let away = |id: u32| level.blocks.between(self.encoder(), here, id);
            let mut stay: Vec<Candidate> = stays.map(|id| Candidate::new(away(id), id)).collect();
            stay.sort_unstable();
            for (place, other) in stay.iter().enumerate() {
                if place > 0 && level.blocks.led_to(node).get() >= KEPT {
                    break;
                }
                let why = match place {
                    0 => Why::Guides,
                    _ => Why::Nearest,
                };
                let link = (other.node(), node, why);
                self.link(level, link, &mut scratch.bits, &mut Vec::new());
            }
            if let Some(nearest) = stay.first()
                && level.blocks.led_to(node).get() == 0
            {
                self.lead_by(level, (nearest.node(), node), &mut scratch.bits);
            }
        }
        scratch
    }

    /// Collects in `scratch.found` the neighbours of a node that stay, and those behind its neighbours that leave, and
    /// returns how many.
    ///
    /// # Safety
    /// As [`QuantizedGraph::repair_one`].
    pub(super) unsafe fn gather(&self, level: &Level, node: u32, scratch: &mut Scratch) -> usize {
        let Scratch { visited, found, .. } = scratch;
        let blocks = &level.blocks;
        visited.clear(blocks.claimed() as usize);
        visited.meet(node);
        found.clear();
        let mut behind = vec![node];
        let mut at = 0;
        // SAFETY: the caller vouches for the node, and edges lead to nodes that were written.
        unsafe {
            let direct = 1 + blocks
                .ids(node)
                .iter()
                .map(|id| id.load(Ordering::Acquire))
                .filter(|id| *id != NONE && blocks.is_leaving(*id))
                .count();
            // Behind each neighbour that leaves, and further only as long as too few are found.
            while at < behind.len() && (at < direct || at < BEHIND && found.len() < FEWEST) {
                for id in blocks.ids(behind[at]) {
                    let id = id.load(Ordering::Acquire);
                    if id == NONE || !visited.meet(id) {
                        continue;
                    }
                    if blocks.is_leaving(id) {
                        behind.push(id);
                    } else {
                        blocks.prefetch_vector(id);
                        found.push(Candidate::new(0.0, id));
                    }
                }
                at += 1;
            }
            let mut room = Octets::default();
            let here = blocks.here(node, &mut room);
            for candidate in found.iter_mut() {
                let distance = blocks.between(self.encoder(), here, candidate.node());
                *candidate = Candidate::new(distance, candidate.node());
            }
        }
        found.len()
    }

    /// Collects in `scratch.found` what a walk for the node's own code finds, as for a new node, and mostly itself.
    ///
    /// # Safety
    /// As [`QuantizedGraph::repair_one`].
    pub(super) unsafe fn look_for(
        &self,
        height: usize,
        node: u32,
        mut scratch: Box<Scratch>,
    ) -> Box<Scratch> {
        let mut room = Octets::default();
        // SAFETY: the caller vouches for the node, and a code has that many bytes.
        unsafe {
            let here = self.levels[height].blocks.here(node, &mut room);
            self.encoder().decoded(here.vector, &mut scratch.query);
        }
        self.aim(&mut scratch);
        self.walk_for_neighbors(height, Pace::Whole, scratch)
    }

    /// Chooses the node's neighbours from `scratch.found`. Edges that stay keep their slots, so only new ones are encoded. Those to nodes that `keep`
    /// holds for stay.
    ///
    /// # Safety
    /// As [`QuantizedGraph::repair_one`].
    pub(super) unsafe fn choose_anew(
        &self,
        level: &Level,
        node: u32,
        scratch: &mut Scratch,
        keep: impl Fn(u32) -> bool,
    ) {
        let Scratch { found, bits, .. } = scratch;
        let _change = level.lock(node);
        // SAFETY: the caller vouches for the node, and candidates were written.
        unsafe {
            let slots = level.blocks.ids(node);
            self.add_newest(level, node, found);
            found.sort_unstable();
            let (chosen, count) = self.choose(level, found);
            let mut places = [NONE; SLOTS];
            let mut left = Vec::with_capacity(SLOTS);
            for candidate in &chosen {
                let same = |slot: &AtomicU32| slot.load(Ordering::Relaxed) == candidate.node();
                match slots.iter().position(same) {
                    Some(slot) => places[slot] = candidate.node(),
                    None => left.push(candidate.node()),
                }
            }
            let (mut left, mut guided) = (left.into_iter(), 0);
            for (slot, place) in places.iter_mut().enumerate().filter(|(_, id)| **id == NONE) {
                let before = slots[slot].load(Ordering::Relaxed);
                if before != NONE {
                    let guides = guided < GUIDED && self.guides(level, node, before);
                    guided += usize::from(guides);
                    if guides || keep(before) || !level.blocks.let_go(before) {
                        *place = before;
                        continue;
                    }
                }
                match left.next() {
                    Some(to) => {
                        self.set_edge(level, node, slot, to, bits);
                        *place = to;
                    }
                    None => level.blocks.clear_edge(node, slot),
                }
            }
            let mut apart = 0u32;
            for candidate in &chosen[..count] {
                let slot = places.iter().position(|id| *id == candidate.node());
                apart |= slot.map_or(0, |slot| 1 << slot);
            }
            level.blocks.apart(node).store(apart, Ordering::Relaxed);
            let nearest = chosen.first().map(|nearest| nearest.node());
            let at = places.iter().position(|id| Some(*id) == nearest);
            if let Some(at) = at.filter(|at| *at > 0) {
                self.put_first(level, node, at, bits);
            }
        }
    }

    /// Adds to the candidates the neighbours that the node got since they were collected, for it is locked only now.
    ///
    /// # Safety
    /// As [`QuantizedGraph::repair_one`].
    unsafe fn add_newest(&self, level: &Level, node: u32, found: &mut Vec<Candidate>) {
        // SAFETY: the caller vouches for the node, and edges lead to nodes that were written.
        unsafe {
            let mut room = Octets::default();
            let here = level.blocks.here(node, &mut room);
            for id in level.blocks.ids(node) {
                let id = id.load(Ordering::Acquire);
                let known = || found.iter().any(|known| known.node() == id);
                if id == NONE || level.blocks.is_leaving(id) || known() {
                    continue;
                }
                let distance = level.blocks.between(self.encoder(), here, id);
                found.push(Candidate::new(distance, id));
            }
        }
    }
}
