use std::sync::atomic::Ordering;

use longbow_kernels::Metric;

use super::Hnsw;
use super::link::GROUND;
use super::nodes::{List, MAX_LEVEL};
use super::scratch::Scratch;
use super::vectors::Probe;
use super::walk::Everything;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::mix::mix;
use crate::narrow::Narrow;
use crate::space::inverse_norm;

/// What a new node shall be, found before it is visible to anyone.
struct Plan {
    level: u32,
    /// Links by list.
    links: Vec<(List, Vec<u32>)>,
    /// The node whose vector it repeats.
    twin_of: Option<u32>,
}

impl Hnsw {
    /// Adds a row. May be called from many threads at once.
    ///
    /// Rows are not compared: the caller gives each number once, and hides a row that a later one replaces.
    /// Vectors hold finite numbers only; with others, what is found is undefined, but memory is safe.
    ///
    /// # Errors
    /// If the vector has not `space().row_bytes()` bytes, or the index is full.
    pub fn insert(&self, row: u64, vector: &[u8]) -> Result<()> {
        self.space.check(row, vector)?;
        let mut scratch = self.pool.take();
        let mut floats = vec![0.0; self.space.dim];
        let kernels = self.vectors.kernels();
        kernels.decode(self.space.scalar, vector, &mut floats);
        let inverse = match self.space.metric {
            Metric::Cosine => {
                let (_, norm) = kernels.dot_and_norm(self.space.scalar, &floats, vector);
                inverse_norm(kernels, self.space.scalar, norm, vector)
            }
            _ => 1.0,
        };
        let probe = Probe::new(&mut floats, inverse, self.build_metric());
        let level = self.draw_level(row);
        let done = match self.first(row, vector, inverse, level) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let plan = self.plan(probe, vector, level, &mut scratch);
                self.publish(row, vector, inverse, &plan, &mut scratch)
            }
            Err(full) => Err(full),
        };
        self.pool.give(scratch);
        if done.is_ok() {
            self.inserted.fetch_add(1, Ordering::AcqRel);
        }
        done
    }

    /// The level of a row's node: `l` or more with probability `m ^ -l`, by a hash of seed and row, so that it does not depend on the order of inserts.
    fn draw_level(&self, row: u64) -> u32 {
        let hash = mix(row ^ self.params.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let uniform = ((hash >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        let level = -uniform.ln() / (self.params.m as f64).ln();
        (level as u32).min(MAX_LEVEL)
    }

    /// Makes the row the entry of an empty graph, and says whether it was empty.
    fn first(&self, row: u64, vector: &[u8], inverse: f32, level: u32) -> Result<bool> {
        if self.entry().is_some() {
            return Ok(false);
        }
        let _change = self.entry_change.lock();
        if self.entry().is_some() {
            return Ok(false);
        }
        let (node, level) = self.write(row, vector, inverse, level)?;
        self.set_entry(node, level);
        Ok(true)
    }

    /// Writes a node that nobody else can reach yet, and returns it with the level that it got.
    pub(super) fn write(
        &self,
        row: u64,
        vector: &[u8],
        inverse: f32,
        level: u32,
    ) -> Result<(u32, u32)> {
        let limit = self.limit();
        let node = self.nodes.claim(limit).ok_or(Error::Full {
            limit: u64::from(limit),
        })?;
        // SAFETY: the node was just claimed, and is not linked anywhere.
        unsafe {
            self.vectors.write(node, vector, inverse);
            Ok((node, self.nodes.write(node, row, level)))
        }
    }

    /// Finds the links of a new node, from its own level down.
    fn plan(&self, probe: Probe<'_>, vector: &[u8], level: u32, scratch: &mut Scratch) -> Plan {
        let mut plan = Plan {
            level,
            links: Vec::new(),
            twin_of: None,
        };
        let Some((_, top)) = self.entry() else {
            return plan;
        };
        let Some(mut nearest) = self.start(probe, level, scratch) else {
            return plan;
        };
        for level in (0..=level.min(top)).rev() {
            let list = List {
                level,
                by_product: false,
            };
            let links;
            (nearest, links) = self.choose(probe, nearest, list, scratch);
            plan.links.push((list, links));
        }
        // SAFETY: walks find nodes that were written.
        let other = unsafe { self.vectors.get(nearest.node()) };
        if self.is_twin(nearest.distance(), vector, other) {
            plan.twin_of = Some(nearest.node());
        } else if self.space.metric == Metric::Dot {
            let probe = Probe {
                metric: Metric::Dot,
                ..probe
            };
            let list = List {
                level: 0,
                by_product: true,
            };
            if let Some(nearest) = self.start(probe, 0, scratch) {
                plan.links
                    .push((list, self.choose(probe, nearest, list, scratch).1));
            }
        }
        plan
    }

    /// Finds the links of a new node in one list, and the node nearest to it.
    fn choose(
        &self,
        probe: Probe<'_>,
        from: Candidate,
        list: List,
        scratch: &mut Scratch,
    ) -> (Candidate, Vec<u32>) {
        let ef = self.params.ef_construction.max(self.params.m);
        let mut links = Vec::new();
        // SAFETY: walks go from nodes that were written to others of the same level.
        unsafe {
            self.walk(
                probe,
                from,
                list.level,
                Narrow::not(ef),
                &Everything,
                scratch,
            );
            let mut candidates = std::mem::take(&mut scratch.found).into_sorted_vec();
            let nearest = candidates[0];
            self.select(
                probe.metric,
                &candidates,
                self.params.m,
                &mut links,
                &mut Vec::new(),
            );
            candidates.clear();
            scratch.found = candidates.into();
            (nearest, links)
        }
    }

    /// Writes the node with all its links, and then links it from its neighbours, the lowest level first: whoever
    /// finds it on some level can go on from there.
    fn publish(
        &self,
        row: u64,
        vector: &[u8],
        inverse: f32,
        plan: &Plan,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if let Some(first) = plan.twin_of {
            let (node, _) = self.write(row, vector, inverse, 0)?;
            // SAFETY: both were written.
            unsafe { self.nodes.add_twin(first, node) };
            return Ok(());
        }
        let (node, level) = self.write(row, vector, inverse, plan.level)?;
        let links = plan
            .links
            .iter()
            .rev()
            .filter(|(list, _)| list.level <= level);
        // SAFETY: the node was written with this level, and links were found on their levels by walks.
        unsafe {
            for (list, links) in links.clone() {
                self.nodes.set_list(node, *list, links);
                self.nodes.count(*list, links);
            }
            for (list, links) in links.clone() {
                for neighbor in links {
                    self.link(*neighbor, *list, node, scratch);
                }
            }
            if self.nodes.led_to(node).get() == 0 {
                // The nearest comes first.
                let mut grounds = links.filter(|(list, _)| *list == GROUND);
                if let Some(nearest) = grounds.next().and_then(|(_, links)| links.first()) {
                    self.lead_by(*nearest, node);
                }
            }
        }
        if self.entry().is_some_and(|(_, top)| level > top) {
            let _change = self.entry_change.lock();
            if self.entry().is_some_and(|(_, top)| level > top) {
                self.set_entry(node, level);
            }
        }
        Ok(())
    }
}
