//! From candidates to answers: several searches become one, and that gets its shape.

use longbow_index::Query;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::explain::FilterWork;
use crate::fusion::{Fusion, Ranking, fuse};
use crate::helpers::Helpers;
use crate::hit::Hit;
use crate::score_parts::{Part, WORDS, parts, unique};
use crate::search::{Found, MAX_K, Searcher};
use crate::shape::{Shape, hits};
use crate::strategy::Strategy;
use crate::text::{self, TextQuery, TextReached};
use crate::vectors::Vectors;

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

/// A search for words.
pub(crate) struct Words<'a> {
    pub dataset: &'a Dataset,
    /// Taken before the view.
    pub reached: TextReached,
    pub query: &'a TextQuery,
    /// What it counts in a fused answer; the vector counts the rest to 2.
    pub weight: f32,
}

/// What is asked of some queries that ask alike.
pub(crate) struct Asked<'a> {
    /// Searches the queries' own vectors.
    pub main: Searcher<'a>,
    pub k: usize,
    pub shape: &'a Shape,
    pub fusion: Fusion,
    /// Searches whose answers are joined to each query's.
    pub beside: Vec<(Searcher<'a>, &'a Beside)>,
    /// Words whose rows are joined to each query's.
    pub words: Option<Words<'a>>,
    /// Whether the words alone decide: then a vector is asked only how far it is.
    pub by_words: bool,
    /// What evaluating the filter took.
    pub filter_work: FilterWork,
    /// Whether each hit is to tell what each search gave it.
    pub score_parts: bool,
}

/// The answer to one query.
pub(crate) struct Answered {
    /// How its own vector was found.
    pub found: Found,
    /// Best first.
    pub hits: Vec<Hit>,
    /// For each hit what each search gave it, if that was asked.
    pub parts: Vec<Vec<Option<Part>>>,
}

/// What was found for all queries alike, to be joined to what each found.
struct Joined {
    rankings: Vec<Ranking>,
    /// What it took.
    found: Vec<Found>,
}

/// Whether the hits that were looked at sufficed, for all queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sufficed {
    All,
    /// There are as many groups as asked for, and some may have more hits.
    NotForGroups,
    No,
}

/// Where a search has no more pages.
const LAST_PAGE: &str =
    "the pages of a search end at row 16384; where more is left, filter it, or download it";

/// Whether a search was at its end before it had looked everywhere.
fn is_cut(answered: &Result<(Vec<Answered>, Sufficed)>) -> bool {
    match answered {
        Ok((all, _)) => all.iter().any(|one| one.found.is_partial),
        Err(error) => matches!(error, Error::Timeout(_)),
    }
}

/// Whether nothing was passed by: then more of what there is is found by looking farther.
fn all_scanned(answers: &[Answered]) -> bool {
    let scanned = |one: &Answered| {
        matches!(
            one.found.strategy,
            Strategy::Exact | Strategy::ExactFiltered
        )
    };
    answers.iter().all(scanned)
}

impl Asked<'_> {
    /// Whether the nearest `k` of one search are all that is asked for.
    pub fn is_plain(&self) -> bool {
        self.shape.is_plain() && self.beside.is_empty() && self.words.is_none()
    }

    /// How the answers come about, where it is not by one vector alone.
    pub fn strategy(&self) -> Option<&'static str> {
        match (&self.words, self.by_words, self.beside.is_empty()) {
            (Some(_), true, _) => Some("text"),
            (Some(_), false, _) => Some("hybrid"),
            (None, _, false) => Some("fused"),
            (None, _, true) => None,
        }
    }

    /// Answers each vector; words alone are answered once for none.
    ///
    /// # Errors
    /// As the searches.
    pub fn answer(&mut self, vectors: &[Vec<f32>], helpers: &Helpers) -> Result<Vec<Answered>> {
        if self.is_plain() {
            let all = self.main.find_all(vectors, helpers)?.into_iter();
            let answered = |found: Found| {
                let hits = hits(&found.neighbors, &self.main);
                let ranking = || Ranking {
                    weight: 1.0,
                    hits: hits.clone(),
                };
                let parts = match self.score_parts {
                    true => parts(None, &[ranking()], &hits),
                    false => Vec::new(),
                };
                Answered { found, hits, parts }
            };
            return Ok(all.map(answered).collect());
        }
        // How much each search gives has a say in the order of what is fused, so all pages are cut from the same.
        let is_fused_page = self.is_fused() && self.shape.page.is_some();
        let mut depth = if is_fused_page {
            MAX_K
        } else {
            self.shape.depth(self.k)
        };
        let given = |all: &Vec<Answered>| all.iter().map(|one| one.hits.len()).sum();
        let mut kept = None;
        let mut answers = loop {
            let answered = self.answer_from(depth, vectors, helpers);
            let before = kept.take();
            let given_before: usize = before.as_ref().map_or(0, given);
            // To fill groups is not worth the answer that is there.
            if let (true, Some(before)) = (is_cut(&answered), before) {
                break before;
            }
            let (answers, sufficed) = answered?;
            let is_all = all_scanned(&answers);
            let goes_on = match sufficed {
                Sufficed::All => false,
                Sufficed::NotForGroups => is_all || given(&answers) > given_before,
                Sufficed::No => true,
            };
            match self.shape.deeper(depth).filter(|_| goes_on) {
                // To look for all takes a scan no longer than for some more.
                Some(deeper) => depth = if is_all { MAX_K } else { deeper },
                None => break answers,
            }
            kept = (sufficed == Sufficed::NotForGroups).then_some(answers);
        };
        for (answer, vector) in answers.iter_mut().zip(vectors) {
            self.fill_distances(&mut answer.hits, vector)?;
        }
        Ok(answers)
    }

    /// Answers from the best `depth` hits, and says whether those sufficed or are all that there are.
    fn answer_from(
        &mut self,
        depth: usize,
        vectors: &[Vec<f32>],
        helpers: &Helpers,
    ) -> Result<(Vec<Answered>, Sufficed)> {
        let fusion = self.is_fused().then_some(self.fusion);
        let width = match self.is_fused() {
            true => (FUSED.0 * depth).clamp(FUSED.1, MAX_K),
            false => depth,
        };
        let joined = self.join(width, helpers)?;
        self.main.k = width;
        let all = match self.by_words {
            true => vec![(); vectors.len().max(1)]
                .into_iter()
                .map(|()| Found::new(Strategy::Exact))
                .collect(),
            false => self.main.find_all(vectors, helpers)?,
        };
        let (mut answers, mut sufficed) = (Vec::with_capacity(all.len()), Sufficed::All);
        for (at, mut found) in all.into_iter().enumerate() {
            joined.found.iter().for_each(|other| found.add(other));
            let rankings = self.rankings(&found, &joined.rankings);
            // What a budget cut short is not looked for again.
            // Nor is anything if all that is near enough was found.
            let within = self.main.max_distance.is_some() && !self.by_words;
            let exhausted = rankings.iter().all(|one| one.hits.len() < width)
                || found.is_partial
                || within && found.neighbors.len() < width;
            let mut near = match fusion {
                Some(fusion) => fuse(fusion, &rankings),
                None => rankings.iter().flat_map(|one| one.hits.clone()).collect(),
            };
            self.cut(&mut near, vectors.get(at))?;
            let count = near.len();
            let shaped = self.shape.apply(near, self.k, &self.main)?;
            let has_room = shaped.with_room > 0 && !exhausted;
            sufficed = sufficed.max(match (shaped.enough || exhausted, has_room) {
                (true, false) => Sufficed::All,
                (true, true) => Sufficed::NotForGroups,
                (false, _) => Sufficed::No,
            });
            found.short_because = match (shaped.enough, has_room) {
                (false, _) => Some(self.why_short(count, &found)),
                (true, true) => Some(format!(
                    "{} groups have fewer rows than group_size among the nearest {count}, and may have others farther away",
                    shaped.with_room
                )),
                (true, false) if self.shape.is_last_page(self.k) => Some(LAST_PAGE.to_owned()),
                (true, false) => None,
            };
            let parts = match self.score_parts {
                true => parts(fusion, &rankings, &shaped.hits),
                false => Vec::new(),
            };
            answers.push(Answered {
                found,
                hits: shaped.hits,
                parts,
            });
        }
        Ok((answers, sufficed))
    }

    /// What is joined to the hits of every vector.
    fn join(&mut self, width: usize, helpers: &Helpers) -> Result<Joined> {
        let mut joined = Joined {
            rankings: Vec::new(),
            found: Vec::new(),
        };
        for (other, asked) in &mut self.beside {
            other.k = width;
            let all = other.find_all(std::slice::from_ref(&asked.vector), helpers)?;
            let near = all.iter().flat_map(|found| hits(&found.neighbors, other));
            // How far a row is in another column is not the distance that is told.
            let near = near.map(|hit| Hit {
                distance: None,
                ..hit
            });
            joined.rankings.push(Ranking {
                weight: asked.weight,
                hits: near.collect(),
            });
            joined.found.extend(all);
        }
        let Some(words) = &self.words else {
            return Ok(joined);
        };
        let mut found = Found::new(Strategy::Exact);
        if self.main.limits.are_spent() {
            found.is_partial = true;
            joined.rankings.push(Ranking {
                weight: words.weight,
                hits: Vec::new(),
            });
            joined.found.push(found);
            return Ok(joined);
        }
        let wanted = |row| self.main.is_wanted(row);
        let view = self.main.view;
        let all = text::find(
            words.dataset,
            &words.reached,
            view,
            words.query,
            width,
            &wanted,
            &self.main.limits,
        )?;
        joined.rankings.push(Ranking {
            weight: words.weight,
            hits: all
                .rows
                .iter()
                .map(|(row, score)| Hit::worded(*row, *score))
                .collect(),
        });
        found.rows_scanned = all.rows_scanned;
        found.is_partial = all.is_partial;
        joined.found.push(found);
        Ok(joined)
    }

    /// What was found by the query's own vector, unless the words alone decide, and what is joined to it.
    fn rankings(&self, found: &Found, joined: &[Ranking]) -> Vec<Ranking> {
        let own = (!self.by_words).then(|| Ranking {
            weight: self.words.as_ref().map_or(1.0, |words| 2.0 - words.weight),
            hits: hits(&found.neighbors, &self.main),
        });
        own.into_iter().chain(joined.iter().cloned()).collect()
    }

    /// Whether several rankings become one.
    fn is_fused(&self) -> bool {
        !self.beside.is_empty() || (self.words.is_some() && !self.by_words)
    }

    /// The names of the searches, in the order of a hit's parts.
    pub fn part_names(&self) -> Vec<String> {
        let own = (!self.by_words).then(|| self.main.column.name.clone());
        let beside = self.beside.iter().map(|(_, one)| one.column.clone());
        let words = self.words.as_ref().map(|_| WORDS.to_owned());
        unique(own.into_iter().chain(beside).chain(words))
    }

    /// Drops what is too far. What was found by the vector itself was dropped already.
    fn cut(&self, near: &mut Vec<Hit>, vector: Option<&Vec<f32>>) -> Result<()> {
        let (Some(max), Some(vector), false) = (self.main.max_distance, vector, self.is_plain())
        else {
            return Ok(());
        };
        self.fill_distances(near, vector)?;
        near.retain(|hit| hit.distance.is_some_and(|distance| distance <= max));
        Ok(())
    }

    /// How far the hits are from the query's vector that were found otherwise.
    fn fill_distances(&self, near: &mut [Hit], vector: &[f32]) -> Result<()> {
        if near.iter().all(|hit| hit.distance.is_some()) {
            return Ok(());
        }
        let Searcher { view, column, .. } = self.main;
        let query = Query::new(column.space, vector)?;
        for hit in near.iter_mut().filter(|hit| hit.distance.is_none()) {
            let Some((batch, at)) = view.locate(hit.row) else {
                continue;
            };
            if let Some(bytes) = Vectors::one(batch, at, column)? {
                let raw = query.distance(&bytes);
                hit.distance = Some(column.space.to_distance_and_score(raw).0);
            }
        }
        Ok(())
    }

    fn why_short(&self, count: usize, found: &Found) -> String {
        match (&self.shape.group, &found.short_because) {
            _ if found.is_partial => format!("the budget ran out with {count} rows found"),
            (Some(group), _) => {
                format!(
                    "{count} rows were found, and have fewer values of '{}'",
                    group.column
                )
            }
            _ if self.by_words => format!("{count} rows match the words"),
            (None, Some(why)) if self.words.is_none() && self.beside.is_empty() => why.clone(),
            _ => format!("{count} rows were found, and some of them left out as asked"),
        }
    }
}

/// What is wrong with a search that has words, or none.
///
/// # Errors
/// If there is neither a vector nor words, or a number is out of its range.
pub(crate) fn check_words(alpha: Option<f32>, has_words: bool, has_vector: bool) -> Result<()> {
    if !has_words && !has_vector {
        return Err(Error::NoQueryVector);
    }
    match alpha {
        Some(alpha) if alpha.is_nan() || alpha > 1.0 => Err(Error::BadValue {
            field: "alpha",
            got: alpha.to_string(),
            expected: "at most 1, which is the vector alone; 0 is the text alone, below 0 is by the query's length",
        }),
        Some(alpha) if alpha < 1.0 && !has_words => Err(Error::BadValue {
            field: "alpha",
            got: alpha.to_string(),
            expected: "1 without text_query, or give text_query",
        }),
        _ => Ok(()),
    }
}

/// What the vector counts, from 0 to 1, where the query is to decide: few words say exactly what is looked for, many
/// describe it.
pub(crate) fn alpha_of(words: &str) -> f32 {
    match words.split_whitespace().count() {
        0..=2 => 0.3,
        3..=5 => 0.7,
        _ => 0.9,
    }
}
