//! Answers of several searches as one.
//!
//! Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) looks at ranks alone, so that scores need not be
//! comparable. The weighted sum looks at scores, each list's brought to 0..1 by its least and greatest.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::hit::Hit;

/// What is added to every rank: the larger, the less the first ranks stand out.
const RANK_OFFSET: f32 = 60.0;

/// How answers of several searches become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fusion {
    /// By the sum of 1 / (60 + rank), with ranks from 1.
    #[default]
    ReciprocalRank,
    /// By the weighted sum of scores, each search's normalised to 0..1.
    Weighted,
}

impl Fusion {
    /// Reads a name: `rrf` or `weighted`.
    ///
    /// # Errors
    /// For any other.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "rrf" => Ok(Fusion::ReciprocalRank),
            "weighted" => Ok(Fusion::Weighted),
            other => Err(Error::BadValue {
                field: "fusion",
                got: other.to_owned(),
                expected: "rrf or weighted",
            }),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Fusion::ReciprocalRank => "rrf",
            Fusion::Weighted => "weighted",
        }
    }
}

/// What one of the searches gave, and what it counts.
#[derive(Debug, Clone)]
pub(crate) struct Ranking {
    pub weight: f32,
    /// Best first.
    pub hits: Vec<Hit>,
}

impl Ranking {
    /// What each hit comes to in an answer that is fused.
    pub fn contributions(&self, fusion: Fusion) -> Vec<f32> {
        let scores = self.hits.iter().map(|hit| hit.score);
        let (least, most) = scores.fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), at| {
            (least.min(at), most.max(at))
        });
        let ranked = (1u16..).zip(&self.hits);
        let part = |(rank, hit): (u16, &Hit)| match fusion {
            Fusion::ReciprocalRank => 1.0 / (RANK_OFFSET + f32::from(rank)),
            // All alike are all the best.
            Fusion::Weighted if most <= least => 1.0,
            Fusion::Weighted => (hit.score - least) / (most - least),
        };
        ranked.map(|ranked| self.weight * part(ranked)).collect()
    }
}

/// What the searches gave together, best first. A distance is kept from the first that has one.
pub(crate) fn fuse(fusion: Fusion, rankings: &[Ranking]) -> Vec<Hit> {
    let mut fused: FxHashMap<u64, Hit> = FxHashMap::default();
    for ranking in rankings {
        for (hit, contribution) in ranking.hits.iter().zip(ranking.contributions(fusion)) {
            let entry = fused.entry(hit.row).or_insert(Hit {
                score: 0.0,
                distance: None,
                ..*hit
            });
            entry.score += contribution;
            entry.distance = entry.distance.or(hit.distance);
        }
    }
    let mut all: Vec<Hit> = fused.into_values().collect();
    for hit in &mut all {
        hit.key = -hit.score;
    }
    all.sort_unstable_by(Hit::order);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(weight: f32, rows: &[(u64, f32)]) -> Ranking {
        let hit = |(row, score): &(u64, f32)| Hit {
            row: *row,
            key: -score,
            score: *score,
            distance: None,
        };
        Ranking {
            weight,
            hits: rows.iter().map(hit).collect(),
        }
    }

    fn check(fusion: Fusion, rankings: &[Ranking], expected: &[(u64, f32)]) {
        let fused = fuse(fusion, rankings);
        let got: Vec<(u64, f32)> = fused.iter().map(|hit| (hit.row, hit.score)).collect();
        assert_eq!(got.len(), expected.len(), "{got:?}");
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!(got.0, expected.0);
            assert!(
                (got.1 - expected.1).abs() < 1e-6,
                "{got:?}, not {expected:?}"
            );
        }
    }

    #[test]
    fn ranks_add_up() {
        let one = || ranking(1.0, &[(5, 0.9), (3, 0.8), (8, 0.7)]);
        let two = || ranking(1.0, &[(3, 12.0), (9, 11.0)]);
        check(
            Fusion::ReciprocalRank,
            &[one(), two()],
            &[
                (3, 1.0 / 62.0 + 1.0 / 61.0),
                (5, 1.0 / 61.0),
                (9, 1.0 / 62.0),
                (8, 1.0 / 63.0),
            ],
        );
        check(Fusion::ReciprocalRank, &[], &[]);
    }

    #[test]
    fn weighted_scores_are_brought_to_one_measure() {
        let one = ranking(0.75, &[(5, 0.9), (3, 0.7), (8, 0.5)]);
        let two = ranking(0.25, &[(3, 12.0), (9, 12.0)]);
        let expected = [(5, 0.75), (3, 0.375 + 0.25), (9, 0.25), (8, 0.0)];
        check(Fusion::Weighted, &[one, two], &expected);
    }
}
