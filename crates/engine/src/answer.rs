//! From candidates to answers: several searches become one, and that gets its shape.

use crate::error::Result;
use crate::fusion::{Fusion, Ranking, fuse};
use crate::helpers::Helpers;
use crate::hit::Hit;
use crate::search::{Found, MAX_K, Searcher};
use crate::shape::{Shape, hits};

/// Hits of each of several searches that become one, in units of those asked for, and the least.
const FUSED: (usize, usize) = (4, 100);

/// A search of another vector column, for the same answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    /// The vector column.
    pub column: String,
    /// The query vector.
    pub vector: Vec<f32>,
    /// What it counts; the first search counts 1.
    pub weight: f32,
}

/// What is asked of some queries that ask alike.
pub(crate) struct Asked<'a> {
    pub k: usize,
    pub shape: &'a Shape,
    pub fusion: Fusion,
    /// Searches whose answers are joined to each query's, with their weights.
    pub beside: Vec<(Searcher<'a>, &'a Beside)>,
}

/// The answer to one query.
pub(crate) struct Answered {
    /// How its own vector was found.
    pub found: Found,
    /// Best first.
    pub hits: Vec<Hit>,
}

impl Asked<'_> {
    /// Whether the nearest `k` of one search are all that is asked for.
    pub fn is_plain(&self) -> bool {
        self.shape.is_plain() && self.beside.is_empty()
    }

    /// Answers each vector.
    ///
    /// # Errors
    /// As the searches.
    pub fn answer(
        &mut self,
        searcher: &mut Searcher<'_>,
        vectors: &[Vec<f32>],
        helpers: &Helpers,
    ) -> Result<Vec<Answered>> {
        if self.is_plain() {
            let all = searcher.find_all(vectors, helpers)?.into_iter();
            let answered = |found: Found| Answered {
                hits: hits(&found.neighbors, searcher),
                found,
            };
            return Ok(all.map(answered).collect());
        }
        let mut depth = self.shape.depth(self.k);
        loop {
            let (answers, enough) = self.answer_from(depth, searcher, vectors, helpers)?;
            match self.shape.deeper(depth) {
                Some(deeper) if !enough => depth = deeper,
                _ => return Ok(answers),
            }
        }
    }

    /// Answers from the best `depth` hits, and says whether those sufficed or are all that there is.
    fn answer_from(
        &mut self,
        depth: usize,
        searcher: &mut Searcher<'_>,
        vectors: &[Vec<f32>],
        helpers: &Helpers,
    ) -> Result<(Vec<Answered>, bool)> {
        let width = match self.beside.is_empty() {
            true => depth,
            false => (FUSED.0 * depth).clamp(FUSED.1, MAX_K),
        };
        searcher.k = width;
        let all = searcher.find_all(vectors, helpers);
        let beside = self.beside.iter_mut().map(|(other, asked)| {
            other.k = width;
            let found = other.find_all(std::slice::from_ref(&asked.vector), helpers)?;
            let hits = found.iter().flat_map(|found| hits(&found.neighbors, other));
            Ok((asked.weight, hits.collect::<Vec<Hit>>(), found))
        });
        let beside = beside.collect::<Result<Vec<_>>>()?;
        let (mut answers, mut all_enough) = (Vec::with_capacity(vectors.len()), true);
        for mut found in all? {
            let mut found_hits = hits(&found.neighbors, searcher);
            let mut exhausted = found_hits.len() < width;
            if !beside.is_empty() {
                let mut rankings = vec![Ranking {
                    weight: 1.0,
                    hits: found_hits,
                }];
                for (weight, hits, other) in &beside {
                    exhausted &= hits.len() < width;
                    rankings.push(Ranking {
                        weight: *weight,
                        hits: hits.clone(),
                    });
                    other.iter().for_each(|other| found.add(other));
                }
                found_hits = fuse(self.fusion, &rankings);
            }
            let (shaped, enough) = self.shape.apply(found_hits, self.k, searcher)?;
            all_enough &= enough || exhausted;
            if enough {
                found.short_because = None;
            } else if let Some(group) = &self.shape.group {
                let why = format!(
                    "the rows that were found have fewer values of '{}'",
                    group.column
                );
                found.short_because.get_or_insert(why);
            }
            answers.push(Answered {
                found,
                hits: shaped,
            });
        }
        Ok((answers, all_enough))
    }
}
