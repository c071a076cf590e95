//! What a search of the rows that pass a filter takes, one way or the other.

/// Nanoseconds that one thread takes for the rows that pass a filter, by a [`crate::QuantizedGraph`].
///
/// Constants of one machine (x86-64 with AVX-512), of which only the ratio of the two matters. Measured on 60,000 images
/// of 784 dimensions and 117,000 texts of 384, with 0.1 to 100 % of the rows passing at random, by efforts of 10 to 64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterCost {
    /// Of [`crate::QuantizedGraph::scan_rows`].
    pub scan: f64,
    /// Of [`crate::QuantizedGraph::search_filtered`].
    pub walk: f64,
}

/// Turning the query, and beginning.
const BEGIN: f64 = 4_000.0;
/// Going down to the lowest level.
const DESCEND: f64 = 6_000.0;
/// Of a code: to find and begin it, and for each of its dimensions.
const ROW: f64 = 15.0;
const ELEMENT: f64 = 0.06;
/// Of a dimension of a whole vector.
const WHOLE_ELEMENT: f64 = 0.15;
/// Of a dead row among those that a scan looks at.
const DEAD: f64 = 3.0;
/// Of a node that the walk holds, and for each of its dimensions.
const NODE: f64 = 400.0;
const NODE_ELEMENT: f64 = 1.0;
/// Of such a node, for each node that is looked at until one passes.
const LOOK: f64 = 250.0;
/// Of a node that the walk holds, relative to the others, where it does not begin where the rows are.
const ELSEWHERE: f64 = 1.8;
/// By codes in clusters ([`crate::CodedRun`]): turning the query for them and for the graph, and beginning.
const CODED: f64 = 12_000.0;
/// Of a centroid, and for each of its dimensions.
const CENTROID: f64 = 5.0;
const CENTROID_ELEMENT: f64 = 0.02;
/// Of a one-bit code, and for each of its dimensions.
const CODE: f64 = 1.0;
const CODE_ELEMENT: f64 = 0.0065;
/// Of a row that is asked for, and for each of its dimensions: some are compared by eight bits, and few by their vectors.
const ASKED: f64 = 300.0;
const ASKED_ELEMENT: f64 = 0.6;
/// What a walk takes beside what it is reckoned at here, as a part of that, if next to nothing passes, and in proportion to what does
/// not: for scans that is no matter, which are exact.
const IN_THE_WAY: f64 = 0.6;
/// How much longer than such a walk a scan may take: where the nearest of the rows lie apart from each other, a walk misses
/// some, and a scan none.
const SURE: f64 = 2.0;

fn scan(passing: f64, dim: f64) -> f64 {
    BEGIN + passing * (ROW + ELEMENT * dim)
}

impl FilterCost {
    /// What it takes to find the nearest of `passing` rows of a graph of `rows` vectors of `dim` elements, where a walk
    /// holds `ef`, or `k` if that is more.
    #[must_use]
    pub fn new((passing, rows): (u64, u64), dim: usize, (k, ef): (usize, usize)) -> Self {
        let (passing, rows, dim) = (passing as f64, rows as f64, dim as f64);
        let one_in = (rows / passing.max(1.0)).max(1.0);
        // No more than all that passes is held, nor are more looked at than there are.
        let held = (ef.max(k) as f64).min(passing);
        let looks = (held * one_in).min(rows);
        FilterCost {
            scan: scan(passing, dim),
            walk: BEGIN + DESCEND + held * (NODE + NODE_ELEMENT * dim) + looks * LOOK,
        }
    }

    /// What it takes to find the nearest of `passing` rows that lie elsewhere than around the query, by a walk that holds
    /// `ef`. The walk counts more than it takes, by what it misses.
    pub(crate) fn elsewhere(passing: u64, dim: usize, ef: usize) -> Self {
        let (passing, dim) = (passing as f64, dim as f64);
        let node = ELSEWHERE * (NODE + NODE_ELEMENT * dim);
        FilterCost {
            scan: scan(passing, dim),
            walk: SURE * (ef as f64) * node,
        }
    }

    /// The same, where so many dead rows are among those that would be scanned.
    #[must_use]
    pub fn past_dead(mut self, dead: u64) -> Self {
        self.scan += dead as f64 * DEAD;
        self
    }

    /// As [`FilterCost::elsewhere`] where whole vectors are compared.
    pub(crate) fn elsewhere_whole(passing: u64, dim: usize, ef: usize) -> Self {
        let more = (WHOLE_ELEMENT - ELEMENT) * passing as f64 * dim as f64;
        let FilterCost { scan, walk } = Self::elsewhere(passing, dim, ef);
        FilterCost {
            scan: scan + more,
            walk,
        }
    }

    /// What it takes to find the `k` nearest by so many codes, and the centroids of all clusters.
    pub(crate) fn coded((codes, clusters): (f64, usize), dim: usize, k: usize) -> f64 {
        let dim = dim as f64;
        CODED
            + clusters as f64 * (CENTROID + CENTROID_ELEMENT * dim)
            + codes * (CODE + CODE_ELEMENT * dim)
            + k as f64 * (ASKED + ASKED_ELEMENT * dim)
    }

    /// Whether it takes longer one way and the other than a search by codes ([`crate::CodedRun::cost`]), where `passing` of
    /// `rows` pass.
    #[must_use]
    pub fn is_more_than(&self, coded: f64, (passing, rows): (u64, u64)) -> bool {
        let others = 1.0 - (passing as f64 / rows.max(1) as f64).min(1.0);
        coded < self.scan.min(self.walk * (1.0 + IN_THE_WAY * others))
    }

    /// Nodes that a walk may look at for the time of the scan.
    pub(crate) fn looks(&self) -> usize {
        (self.scan / LOOK) as usize
    }

    /// Whether a scan is the better way: it takes no longer, and is exact.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        self.scan <= self.walk
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_rows_are_scanned_and_many_are_walked() {
        for (passing, rows, dim, ef, is_scan) in [
            (0, 0, 96, 10, true),
            (1, 100_000_000, 1536, 10, true),
            (60, 60_000, 784, 16, true),
            (600, 60_000, 784, 16, true),
            (6_000, 60_000, 784, 16, false),
            (30_000, 60_000, 784, 16, false),
            (2_200, 117_000, 384, 20, true),
            (11_500, 117_000, 384, 20, false),
            (10_000, 1_000_000, 384, 50, true),
            (100_000, 1_000_000, 384, 50, false),
            // A walk that holds them all looks at each, too.
            (10_000, 1_000_000, 384, 10_000, true),
        ] {
            let cost = FilterCost::new((passing, rows), dim, (10, ef));
            assert_eq!(
                cost.is_scan(),
                is_scan,
                "{passing} of {rows}, {dim} dimensions, effort {ef}: {cost:?}"
            );
        }
    }

    #[test]
    fn what_lies_elsewhere_is_scanned_if_it_is_little() {
        for (passing, dim, ef, is_scan) in [
            (1_000, 784, 60, true),
            (6_000, 784, 60, false),
            (18_000, 784, 300, true),
            (30_000, 784, 300, false),
            (u64::MAX, 784, 300, false),
        ] {
            let cost = FilterCost::elsewhere(passing, dim, ef);
            assert_eq!(
                cost.is_scan(),
                is_scan,
                "{passing} of effort {ef}: {cost:?}"
            );
        }
    }

    /// As they were measured: clusters are few that lie close, and many where all lie about as far from each other.
    #[test]
    fn codes_are_read_where_few_clusters_or_few_rows_pass() {
        for (passing, rows, dim, ef, (codes, clusters), is_coded) in [
            (600, 60_000, 784, 10, (157.0, 13), true),
            (6_000, 60_000, 784, 10, (322.0, 75), true),
            (30_000, 60_000, 784, 10, (792.0, 177), true),
            (54_000, 60_000, 784, 10, (1_100.0, 251), false),
            (54_000, 60_000, 784, 32, (3_813.0, 251), true),
            (11_666, 116_659, 384, 10, (3_683.0, 112), true),
            (11_666, 116_659, 384, 64, (7_191.0, 112), true),
            (58_000, 116_659, 384, 16, (10_475.0, 250), false),
            (105_000, 116_659, 384, 64, (100_685.0, 348), false),
        ] {
            let coded = FilterCost::coded((codes, clusters), dim, 10);
            let cost = FilterCost::new((passing, rows), dim, (10, ef));
            assert_eq!(
                cost.is_more_than(coded, (passing, rows)),
                is_coded,
                "{passing} of {rows}, {dim} dimensions, effort {ef}: {cost:?}, {coded}"
            );
        }
    }

    proptest! {
        #[test]
        fn costs_are_numbers_that_grow_with_the_work(
            passing in 0u64..1 << 40, rows in 0u64..1 << 40,
            dim in 1usize..65_536, k in 0usize..1 << 20, ef in 0usize..1 << 20,
        ) {
            let passing = passing.min(rows);
            let cost = FilterCost::new((passing, rows), dim, (k, ef));
            prop_assert!(cost.scan > 0.0 && cost.scan.is_finite());
            prop_assert!(cost.walk > 0.0 && cost.walk.is_finite());
            prop_assert!(FilterCost::new((passing, rows), dim, (k, ef + 1)).walk >= cost.walk);
            prop_assert!(FilterCost::new((passing, rows), dim, (k + 1, ef)).walk >= cost.walk);
            prop_assert!(FilterCost::new((passing, rows), dim + 1, (k, ef)).walk >= cost.walk);
            prop_assert!(FilterCost::new((passing + 1, rows + 1), dim, (k, ef)).scan > cost.scan);
        }
    }
}
