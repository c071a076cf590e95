//! What is asked of the rows that pass a filter.

use crate::vector_index::IsOver;

/// What is asked of the rows that pass a filter.
#[derive(Clone, Copy)]
pub struct Filtered<'a> {
    /// Neighbours asked for.
    pub k: usize,
    /// Rows that the walk holds; below `k` it counts as `k`.
    pub ef: usize,
    /// Whether a row passes. A walk asks it of many rows, so it should take no more than a look into a bitmap.
    pub passes: &'a (dyn Fn(u64) -> bool + Sync),
    /// What is known of those that pass.
    pub entries: Entries<'a>,
    /// Asked from time to time whether the walk is to end with what it has found; without it, it never is.
    pub is_over: Option<IsOver<'a>>,
}

/// What is known of the rows that pass a filter, for a walk that finds few of them around the query.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    /// Some of them, at random: where a walk also begins, so that it finds those that pass though none does around the
    /// query. It begins at the nearest, so that the more there are, up to some thousands, the less it goes astray. Those
    /// that are not in the graph do not count.
    pub rows: &'a [u64],
    /// How many pass, or more, if that is known. If a walk turns out to be the worse way to find their nearest, it leaves them to a
    /// scan; if most pass, it goes through the others.
    pub passing: Option<u64>,
    /// Nanoseconds that a search by codes of their own takes, if they have such ([`crate::CodedRun::cost`]): then a walk leaves them to
    /// that, too, if it turns out to be the worse way.
    pub coded: Option<f64>,
}

/// How seldom as many nodes in a row do not pass, if that has nothing to do with the query, as are taken for a sign that
/// it has.
const CHANCE: f64 = 1e-3;

impl Entries<'_> {
    /// The share of so many rows that passes, if that is known.
    pub(crate) fn share(&self, rows: usize) -> Option<f64> {
        let passing = self.passing? as f64;
        Some((passing / rows.max(1) as f64).min(1.0))
    }

    /// How many of so many rows may not pass and be nearer to a query than all that do, by chance. If there are more, what
    /// passes lies elsewhere than around the query: for that the graph is what it is for queries that are unlike
    /// all rows, and the effort of others finds too little.
    pub(crate) fn nearer_by_chance(&self, rows: usize) -> usize {
        match self.share(rows) {
            Some(share) if share > 0.0 => (CHANCE.ln() / (1.0 - share).ln()).ceil() as usize,
            _ => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_pass_the_fewer_others_are_nearer_by_chance() {
        for (passing, nearer) in [
            (Some(1_000), 0),
            (Some(2_000), 0),
            (Some(900), 3),
            (Some(500), 10),
            (Some(10), 688),
            (Some(0), usize::MAX),
            (None, usize::MAX),
        ] {
            let entries = Entries {
                rows: &[],
                passing,
                coded: None,
            };
            assert_eq!(entries.nearer_by_chance(1_000), nearer, "{passing:?}");
        }
        let entries = Entries {
            rows: &[],
            passing: Some(1),
            coded: None,
        };
        assert_eq!(entries.share(0), Some(1.0));
    }
}
