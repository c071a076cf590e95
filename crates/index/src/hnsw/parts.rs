//! A graph taken apart and put together: what a checkpoint needs to see and to set.

use std::sync::atomic::Ordering;

use longbow_kernels::Metric;

use super::link::GROUND;
use super::nodes::{List, NONE};
use super::{Hnsw, HnswParams};
use crate::error::{Error, Result};
use crate::space::{Space, inverse_norm};

/// A view of a graph as it was when no insert ran.
///
/// Inserts that begin later may change links meanwhile; nodes that they add do not show.
pub(crate) struct Parts<'a> {
    index: &'a Hnsw,
    nodes: u32,
    entry: u32,
}

impl Hnsw {
    /// # Errors
    /// If an insert runs.
    pub(crate) fn parts(&self) -> Result<Parts<'_>> {
        // With as many ended as were claimed, before and after, none ran in between: so all nodes are written, and
        // the entry is one of them.
        let nodes = self.nodes.claimed();
        let ended = self.inserted.load(Ordering::Acquire);
        let entry = self.entry().map_or(NONE, |(node, _)| node);
        if u64::from(nodes) != ended || self.nodes.claimed() != nodes {
            return Err(Error::Busy);
        }
        Ok(Parts {
            index: self,
            nodes,
            entry,
        })
    }
}

impl Parts<'_> {
    pub(crate) fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The entry, or [`NONE`] if there are no nodes.
    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    pub(crate) fn row(&self, node: u32) -> u64 {
        assert!(node < self.nodes, "node {node} of {}", self.nodes);
        // SAFETY: all nodes below `nodes` were written before the view was made.
        unsafe { self.index.nodes.row(node) }
    }

    pub(crate) fn level(&self, node: u32) -> u32 {
        assert!(node < self.nodes, "node {node} of {}", self.nodes);
        // SAFETY: as in `row`.
        unsafe { self.index.nodes.level(node) }
    }

    /// The next node with an equal vector, or [`NONE`].
    pub(crate) fn twin(&self, node: u32) -> u32 {
        assert!(node < self.nodes, "node {node} of {}", self.nodes);
        let mut twin = node;
        loop {
            // SAFETY: as in `row`, and a twin that is read was written before it was chained.
            twin = unsafe { self.index.nodes.twin(twin) };
            if twin == NONE || twin < self.nodes {
                return twin;
            }
        }
    }

    /// The lists of a node, the lowest level first.
    pub(crate) fn lists(&self, node: u32) -> impl Iterator<Item = List> + use<> {
        self.index.nodes.lists(self.level(node))
    }

    /// The links in one list of a node.
    pub(crate) fn list(&self, node: u32, list: List) -> impl Iterator<Item = u32> {
        assert!(
            self.lists(node).any(|l| l == list),
            "{list:?} of node {node}"
        );
        // SAFETY: as in `row`, and the list was checked.
        unsafe { self.index.nodes.list(node, list) }.filter(|link| *link < self.nodes)
    }
}

/// A graph that is being put together, node by node. No other thread knows it.
pub(crate) struct Assembly {
    index: Hnsw,
    levels: Vec<u8>,
    /// Those that are found by another.
    twins: Vec<bool>,
}

impl Assembly {
    pub(crate) fn new(space: Space, params: HnswParams) -> Result<Self> {
        Ok(Assembly {
            index: Hnsw::new(space, params)?,
            levels: Vec::new(),
            twins: Vec::new(),
        })
    }

    /// Adds the next node, without twin and links.
    pub(crate) fn add(&mut self, row: u64, vector: &[u8], level: u32) -> Result<()> {
        let Hnsw { space, vectors, .. } = &self.index;
        space.check(row, vector)?;
        let inverse = match space.metric {
            Metric::Cosine => {
                let kernels = vectors.kernels();
                let (_, norm) = kernels.dot_and_norm(space.scalar, &vec![0.0; space.dim], vector);
                inverse_norm(kernels, space.scalar, norm, vector)
            }
            _ => 1.0,
        };
        let (_, level) = self.index.write(row, vector, inverse, level)?;
        self.levels.push(level as u8);
        self.twins.push(false);
        Ok(())
    }

    /// Sets a list of a node. Links and lists that do not exist, or do not fit, are left out.
    pub(crate) fn link(&mut self, node: u32, list: List, links: &[u32]) {
        let level = u32::from(self.levels[node as usize]);
        if !self.index.nodes.lists(level).any(|l| l == list) {
            return;
        }
        let exists = |link: &u32| {
            self.levels
                .get(*link as usize)
                .is_some_and(|l| u32::from(*l) >= list.level)
        };
        let mut own: Vec<u32> = Vec::with_capacity(links.len());
        for link in links.iter().filter(|link| exists(link)) {
            // Each once, for they are counted; and none to the node itself.
            if *link != node && !own.contains(link) {
                own.push(*link);
            }
        }
        // SAFETY: node and links were written by `add`, and have the list's level.
        unsafe {
            own.truncate(self.index.nodes.slots(node, list).len());
            self.index.nodes.set_list(node, list, &own);
            self.index.nodes.count(list, &own);
        }
    }

    /// Chains a node behind another. Those of one chain come from the last to the first.
    pub(crate) fn twin(&mut self, node: u32, twin: u32) {
        assert!(
            (node.max(twin) as usize) < self.levels.len() && node != twin,
            "twins {node} and {twin}"
        );
        self.twins[twin as usize] = true;
        // SAFETY: both were written by `add`.
        unsafe { self.index.nodes.add_twin(node, twin) };
    }

    /// The graph, in which walks begin at `entry` if there are nodes.
    pub(crate) fn finish(self, entry: u32) -> Hnsw {
        let nodes = &self.index.nodes;
        for node in 0..self.levels.len() as u32 {
            if self.twins[node as usize] || node == entry {
                continue;
            }
            // SAFETY: all were written by `add`.
            unsafe {
                // All that led there are gone, and maybe all to which it leads.
                if nodes.led_to(node).get() == 0 {
                    let first = nodes.list(node, GROUND).next();
                    self.index.lead_by(first.unwrap_or(entry), node);
                }
            }
        }
        if let Some(level) = self.levels.get(entry as usize) {
            self.index.set_entry(entry, u32::from(*level));
        }
        self.index
            .inserted
            .store(self.levels.len() as u64, Ordering::Release);
        self.index
    }
}
