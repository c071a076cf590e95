use super::QuantizedGraph;
use super::block::{Edge, NONE};
use super::level::{FEWER, LEVELS, Level};
use super::scratch::Scratch;
use super::walk::{Staying, Walk};
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::mix::mix;
use crate::vector8::Vector8;
use longbow_kernels::rabitq::SLOTS;
use std::sync::atomic::Ordering;

impl QuantizedGraph {
    /// Adds a row. May be called from many threads at once.
    ///
    /// Rows are not compared: the caller gives each number once, and hides a row that a later one replaces.
    /// Vectors hold finite numbers only; with others, what is found is undefined, but memory is safe.
    ///
    /// # Errors
    /// If the vector has not `space().row_bytes()` bytes, or the index is full.
    pub fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        self.space.check(row, vector)?;
        let _moving = self.still.read();
        let _visit = self.enter();
        let mut scratch = self.pool.take();
        self.encoder().stored(vector, &mut scratch.query);
        self.fill_lut(&mut scratch);
        scratch.bits.resize(self.encoder().dim() / 16, 0);
        let mut stands_for = row;
        let mut top = self.draw_level(row);
        let mut height = 0;
        while height <= top && height < LEVELS {
            let placed;
            (scratch, placed) = self.place(height, stands_for, scratch)?;
            let Some(placed) = placed else {
                break;
            };
            stands_for = u64::from(placed.node);
            height += 1;
            if placed.is_alone && self.has_room_above(height) {
                top = top.max(height);
            }
        }
        self.pool.give(scratch);
        self.rows.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// The height of a row's tower: `l` or more with probability `FEWER ^ -l`, by a hash of the row, so that it does
    /// not depend on the order of inserts.
    fn draw_level(&self, row: u64) -> usize {
        let hash = mix(row ^ mix(self.params.seed));
        let height = hash.trailing_zeros() / FEWER.trailing_zeros();
        (height as usize).min(LEVELS - 1)
    }

    /// Whether a level holds no more nodes than twice its share of those below, and some.
    fn has_room_above(&self, height: usize) -> bool {
        let nodes = |height: usize| u64::from(self.levels[height].blocks.claimed());
        height < LEVELS && nodes(height) <= 2 * nodes(height - 1) / FEWER + FEWER
    }

    /// Adds a node to a level, and gives the scratch back; no node if it has become a twin, which has no tower.
    fn place(
        &self,
        height: usize,
        row: u64,
        mut scratch: Box<Scratch>,
    ) -> Result<(Box<Scratch>, Option<Placed>)> {
        let level = &self.levels[height];
        if let Some(guard) = level.begin() {
            let node = self.write(height, row, &scratch)?;
            level.begin_at(node, &guard);
            let is_alone = false;
            return Ok((scratch, Some(Placed { node, is_alone })));
        }
        scratch = self.walk_for_neighbors(height, scratch);
        scratch.found.sort_unstable();
        // SAFETY: walks find nodes that were written.
        unsafe {
            let nearest = scratch.found.first().map(|nearest| nearest.node());
            let vector = scratch.query.vector();
            let same = |node: &u32| self.same(vector, level.blocks.vector(*node));
            if let Some(nearest) = nearest.filter(same) {
                // Above the lowest level, one of two serves for both.
                if height == 0 {
                    let node = self.write(height, row, &scratch)?;
                    level.blocks.add_twin(nearest, node);
                    self.places.look_at(nearest);
                }
                return Ok((scratch, None));
            }
            let node = self.write(height, row, &scratch)?;
            let (chosen, apart) = self.choose(level, &scratch.found);
            for (slot, neighbor) in chosen.iter().enumerate() {
                self.set_edge(level, node, slot, neighbor.node(), &mut scratch.bits);
            }
            let apart = u32::MAX.checked_shr((SLOTS - apart) as u32).unwrap_or(0);
            level.blocks.apart(node).store(apart, Ordering::Relaxed);
            let mut handed = std::mem::take(&mut scratch.handed);
            for (place, neighbor) in chosen.iter().enumerate() {
                let why = if place == 0 {
                    Why::Nearest
                } else {
                    Why::Chosen
                };
                let link = (neighbor.node(), node, why);
                self.link(level, link, &mut scratch.bits, &mut handed);
            }
            for far in handed.drain(..) {
                self.hand_on(level, node, far, &mut scratch.bits);
            }
            scratch.handed = handed;
            let nearest = scratch.found.first();
            if let Some(nearest) = nearest
                && level.blocks.led_to(node).get() == 0
            {
                self.lead_by(level, nearest.node(), node, &mut scratch.bits);
            }
            let is_alone = nearest.is_some_and(|nearest| self.is_alone(level, *nearest));
            Ok((scratch, Some(Placed { node, is_alone })))
        }
    }

    /// Whether a new node is much farther from the nearest one than most neighbours of that one are.
    ///
    /// # Safety
    /// The nearest was written, and the write happened before.
    unsafe fn is_alone(&self, level: &Level, nearest: Candidate) -> bool {
        // SAFETY: the caller vouches for the node, and neighbours were written before they were linked.
        let nearer = unsafe {
            let ids = level.blocks.ids(nearest.node());
            let ids = std::array::from_fn(|slot| ids[slot].load(Ordering::Acquire));
            let lengths = self.about_lengths(level, nearest.node(), &ids).into_iter();
            let is_nearer =
                |(length, id): &(f32, u32)| *id != NONE && FAR * length < nearest.distance();
            lengths.zip(ids).filter(is_nearer).count()
        };
        nearer > SLOTS / 2
    }

    /// Walks for the vector in `scratch`, and leaves in `scratch.found` the nodes that it may lead to: those near it that
    /// stay.
    pub(super) fn walk_for_neighbors(
        &self,
        height: usize,
        mut scratch: Box<Scratch>,
    ) -> Box<Scratch> {
        let ef = self.params.ef_construction;
        for top in [LEVELS - 1, height] {
            scratch = match Walk::new(self, (height, top), ef, Staying, scratch) {
                Ok(mut walk) => {
                    walk.run();
                    walk.scratch
                }
                Err(scratch) => return scratch,
            };
            if !scratch.found.is_empty() {
                break;
            }
            // All that is around is about to leave. Where the level begins, something stays.
        }
        scratch
    }

    /// Whether two nodes have the same code, so that the graph cannot tell them apart.
    unsafe fn same(&self, a: Vector8, b: Vector8) -> bool {
        let dim = self.encoder().dim();
        // SAFETY: the caller vouches for both.
        let code = |vector: Vector8| unsafe { std::slice::from_raw_parts(vector.code, dim) };
        (a.scale - b.scale).abs() <= 1e-6 * a.scale && code(a) == code(b)
    }

    /// Writes a node that nobody else can reach yet.
    fn write(&self, height: usize, row: u64, scratch: &Scratch) -> Result<u32> {
        let level = &self.levels[height];
        let node = level.blocks.claim().ok_or(Error::Full {
            limit: u64::from(level.blocks.limit()),
        })?;
        // SAFETY: the node was just claimed, and is not linked anywhere.
        unsafe { level.blocks.write(node, row, scratch.query.vector()) };
        if height == 0 {
            self.places.set(row, node);
        }
        Ok(node)
    }

    /// Chooses neighbours from candidates sorted by distance: those that are nearer to the node than to any chosen
    /// before, and then the nearest of the others. Returns them with how many of the first kind there are.
    pub(super) unsafe fn choose(
        &self,
        level: &Level,
        found: &[Candidate],
    ) -> (Vec<Candidate>, usize) {
        let mut chosen: Vec<Candidate> = Vec::with_capacity(SLOTS);
        let mut passed: Vec<Candidate> = Vec::new();
        for candidate in found {
            if chosen.len() == SLOTS {
                break;
            }
            // SAFETY: the caller vouches for the candidates.
            let apart = unsafe {
                let vector = level.blocks.vector(candidate.node());
                chosen.iter().all(|other| {
                    let other = level.blocks.vector(other.node());
                    self.encoder().between(vector, other) >= candidate.distance()
                })
            };
            if apart {
                chosen.push(*candidate);
            } else {
                passed.push(*candidate);
            }
        }
        let apart = chosen.len();
        chosen.extend(passed.into_iter().take(SLOTS - apart));
        (chosen, apart)
    }

    /// Writes an edge with its code into a slot of a node, and counts it. The caller sees to what was counted in its place.
    ///
    /// # Safety
    /// Both were written, and no other thread writes edges of `node`.
    pub(super) unsafe fn set_edge(
        &self,
        level: &Level,
        node: u32,
        slot: usize,
        to: u32,
        bits: &mut [u16],
    ) {
        // SAFETY: the caller vouches for the node.
        unsafe { level.blocks.led_to(to).count() };
        if !level.blocks.coded() {
            // SAFETY: the caller vouches for both nodes.
            return unsafe { level.blocks.set_id(node, slot, to) };
        }
        // SAFETY: the caller vouches for both nodes.
        unsafe {
            let (from, other) = (level.blocks.vector(node), level.blocks.vector(to));
            let (add, factor) = self.encoder().way(from, other, bits);
            let edge = Edge {
                to,
                bits,
                add,
                factor,
            };
            level.blocks.set_edge(node, slot, &edge);
        }
    }

    /// Looks from `node` on, along neighbours ever nearer to `far`, for one that no neighbour stands in for, and leads it
    /// to `far`.
    unsafe fn hand_on(&self, level: &Level, node: u32, far: u32, bits: &mut [u16]) {
        // SAFETY: the caller vouches for both nodes.
        if unsafe { level.blocks.is_leaving(far) } {
            return;
        }
        let mut at = node;
        for _ in 0..HANDS {
            // SAFETY: the caller vouches for both nodes, and neighbours were written before they were linked.
            match unsafe { self.link(level, (at, far, Why::Handed), bits, &mut Vec::new()) } {
                Some(nearer) if nearer != far => at = nearer,
                _ => return,
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
            let slots = level.blocks.ids(node);
            let ids: [u32; SLOTS] = std::array::from_fn(|i| slots[i].load(Ordering::Relaxed));
            let leaves = |node| level.blocks.is_leaving(node);
            if node == new || ids.contains(&new) || leaves(node) || leaves(new) {
                return None;
            }
            let mut around = self.look_around(level, (node, new), &ids, handed);
            if why == Why::Nearest {
                around.stands_in = None;
            }
            let slot = around.slot(&ids, why, |slot, must_be_farther| {
                let is_farther = || self.length(level, node, ids[slot]) > around.length;
                (!must_be_farther || is_farther()).then(|| level.blocks.let_go(ids[slot]))
            });
            if let Some(slot) = slot {
                let is_apart = u32::from(around.stands_in.is_none());
                let apart = around.apart & !(1 << slot) | is_apart << slot;
                self.set_edge(level, node, slot, new, bits);
                level.blocks.apart(node).store(apart, Ordering::Relaxed);
            }
            around.stands_in
        }
    }

    /// Leads `node` to `new`, to which nothing leads, though all its edges are worth more: the longest leads by `new` from now
    /// on, so that what was reached by it still is.
    ///
    /// # Safety
    /// Both were written.
    pub(super) unsafe fn lead_by(&self, level: &Level, node: u32, new: u32, bits: &mut [u16]) {
        // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
        unsafe {
            let change = level.lock(node);
            let ids = self.by_length(level, node);
            if node == new || ids.iter().any(|(id, _)| *id == new) || level.blocks.is_leaving(new) {
                return;
            }
            let (passed, slot) = ids[0];
            self.set_edge(level, node, slot, new, bits);
            let apart = level.blocks.apart(node);
            apart.store(
                apart.load(Ordering::Relaxed) & !(1 << slot),
                Ordering::Relaxed,
            );
            drop(change);
            if passed == NONE || level.blocks.is_leaving(passed) {
                return;
            }
            level.blocks.led_to(passed).uncount();
            let _change = level.lock(new);
            let ids = self.by_length(level, new);
            if ids.iter().all(|(id, _)| *id != passed)
                && let Some(slot) = self.spared(level, &ids)
            {
                self.set_edge(level, new, slot, passed, bits);
            }
        }
    }

    /// Where the edges of a node lead, with their slots: first those that are free or to nodes that leave, then the longest.
    ///
    /// # Safety
    /// The node and its neighbours were written.
    unsafe fn by_length(&self, level: &Level, node: u32) -> Vec<(u32, usize)> {
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

    /// The slot of the first of some edges that can go, and is counted no more then.
    ///
    /// # Safety
    /// The nodes were written.
    unsafe fn spared(&self, level: &Level, edges: &[(u32, usize)]) -> Option<usize> {
        let blocks = &level.blocks;
        // SAFETY: the caller vouches for the nodes.
        let can_go = |id: u32| unsafe {
            id == NONE || blocks.is_leaving(id) || blocks.led_to(id).is_spared()
        };
        let found = edges.iter().find(|(id, _)| can_go(*id));
        found.map(|(_, slot)| *slot)
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
            let (here, there) = (level.blocks.vector(node), level.blocks.vector(new));
            let mut around = Around {
                length: self.encoder().between(here, there),
                lengths: self.about_lengths(level, node, ids),
                apart: was_apart,
                stands_in: None,
            };
            let mut nearest = f32::INFINITY;
            for (slot, id) in apart {
                let other = level.blocks.vector(*id);
                if level.blocks.coded() {
                    around.lengths[slot] = self.encoder().between(here, other);
                }
                let between = self.encoder().between(there, other);
                if around.lengths[slot] <= around.length {
                    if between < around.length && between < nearest {
                        nearest = between;
                        around.stands_in = Some(*id);
                    }
                } else if between < around.lengths[slot] {
                    around.apart &= !(1 << slot);
                    if around.lengths[slot] > FAR * around.length {
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
    unsafe fn about_lengths(&self, level: &Level, node: u32, ids: &[u32; SLOTS]) -> [f32; SLOTS] {
        // SAFETY: the caller vouches for all nodes.
        unsafe {
            if level.blocks.coded() {
                return level.blocks.about_lengths(node);
            }
            let linked = || ids.iter().filter(|id| **id != NONE);
            linked().for_each(|id| level.blocks.prefetch_vector(*id));
            let length = |slot: usize| match ids[slot] {
                NONE => 0.0,
                id => self.length(level, node, id),
            };
            std::array::from_fn(length)
        }
    }

    /// The squared distance of two nodes.
    ///
    /// # Safety
    /// Both were written, and the writes happened before.
    unsafe fn length(&self, level: &Level, node: u32, to: u32) -> f32 {
        // SAFETY: the caller vouches for both nodes.
        unsafe {
            self.encoder()
                .between(level.blocks.vector(node), level.blocks.vector(to))
        }
    }
}

/// A node that was added to a level.
struct Placed {
    node: u32,
    /// Whether it is far from all others: the first of its kind. Edges to it come from nodes that are as far from it as
    /// many others are, so that few walks go there; then it is on the next level, too, where there are fewer, so that
    /// walks for the next of its kind begin at it.
    is_alone: bool,
}

/// Why a node shall lead to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The other has chosen it.
    Chosen,
    /// It is nearest to the other, and leads to it however the errors of codes fall out.
    Nearest,
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
        let_go: impl Fn(usize, bool) -> Option<bool>,
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
        let first = |mut mask: u32, must_be_farther: bool| {
            while let Some(slot) = farthest(mask) {
                if let_go(slot, must_be_farther)? {
                    return Some(slot);
                }
                mask &= !(1 << slot);
            }
            None
        };
        match is_apart {
            true => first(!self.apart, false).or_else(|| first(self.apart, true)),
            false => first(!self.apart, true),
        }
    }
}

/// Nodes that are asked at most to lead to a far one.
const HANDS: usize = 16;
/// Squared length of an edge, as a multiple of another's, from which it is far.
const FAR: f32 = 4.0;
