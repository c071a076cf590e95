use crate::sync::atomic::{AtomicU16, Ordering};

/// How many edges lead to a node of a graph.
///
/// A node that nothing leads to is not found, not even by its own vector, whatever the effort. Nodes give up edges one by one for
/// better ones and know nothing of each other, so that the last one to a node would go some day. So the last [`KEPT`]
/// to a node stay, or are handed to others that lead there in their place.
///
/// It ends at 65,535: a node that so many ever led to at a time counts as led to by them for good.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct LedTo(AtomicU16);

/// Edges to a node that are not given up for better ones alone.
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
        self.change(|count| count.checked_add(1));
    }

    /// Counts one less, which goes whether others lead there or not.
    #[inline(always)]
    pub(crate) fn uncount(&self) {
        self.spare(0);
    }

    /// Counts one less, and returns true, if others lead there, more than [`KEPT`] with it: then it can go.
    #[inline(always)]
    pub(crate) fn let_go(&self) -> bool {
        self.spare(KEPT)
    }

    /// Counts one less, and returns true, if it is not the last.
    #[inline(always)]
    pub(crate) fn is_spared(&self) -> bool {
        self.spare(1)
    }

    #[inline(always)]
    fn spare(&self, least: u16) -> bool {
        self.change(|count| match count {
            u16::MAX => Some(count),
            count => (count > least).then(|| count - 1),
        })
    }

    #[inline(always)]
    fn change(&self, to: impl FnMut(u16) -> Option<u16>) -> bool {
        let order = Ordering::Relaxed;
        self.0.fetch_update(order, order, to).is_ok()
    }
}

/// Inserts 4,000 vectors, of which many are as far from each other, by four threads.
#[cfg(test)]
pub(crate) fn insert_by_threads(
    dim: usize,
    insert: impl Fn(u64, &[f32]) -> crate::error::Result<()> + Sync,
) -> crate::error::Result<()> {
    let thread = &|first: u64| {
        let mut next = crate::mix::drawn(first + 1);
        (first..4_000).step_by(4).try_for_each(|row| {
            let vector: Vec<f32> = (0..dim).map(|_| next().round()).collect();
            insert(row, &vector)
        })
    };
    std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|first| scope.spawn(move || thread(first)));
        let mut threads = threads.into_iter();
        threads.try_for_each(|of| of.join().expect("no panic"))
    })
}
