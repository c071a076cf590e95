use crc_fast::{CrcAlgorithm, checksum};
use longbow_kernels::{Metric, Scalar};

use super::{HEADER, MAGIC, TRAILER, VERSION};
use crate::error::{Error, Result};
use crate::hnsw::{HnswParams, List, MAX_LEVEL, NONE};
use crate::space::Space;

/// A checkpoint whose every number was checked, still mostly in its bytes.
pub(super) struct Decoded<'a> {
    input: &'a [u8],
    nodes: u32,
    entry: u32,
    /// The lists of a node of the highest level, from the lowest, each with the most links that it may have.
    lists: Vec<(List, usize)>,
    /// Where the links of each node begin.
    starts: Vec<u64>,
    /// Whether each node follows another in a chain of twins.
    twins: Vec<bool>,
}

/// Reads `N` bytes, which the caller knows to be there.
fn take<const N: usize>(input: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&input[at..at + N]);
    bytes
}

fn inconsistent<T>(at: usize, field: &'static str, got: u64, limit: u64) -> Result<T> {
    Err(Error::Inconsistent {
        at: at as u64,
        field,
        got,
        limit,
    })
}

fn need(input: &[u8], bytes: u64) -> Result<()> {
    let have = input.len() as u64;
    if have < bytes {
        Err(Error::Truncated { need: bytes, have })
    } else {
        Ok(())
    }
}

/// Refuses a field that is not what the caller says.
pub(crate) fn same<T: PartialEq + ToString>(
    field: &'static str,
    expected: &T,
    got: &T,
) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Mismatch {
        field,
        expected: expected.to_string(),
        got: got.to_string(),
    })
}

impl<'a> Decoded<'a> {
    pub(super) fn new(space: Space, params: HnswParams, input: &'a [u8]) -> Result<Self> {
        check_header(space, params, input)?;
        let nodes = u32::from_le_bytes(take(input, 28));
        let entry = u32::from_le_bytes(take(input, 32));
        need(input, (HEADER + TRAILER) as u64 + 13 * u64::from(nodes))?;
        if nodes == NONE {
            return inconsistent(28, "number of nodes", u64::from(nodes), u64::from(NONE) - 1);
        }
        let twins = vec![false; nodes as usize];
        let split = space.metric == Metric::Dot;
        let with_most = |list: List| (list, list.most(params.m, split));
        let lists = List::all(MAX_LEVEL, split).map(with_most).collect();
        let mut decoded = Decoded {
            input,
            nodes,
            entry,
            lists,
            starts: Vec::with_capacity(nodes as usize),
            twins,
        };
        decoded.check_twins()?;
        decoded.check_links()?;
        if nodes == 0 && entry == NONE {
            return Ok(decoded);
        }
        if entry >= nodes || decoded.twins[entry as usize] {
            return inconsistent(32, "entry", u64::from(entry), u64::from(nodes));
        }
        Ok(decoded)
    }

    pub(super) fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The entry, or [`NONE`] if there are no nodes.
    pub(super) fn entry(&self) -> u32 {
        self.entry
    }

    pub(super) fn row(&self, node: u32) -> u64 {
        u64::from_le_bytes(take(self.input, HEADER + 8 * node as usize))
    }

    fn twin_at(&self, node: u32) -> usize {
        HEADER + 8 * self.nodes as usize + 4 * node as usize
    }

    /// The next node with an equal vector, or [`NONE`].
    pub(super) fn twin(&self, node: u32) -> u32 {
        u32::from_le_bytes(take(self.input, self.twin_at(node)))
    }

    /// Whether the node follows another in a chain of twins.
    pub(super) fn is_twin(&self, node: u32) -> bool {
        self.twins[node as usize]
    }

    fn level_at(&self, node: u32) -> usize {
        HEADER + 12 * self.nodes as usize + node as usize
    }

    pub(super) fn level(&self, node: u32) -> u32 {
        u32::from(self.input[self.level_at(node)])
    }

    /// The lists of a node, from the lowest, each with the most links that it may have.
    pub(super) fn lists(&self, node: u32) -> impl Iterator<Item = (List, usize)> {
        let level = self.level(node);
        self.lists
            .iter()
            .copied()
            .take_while(move |(list, _)| list.level <= level)
    }

    /// The links in one list of a node.
    pub(super) fn list(&self, node: u32, list: List) -> impl Iterator<Item = u32> {
        let mut at = self.starts[node as usize] as usize;
        for _ in self.lists(node).take_while(|(other, _)| *other != list) {
            at += 2 + 4 * self.count(at);
        }
        let links = &self.input[at + 2..at + 2 + 4 * self.count(at)];
        links
            .as_chunks::<4>()
            .0
            .iter()
            .map(|link| u32::from_le_bytes(*link))
    }

    fn count(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes(take(self.input, at)))
    }

    /// Every node follows one other at most, so a chain that begins at a node that follows none has an end.
    fn check_twins(&mut self) -> Result<()> {
        for node in 0..self.nodes {
            let twin = self.twin(node);
            if twin == NONE {
                continue;
            }
            match self.twins.get_mut(twin as usize) {
                Some(follows) if !*follows => *follows = true,
                _ => {
                    return inconsistent(
                        self.twin_at(node),
                        "twin",
                        u64::from(twin),
                        u64::from(self.nodes),
                    );
                }
            }
        }
        Ok(())
    }

    fn check_links(&mut self) -> Result<()> {
        let end = self.input.len() - TRAILER;
        let mut at = HEADER + 13 * self.nodes as usize;
        for node in 0..self.nodes {
            self.starts.push(at as u64);
            let level = self.level(node);
            let most = if self.is_twin(node) { 0 } else { MAX_LEVEL };
            if level > most {
                return inconsistent(
                    self.level_at(node),
                    "level",
                    u64::from(level),
                    u64::from(most),
                );
            }
            for (list, most) in self.lists(node) {
                at = self.check_list(node, list.level, most, at, end)?;
            }
        }
        if at != end {
            return inconsistent(at, "end of the links", at as u64, end as u64);
        }
        Ok(())
    }

    /// Checks the list of at most `most` links at `at`, and returns where it ends.
    fn check_list(
        &self,
        node: u32,
        level: u32,
        most: usize,
        at: usize,
        end: usize,
    ) -> Result<usize> {
        need(&self.input[..end], at as u64 + 2)?;
        let count = self.count(at);
        let most = if self.is_twin(node) { 0 } else { most };
        if count > most {
            return inconsistent(at, "number of links", count as u64, most as u64);
        }
        let after = at + 2 + 4 * count;
        need(&self.input[..end], after as u64)?;
        for at in (at + 2..after).step_by(4) {
            let link = u32::from_le_bytes(take(self.input, at));
            if link >= self.nodes || link == node || self.is_twin(link) || self.level(link) < level
            {
                return inconsistent(at, "link", u64::from(link), u64::from(self.nodes));
            }
        }
        Ok(after)
    }
}

/// Checks all that does not depend on the nodes, and the checksum.
fn check_header(space: Space, params: HnswParams, input: &[u8]) -> Result<()> {
    need(input, MAGIC.len() as u64 + 4)?;
    let magic = take(input, 0);
    if magic != MAGIC {
        return Err(Error::Magic {
            expected: MAGIC,
            got: magic,
        });
    }
    let version = u32::from_le_bytes(take(input, 8));
    if version != VERSION {
        return Err(Error::Version {
            known: VERSION,
            got: version,
        });
    }
    need(input, (HEADER + TRAILER) as u64)?;
    let (body, trailer) = input.split_at(input.len() - TRAILER);
    let expected = u32::from_le_bytes(take(trailer, 0));
    let got = checksum(CrcAlgorithm::Crc32Iscsi, body) as u32;
    if got != expected {
        return Err(Error::Checksum { expected, got });
    }
    let Some(scalar) = Scalar::ALL.get(usize::from(input[12])) else {
        return inconsistent(
            12,
            "element type",
            u64::from(input[12]),
            Scalar::ALL.len() as u64 - 1,
        );
    };
    let Some(metric) = Metric::ALL.get(usize::from(input[13])) else {
        return inconsistent(
            13,
            "metric",
            u64::from(input[13]),
            Metric::ALL.len() as u64 - 1,
        );
    };
    same("element type", &space.scalar, scalar)?;
    same("metric", &space.metric, metric)?;
    same(
        "m",
        &params.m,
        &usize::from(u16::from_le_bytes(take(input, 14))),
    )?;
    same(
        "dimension",
        &(space.dim as u64),
        &u64::from(u32::from_le_bytes(take(input, 16))),
    )?;
    same("seed", &params.seed, &u64::from_le_bytes(take(input, 20)))
}
