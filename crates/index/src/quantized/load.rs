use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use longbow_kernels::rabitq::SLOTS;

use super::block::{FREE, NONE};
use super::level::Level;
use super::save::{MAGIC, NODE, VERSION};
use super::{QuantizedGraph, QuantizedParams};
use crate::checkpoint::{Reader, checked, same};
use crate::error::{Error, Result};
use crate::side_by_side::{side_by_side, threads};
use crate::space::Space;
use crate::vector8::Vector8;

/// Nodes whose edges a thread counts and encodes at a time.
const SHARE: u32 = 1 << 10;

impl QuantizedGraph {
    /// Whether bytes begin as [`QuantizedGraph::save`] writes them.
    #[must_use]
    pub fn is_saved(input: &[u8]) -> bool {
        input.starts_with(&MAGIC)
    }

    /// Reads what [`QuantizedGraph::save`] wrote. `params.ef_construction` counts for inserts from now on.
    ///
    /// # Errors
    /// If the bytes are not a whole checkpoint of a graph of this space and seed. Whatever the bytes are, it does not
    /// panic, and allocates no more than a graph of so many rows may take.
    pub fn load(space: Space, params: QuantizedParams, input: &[u8]) -> Result<QuantizedGraph> {
        let graph = QuantizedGraph::new(space, params)?;
        let mut reader = Reader {
            input: checked(input, MAGIC, VERSION)?,
            at: 0,
        };
        let rows = graph.origin.read_head(&mut reader)?;
        graph.origin.read_centre(rows, &mut reader)?;
        let mut below = u32::MAX;
        for level in &graph.levels {
            below = graph.read_level(level, below, &mut reader)?;
        }
        if reader.at + 4 < input.len() {
            graph.read_hasty(&mut reader)?;
        }
        same("length", &(reader.at + 4), &input.len())?;
        same("rows", &rows, &u64::from(graph.ground().blocks.claimed()))?;
        graph.remember_rows();
        // An empty graph may have no origin yet, and gets none here.
        if rows > 0 {
            graph.levels.iter().for_each(|level| graph.lead(level));
        }
        let above = graph.levels[1].blocks.claimed();
        // SAFETY: all nodes were written, and none is free.
        let remote = unsafe { graph.count_remote(0..above) };
        graph.remote.store(remote, Ordering::Relaxed);
        graph.rows.store(rows, Ordering::Release);
        Ok(graph)
    }

    /// Reads the nodes of a level, without the codes of their edges, and returns how many there are. `below` is how
    /// many the level below has.
    fn read_level(&self, level: &Level, below: u32, reader: &mut Reader<'_>) -> Result<u32> {
        let dim = self.dim();
        let at = reader.at as u64;
        let nodes = reader.u32()?;
        // Before anything is allocated.
        let left = (reader.input.len() - reader.at) as u64;
        if u64::from(nodes) * (NODE + dim) as u64 > left || nodes > level.blocks.limit() {
            return Err(Error::Inconsistent {
                at,
                field: "number of nodes",
                got: u64::from(nodes),
                limit: left / (NODE + dim) as u64,
            });
        }
        let entry = node(reader, "entry", nodes, nodes == 0)?;
        let mut follows = vec![false; nodes as usize];
        for _ in 0..nodes {
            self.read_node(level, (nodes, below), &mut follows, reader)?;
        }
        check_chains(level, nodes, &follows)?;
        if let Some(guard) = level.begin().filter(|_| entry != NONE) {
            level.begin_at(entry, &guard);
        }
        Ok(nodes)
    }

    fn read_node(
        &self,
        level: &Level,
        (nodes, below): (u32, u32),
        follows: &mut [bool],
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        let at = reader.at as u64;
        let row = reader.u64()?;
        let limit = if below == u32::MAX {
            FREE
        } else {
            u64::from(below)
        };
        if row >= limit {
            return Err(Error::Inconsistent {
                at,
                field: "row, or node of the level below",
                got: row,
                limit,
            });
        }
        let twin_at = reader.at as u64;
        let twin = node(reader, "twin", nodes, true)?;
        let apart = reader.u32()?;
        let scale = reader.f32()?;
        let mut ids = [NONE; SLOTS];
        for id in &mut ids {
            *id = node(reader, "neighbour", nodes, true)?;
        }
        let code = reader.bytes(self.dim())?;
        let vector = Vector8::new(code, scale);
        let node = level.blocks.claim().ok_or(Error::Full {
            limit: u64::from(level.blocks.limit()),
        })?;
        // SAFETY: nobody else knows this graph yet.
        unsafe { level.blocks.write(node, row, vector) };
        // SAFETY: the node was just written.
        unsafe {
            level.blocks.apart(node).store(apart, Ordering::Relaxed);
            for (slot, id) in level.blocks.ids(node).iter().zip(ids) {
                let id = if id == node { NONE } else { id };
                slot.store(id, Ordering::Relaxed);
            }
            level.blocks.set_twin(node, twin);
        }
        if twin != NONE && std::mem::replace(&mut follows[twin as usize], true) {
            return Err(Error::Inconsistent {
                at: twin_at,
                field: "twin of two",
                got: u64::from(twin),
                limit: u64::from(nodes),
            });
        }
        Ok(())
    }

    /// Reads which nodes are to be refined.
    fn read_hasty(&self, reader: &mut Reader<'_>) -> Result<()> {
        let mut hasty = self.hasty.lock();
        for (height, level) in self.levels.iter().enumerate() {
            let nodes = level.blocks.claimed();
            let at = reader.at as u64;
            let count = reader.u32()?;
            if count > nodes {
                return Err(Error::Inconsistent {
                    at,
                    field: "number of nodes to be refined",
                    got: u64::from(count),
                    limit: u64::from(nodes),
                });
            }
            for _ in 0..count {
                let at = reader.at as u64;
                let node = node(reader, "node to be refined", nodes, false)?;
                // SAFETY: all nodes of the level were written.
                let ids = unsafe { level.blocks.ids(node) };
                // Of several rows with the same code all but one have no edges, and must get none.
                if ids.iter().all(|id| id.load(Ordering::Relaxed) == NONE) {
                    return Err(Error::Inconsistent {
                        at,
                        field: "node to be refined, which has no edge",
                        got: u64::from(node),
                        limit: u64::from(nodes),
                    });
                }
                hasty.push((height, node));
            }
        }
        Ok(())
    }

    /// Remembers which nodes hold which rows.
    fn remember_rows(&self) {
        let blocks = &self.ground().blocks;
        for node in 0..blocks.claimed() {
            // SAFETY: all nodes were written.
            unsafe {
                self.places.set(blocks.row(node), node);
                if blocks.twin(node) != NONE {
                    self.places.look_at(node);
                }
            }
        }
    }

    /// Counts all edges of a level, and makes their codes if they have such, on all cores: what one of them takes its time for is
    /// waiting for memory. Then leads to nodes that nothing leads to.
    fn lead(&self, level: &Level) {
        let (nodes, next) = (level.blocks.claimed(), AtomicU32::new(0));
        let threads = threads().min(nodes.div_ceil(SHARE) as usize);
        side_by_side(threads, || {
            let mut bits = vec![0; self.encoder().dim() / 16];
            loop {
                let first = next.fetch_add(SHARE, Ordering::Relaxed);
                if first >= nodes {
                    break;
                }
                self.lead_from(level, first..nodes.min(first + SHARE), &mut bits);
            }
        });
        let mut bits = vec![0; self.encoder().dim() / 16];
        for node in 0..nodes {
            // SAFETY: all nodes were written.
            unsafe {
                // Edges to it were given up by who knew no better. Twins have none of their own.
                if level.blocks.led_to(node).get() == 0 && level.entry() != Some(node) {
                    let edges = self.by_length(level, node);
                    let nearest = edges.iter().rev().find(|(id, _)| *id != NONE);
                    if let Some((nearest, _)) = nearest {
                        self.lead_by(level, (*nearest, node), &mut bits);
                    }
                }
            }
        }
    }

    /// Counts the edges of some nodes, none of which another thread is at, and makes their codes.
    fn lead_from(&self, level: &Level, nodes: Range<u32>, bits: &mut [u16]) {
        // SAFETY: all nodes were written, and neighbours are some of them.
        let neighbours = |node| unsafe { level.blocks.ids(node) }.iter().enumerate();
        for node in nodes.clone() {
            // While the edges of this one are encoded, what the next ones lead to comes from memory.
            for (_, to) in neighbours((node + 1).min(nodes.end - 1)) {
                let to = to.load(Ordering::Relaxed);
                match to {
                    NONE => {}
                    to if level.blocks.coded() => level.blocks.prefetch_vector(to),
                    to => level.blocks.prefetch_led_to(to),
                }
            }
            for (slot, to) in neighbours(node) {
                let to = to.load(Ordering::Relaxed);
                if to != NONE {
                    // SAFETY: all nodes were written, and no other thread is at this one.
                    unsafe {
                        match level.blocks.coded() {
                            true => self.set_edge(level, node, slot, to, bits),
                            false => level.blocks.led_to(to).count(),
                        }
                    }
                }
            }
        }
    }
}

/// Checks that every chain of twins begins somewhere: none is a ring, in which a search would turn forever.
fn check_chains(level: &Level, nodes: u32, follows: &[bool]) -> Result<()> {
    let mut reached = 0;
    for first in (0..nodes).filter(|node| !follows[*node as usize]) {
        let mut node = first;
        while node != NONE {
            reached += 1;
            // SAFETY: all nodes were written, and twins are some of them.
            node = unsafe { level.blocks.twin(node) };
        }
    }
    if reached == nodes {
        return Ok(());
    }
    Err(Error::Inconsistent {
        at: 0,
        field: "nodes in chains of twins that begin somewhere",
        got: u64::from(reached),
        limit: u64::from(nodes),
    })
}

/// A number that must be below a limit, or, if told so, [`NONE`].
fn node(reader: &mut Reader<'_>, field: &'static str, limit: u32, or_none: bool) -> Result<u32> {
    let at = reader.at as u64;
    let node = reader.u32()?;
    if node < limit || or_none && node == NONE {
        return Ok(node);
    }
    Err(Error::Inconsistent {
        at,
        field,
        got: u64::from(node),
        limit: u64::from(limit),
    })
}
