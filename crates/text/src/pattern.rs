//! Prefixes and words within an edit distance, and the terms that they stand for.

use std::sync::LazyLock;

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use rustc_hash::FxHashMap;
use tantivy_fst::Automaton;

use crate::plan::{Terms, term_of};
use crate::tokenizer::{Analyzer, Tokenizer};

/// Most terms that a pattern stands for: of more, those nearest to the word, and of these the most frequent.
pub(crate) const MAX_WORDS: usize = 128;

/// Automata of Schulz and Mihov, "Fast String Correction with Levenshtein-Automata", 2002. Two letters that changed places
/// are one edit.
static BUILDERS: LazyLock<[LevenshteinAutomatonBuilder; 2]> =
    LazyLock::new(|| [1, 2].map(|distance| LevenshteinAutomatonBuilder::new(distance, true)));

/// Which terms of a column it stands for.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Which of the query's columns.
    pub column: usize,
    matcher: Matcher,
    /// Terms found for it, with their distance and in how many rows they are.
    found: FxHashMap<String, (u8, u64)>,
    /// Those that it stands for, by number.
    pub terms: Vec<usize>,
    /// How many it stands for beyond those.
    pub left_out: usize,
}

enum Matcher {
    Prefix(String),
    /// The character of the column, and what follows it.
    Fuzzy(Vec<u8>, DFA),
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Matcher::Prefix(_) => "Prefix",
            Matcher::Fuzzy(..) => "Fuzzy",
        })
    }
}

impl Pattern {
    /// Words that begin with `token`.
    pub fn prefix(column: usize, number: u16, token: &str) -> Self {
        Self::new(column, Matcher::Prefix(term_of(number, token)))
    }

    /// Words within one or two edits of `token`.
    pub fn fuzzy(column: usize, number: u16, token: &str, distance: u8) -> Self {
        let builder = &BUILDERS[usize::from(distance.clamp(1, 2)) - 1];
        let head = term_of(number, "").into_bytes();
        Self::new(column, Matcher::Fuzzy(head, builder.build_dfa(token)))
    }

    /// Whether so short a word can only be the beginning of an n-gram.
    pub fn is_gram_prefix(token: &str) -> bool {
        Analyzer::new(Tokenizer::Ngrams).all(token).len() == 1 && token.chars().count() < 3
    }

    fn new(column: usize, matcher: Matcher) -> Self {
        Pattern {
            column,
            matcher,
            found: FxHashMap::default(),
            terms: Vec::new(),
            left_out: 0,
        }
    }

    /// At what distance it stands for a term, if it does.
    pub fn distance(&self, term: &[u8]) -> Option<u8> {
        match &self.matcher {
            Matcher::Prefix(prefix) => term.starts_with(prefix.as_bytes()).then_some(0),
            Matcher::Fuzzy(head, dfa) => match dfa.eval(term.strip_prefix(&head[..])?) {
                Distance::Exact(distance) => Some(distance),
                Distance::AtLeast(_) => None,
            },
        }
    }

    /// Notes a term that it stands for, which is in so many more rows.
    pub fn note(&mut self, term: &str, distance: u8, rows: u64) {
        if let Some((_, count)) = self.found.get_mut(term) {
            *count += rows;
        } else {
            self.found.insert(term.to_owned(), (distance, rows));
        }
    }

    /// Settles for which of the terms found it stands.
    pub fn choose(&mut self, terms: &mut Terms) {
        let mut found: Vec<_> = self.found.drain().collect();
        // As a whole, so that pieces and their order make no difference.
        found.sort_by(|(a, (near_a, rows_a)), (b, (near_b, rows_b))| {
            (near_a, rows_b, a).cmp(&(near_b, rows_a, b))
        });
        self.left_out = found.len().saturating_sub(MAX_WORDS);
        found.truncate(MAX_WORDS);
        let number = |(term, _): &(String, _)| terms.add(term, self.column);
        self.terms = found.iter().map(number).collect();
    }
}

/// Walks a dictionary with a pattern.
pub(crate) struct Walk<'a>(pub &'a Pattern);

/// Where a walk is: within what every term of the column begins with, or behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    Head(usize),
    Body(u32),
    Matched,
    Lost,
}

impl Automaton for Walk<'_> {
    type State = State;

    fn start(&self) -> State {
        State::Head(0)
    }

    fn is_match(&self, state: &State) -> bool {
        match (state, &self.0.matcher) {
            (State::Matched, _) => true,
            (State::Body(state), Matcher::Fuzzy(_, dfa)) => {
                matches!(dfa.distance(*state), Distance::Exact(_))
            }
            _ => false,
        }
    }

    fn can_match(&self, state: &State) -> bool {
        !matches!(state, State::Lost)
    }

    fn accept(&self, state: &State, byte: u8) -> State {
        match (*state, &self.0.matcher) {
            (State::Head(at), Matcher::Prefix(prefix)) => {
                let prefix = prefix.as_bytes();
                match prefix.get(at) == Some(&byte) {
                    true if at + 1 == prefix.len() => State::Matched,
                    true => State::Head(at + 1),
                    false => State::Lost,
                }
            }
            (State::Head(at), Matcher::Fuzzy(head, dfa)) => match head.get(at) == Some(&byte) {
                true if at + 1 == head.len() => State::Body(dfa.initial_state()),
                true => State::Head(at + 1),
                false => State::Lost,
            },
            (State::Body(at), Matcher::Fuzzy(_, dfa)) => match dfa.transition(at, byte) {
                SINK_STATE => State::Lost,
                next => State::Body(next),
            },
            (State::Matched, _) => State::Matched,
            _ => State::Lost,
        }
    }
}
