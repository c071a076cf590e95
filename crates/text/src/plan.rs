//! A query over columns: which terms it needs, and how they are put together.

use rustc_hash::FxHashMap;

use crate::error::QueryError;
use crate::pattern::Pattern;
use crate::query::{Node, Query};
use crate::tokenizer::{Analyzer, Tokenizer};

/// Most tokens that a query may have in one column.
const MAX_TOKENS: usize = 1_024;

/// A column of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its number, by which a file knows it.
    pub number: u16,
    /// How it is cut into tokens.
    pub tokenizer: Tokenizer,
}

/// The term of a token of a column: the token behind a character for the column.
pub(crate) fn write_term(column: u16, token: &str, term: &mut String) {
    let code = u32::from(column) + 1;
    // Past the codes that are no characters.
    let code = if code < 0xD800 { code } else { code + 0x800 };
    term.clear();
    term.push(char::from_u32(code).unwrap_or('\u{1}'));
    term.push_str(token);
}

pub(crate) fn term_of(column: u16, token: &str) -> String {
    let mut term = String::new();
    write_term(column, token, &mut term);
    term
}

/// The terms that a query is about, each once.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    all: Vec<Term>,
    numbers: FxHashMap<String, usize>,
}

/// A term, and which of the query's columns it is of.
#[derive(Debug)]
pub(crate) struct Term {
    pub text: String,
    pub column: usize,
}

impl Terms {
    pub fn add(&mut self, text: &str, column: usize) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len();
        self.all.push(Term {
            text: text.to_owned(),
            column,
        });
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub fn number(&self, text: &str) -> Option<usize> {
        self.numbers.get(text).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Term> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn text(&self, term: usize) -> &str {
        &self.all[term].text
    }

    pub fn column(&self, term: usize) -> usize {
        self.all[term].column
    }
}

/// How terms make a row match. Terms and patterns are numbers.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Term(usize),
    /// Terms at their distances from the first.
    Phrase(Vec<(usize, u32)>),
    /// Any of the terms that a pattern stands for.
    Pattern(usize),
    Any(Vec<Part>),
    Group {
        must: Vec<Part>,
        any: Vec<Part>,
        not: Vec<Part>,
    },
}

/// A query over columns.
#[derive(Debug)]
pub(crate) struct Plan {
    pub columns: Vec<Column>,
    pub terms: Terms,
    pub patterns: Vec<Pattern>,
    pub root: Part,
}

impl Plan {
    /// Cuts the words of a query as each column does its texts.
    ///
    /// # Errors
    /// If there are too many.
    pub fn new(query: &Query, columns: &[Column]) -> Result<Self, QueryError> {
        let mut planner = Planner {
            columns: columns.to_vec(),
            analyzers: columns.iter().map(|c| Analyzer::new(c.tokenizer)).collect(),
            plain: Analyzer::new(Tokenizer::Words),
            terms: Terms::default(),
            patterns: Vec::new(),
            tokens: 0,
        };
        let root = planner.part(&query.root);
        if planner.tokens > MAX_TOKENS * columns.len().max(1) {
            return Err(QueryError::TooLong { limit: MAX_TOKENS });
        }
        Ok(Plan {
            columns: planner.columns,
            terms: planner.terms,
            patterns: planner.patterns,
            root,
        })
    }
}

struct Planner {
    columns: Vec<Column>,
    analyzers: Vec<Analyzer>,
    /// For what must not be reduced to a stem.
    plain: Analyzer,
    terms: Terms,
    patterns: Vec<Pattern>,
    tokens: usize,
}

impl Planner {
    fn part(&mut self, node: &Node) -> Part {
        let parts = |planner: &mut Self, nodes: &[Node]| -> Vec<Part> {
            nodes.iter().map(|node| planner.part(node)).collect()
        };
        match node {
            Node::Group { must, any, not } if must.is_empty() && not.is_empty() => {
                Part::Any(parts(self, any))
            }
            Node::Group { must, any, not } => Part::Group {
                must: parts(self, must),
                any: parts(self, any),
                not: parts(self, not),
            },
            leaf => {
                let columns = 0..self.columns.len();
                let mut all: Vec<Part> = columns
                    .filter_map(|column| self.leaf(leaf, column))
                    .collect();
                match all.len() {
                    1 => all.remove(0),
                    _ => Part::Any(all),
                }
            }
        }
    }

    /// What a word, prefix, fuzzy word or phrase is in one column.
    fn leaf(&mut self, leaf: &Node, column: usize) -> Option<Part> {
        let Column { number, tokenizer } = self.columns[column];
        let ngrams = tokenizer == Tokenizer::Ngrams;
        match leaf {
            Node::Prefix(text) => {
                let mut tokens = self.plain.all(text);
                let (last, _) = tokens.pop()?;
                let whole = ngrams && !Pattern::is_gram_prefix(&last);
                if whole {
                    return self.words(text, column);
                }
                self.tokens += 1;
                let pattern = self.pattern(Pattern::prefix(column, number, &last));
                if tokens.is_empty() {
                    return Some(pattern);
                }
                let first: Vec<String> = tokens.into_iter().map(|(token, _)| token).collect();
                let before = self.words(&first.join(" "), column)?;
                Some(Part::Group {
                    must: vec![before, pattern],
                    any: Vec::new(),
                    not: Vec::new(),
                })
            }
            Node::Fuzzy(text, distance) if !ngrams => {
                let tokens = self.analyzers[column].all(text);
                let [(token, _)] = &tokens[..] else {
                    return self.words(text, column);
                };
                self.tokens += 1;
                Some(self.pattern(Pattern::fuzzy(column, number, token, *distance)))
            }
            Node::Word(text) | Node::Fuzzy(text, _) | Node::Phrase(text) => {
                self.words(text, column)
            }
            Node::Group { .. } => None,
        }
    }

    /// A term, or the phrase of several.
    fn words(&mut self, text: &str, column: usize) -> Option<Part> {
        let number = self.columns[column].number;
        let tokens = self.analyzers[column].all(text);
        self.tokens += tokens.len();
        let (_, first) = *tokens.first()?;
        let mut term = |token: &str| self.terms.add(&term_of(number, token), column);
        if let [(token, _)] = &tokens[..] {
            return Some(Part::Term(term(token)));
        }
        let tokens = tokens.iter();
        let phrase = tokens.map(|(token, position)| (term(token), position - first));
        Some(Part::Phrase(phrase.collect()))
    }

    fn pattern(&mut self, pattern: Pattern) -> Part {
        self.patterns.push(pattern);
        Part::Pattern(self.patterns.len() - 1)
    }
}
