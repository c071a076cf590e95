use super::near::Found;

/// Vectors that are kept before it is seen which of them still have a chance.
const FIRST: usize = 1_024;
/// Upper bounds that are kept beyond twice as many as count.
const SPARE: usize = 32;

/// A vector whose estimate leaves it a chance, and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Likely<P> {
    pub(super) place: P,
    pub(super) row: u64,
    low: f32,
    upper: f32,
}

impl<P> Likely<P> {
    /// By its estimate alone. Whatever it is compared with next is an exact distance, which leaves no room as bounds do: so
    /// twice as much counts as its error.
    pub(super) fn found(&self) -> Found {
        Found {
            distance: (self.low + self.upper) / 2.0,
            row: self.row,
            error: self.upper - self.low,
        }
    }
}

/// The vectors that can be among the nearest, by the bounds which their one-bit codes put to their distances: those whose
/// lower bound is not above the `k`-th least of all rows' upper bounds. That is known once all estimates are, so what takes
/// more than an estimate, such as a page of the disk, is asked for few, and for all of them at once.
///
/// The bounds are those of [RaBitQ](https://arxiv.org/abs/2405.12497), as far from the estimate as its standard error
/// times some factor. They do not always hold: the upper ones of those that are least are too low more often than not, so
/// `k` should be some more than are wanted.
#[derive(Debug)]
pub(super) struct Shortlist<P> {
    k: usize,
    bound: f32,
    likely: Vec<Likely<P>>,
    /// How many of them there may be before those are dropped that lost their chance.
    room: usize,
    /// Rows and upper bounds, among them the least ones of `k` rows; a row may be there more than once.
    uppers: Vec<(u64, f32)>,
}

impl<P> Shortlist<P> {
    pub(super) fn new(k: usize) -> Self {
        Shortlist {
            k: k.max(1),
            bound: f32::INFINITY,
            likely: Vec::with_capacity(256),
            room: FIRST,
            uppers: Vec::new(),
        }
    }

    /// What a lower bound must not be above, as far as that is known.
    #[inline(always)]
    pub(super) fn bound(&self) -> f32 {
        self.bound
    }

    /// Adds a vector, unless it has no chance.
    #[inline]
    pub(super) fn push(&mut self, place: P, row: u64, (low, upper): (f32, f32)) {
        if low > self.bound {
            return;
        }
        self.likely.push(Likely {
            place,
            row,
            low,
            upper,
        });
        if upper < self.bound {
            self.uppers.push((row, upper));
            if self.uppers.len() >= self.k.saturating_mul(2).saturating_add(SPARE) {
                self.tighten();
            }
        }
        if self.likely.len() >= self.room {
            self.drop_hopeless();
            self.room = FIRST.max(2 * self.likely.len());
        }
    }

    /// Those that have a chance still, in the order in which they came.
    pub(super) fn end(mut self) -> Vec<Likely<P>> {
        self.drop_hopeless();
        self.likely
    }

    fn drop_hopeless(&mut self) {
        self.tighten();
        let bound = self.bound;
        self.likely.retain(|likely| likely.low <= bound);
    }

    /// Brings the bound to the `k`-th least of the upper bounds, each row counted once.
    fn tighten(&mut self) {
        self.uppers
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        self.uppers.dedup_by_key(|(row, _)| *row);
        if self.uppers.len() < self.k {
            return;
        }
        let by_upper = |a: &(u64, f32), b: &(u64, f32)| a.1.total_cmp(&b.1);
        let (_, (_, upper), _) = self.uppers.select_nth_unstable_by(self.k - 1, by_upper);
        self.bound = *upper;
        self.uppers.truncate(self.k);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the vectors come, it keeps those that the definition says.
        #[test]
        fn those_that_can_be_among_the_nearest_are_kept(
            rows in prop::collection::vec((0u64..900, 0u16..2_000, 0u16..300), 0..3_000),
            k in 0usize..60,
        ) {
            let mut shortlist = Shortlist::new(k);
            let mut least: HashMap<u64, u16> = HashMap::new();
            for (place, (row, low, width)) in rows.iter().enumerate() {
                let upper = low + width;
                shortlist.push(place, *row, (f32::from(*low), f32::from(upper)));
                least.entry(*row).and_modify(|known| *known = upper.min(*known)).or_insert(upper);
            }
            let mut uppers: Vec<u16> = least.into_values().collect();
            uppers.sort_unstable();
            let bound = uppers.get(k.max(1) - 1).copied().unwrap_or(u16::MAX);
            let expected = rows.iter().enumerate().filter(|(_, (_, low, _))| *low <= bound);
            let expected: Vec<usize> = expected.map(|(place, _)| place).collect();
            let kept: Vec<usize> = shortlist.end().iter().map(|likely| likely.place).collect();
            prop_assert_eq!(kept, expected);
        }
    }

    #[test]
    fn bounds_that_are_no_numbers_do_not_count() {
        let mut shortlist = Shortlist::new(2);
        for (row, upper) in [f32::NAN, f32::INFINITY, 7.0, f32::NAN]
            .into_iter()
            .enumerate()
        {
            shortlist.push(row, row as u64, (6.0, upper));
        }
        shortlist.push(9, 9, (50.0, 51.0));
        shortlist.push(10, 10, (52.0, 53.0));
        let kept: Vec<usize> = shortlist.end().iter().map(|likely| likely.place).collect();
        assert_eq!(kept, [0, 1, 2, 3, 9]);
    }
}
