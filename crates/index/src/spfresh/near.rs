use std::cmp::Ordering;

/// A vector that a search came by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Squared, by its code.
    pub(super) distance: f32,
    pub(super) row: u64,
    /// How far from that the distance to the vector itself may be.
    pub(super) error: f32,
}

impl Found {
    pub(super) fn lower(&self) -> f32 {
        self.distance - self.error
    }

    pub(super) fn upper(&self) -> f32 {
        self.distance + self.error
    }
}

/// By distance, then by row.
impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        self.distance
            .total_cmp(&other.distance)
            .then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Found {}

/// The nearest of those that a search came by, each row once. It holds up to twice as many as are wanted, and sorts them
/// when it is full: less work for each than a heap.
#[derive(Debug, Default)]
pub(super) struct Near {
    found: Vec<Found>,
    most: usize,
    bound: f32,
}

impl Near {
    /// Begins anew, for the nearest `most`.
    pub(super) fn clear(&mut self, most: usize) {
        self.found.clear();
        self.most = most.max(1);
        self.bound = f32::INFINITY;
    }

    /// The largest distance that can still be among the nearest, as far as that is known.
    #[inline(always)]
    pub(super) fn bound(&self) -> f32 {
        self.bound
    }

    /// How many are wanted.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    #[inline(always)]
    pub(super) fn push(&mut self, found: Found) {
        if found.distance <= self.bound {
            self.found.push(found);
            if self.found.len() >= self.most.saturating_mul(2) {
                self.sorted();
            }
        }
    }

    /// The nearest in order, ties by row.
    pub(super) fn sorted(&mut self) -> &[Found] {
        self.found.sort_unstable();
        // The same row has the same eight-bit code wherever it is, and so the same distance; of estimates each row comes once.
        self.found.dedup_by_key(|found| found.row);
        if self.found.len() >= self.most {
            self.found.truncate(self.most);
            self.bound = self.found[self.most - 1].distance;
        }
        &self.found
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.found.capacity() * size_of::<Found>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_are_kept_once_each() {
        let mut near = Near::default();
        near.clear(3);
        for (row, distance) in [
            (5, 5.0),
            (1, 1.0),
            (4, 4.0),
            (1, 1.0),
            (2, 2.0),
            (9, 9.0),
            (0, 2.0),
        ] {
            near.push(Found {
                distance,
                row,
                error: 0.0,
            });
        }
        let rows: Vec<u64> = near.sorted().iter().map(|found| found.row).collect();
        assert_eq!((rows, near.bound()), (vec![1, 0, 2], 2.0));
        near.clear(0);
        assert!(near.sorted().is_empty());
    }
}
