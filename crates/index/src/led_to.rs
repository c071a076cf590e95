use crate::sync::atomic::{AtomicU16, Ordering};

/// How many edges lead to a node of a graph.
///
/// A node that nothing leads to is not found, not even by its own vector, whatever the effort. Nodes give up edges one by one for
/// better ones and know nothing of each other, so that the last one to a node would go some day. So the last [`KEPT`]
/// to each stay. What they cost is their slots, and no more than one node in fifty has so few.
///
/// After 65,535 it begins anew, which does no harm: then some edges stay for a while that could go.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct LedTo(AtomicU16);

/// Edges to a node that are not given up for better ones.
pub(crate) const KEPT: u16 = 4;

impl LedTo {
    pub(crate) fn none() -> Self {
        LedTo(AtomicU16::new(0))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more.
    #[inline(always)]
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one less, that goes whether others lead there or not.
    #[inline(always)]
    pub(crate) fn uncount(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts one less and returns true, if more than [`KEPT`] are left without it or as many: then it can go.
    #[inline(always)]
    pub(crate) fn let_go(&self) -> bool {
        let fewer = |count: u16| (count > KEPT).then(|| count - 1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
            .is_ok()
    }
}
