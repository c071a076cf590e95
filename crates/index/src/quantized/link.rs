//! Edges from the neighbours of a node to it.

use crate::sync::atomic::{AtomicU32, Ordering};

use longbow_kernels::rabitq::{Octets, SLOTS};

use super::QuantizedGraph;
use super::block::NONE;
use super::level::Level;
use crate::vector8::Here;

impl QuantizedGraph {
    /// Looks from `node` on, along neighbours ever nearer to `far`, for one that no neighbour stands in for, and leads it
    /// to `far`.
    pub(super) unsafe fn hand_on(&self, level: &Level, node: u32, far: u32, bits: &mut [u16]) {
        // SAFETY: the caller vouches for both nodes.
        if unsafe { level.blocks.is_leaving(far) } {
            return;
        }
        let mut at = node;
        let nobody = &mut Vec::new();
        // SAFETY: the caller vouches for both nodes, and neighbours were written before they were linked.
        unsafe {
            for _ in 0..HANDS {
                match self.link(level, (at, far, Why::Handed), bits, nobody) {
                    Some(nearer) if nearer != far => at = nearer,
                    _ => break,
                }
            }
            let nearest = level.blocks.nearest(far);
            if at == far
                || nearest != NONE
                    && self.length(level, far, nearest) <= self.length(level, far, at)
            {
                return;
            }
            self.link(level, (at, far, Why::Guides), bits, nobody);
            let leads = |id: &AtomicU32| id.load(Ordering::Relaxed) == far;
            if level.blocks.ids(at).iter().any(leads) {
                self.link(level, (far, at, Why::Chosen), bits, nobody);
            }
        }
    }

    /// Adds `new` to the neighbours of `node`, if there is room or it is worth more than one of them. Returns the
    /// neighbour that stands in for it, if one does.
    ///
    /// Worth most are edges apart: those to a neighbour for which no nearer one stands in, being nearer to it than the
    /// node is. They lead into all directions, and far. The rest of the slots is for the nearest of all others.
    ///
    /// Far neighbours for which `new` stands in from now on are added to `handed`: `new`, or one to which it leads, should
    /// lead to them, or else, where data is in clusters, the way to another cluster may be lost.
    pub(super) unsafe fn link(
        &self,
        level: &Level,
        (node, new, why): (u32, u32, Why),
        bits: &mut [u16],
        handed: &mut Vec<u32>,
    ) -> Option<u32> {
        let _change = level.lock(node);
        // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
        unsafe {
            let ids = self.edges_without(level, node, new)?;
            let guides = |to: &&u32| **to != NONE && self.guides(level, node, **to);
            if why == Why::Guides && ids.iter().filter(guides).count() >= GUIDED {
                return None;
            }
            let mut around = self.look_around(level, (node, new), &ids, handed);
            if matches!(why, Why::Nearest | Why::Guides) {
                around.stands_in = None;
            }
            let mut guided = 0;
            let slot = around.slot(&ids, why, |slot, must_be_farther| {
                let to = ids[slot];
                if must_be_farther && self.length(level, node, to) <= around.length {
                    return None;
                }
                if guided < GUIDED && self.guides(level, node, to) {
                    guided += 1;
                    return Some(false);
                }
                Some(level.blocks.let_go(to))
            });
            if let Some(slot) = slot {
                let is_apart = u32::from(around.stands_in.is_none());
                let apart = around.apart & !(1 << slot) | is_apart << slot;
                self.set_edge(level, node, slot, new, bits);
                level.blocks.apart(node).store(apart, Ordering::Relaxed);
                if slot > 0 && around.length < around.lengths[0] {
                    self.put_first(level, node, slot, bits);
                }
            }
            around.stands_in
        }
    }

    /// Where a node leads, if it may lead to `new` and does not yet.
    ///
    /// # Safety
    /// Both were written.
    pub(super) unsafe fn edges_without(
        &self,
        level: &Level,
        node: u32,
        new: u32,
    ) -> Option<[u32; SLOTS]> {
        // SAFETY: the caller vouches for both nodes.
        unsafe {
            let slots = level.blocks.ids(node);
            let ids: [u32; SLOTS] = std::array::from_fn(|i| slots[i].load(Ordering::Relaxed));
            let leaves = level.blocks.is_leaving(node) || level.blocks.is_leaving(new);
            (node != new && !ids.contains(&new) && !leaves).then_some(ids)
        }
    }

    /// Leads `node` to `new`, to which nothing leads, though all its edges are worth more: the longest to a node that others lead to leads by
    /// `new` from now on, so that what was reached by it still is; or any, if others lead to none, and then that is led to likewise.
    ///
    /// # Safety
    /// Both were written.
    pub(super) unsafe fn lead_by(
        &self,
        level: &Level,
        (mut node, mut new): (u32, u32),
        bits: &mut [u16],
    ) {
        for hand in 0..HANDS {
            // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
            unsafe {
                let _change = level.lock(node);
                let ids = self.by_length(level, node);
                let leads = ids.iter().any(|(id, _)| *id == new);
                if node == new || leads || level.blocks.is_leaving(new) {
                    return;
                }
                let spared = self.spared(level, &ids);
                let (passed, slot) = spared.unwrap_or(ids[0]);
                if spared.is_none() {
                    level.blocks.led_to(passed).uncount();
                }
                self.set_edge(level, node, slot, new, bits);
                level
                    .blocks
                    .apart(node)
                    .fetch_and(!(1 << slot), Ordering::Relaxed);
                let is_over = spared.is_some() && hand > 0;
                if is_over || passed == NONE || level.blocks.is_leaving(passed) {
                    return;
                }
                (node, new) = (new, passed);
            }
        }
    }

    /// Whether a node guides another: it is the nearest that the other leads to. Then it goes on leading there, however long the way
    /// is, or hands that on to a nearer one. What leads to a row that lies far out are else in the end only others as far
    /// out, and no walk for it comes to those, for all others are nearer to it.
    ///
    /// # Safety
    /// The nodes were written.
    #[inline(always)]
    pub(super) unsafe fn guides(&self, level: &Level, node: u32, to: u32) -> bool {
        // SAFETY: the caller vouches for the nodes.
        unsafe { level.blocks.nearest(to) == node && !level.blocks.is_leaving(to) }
    }

    /// Takes the edges to those that a new node guides for edges apart, so that they are handed on.
    ///
    /// # Safety
    /// The nodes were written.
    pub(super) unsafe fn mark_guided(&self, level: &Level, node: u32) {
        let _change = level.lock(node);
        // SAFETY: the caller vouches for the nodes, and links lead to nodes that were written.
        unsafe {
            let ids = level.blocks.ids(node).iter().enumerate();
            let ids = ids.map(|(slot, id)| (slot, id.load(Ordering::Relaxed)));
            let guided = ids.filter(|(_, id)| *id != NONE && self.guides(level, node, *id));
            let marks = guided.fold(0, |marks, (slot, _)| marks | 1 << slot);
            level.blocks.apart(node).fetch_or(marks, Ordering::Relaxed);
        }
    }

    /// Exchanges the first edge of a node for that in another slot, which is the nearest.
    ///
    /// # Safety
    /// The nodes were written, and the caller holds the lock of this one.
    pub(super) unsafe fn put_first(&self, level: &Level, node: u32, slot: usize, bits: &mut [u16]) {
        let blocks = &level.blocks;
        // SAFETY: the caller vouches for the nodes.
        unsafe {
            let [first, nearest] = [0, slot].map(|at| blocks.ids(node)[at].load(Ordering::Relaxed));
            // Before they are counted anew: with one more for a moment another could give up one of the last.
            for to in [first, nearest].into_iter().filter(|to| *to != NONE) {
                blocks.led_to(to).uncount();
            }
            self.set_edge(level, node, 0, nearest, bits);
            match first {
                NONE => blocks.clear_edge(node, slot),
                first => self.set_edge(level, node, slot, first, bits),
            }
            let apart = blocks.apart(node).load(Ordering::Relaxed);
            let differ = (apart ^ apart >> slot) & 1;
            let apart = apart ^ (differ | differ << slot);
            blocks.apart(node).store(apart, Ordering::Relaxed);
        }
    }

    /// Where the edges of a node lead, with their slots: first those that are free or to nodes that leave, then the longest.
    ///
    /// # Safety
    /// The node and its neighbours were written.
    pub(super) unsafe fn by_length(&self, level: &Level, node: u32) -> Vec<(u32, usize)> {
        // SAFETY: the caller vouches for all nodes.
        unsafe {
            let ids = level.blocks.ids(node).iter().enumerate();
            let away = |id: u32| match id {
                NONE => f32::INFINITY,
                id if level.blocks.is_leaving(id) => f32::INFINITY,
                id => self.length(level, node, id),
            };
            let mut edges: Vec<(f32, u32, usize)> = ids
                .map(|(slot, id)| {
                    let id = id.load(Ordering::Relaxed);
                    (away(id), id, slot)
                })
                .collect();
            edges.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
            edges.into_iter().map(|(_, id, slot)| (id, slot)).collect()
        }
    }

    /// The first of some edges that can go, and is counted no more then.
    ///
    /// # Safety
    /// The nodes were written.
    unsafe fn spared(&self, level: &Level, edges: &[(u32, usize)]) -> Option<(u32, usize)> {
        let blocks = &level.blocks;
        // SAFETY: the caller vouches for the nodes.
        let can_go = |id: u32| unsafe {
            id == NONE || blocks.is_leaving(id) || blocks.led_to(id).is_spared()
        };
        edges.iter().find(|(id, _)| can_go(*id)).copied()
    }

    /// Compares the neighbours of `node` with `new`.
    unsafe fn look_around(
        &self,
        level: &Level,
        (node, new): (u32, u32),
        ids: &[u32; SLOTS],
        handed: &mut Vec<u32>,
    ) -> Around {
        // SAFETY: the caller vouches for all nodes.
        unsafe {
            let was_apart = level.blocks.apart(node).load(Ordering::Relaxed);
            let is_apart = |slot: usize| was_apart >> slot & 1 == 1;
            let linked = ids.iter().enumerate().filter(|(_, id)| **id != NONE);
            let apart = linked.filter(|(slot, _)| is_apart(*slot));
            for (_, id) in apart.clone() {
                level.blocks.prefetch_vector(*id);
            }
            let mut rooms = [Octets::default(), Octets::default()];
            let [one, other] = &mut rooms;
            let here = level.blocks.here(node, one);
            let there = level.blocks.here(new, other);
            let away = |from: Here<'_>, to: u32| level.blocks.between(self.encoder(), from, to);
            let mut around = Around {
                length: away(here, new),
                lengths: self.about_lengths(level, node, ids),
                apart: was_apart,
                stands_in: None,
            };
            let mut nearest = f32::INFINITY;
            for (slot, id) in apart {
                if level.blocks.coded() {
                    around.lengths[slot] = away(here, *id);
                }
                let between = away(there, *id);
                if around.lengths[slot] <= around.length {
                    if between < around.length && between < nearest {
                        nearest = between;
                        around.stands_in = Some(*id);
                    }
                } else if between < around.lengths[slot] {
                    let guides = self.guides(level, node, *id);
                    if !guides {
                        around.apart &= !(1 << slot);
                    }
                    if guides || around.lengths[slot] > FAR * around.length {
                        handed.push(*id);
                    }
                }
            }
            around
        }
    }

    /// About the squared lengths of a node's edges, by their codes where they have such: to read all that they lead to costs more
    /// than the rest of a new edge. Those of free slots mean nothing.
    ///
    /// # Safety
    /// The node and its neighbours were written, and the writes happened before.
    #[inline(always)]
    pub(super) unsafe fn about_lengths(
        &self,
        level: &Level,
        node: u32,
        ids: &[u32; SLOTS],
    ) -> [f32; SLOTS] {
        // SAFETY: the caller vouches for all nodes.
        unsafe {
            if level.blocks.coded() {
                return level.blocks.about_lengths(node);
            }
            let linked = || ids.iter().filter(|id| **id != NONE);
            linked().for_each(|id| level.blocks.prefetch_vector(*id));
            let mut room = Octets::default();
            let here = level.blocks.here(node, &mut room);
            let length = |slot: usize| match ids[slot] {
                NONE => 0.0,
                id => level.blocks.between(self.encoder(), here, id),
            };
            std::array::from_fn(length)
        }
    }

    /// The squared distance of two nodes.
    ///
    /// # Safety
    /// Both were written, and the writes happened before.
    pub(super) unsafe fn length(&self, level: &Level, node: u32, to: u32) -> f32 {
        // SAFETY: the caller vouches for both nodes.
        unsafe {
            let mut room = Octets::default();
            let here = level.blocks.here(node, &mut room);
            level.blocks.between(self.encoder(), here, to)
        }
    }
}

/// Why a node shall lead to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The other has chosen it.
    Chosen,
    /// It is near to the other, and leads to it however the errors of codes fall out.
    Nearest,
    /// It is the nearest to the other, and leads to it however long the way is: see [`QuantizedGraph::guides`].
    Guides,
    /// A node led there before for which this one stands in.
    Handed,
}

/// What is around a node to which another shall be linked.
struct Around {
    /// Squared length of the new edge.
    length: f32,
    /// Of the edges that are there; of those that are not apart, about.
    lengths: [f32; SLOTS],
    /// Slots of edges for which no nearer neighbour stands in, the new one included.
    apart: u32,
    /// The neighbour that stands in for the new edge.
    stands_in: Option<u32>,
}

impl Around {
    /// The slot for the new edge, if it is worth one and free or can be made so. `let_go` gives up the edge of a slot, which may have to be longer than
    /// the new one: `None` if it is not, false if the edge has to stay.
    fn slot(
        &self,
        ids: &[u32; SLOTS],
        why: Why,
        mut let_go: impl FnMut(usize, bool) -> Option<bool>,
    ) -> Option<usize> {
        let is_apart = self.stands_in.is_none();
        if !is_apart && why == Why::Handed {
            return None;
        }
        if let Some(free) = ids.iter().position(|id| *id == NONE) {
            return Some(free);
        }
        let farthest = |mask: u32| {
            let slots = (0..SLOTS).filter(|slot| mask >> slot & 1 == 1);
            slots.max_by(|a, b| self.lengths[*a].total_cmp(&self.lengths[*b]))
        };
        let mut first = |mut mask: u32, must_be_farther: bool| {
            while let Some(slot) = farthest(mask) {
                if let_go(slot, must_be_farther)? {
                    return Some(slot);
                }
                mask &= !(1 << slot);
            }
            None
        };
        match is_apart {
            true => first(!self.apart, false).or_else(|| first(self.apart, why != Why::Guides)),
            false => first(!self.apart, true),
        }
    }
}

/// Others that a node guides, at most: where one is the nearest to many, it would lead to nothing else.
pub(super) const GUIDED: usize = 12;
/// Nodes that are asked at most to lead to a far one.
const HANDS: usize = 16;
/// Squared length of an edge, as a multiple of another's, from which it is far.
pub(super) const FAR: f32 = 4.0;
