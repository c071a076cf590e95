//! Rows that are in no piece yet: what of the query is in their texts.

use crate::bm25::Totals;
use crate::cursor::Weights;
use crate::plan::{Part, Plan, write_term};
use crate::tokenizer::Analyzer;

/// A row in which a term of the query is.
#[derive(Debug)]
pub(crate) struct FreshRow {
    pub row: u64,
    /// By column of the query.
    lengths: Vec<u32>,
    /// Terms and their positions, as they come.
    hits: Vec<(usize, u32)>,
}

/// Takes rows one after the other.
pub(crate) struct Fresh {
    analyzers: Vec<Analyzer>,
    pub rows: Vec<FreshRow>,
    /// How many rows were looked at.
    pub scanned: u64,
    /// By column of the query.
    pub totals: Vec<Totals>,
    term: String,
}

impl Fresh {
    pub fn new(plan: &Plan) -> Self {
        let columns = plan.columns.iter();
        Fresh {
            analyzers: columns.map(|c| Analyzer::new(c.tokenizer)).collect(),
            rows: Vec::new(),
            scanned: 0,
            totals: vec![Totals::default(); plan.columns.len()],
            term: String::new(),
        }
    }

    pub fn add(&mut self, plan: &mut Plan, row: u64, texts: &[Option<&str>]) {
        self.scanned += 1;
        let mut lengths = vec![0; texts.len()];
        let mut hits = Vec::new();
        let term = &mut self.term;
        for (column, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                continue;
            };
            let number = plan.columns[column].number;
            let (terms, patterns) = (&mut plan.terms, &mut plan.patterns);
            let take = &mut |token: &str, position: u32| {
                write_term(number, token, term);
                let mut known = terms.number(term);
                for pattern in patterns.iter_mut().filter(|p| p.column == column) {
                    if let Some(distance) = pattern.distance(term.as_bytes()) {
                        // Counted below, once a row.
                        pattern.note(term, distance, 0);
                        known = Some(terms.add(term, column));
                    }
                }
                hits.extend(known.map(|known| (known, position)));
            };
            lengths[column] = self.analyzers[column].each(text, take);
            self.totals[column].add(lengths[column]);
        }
        if !hits.is_empty() {
            hits.sort_unstable();
            self.rows.push(FreshRow { row, lengths, hits });
        }
    }
}

impl FreshRow {
    /// The terms of the row, each once.
    pub fn terms(&self) -> impl Iterator<Item = usize> {
        let same = |a: &(usize, u32), b: &(usize, u32)| a.0 == b.0;
        self.hits.chunk_by(same).map(|hits| hits[0].0)
    }

    /// The score of a part of the query, `None` if it does not match.
    pub fn score(&self, part: &Part, plan: &Plan, weights: &Weights<'_>) -> Option<f64> {
        match part {
            Part::Term(term) => {
                let tf = self.positions(*term).len() as u32;
                (tf > 0).then(|| self.weigh(&[*term], tf, plan, weights))
            }
            Part::Phrase(phrase) => {
                let (first, _) = *phrase.first()?;
                let begins = |at: &&(usize, u32)| {
                    phrase.iter().all(|(term, distance)| {
                        let wanted = (*term, at.1 + distance);
                        self.positions(*term).binary_search(&wanted).is_ok()
                    })
                };
                let tf = self.positions(first).iter().filter(begins).count() as u32;
                let terms: Vec<usize> = phrase.iter().map(|(term, _)| *term).collect();
                (tf > 0).then(|| self.weigh(&terms, tf, plan, weights))
            }
            Part::Pattern(pattern) => {
                let terms = plan.patterns[*pattern].terms.iter();
                sum(terms.map(|term| self.score(&Part::Term(*term), plan, weights)))
            }
            Part::Any(parts) => sum(parts.iter().map(|part| self.score(part, plan, weights))),
            Part::Group { must, any, not } => {
                let score = |part| self.score(part, plan, weights);
                let mut needed = 0.0;
                for part in must {
                    needed += score(part)?;
                }
                let more = sum(any.iter().map(score));
                if must.is_empty() && more.is_none() || not.iter().any(|part| score(part).is_some())
                {
                    return None;
                }
                Some(needed + more.unwrap_or(0.0))
            }
        }
    }

    fn weigh(&self, terms: &[usize], tf: u32, plan: &Plan, weights: &Weights<'_>) -> f64 {
        let column = plan.terms.column(terms[0]);
        let idf = terms.iter().map(|term| weights.idf[*term]).sum();
        weights.lengths[column].score(idf, tf, self.lengths[column])
    }

    fn positions(&self, term: usize) -> &[(usize, u32)] {
        let begin = self.hits.partition_point(|(other, _)| *other < term);
        let end = self.hits.partition_point(|(other, _)| *other <= term);
        &self.hits[begin..end]
    }
}

/// The sum of those that match, `None` if none does.
fn sum(scores: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    scores.flatten().reduce(|a, b| a + b)
}
