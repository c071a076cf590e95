//! A query walking through a piece, window by window.

use tantivy::postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use crate::bm25::Lengths;
use crate::error::Result;
use crate::piece::Piece;
use crate::plan::{Part, Plan};
use crate::window::Window;

/// What scoring needs to know of terms and columns.
pub(crate) struct Weights<'a> {
    /// By term.
    pub idf: &'a [f64],
    /// By column of the query.
    pub lengths: &'a [Lengths],
    /// Where each term is in this piece.
    pub infos: &'a [Option<TermInfo>],
}

/// A part of a query in a piece.
pub(crate) enum Cursor<'a> {
    Nothing,
    Term(Box<TermCursor<'a>>),
    Phrase(PhraseCursor<'a>),
    Any(Vec<Cursor<'a>>),
    Group(Box<GroupCursor<'a>>),
}

impl<'a> Cursor<'a> {
    pub fn open(part: &Part, plan: &Plan, piece: &'a Piece, weights: &Weights<'_>) -> Result<Self> {
        let all = |parts: &[Part]| -> Result<Vec<Cursor<'a>>> {
            let open = |part| Cursor::open(part, plan, piece, weights);
            let mut opened = parts.iter().map(open).collect::<Result<Vec<_>>>()?;
            opened.retain(|cursor| !matches!(cursor, Cursor::Nothing));
            Ok(opened)
        };
        Ok(match part {
            Part::Term(term) => match TermCursor::open(*term, plan, piece, weights)? {
                Some(cursor) => Cursor::Term(Box::new(cursor)),
                None => Cursor::Nothing,
            },
            Part::Phrase(terms) => match PhraseCursor::open(terms, plan, piece, weights)? {
                Some(cursor) => Cursor::Phrase(cursor),
                None => Cursor::Nothing,
            },
            Part::Pattern(pattern) => {
                let terms = plan.patterns[*pattern].terms.iter();
                let parts: Vec<Part> = terms.map(|term| Part::Term(*term)).collect();
                Cursor::any(all(&parts)?)
            }
            Part::Any(parts) => Cursor::any(all(parts)?),
            Part::Group { must, any, not } => {
                let needed = all(must)?;
                let any = all(any)?;
                if needed.len() < must.len() || needed.is_empty() && any.is_empty() {
                    return Ok(Cursor::Nothing);
                }
                Cursor::Group(Box::new(GroupCursor {
                    must: needed,
                    any,
                    not: all(not)?,
                    found: Window::new(),
                    part: Window::new(),
                }))
            }
        })
    }

    fn any(mut cursors: Vec<Cursor<'a>>) -> Self {
        match cursors.len() {
            0 => Cursor::Nothing,
            1 => cursors.remove(0),
            _ => Cursor::Any(cursors),
        }
    }

    /// A document before which none that was not passed matches; [`TERMINATED`] at the end.
    pub fn next(&self) -> u32 {
        match self {
            Cursor::Nothing => TERMINATED,
            Cursor::Term(cursor) => cursor.next(),
            Cursor::Phrase(cursor) => cursor.next(),
            Cursor::Any(cursors) => least(cursors),
            Cursor::Group(group) => {
                let last = group.must.iter().map(Cursor::next).max();
                last.unwrap_or_else(|| least(&group.any))
            }
        }
    }

    /// Adds the documents `from..to` that match to a window that begins at `from`.
    pub fn fill(&mut self, from: u32, to: u32, window: &mut Window) {
        match self {
            Cursor::Nothing => {}
            Cursor::Term(cursor) => cursor.fill(from, to, window),
            Cursor::Phrase(cursor) => cursor.fill(from, to, window),
            Cursor::Any(cursors) => {
                for cursor in cursors {
                    cursor.fill(from, to, window);
                }
            }
            Cursor::Group(group) => {
                group.fill(from, to);
                window.or(&group.found);
            }
        }
    }
}

fn least(cursors: &[Cursor<'_>]) -> u32 {
    let nexts = cursors.iter().map(Cursor::next);
    nexts.min().unwrap_or(TERMINATED)
}

/// Parts that must match, may, and must not.
pub(crate) struct GroupCursor<'a> {
    must: Vec<Cursor<'a>>,
    any: Vec<Cursor<'a>>,
    not: Vec<Cursor<'a>>,
    found: Window,
    part: Window,
}

impl GroupCursor<'_> {
    fn fill(&mut self, from: u32, to: u32) {
        let (found, part) = (&mut self.found, &mut self.part);
        found.clear();
        if let Some((first, others)) = self.must.split_first_mut() {
            first.fill(from, to, found);
            for cursor in others {
                if found.is_empty() {
                    return;
                }
                part.clear();
                cursor.fill(from, to, part);
                found.and(part);
            }
            if found.is_empty() {
                return;
            }
            part.clear();
            for cursor in &mut self.any {
                cursor.fill(from, to, part);
            }
            found.add_scores(part);
        } else {
            for cursor in &mut self.any {
                cursor.fill(from, to, found);
            }
        }
        for cursor in &mut self.not {
            part.clear();
            cursor.fill(from, to, part);
            found.without(part);
        }
    }
}

/// How the documents of a term or a phrase are scored.
struct Scoring<'a> {
    idf: f64,
    by_length: Lengths,
    lengths: &'a [u32],
}

impl<'a> Scoring<'a> {
    /// For terms of one column.
    fn of(terms: &[usize], plan: &Plan, piece: &'a Piece, weights: &Weights<'_>) -> Option<Self> {
        let column = plan.terms.column(*terms.first()?);
        Some(Scoring {
            idf: terms.iter().map(|term| weights.idf[*term]).sum(),
            by_length: weights.lengths[column],
            lengths: piece.lengths(plan.columns[column].number)?,
        })
    }

    #[inline]
    fn score(&self, document: u32, tf: u32) -> f64 {
        let length = self.lengths[document as usize];
        self.by_length.score(self.idf, tf, length)
    }
}

pub(crate) struct TermCursor<'a> {
    postings: BlockSegmentPostings,
    /// Position in the block.
    at: usize,
    scoring: Scoring<'a>,
}

impl<'a> TermCursor<'a> {
    fn open(
        term: usize,
        plan: &Plan,
        piece: &'a Piece,
        weights: &Weights<'_>,
    ) -> Result<Option<Self>> {
        let (Some(info), Some(scoring)) = (
            &weights.infos[term],
            Scoring::of(&[term], plan, piece, weights),
        ) else {
            return Ok(None);
        };
        let inverted = piece.inverted();
        let option = IndexRecordOption::WithFreqs;
        Ok(Some(TermCursor {
            postings: inverted.read_block_postings_from_terminfo(info, option)?,
            at: 0,
            scoring,
        }))
    }

    fn next(&self) -> u32 {
        self.postings
            .docs()
            .get(self.at)
            .copied()
            .unwrap_or(TERMINATED)
    }

    fn fill(&mut self, from: u32, to: u32, window: &mut Window) {
        if self.next() < from {
            self.at = self.postings.seek(from);
        }
        loop {
            let docs = self.postings.docs();
            let freqs = self.postings.freqs();
            let rest = docs.get(self.at..).unwrap_or_default();
            let count = rest.partition_point(|doc| *doc < to);
            for (doc, tf) in rest[..count].iter().zip(&freqs[self.at..]) {
                window.add((doc - from) as usize, self.scoring.score(*doc, *tf));
            }
            if count < rest.len() || docs.is_empty() {
                self.at += count;
                return;
            }
            self.postings.advance();
            self.at = 0;
        }
    }
}

pub(crate) struct PhraseCursor<'a> {
    /// The rarest first, with its distance from the first of the phrase.
    terms: Vec<(SegmentPostings, u32)>,
    scoring: Scoring<'a>,
    starts: Vec<u32>,
    positions: Vec<u32>,
}

impl<'a> PhraseCursor<'a> {
    fn open(
        phrase: &[(usize, u32)],
        plan: &Plan,
        piece: &'a Piece,
        weights: &Weights<'_>,
    ) -> Result<Option<Self>> {
        let terms: Vec<usize> = phrase.iter().map(|(term, _)| *term).collect();
        let Some(scoring) = Scoring::of(&terms, plan, piece, weights) else {
            return Ok(None);
        };
        let mut opened = Vec::new();
        for (term, distance) in phrase {
            let Some(info) = &weights.infos[*term] else {
                return Ok(None);
            };
            let option = IndexRecordOption::WithFreqsAndPositions;
            let postings = piece.inverted().read_postings_from_terminfo(info, option)?;
            opened.push((info.doc_freq, postings, *distance));
        }
        opened.sort_by_key(|(doc_freq, ..)| *doc_freq);
        let terms = opened.into_iter().map(|(_, postings, at)| (postings, at));
        Ok(Some(PhraseCursor {
            terms: terms.collect(),
            scoring,
            starts: Vec::new(),
            positions: Vec::new(),
        }))
    }

    fn next(&self) -> u32 {
        self.terms[0].0.doc()
    }

    fn fill(&mut self, from: u32, to: u32, window: &mut Window) {
        let mut doc = seek(&mut self.terms[0].0, from);
        while doc < to {
            let others = self.terms[1..].iter_mut();
            let beyond = others
                .map(|(postings, _)| seek(postings, doc))
                .find(|found| *found > doc);
            if let Some(beyond) = beyond {
                doc = seek(&mut self.terms[0].0, beyond);
                continue;
            }
            let tf = self.count();
            if tf > 0 {
                window.add((doc - from) as usize, self.scoring.score(doc, tf));
            }
            doc = self.terms[0].0.advance();
        }
    }

    /// How often the phrase is in the document that all terms are at.
    fn count(&mut self) -> u32 {
        for (nth, (postings, distance)) in self.terms.iter_mut().enumerate() {
            postings.positions(&mut self.positions);
            let starts = self
                .positions
                .iter()
                .filter_map(|at| at.checked_sub(*distance));
            if nth == 0 {
                self.starts.clear();
                self.starts.extend(starts);
            } else {
                let sorted: Vec<u32> = starts.collect();
                self.starts.retain(|at| sorted.binary_search(at).is_ok());
            }
            if self.starts.is_empty() {
                return 0;
            }
        }
        self.starts.len() as u32
    }
}

/// The first document from `target` on.
fn seek(postings: &mut SegmentPostings, target: u32) -> u32 {
    let doc = postings.doc();
    if doc >= target {
        doc
    } else {
        postings.seek(target)
    }
}
