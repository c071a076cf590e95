//! Rows leave a graph that is searched and grows meanwhile.
//!
//! A row that died is invisible at once, but its node costs walks their time and others their memory. Nodes leave many at
//! a time:
//!
//! 1. [`QuantizedGraph::retire`] reads all nodes once, finds those of dead rows, marks them, so that no new edge leads to
//!    them, and lists the nodes that lead to them. That is exact, and costs three cache lines a node for all that leave
//!    together; to search for each one's in-neighbours (IP-DiskANN, arXiv 2502.13826) would cost several hundred for each
//!    that leaves, and miss some.
//! 2. When the searches that may still see the rows have ended, nodes of dead rows behind which others hang take their rows (`heirs`), and the listed nodes choose anew: from their neighbours that
//!    stay, and from those of their neighbours that leave, as FreshDiskANN does (arXiv 2105.09613). See `repair`.
//! 3. A node of a level above the lowest is succeeded by one near it, if else no walk would begin near that.
//! 4. When the walks that may still stand on a leaving node have ended, the nodes are free, and the next inserts take
//!    them.
//!
//! A node behind whose row others hang that live (twins: equal codes) stays, and takes the row of one of them: see `heirs`.

use std::sync::atomic::Ordering;

use super::QuantizedGraph;
use super::block::{FREE, NONE};
use super::heirs::Heir;
use super::level::Level;
use crate::error::{Error, Result};

/// How far a removal has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// None is under way, or the last one has ended.
    Ended,
    /// There is more to do now.
    Working,
    /// Searches or inserts that began earlier must end first.
    Waiting,
}

/// Nodes that leave together.
pub(super) struct Removal {
    levels: Vec<Leaving>,
    heirs: Vec<Heir>,
    stage: Stage,
}

/// Those of one level.
#[derive(Default)]
struct Leaving {
    nodes: Vec<u32>,
    /// Nodes that stay, and lead to one that leaves, or one that leaves leads to them.
    around: Vec<u32>,
    /// Nodes that stay, and whose next twin leaves.
    before: Vec<(u32, u32)>,
    /// One that stays and follows no other, if there is one.
    stays: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Until nobody sees the rows.
    Visible,
    /// Nodes take the rows of their heirs: place among them.
    Inherit(usize),
    /// Until nobody looks for rows in the nodes of heirs alone.
    Inherited,
    /// Nodes around are led elsewhere: level, and place among them.
    Around(usize, usize),
    /// Others are put in their places on the levels above the lowest: level, and place among them.
    Above(usize, usize),
    /// Until nobody stands on the nodes.
    Visited,
}

impl Removal {
    /// Whether chains of twins were led past the nodes that leave.
    pub(super) fn has_passed_twins(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Visible | Stage::Inherit(_) | Stage::Inherited
        )
    }

    /// Heirs whose rows other nodes have, too.
    pub(super) fn twice(&self) -> &[Heir] {
        match self.stage {
            Stage::Inherit(end) => &self.heirs[..end],
            Stage::Inherited => &self.heirs,
            _ => &[],
        }
    }
}

pub(super) const LEAVES: u8 = 1;
const AROUND: u8 = 2;
/// Another hangs behind it in a chain of twins.
pub(super) const LEADS: u8 = 16;
/// Hangs behind another.
pub(super) const FOLLOWS: u8 = 4;

impl QuantizedGraph {
    /// Begins to remove the rows for which `dead` holds, and returns how many nodes will leave. [`QuantizedGraph::remove`] does the work. `dead` must say of a row what it will say ever after, and so must
    /// searches that enter from now on; those that entered before see the rows until they end.
    ///
    /// # Errors
    /// [`Error::Busy`] if an insert runs, or a removal is under way.
    pub fn retire(&self, dead: &dyn Fn(u64) -> bool) -> Result<usize> {
        let mut removal = self.removal.lock();
        if removal.is_some() {
            return Err(Error::Busy);
        }
        let _still = self.still.try_write().ok_or(Error::Busy)?;
        let mut levels: Vec<Leaving> = Vec::with_capacity(self.levels.len());
        let (mut marks, mut heirs) = (Vec::<u8>::new(), Vec::new());
        for (height, level) in self.levels.iter().enumerate() {
            // SAFETY: no insert runs, so all nodes that were claimed are written.
            let leaving = unsafe {
                if height == 0 {
                    marks = marked(level, |row, mark, twin| {
                        // The first of a chain stands for those behind it.
                        dead(row) && (mark & FOLLOWS != 0 || twin == NONE)
                    });
                    heirs = self.mark_heirs(dead, &mut marks);
                    self.forget_twins(&marks);
                } else {
                    let below = marks;
                    marks = marked(level, |row, _, _| below[row as usize] & LEAVES != 0);
                }
                listed(level, &mut marks)
            };
            if leaving.nodes.is_empty() {
                // Nothing on the levels above either.
                break;
            }
            levels.push(leaving);
        }
        let count = levels.first().map_or(0, |ground| ground.nodes.len());
        if count > 0 {
            for (level, leaving) in self.levels.iter().zip(&levels) {
                // SAFETY: as above.
                unsafe { begin_elsewhere(level, leaving) };
            }
            self.forget_hasty();
            self.visits.turn();
            let stage = Stage::Visible;
            *removal = Some(Removal {
                levels,
                heirs,
                stage,
            });
        }
        Ok(count)
    }

    /// Whether nodes that are to leave wait for searches that entered before.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.visits.are_over()
    }

    /// Goes on with the removal that is under way, by about `most` nodes. Inserts and searches may run meanwhile; of
    /// several calls at a time one works.
    pub fn remove(&self, most: usize) -> Progress {
        let Some(mut guard) = self.removal.try_lock() else {
            return Progress::Waiting;
        };
        let Some(removal) = guard.as_mut() else {
            return Progress::Ended;
        };
        let _moving = self.still.read();
        match removal.stage {
            Stage::Visible | Stage::Inherited | Stage::Visited if !self.visits.are_over() => {
                Progress::Waiting
            }
            Stage::Visible if !removal.heirs.is_empty() => {
                removal.stage = Stage::Inherit(0);
                Progress::Working
            }
            Stage::Inherit(from) => {
                let end = removal.heirs.len().min(from + most.max(1));
                self.inherit(&removal.heirs[from..end]);
                removal.stage = Stage::Inherit(end);
                if end == removal.heirs.len() {
                    self.visits.turn();
                    removal.stage = Stage::Inherited;
                }
                Progress::Working
            }
            Stage::Visible | Stage::Inherited => {
                self.pass_twins(removal);
                removal.stage = Stage::Around(0, 0);
                Progress::Working
            }
            Stage::Around(height, from) => {
                let Some(leaving) = removal.levels.get(height) else {
                    removal.stage = Stage::Above(1, 0);
                    return Progress::Working;
                };
                let part = part(&leaving.around, from, most);
                self.repair(height, part);
                let (height, from) = after(part, &leaving.around, (height, from));
                removal.stage = Stage::Around(height, from);
                Progress::Working
            }
            Stage::Above(height, from) => {
                let Some(leaving) = removal.levels.get(height) else {
                    // Rows lead to nodes as edges do.
                    self.forget(&removal.levels);
                    self.visits.turn();
                    removal.stage = Stage::Visited;
                    return Progress::Waiting;
                };
                let part = part(&leaving.nodes, from, most);
                self.succeed(height, part);
                let (height, from) = after(part, &leaving.nodes, (height, from));
                removal.stage = Stage::Above(height, from);
                Progress::Working
            }
            Stage::Visited => {
                for (level, leaving) in self.levels.iter().zip(&removal.levels) {
                    for node in &leaving.nodes {
                        // SAFETY: no edge and no twin leads there, and whoever may have been there has ended.
                        unsafe { level.blocks.free(*node) };
                    }
                }
                let gone = removal.levels.first().map_or(0, |level| level.nodes.len());
                self.rows.fetch_sub(gone as u64, Ordering::AcqRel);
                *guard = None;
                Progress::Ended
            }
        }
    }
}

impl QuantizedGraph {
    /// Leads chains of twins past those that leave.
    fn pass_twins(&self, removal: &Removal) {
        self.disinherit(&removal.heirs);
        for (level, leaving) in self.levels.iter().zip(&removal.levels) {
            for (from, gone) in &leaving.before {
                // SAFETY: listed nodes were written, and so was the chain.
                unsafe { level.blocks.pass_twin(*from, *gone) };
            }
        }
    }

    /// Forgets which nodes hold the rows that leave, and those above that were not drawn.
    fn forget(&self, levels: &[Leaving]) {
        let nodes = |height: usize| levels.get(height).map_or(&[][..], |level| &level.nodes);
        let (nodes, above) = (nodes(0), nodes(1));
        // SAFETY: listed nodes were written, and their places are not given to others yet.
        let row = |node: &u32| (unsafe { self.ground().blocks.row(*node) }, *node);
        self.places.forget(nodes.iter().map(row));
        // SAFETY: as above, for those above, too.
        let remote = unsafe { self.count_remote(above.iter().copied()) };
        self.remote.fetch_sub(remote, Ordering::Relaxed);
    }
}

/// Some nodes of a level, from a place on.
fn part(nodes: &[u32], from: usize, most: usize) -> &[u32] {
    &nodes[from..nodes.len().min(from + most.max(1))]
}

/// Level and place after such a part.
fn after(part: &[u32], nodes: &[u32], (height, from): (usize, usize)) -> (usize, usize) {
    match from + part.len() {
        end if end < nodes.len() => (height, end),
        _ => (height + 1, 0),
    }
}

/// Marks the nodes of a level that follow another, and those that leave: `leaves` is asked by row, mark and next twin.
///
/// # Safety
/// All nodes that were claimed are written.
unsafe fn marked(level: &Level, leaves: impl Fn(u64, u8, u32) -> bool) -> Vec<u8> {
    let nodes = level.blocks.claimed();
    let mut marks = vec![0u8; nodes as usize];
    // SAFETY: the caller vouches for the nodes.
    unsafe {
        let taken = |node: &u32| level.blocks.row(*node) != FREE;
        for node in (0..nodes).filter(taken) {
            let twin = level.blocks.twin(node);
            if twin != NONE {
                marks[node as usize] |= LEADS;
                marks[twin as usize] |= FOLLOWS;
            }
        }
        for node in (0..nodes).filter(taken) {
            let (row, twin) = (level.blocks.row(node), level.blocks.twin(node));
            let mark = &mut marks[node as usize];
            if leaves(row, *mark, twin) {
                *mark |= LEAVES;
                level.blocks.leave(node);
            }
        }
    }
    marks
}

/// Lists what was marked, and what is around it.
///
/// # Safety
/// As [`marked`].
unsafe fn listed(level: &Level, marks: &mut [u8]) -> Leaving {
    let mut leaving = Leaving::default();
    // SAFETY: the caller vouches for the nodes.
    unsafe {
        let taken = |node: &u32| level.blocks.row(*node) != FREE;
        for node in (0..level.blocks.claimed()).filter(taken) {
            let leaves = marks[node as usize] & LEAVES != 0;
            for id in level.blocks.ids(node) {
                let id = id.load(Ordering::Relaxed);
                if id == NONE {
                    continue;
                }
                if leaves {
                    level.blocks.led_to(id).uncount();
                    marks[id as usize] |= AROUND;
                } else if marks[id as usize] & LEAVES != 0 {
                    marks[node as usize] |= AROUND;
                }
            }
            let twin = level.blocks.twin(node);
            if leaves {
                leaving.nodes.push(node);
                continue;
            }
            if twin != NONE && marks[twin as usize] & LEAVES != 0 {
                leaving.before.push((node, twin));
            }
            if marks[node as usize] & FOLLOWS == 0 {
                leaving.stays = Some(node);
            }
        }
    }
    let around = |(_, mark): &(u32, &u8)| **mark & (AROUND | LEAVES) == AROUND;
    let marked = (0..).zip(marks.iter()).filter(around);
    leaving.around = marked.map(|(node, _)| node).collect();
    leaving
}

/// Lets walks of a level begin at a node that stays, if they begin at one that leaves.
///
/// # Safety
/// As [`marked`], for the nodes that were listed and the entry.
unsafe fn begin_elsewhere(level: &Level, leaving: &Leaving) {
    let guard = level.beginning();
    // SAFETY: the caller vouches for the nodes.
    unsafe {
        if level
            .entry()
            .is_none_or(|entry| !level.blocks.is_leaving(entry))
        {
            return;
        }
        match leaving.stays {
            Some(node) => level.begin_at(node, &guard),
            None => level.begin_nowhere(&guard),
        }
    }
}
