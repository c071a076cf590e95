use super::QuantizedGraph;
use super::block::Edge;
use super::elsewhere::NARROW;
use super::haste::HASTY;
use super::level::{FEWER, LEVELS, Level};
use super::link::Why;
use super::scratch::Scratch;
use super::walk::{Staying, Walk};
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::mix::mix;
use crate::vector8::Vector8;
use longbow_kernels::rabitq::{Octets, SLOTS};
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
        self.insert_at(Pace::Whole, row, vector)
    }

    pub(super) fn insert_at(&self, pace: Pace, row: u64, vector: &[u8]) -> Result<()> {
        self.space.check(row, vector)?;
        let _moving = self.still.read();
        let _visit = self.enter();
        let mut scratch = self.room();
        self.encoder().stored(vector, &mut scratch.query);
        self.copies.prepare(vector, &mut scratch.copy);
        self.aim(&mut scratch);
        let top = self.draw_level(row);
        scratch = self.place_up((0, top), row, (None, pace), scratch)?;
        self.pool.give(scratch);
        self.rows.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Room for who sets edges.
    pub(super) fn room(&self) -> Box<Scratch> {
        let mut scratch = self.pool.take();
        scratch.bits.resize(self.encoder().dim() / 16, 0);
        scratch
    }

    /// Adds a node to some levels, and to those above where walks should begin at it: the lowest for a row, each other one for its
    /// node of the level below. On the first of them only if all nodes there are farther than so far, if it is said.
    pub(super) fn place_up(
        &self,
        (lowest, mut top): (usize, usize),
        mut stands_for: u64,
        (mut beyond, pace): (Option<f32>, Pace),
        mut scratch: Box<Scratch>,
    ) -> Result<Box<Scratch>> {
        let is_drawn = lowest == 0 && top > 0;
        let mut height = lowest;
        while height <= top && height < LEVELS {
            let placed;
            (scratch, placed) = self.place(height, stands_for, (beyond, pace), scratch)?;
            let Some(placed) = placed else {
                break;
            };
            if height == 1 && !is_drawn {
                self.remote.fetch_add(1, Ordering::Relaxed);
            }
            stands_for = u64::from(placed.node);
            height += 1;
            beyond = None;
            if height > top && placed.near.is_some() && self.has_room_above(height) {
                (top, beyond) = (height, placed.near);
            }
        }
        Ok(scratch)
    }

    /// The height of a row's tower: `l` or more with probability `FEWER ^ -l`, by a hash of the row, so that it does
    /// not depend on the order of inserts.
    pub(super) fn draw_level(&self, row: u64) -> usize {
        let hash = mix(row ^ mix(self.params.seed));
        let height = hash.trailing_zeros() / FEWER.trailing_zeros();
        (height as usize).min(LEVELS - 1)
    }

    /// Whether a level holds no more nodes than four times its share of those below, and some.
    fn has_room_above(&self, height: usize) -> bool {
        let nodes = |height: usize| self.levels[height].blocks.taken();
        height < LEVELS && nodes(height) <= 4 * nodes(height - 1) / FEWER + FEWER
    }

    /// Adds a node to a level, and gives the scratch back; no node if it has become a twin, which has no tower, or one is not `beyond` so far.
    fn place(
        &self,
        height: usize,
        row: u64,
        (beyond, pace): (Option<f32>, Pace),
        mut scratch: Box<Scratch>,
    ) -> Result<(Box<Scratch>, Option<Placed>)> {
        let level = &self.levels[height];
        if let Some(guard) = level.begin() {
            let node = self.write(height, row, &scratch)?;
            level.begin_at(node, &guard);
            return Ok((scratch, Some(Placed { node, near: None })));
        }
        scratch = self.walk_for_neighbors(height, pace, scratch);
        // SAFETY: walks find nodes that were written.
        unsafe {
            self.sort_by_codes(level, &mut scratch);
            let nearest = scratch.found.first();
            let is_near = |beyond: f32| nearest.is_some_and(|at| at.distance() <= beyond);
            if beyond.is_some_and(is_near) {
                return Ok((scratch, None));
            }
            let nearest = nearest.map(|nearest| nearest.node());
            let same = |node: &u32| self.same(level, scratch.query.vector(), *node);
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
            match pace {
                Pace::Whole => {
                    let chosen = chosen.iter().map(|neighbor| neighbor.node());
                    self.link_back(level, node, chosen, &mut scratch);
                }
                Pace::Haste => self.link_back_in_haste((height, node), &chosen, &mut scratch.bits),
            }
            let nearest = scratch.found.first();
            if let Some(nearest) = nearest
                && level.blocks.led_to(node).get() == 0
            {
                self.lead_by(level, (nearest.node(), node), &mut scratch.bits);
            }
            let near = self.near_if_remote(level, &scratch);
            Ok((scratch, Some(Placed { node, near })))
        }
    }

    /// Leads the neighbours of a node to it, the nearest of which comes first.
    ///
    /// # Safety
    /// All were written.
    pub(super) unsafe fn link_back(
        &self,
        level: &Level,
        node: u32,
        neighbors: impl Iterator<Item = u32>,
        scratch: &mut Scratch,
    ) {
        let mut handed = std::mem::take(&mut scratch.handed);
        // SAFETY: the caller vouches for the nodes, and links lead to nodes that were written.
        unsafe {
            for (place, neighbor) in neighbors.enumerate() {
                let why = match place {
                    0 => Why::Guides,
                    _ => Why::Chosen,
                };
                let link = (neighbor, node, why);
                self.link(level, link, &mut scratch.bits, &mut handed);
            }
            self.mark_guided(level, node);
            for far in handed.drain(..) {
                self.hand_on(level, node, far, &mut scratch.bits);
            }
        }
        scratch.handed = handed;
    }

    /// Sorts what was found by the distance to the code of the vector in `scratch`, as its neighbours will compare it: where rows are
    /// nearer to each other than to their codes, each of a group could else be passed over for another, and none lead out of it.
    ///
    /// # Safety
    /// What was found was written.
    unsafe fn sort_by_codes(&self, level: &Level, scratch: &mut Scratch) {
        let Scratch { query, found, .. } = scratch;
        let here = query.here();
        for found in found.iter_mut() {
            // SAFETY: the caller vouches for the node.
            let distance = unsafe { level.blocks.between(self.encoder(), here, found.node()) };
            *found = Candidate::new(distance, found.node());
        }
        found.sort_unstable();
    }

    /// Walks for the vector in `scratch`, and leaves in `scratch.found` the nodes that it may lead to: those near it that
    /// stay.
    pub(super) fn walk_for_neighbors(
        &self,
        height: usize,
        pace: Pace,
        mut scratch: Box<Scratch>,
    ) -> Box<Scratch> {
        let ef = match pace {
            Pace::Whole => self.params.ef_construction,
            Pace::Haste => self.params.ef_construction.min(HASTY),
        };
        for top in [LEVELS - 1, height] {
            scratch = match Walk::new(self, (height, top), (ef, NARROW), Staying, scratch) {
                Ok(mut walk) => {
                    walk.looks = true;
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

    /// Whether a node has this code, so that the graph cannot tell the two apart.
    ///
    /// # Safety
    /// The node was written.
    unsafe fn same(&self, level: &Level, a: Vector8, node: u32) -> bool {
        let (dim, mut room) = (self.encoder().dim(), Octets::default());
        // SAFETY: the caller vouches for the node.
        let b = unsafe { level.blocks.here(node, &mut room) }.vector;
        // SAFETY: codes have that many bytes.
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
            self.copies.set(node, &scratch.copy);
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
        let mut room = Octets::default();
        for candidate in found {
            if chosen.len() == SLOTS {
                break;
            }
            // SAFETY: the caller vouches for the candidates.
            let apart = unsafe {
                let here = level.blocks.here(candidate.node(), &mut room);
                chosen.iter().all(|other| {
                    let away = level.blocks.between(self.encoder(), here, other.node());
                    away >= candidate.distance()
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
}

/// How much is done for a new node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Whole,
    /// See `haste`.
    Haste,
}

/// A node that was added to a level.
struct Placed {
    node: u32,
    /// If it should be on the next level, too: see [`QuantizedGraph::near_if_remote`].
    near: Option<f32>,
}
