use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row and how far it is from the query.
#[derive(Debug, Clone, Copy)]
pub struct Neighbor {
    /// The row.
    pub row: u64,
    /// Distance as defined by [`crate::Space`]; smaller is nearer.
    pub distance: f32,
}

/// By distance, then by row.
impl Ord for Neighbor {
    fn cmp(&self, other: &Self) -> Ordering {
        self.distance
            .total_cmp(&other.distance)
            .then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Neighbor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Neighbor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Neighbor {}

/// Collects the `k` nearest of any number of neighbours. The result does not depend on the order of arrival.
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    /// The farthest on top.
    heap: BinaryHeap<Neighbor>,
}

impl TopK {
    /// An empty collector; `k` of 0 collects nothing. Room is made as neighbours arrive, not for `k` at once.
    #[must_use]
    pub fn new(k: usize) -> Self {
        TopK {
            k,
            heap: BinaryHeap::with_capacity(k.min(1024)),
        }
    }

    /// Neighbours held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How many more it holds before it is full.
    #[must_use]
    pub(crate) fn room(&self) -> usize {
        self.k - self.heap.len()
    }

    /// The largest distance that can still enter: that of the farthest held once there are `k`, `+inf` before.
    /// At exactly this distance only a smaller row enters.
    #[inline]
    #[must_use]
    pub fn bound(&self) -> f32 {
        if self.heap.len() < self.k {
            return f32::INFINITY;
        }
        self.heap
            .peek()
            .map_or(f32::NEG_INFINITY, |farthest| farthest.distance)
    }

    /// Offers a neighbour, and says whether it was taken.
    #[inline]
    pub fn push(&mut self, neighbor: Neighbor) -> bool {
        if self.heap.len() < self.k {
            self.heap.push(neighbor);
            return true;
        }
        match self.heap.peek_mut() {
            Some(mut farthest) if neighbor < *farthest => {
                *farthest = neighbor;
                true
            }
            _ => false,
        }
    }

    /// The neighbours, nearest first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<Neighbor> {
        self.heap.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zero_takes_nothing() {
        let mut top = TopK::new(0);
        assert!(!top.push(Neighbor {
            row: 1,
            distance: f32::NEG_INFINITY
        }));
        assert_eq!(
            (top.len(), top.is_empty(), top.bound()),
            (0, true, f32::NEG_INFINITY)
        );
    }

    proptest! {
        #[test]
        fn keeps_the_first_k_of_the_sorted_list(
            pairs in prop::collection::vec((0u64..50, -3i8..3), 0..60),
            k in 0usize..20,
        ) {
            let mut sorted: Vec<Neighbor> =
                pairs.iter().map(|(row, d)| Neighbor { row: *row, distance: f32::from(*d) }).collect();
            let mut top = TopK::new(k);
            for neighbor in &sorted {
                let bound = top.bound();
                let taken = top.push(*neighbor);
                prop_assert!(!taken || neighbor.distance <= bound);
                prop_assert!(taken || neighbor.distance >= bound);
            }
            sorted.sort_unstable();
            sorted.truncate(k);
            prop_assert_eq!(top.into_sorted(), sorted);
        }
    }
}
