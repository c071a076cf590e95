//! What each of the searches that became one answer gave its rows.

use std::sync::Arc;

use arrow_array::builder::{Float32Builder, Int32Builder};
use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::fusion::{Fusion, Ranking};
use crate::hit::Hit;

/// Column of a reply that was asked for the parts of its scores: a struct with a field for each search, named as its vector
/// column, or `text`. Each of them is a struct of `rank`, from 1, `score`, as that search alone tells it, and
/// `contribution`, what that came to in the row's score; null where the search did not find the row.
pub const SCORE_PARTS: &str = "score_parts";

/// The name of the search for words.
pub(crate) const WORDS: &str = "text";

/// What one search gave a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    /// From 1.
    pub rank: i32,
    pub score: f32,
    pub contribution: f32,
}

/// For each hit of an answer what each ranking gave it. Where nothing was fused, the one ranking's scores are the answer's.
pub(crate) fn parts(
    fusion: Option<Fusion>,
    rankings: &[Ranking],
    hits: &[Hit],
) -> Vec<Vec<Option<Part>>> {
    let of_ranking = |ranking: &Ranking| {
        let contributions = match fusion {
            Some(fusion) => ranking.contributions(fusion),
            None => ranking.hits.iter().map(|hit| hit.score).collect(),
        };
        let ranked = ranking.hits.iter().zip(contributions).zip(1..);
        let known: FxHashMap<u64, Part> = ranked
            .map(|((hit, contribution), rank)| {
                let part = Part {
                    rank,
                    score: hit.score,
                    contribution,
                };
                (hit.row, part)
            })
            .collect();
        known
    };
    let known: Vec<_> = rankings.iter().map(of_ranking).collect();
    let of_hit = |hit: &Hit| {
        known
            .iter()
            .map(|known| known.get(&hit.row).copied())
            .collect()
    };
    hits.iter().map(of_hit).collect()
}

/// The column of a reply, of searches of these names, each of whose rows has a part for each name.
///
/// # Errors
/// None, as long as the names are of as many searches as the rows have parts.
pub(crate) fn column<'a>(
    names: &[String],
    rows: impl Iterator<Item = &'a Vec<Option<Part>>>,
) -> Result<(FieldRef, ArrayRef)> {
    let rows: Vec<&Vec<Option<Part>>> = rows.collect();
    let inner = Fields::from(vec![
        Field::new("rank", DataType::Int32, false),
        Field::new("score", DataType::Float32, false),
        Field::new("contribution", DataType::Float32, false),
    ]);
    let of_search = |at: usize| -> Result<ArrayRef> {
        let mut ranks = Int32Builder::with_capacity(rows.len());
        let mut scores = Float32Builder::with_capacity(rows.len());
        let mut contributions = Float32Builder::with_capacity(rows.len());
        let mut found = BooleanBufferBuilder::new(rows.len());
        for row in &rows {
            let part = row.get(at).copied().flatten();
            found.append(part.is_some());
            ranks.append_value(part.map_or(0, |part| part.rank));
            scores.append_value(part.map_or(0.0, |part| part.score));
            contributions.append_value(part.map_or(0.0, |part| part.contribution));
        }
        let values: Vec<ArrayRef> = vec![
            Arc::new(ranks.finish()),
            Arc::new(scores.finish()),
            Arc::new(contributions.finish()),
        ];
        let nulls = Some(NullBuffer::new(found.finish()));
        Ok(Arc::new(StructArray::try_new(
            inner.clone(),
            values,
            nulls,
        )?))
    };
    let searches = (0..names.len())
        .map(of_search)
        .collect::<Result<Vec<_>>>()?;
    let field = |name: &String| Field::new(name, DataType::Struct(inner.clone()), true);
    let fields: Fields = names.iter().map(field).collect();
    let all = StructArray::try_new_with_length(fields.clone(), searches, None, rows.len())?;
    let field = Field::new(SCORE_PARTS, DataType::Struct(fields), false);
    Ok((Arc::new(field), Arc::new(all)))
}

/// The names, each once: one that comes again gets its number, like `image_2`.
pub(crate) fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let numbered = (2..).map(|number: usize| format!("{name}_{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !all.contains(name));
        all.extend(free);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusion::fuse;

    fn ranking(weight: f32, rows: &[(u64, f32)]) -> Ranking {
        let hits = rows.iter().map(|(row, score)| Hit::worded(*row, *score));
        Ranking {
            weight,
            hits: hits.collect(),
        }
    }

    #[test]
    fn what_the_parts_contribute_is_the_score() {
        let rankings = [
            ranking(0.75, &[(5, 0.9), (3, 0.7), (8, 0.5)]),
            ranking(0.25, &[(3, 12.0), (9, 11.0)]),
        ];
        for fusion in [Fusion::ReciprocalRank, Fusion::Weighted] {
            let hits = fuse(fusion, &rankings);
            let parts = parts(Some(fusion), &rankings, &hits);
            assert_eq!(parts.len(), 4);
            for (hit, parts) in hits.iter().zip(&parts) {
                let sum: f32 = parts.iter().flatten().map(|part| part.contribution).sum();
                assert!((sum - hit.score).abs() < 1e-6, "{hit:?}: {parts:?}");
                let ranks = parts
                    .iter()
                    .map(|part| part.map(|part| (part.rank, part.score)));
                let expected = match hit.row {
                    5 => [Some((1, 0.9)), None],
                    3 => [Some((2, 0.7)), Some((1, 12.0))],
                    8 => [Some((3, 0.5)), None],
                    _ => [None, Some((2, 11.0))],
                };
                assert!(ranks.eq(expected), "{hit:?}: {parts:?}");
            }
        }
    }

    #[test]
    fn a_name_that_comes_again_is_numbered() {
        let names = ["v", "text", "v", "v_2", "v", "text"];
        let unique = unique(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(unique, ["v", "text", "v_2", "v_2_2", "v_3", "text_2"]);
    }
}
