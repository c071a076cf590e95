//! Range searches that go by an index.
//!
//! A walk ends where nothing is nearer than its `ef` best, so that it finds the nearest; of all rows within a distance it
//! may pass some by, and an answer shorter than `k` does not show it. Who asks for rows within a distance and gets fewer
//! than `k` is therefore walked for again with twice the effort, for as long as that finds more. One who chose `ef` gets
//! that walk alone.

use std::slice;

use longbow_index::{Neighbor, Query};

use crate::column_index::Reached;
use crate::error::Result;
use crate::search::{Found, MAX_EF, Searcher};

/// Of so many rows in the index a walk has an effort of one at most: a wider one takes as long as a scan.
const SCAN_SHARE: usize = 4;

impl Searcher<'_> {
    /// Walks on where fewer rows than asked for are within the distance.
    pub fn widen(
        &self,
        index: &Reached,
        queries: &[Query],
        all: &mut [Found],
        answers: &mut [Vec<Neighbor>],
    ) -> Result<()> {
        let (Some(max), true) = (self.max_distance, self.may_widen) else {
            return Ok(());
        };
        for ((query, found), answer) in queries.iter().zip(all).zip(answers) {
            // Where a walk finds too few of whatever distance, a scan follows.
            if answer.len() >= self.wanted() {
                self.widen_one((index, max), query, found, answer)?;
            }
        }
        Ok(())
    }

    fn widen_one(
        &self,
        (index, max): (&Reached, f32),
        query: &Query,
        found: &mut Found,
        answer: &mut Vec<Neighbor>,
    ) -> Result<()> {
        let within = |rows: &[Neighbor]| {
            let space = self.column.space;
            let distance = |of: &Neighbor| space.to_distance_and_score(of.distance).0;
            rows.iter().filter(|of| distance(of) <= max).count()
        };
        let most = MAX_EF.min(index.graph.len() / SCAN_SHARE);
        let mut known = within(answer);
        while let Some(ef) = found.ef.filter(|ef| 2 * ef <= most)
            && known < self.wanted()
            && !found.is_partial
        {
            self.limits.check()?;
            let mut wider = self.blank();
            let query = slice::from_ref(query);
            let walked = self.walk_by(2 * ef, index, query, slice::from_mut(&mut wider))?;
            found.add(&wider);
            found.ef = wider.ef;
            let before = known;
            for walked in walked {
                let now = within(&walked);
                // One that ran out of its budget may have found fewer.
                if now >= known {
                    (known, *answer) = (now, walked);
                }
            }
            if known == before {
                break;
            }
        }
        Ok(())
    }
}
