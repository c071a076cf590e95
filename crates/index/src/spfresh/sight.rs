use std::ops::AddAssign;

/// How many times as many postings are read in the next round, at most.
const MORE: f64 = 8.0;

/// By how many times visible rows may be scarcer around the query than everywhere until no more of them are asked for because of that.
const SCARCE: f64 = 4.0;

/// What a search has seen of the rows that it may find.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// Vectors of the postings that were read.
    pub(super) read: u64,
    /// Those of them that were near enough for it to matter whether they are visible.
    pub(super) tested: u64,
    /// Those of them that are.
    pub(super) visible: u64,
}

impl AddAssign for Sight {
    fn add_assign(&mut self, other: Sight) {
        self.read += other.read;
        self.tested += other.tested;
        self.visible += other.visible;
    }
}

impl Sight {
    /// How many times as many postings are to be read, if around the query fewer rows are visible than everywhere: `k` may have been
    /// found all the same, strays among what does not pass, while nearer ones are in the postings behind. `share` of all
    /// rows pass, and `first` vectors were in the postings that the effort is for.
    ///
    /// As many visible ones are to be read as the root of their share of these, for the nearest of few lie farther apart; and up to
    /// twice as many where they are scarce, for the way to them is no guide there.
    pub(super) fn times(&self, share: f64, first: u64) -> Option<f64> {
        let share = share.min(1.0);
        let around = self.visible.max(1) as f64 / self.tested.max(1) as f64;
        let scarce = (share / around).clamp(1.0, SCARCE);
        let times = first as f64 * (share * scarce).sqrt() / (self.read as f64 * around);
        // Sizes of postings differ, and chance.
        (times > 1.25).then(|| times.clamp(1.5, MORE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(read: u64, tested: u64, visible: u64, share: f64) -> Option<f64> {
        let sight = Sight {
            read,
            tested,
            visible,
        };
        sight.times(share, 1_600)
    }

    #[test]
    fn more_is_read_until_enough_of_it_is_visible() {
        assert_eq!(times(1_600, 300, 300, 1.0), None, "all pass");
        assert_eq!(
            times(1_600, 300, 200, 0.6),
            None,
            "about as many as everywhere"
        );
        assert_eq!(times(1_600, 300, 75, 0.25), Some(2.0));
        assert_eq!(times(3_200, 300, 75, 0.25), None);
        assert_eq!(times(1_600, 320, 20, 0.25), Some(MORE), "a quarter of that");
        assert_eq!(times(25_600, 320, 20, 0.25), None);
        assert_eq!(times(1_600, 0, 0, 1.0), None, "nothing is known");
        assert_eq!(times(1_600, 300, 0, 0.5), Some(MORE), "none");
        assert_eq!(times(0, 0, 0, 0.0), None, "nothing to read");
    }
}
