use crate::sync::atomic::{AtomicU32, Ordering};

use longbow_kernels::rabitq::SLOTS;

use crate::narrow::Narrow;
use crate::sync::{Mutex, MutexGuard};

use super::block::{Blocks, NONE};
use super::front::Front;

/// Locks over which the nodes are spread; more than there are threads, so that they seldom meet, but where
/// interleavings are explored.
const STRIPES: usize = if cfg!(shuttle) { 2 } else { 256 };

/// One level of the graph: nodes with their edges, and where walks begin.
///
/// The lowest level holds all rows. Each above holds one node in [`FEWER`] of those below, and one of each group of nodes that
/// would be far from all of these; it finds for a query where on the level below to begin: in data of many clusters edges
/// alone seldom lead from one to the other.
pub(super) struct Level {
    pub(super) blocks: Blocks,
    entry: AtomicU32,
    /// Held to set the entry.
    beginning: Mutex<()>,
    /// Held to change the edges of a node. At most one is held at a time.
    stripes: Box<[Mutex<()>]>,
}

/// Nodes of a level for each of the level above.
pub(crate) const FEWER: u64 = 64;
/// Levels there are at most: enough for 2^30 nodes.
pub(super) const LEVELS: usize = 6;

impl Level {
    pub(super) fn new(dim: usize, coded: bool) -> Self {
        Level {
            blocks: Blocks::new(dim, coded),
            entry: AtomicU32::new(NONE),
            beginning: Mutex::new(()),
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Lets a front pass by what is too far, once it holds enough to tell. The query was rounded by steps of `own`: see [`Blocks::error`].
    ///
    /// # Safety
    /// Its nodes were written, and the writes happened before.
    #[inline(always)]
    pub(super) unsafe fn narrow(&self, (narrow, own): (Narrow, f32), front: &mut Front) {
        if narrow.narrows()
            && let Some(nth) = front.nth(narrow.nth)
        {
            // Where all are as near as codes can tell, what differs is their rounding.
            // SAFETY: the caller vouches for the node.
            let error = unsafe { self.blocks.error(nth, own) };
            front.pass_by(narrow.reach(nth.distance() + error));
        }
    }

    /// Whether the edges of each node have room for all others. Then they mostly lead to these; not to what came in haste, or while the
    /// node was to leave.
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.blocks.claimed() as usize <= SLOTS
    }

    /// Where walks begin; `None` if there are no nodes.
    pub(super) fn entry(&self) -> Option<u32> {
        let entry = self.entry.load(Ordering::Acquire);
        (entry != NONE).then_some(entry)
    }

    /// Locks the level's begin, if it has none yet.
    pub(super) fn begin(&self) -> Option<MutexGuard<'_, ()>> {
        if self.entry().is_some() {
            return None;
        }
        let guard = self.beginning.lock();
        self.entry().is_none().then_some(guard)
    }

    /// Lets walks begin at a node that was written.
    pub(super) fn begin_at(&self, node: u32, _guard: &MutexGuard<'_, ()>) {
        self.entry.store(node, Ordering::Release);
    }

    /// Locks the level's begin.
    pub(super) fn beginning(&self) -> MutexGuard<'_, ()> {
        self.beginning.lock()
    }

    /// Lets walks begin nowhere, for there are no nodes left.
    pub(super) fn begin_nowhere(&self, _guard: &MutexGuard<'_, ()>) {
        self.entry.store(NONE, Ordering::Release);
    }

    /// Locks the edges of a node.
    pub(super) fn lock(&self, node: u32) -> MutexGuard<'_, ()> {
        self.stripes[node as usize % self.stripes.len()].lock()
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.bytes() + self.stripes.len() * size_of::<Mutex<()>>()
    }
}
