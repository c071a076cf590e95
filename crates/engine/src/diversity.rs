//! Answers of rows that are unlike each other.

use std::borrow::Cow;

use longbow_index::Query;
use longbow_kernels::Kernels;

use crate::error::Result;
use crate::hit::Hit;
use crate::schema::VectorColumn;
use crate::vectors::Vectors;
use crate::view::View;

/// Most hits that are chosen from: each is compared with each that is chosen.
pub(crate) const MOST_CANDIDATES: usize = 1_024;

/// A hit that may be chosen.
struct Candidate<'a> {
    hit: Hit,
    /// As the kernels read it; none if the row has none.
    vector: Option<Cow<'a, [u8]>>,
    /// The score of the hit, from 0 for the worst to 1 for the best.
    relevance: f32,
    /// The greatest likeness to one that was chosen, on the same measure.
    likeness: f32,
}

/// Chooses `k` of the hits by maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): one after the other, that
/// for which `lambda` × relevance − (1 − `lambda`) × its likeness to the most alike of those chosen before is greatest.
/// Likeness is the score that the metric gives two rows. Both are brought to one measure by the scores of the hits.
///
/// # Errors
/// If a batch cannot be read.
pub(crate) fn choose(
    hits: &[Hit],
    lambda: f32,
    k: usize,
    (view, column): (&View, &VectorColumn),
) -> Result<Vec<Hit>> {
    let scores = || hits.iter().map(|hit| hit.score);
    let least = scores().fold(f32::INFINITY, f32::min);
    let range = (scores().fold(f32::NEG_INFINITY, f32::max) - least).max(f32::MIN_POSITIVE);
    let mut left: Vec<Candidate<'_>> = Vec::with_capacity(hits.len());
    for hit in hits {
        left.push(Candidate {
            hit: *hit,
            vector: match view.locate(hit.row) {
                Some((batch, at)) => Vectors::one(batch, at, column)?,
                None => None,
            },
            relevance: (hit.score - least) / range,
            likeness: f32::NEG_INFINITY,
        });
    }
    let mut floats = vec![0.0; column.space.dim];
    let mut chosen = Vec::with_capacity(k.min(left.len()));
    while chosen.len() < k && !left.is_empty() {
        let first = chosen.is_empty();
        let worth = |one: &Candidate<'_>| match first {
            true => one.relevance,
            false => lambda * one.relevance - (1.0 - lambda) * one.likeness.max(-1.0),
        };
        let better = |best: usize, at: usize| {
            if worth(&left[at]) > worth(&left[best]) {
                at
            } else {
                best
            }
        };
        let best = (1..left.len()).fold(0, better);
        let taken = left.remove(best);
        chosen.push(taken.hit);
        let Some(vector) = taken.vector else { continue };
        Kernels::get().decode(column.space.scalar, &vector, &mut floats);
        let query = Query::new(column.space, &floats)?;
        for other in &mut left {
            if let Some(vector) = &other.vector {
                let distance = query.distance(vector);
                let (_, score) = column.space.to_distance_and_score(distance);
                other.likeness = other.likeness.max((score - least) / range);
            }
        }
    }
    Ok(chosen)
}
