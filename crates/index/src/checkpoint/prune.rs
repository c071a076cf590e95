//! Puts a decoded graph together from those of its rows that still exist.

use super::VectorSource;
use super::read::Decoded;
use crate::error::{Error, Result};
use crate::hnsw::{Assembly, Hnsw, HnswParams, List, NONE};
use crate::space::Space;

/// One row in so many may be gone; with more, links that were chosen among all rows would answer badly.
const MISSING_SHARE: u64 = 20;

/// What became of the nodes.
struct Survivors<'a> {
    /// Vector of each node that is still there.
    vectors: Vec<Option<&'a [u8]>>,
    /// New number of each of those.
    ranks: Vec<u32>,
    /// New number of the node that stands for each linked node: its own, or that of its first twin that is still
    /// there; [`NONE`] if there is none. Also [`NONE`] for twins.
    stand_ins: Vec<u32>,
}

impl Decoded<'_> {
    pub(super) fn build(
        &self,
        space: Space,
        params: HnswParams,
        source: &dyn VectorSource,
    ) -> Result<Hnsw> {
        let vectors: Vec<_> = (0..self.nodes())
            .map(|node| source.vector(self.row(node)))
            .collect();
        let total = u64::from(self.nodes());
        let missing = vectors.iter().filter(|vector| vector.is_none()).count() as u64;
        if missing * MISSING_SHARE > total {
            return Err(Error::Rebuild { missing, total });
        }
        let (survivors, levels) = self.survivors(vectors);
        let mut assembly = Assembly::new(space, params)?;
        for (node, level) in (0..self.nodes()).zip(levels) {
            if let Some(vector) = survivors.vectors[node as usize] {
                assembly.add(self.row(node), vector, level)?;
            }
        }
        self.chain(&survivors, &mut assembly);
        let mut links = Vec::new();
        for node in 0..self.nodes() {
            let stand_in = survivors.stand_ins[node as usize];
            if stand_in == NONE {
                continue;
            }
            for (list, _) in self.lists(node) {
                self.surviving_links(node, list, &survivors.stand_ins, &mut links);
                assembly.link(stand_in, list, &links);
            }
        }
        Ok(assembly.finish(self.surviving_entry(&survivors.stand_ins)))
    }

    /// Who stands for whom, and the level of each old node by what it stands for now.
    fn survivors<'a>(&self, vectors: Vec<Option<&'a [u8]>>) -> (Survivors<'a>, Vec<u32>) {
        let mut ranks = Vec::with_capacity(vectors.len());
        let mut rank = 0;
        for vector in &vectors {
            ranks.push(rank);
            rank += u32::from(vector.is_some());
        }
        let mut stand_ins = vec![NONE; vectors.len()];
        let mut levels = vec![0; vectors.len()];
        for first in (0..self.nodes()).filter(|node| !self.is_twin(*node)) {
            let mut node = first;
            while node != NONE && vectors[node as usize].is_none() {
                node = self.twin(node);
            }
            if node != NONE {
                stand_ins[first as usize] = ranks[node as usize];
                levels[node as usize] = self.level(first);
            }
        }
        (
            Survivors {
                vectors,
                ranks,
                stand_ins,
            },
            levels,
        )
    }

    /// Chains the twins that are still there behind those that stand for them, in the order that they had.
    fn chain(&self, survivors: &Survivors<'_>, assembly: &mut Assembly) {
        let mut group = Vec::new();
        for first in (0..self.nodes()).filter(|node| !self.is_twin(*node)) {
            group.clear();
            let mut node = first;
            while node != NONE {
                if survivors.vectors[node as usize].is_some() {
                    group.push(survivors.ranks[node as usize]);
                }
                node = self.twin(node);
            }
            if let Some((stand_in, twins)) = group.split_first() {
                twins
                    .iter()
                    .rev()
                    .for_each(|twin| assembly.twin(*stand_in, *twin));
            }
        }
    }

    /// The links of a node in new numbers. In place of each neighbour that is gone comes one of that neighbour's
    /// own: another for each node that asks, so that what was reached through it still is.
    fn surviving_links(&self, node: u32, list: List, stand_ins: &[u32], links: &mut Vec<u32>) {
        links.clear();
        let own = stand_ins[node as usize];
        links.extend(
            self.list(node, list)
                .map(|link| stand_ins[link as usize])
                .filter(|link| *link != NONE),
        );
        for gone in self
            .list(node, list)
            .filter(|link| stand_ins[*link as usize] == NONE)
        {
            let others: Vec<u32> = self
                .list(gone, list)
                .map(|link| stand_ins[link as usize])
                .filter(|link| *link != NONE && *link != own && !links.contains(link))
                .collect();
            if !others.is_empty() {
                links.push(others[node as usize % others.len()]);
            }
        }
    }

    /// The entry if it is still there, else one of the highest nodes.
    fn surviving_entry(&self, stand_ins: &[u32]) -> u32 {
        let alive = |node: &u32| stand_ins[*node as usize] != NONE;
        let highest = || {
            (0..self.nodes())
                .filter(alive)
                .max_by_key(|node| self.level(*node))
        };
        let entry = Some(self.entry())
            .filter(|entry| *entry != NONE)
            .filter(alive)
            .or_else(highest);
        entry.map_or(NONE, |entry| stand_ins[entry as usize])
    }
}
