//! BM25 and the query language over plain lists of words, by their definitions.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use crate::random::Random;

/// A row: its number, and the words of each column.
#[derive(Debug, Clone)]
pub struct Row {
    pub row: u64,
    pub texts: Vec<Option<Vec<String>>>,
}

#[derive(Debug, Clone)]
pub enum Ask {
    Word(String),
    Prefix(String),
    Fuzzy(String, usize),
    Phrase(Vec<String>),
    Group(Vec<Ask>, Vec<Ask>, Vec<Ask>),
    And(Vec<Ask>, Vec<Ask>),
}

impl Ask {
    /// A query out of some words.
    pub fn random(random: &mut Random, words: &[String], depth: usize) -> Ask {
        let word = random.pick(words).clone();
        match random.below(if depth == 0 { 8 } else { 12 }) {
            0..4 => Ask::Word(word),
            4 => Ask::Prefix(word[..1 + random.below(2) as usize].to_owned()),
            5 => Ask::Fuzzy(word, 1 + random.below(2) as usize),
            6..8 => Ask::Phrase(
                (0..2 + random.below(2))
                    .map(|_| random.pick(words).clone())
                    .collect(),
            ),
            8..11 => Self::group(random, words, depth),
            _ => {
                let must = Self::some(random, words, depth, 1, 3);
                let not = Self::some(random, words, depth, u64::from(must.len() == 1), 2);
                Ask::And(must, not)
            }
        }
    }

    pub fn group(random: &mut Random, words: &[String], depth: usize) -> Ask {
        let must = Self::some(random, words, depth, 0, 2);
        let any = Self::some(random, words, depth, u64::from(must.is_empty()), 4);
        let not = Self::some(random, words, depth, 0, 2);
        Ask::Group(must, any, not)
    }

    fn some(
        random: &mut Random,
        words: &[String],
        depth: usize,
        least: u64,
        most: u64,
    ) -> Vec<Ask> {
        let count = least + random.below(most + 1 - least);
        (0..count)
            .map(|_| Ask::random(random, words, depth.saturating_sub(1)))
            .collect()
    }

    /// As somebody would write it.
    pub fn text(&self) -> String {
        let list = |sign: &str, parts: &[Ask]| -> Vec<String> {
            parts
                .iter()
                .map(|part| format!("{sign}{}", part.text()))
                .collect()
        };
        match self {
            Ask::Word(word) => word.clone(),
            Ask::Prefix(word) => format!("{word}*"),
            Ask::Fuzzy(word, distance) => format!("{word}~{distance}"),
            Ask::Phrase(words) => format!("\"{}\"", words.join(" ")),
            Ask::Group(must, any, not) => {
                let parts = [list("+", must), list("", any), list("-", not)].concat();
                format!("({})", parts.join(" "))
            }
            Ask::And(must, not) => {
                let parts = [list("", must), list("NOT ", not)].concat();
                format!("({})", parts.join(" AND "))
            }
        }
    }
}

/// All rows that match, with their scores, best first.
pub fn search(rows: &[Row], columns: usize, ask: &Ask) -> Vec<(u64, f64)> {
    let mut model = Model {
        rows,
        columns,
        means: Vec::new(),
        rarities: RefCell::default(),
    };
    let mean = |column| {
        let lengths = model.texts(column).map(Vec::len);
        lengths.sum::<usize>() as f64 / model.texts(column).count() as f64
    };
    model.means = (0..columns).map(mean).collect();
    let score = |row: &Row| Some((row.row, model.score(row, ask)?));
    let mut found: Vec<(u64, f64)> = rows.iter().filter_map(score).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found
}

struct Model<'a> {
    rows: &'a [Row],
    columns: usize,
    means: Vec<f64>,
    /// What was counted once is not counted again.
    rarities: RefCell<HashMap<(usize, String), f64>>,
}

impl Model<'_> {
    fn texts(&self, column: usize) -> impl Iterator<Item = &Vec<String>> {
        self.rows
            .iter()
            .filter_map(move |row| row.texts[column].as_ref())
    }

    fn idf(&self, column: usize, word: &str) -> f64 {
        let key = (column, word.to_owned());
        if let Some(known) = self.rarities.borrow().get(&key) {
            return *known;
        }
        let n = self.texts(column).count() as f64;
        let has = |text: &&Vec<String>| text.iter().any(|w| w == word);
        let df = self.texts(column).filter(has).count() as f64;
        let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
        self.rarities.borrow_mut().insert(key, idf);
        idf
    }

    fn weigh(&self, column: usize, idf: f64, tf: usize, length: usize) -> f64 {
        let tf = tf as f64;
        idf * tf / (tf + 1.2 * (1.0 - 0.75 + 0.75 * length as f64 / self.means[column]))
    }

    fn word(&self, text: &[String], column: usize, word: &str) -> Option<f64> {
        let tf = text.iter().filter(|w| *w == word).count();
        (tf > 0).then(|| self.weigh(column, self.idf(column, word), tf, text.len()))
    }

    fn score(&self, row: &Row, ask: &Ask) -> Option<f64> {
        match ask {
            Ask::Group(must, any, not) => self.group(row, must, any, not),
            Ask::And(must, not) => self.group(row, must, &[], not),
            leaf => sum((0..self.columns).map(|column| self.leaf(row, column, leaf))),
        }
    }

    fn leaf(&self, row: &Row, column: usize, leaf: &Ask) -> Option<f64> {
        let text = row.texts[column].as_ref()?;
        // Only the row's own words can add to its score.
        // Only the row's own words can add to its score.
        let any_of = |matches: &dyn Fn(&str) -> bool| {
            let words = text.iter().filter(|word| matches(word));
            let words: BTreeSet<&String> = words.collect();
            sum(words.iter().map(|word| self.word(text, column, word)))
        };
        match leaf {
            Ask::Word(word) => self.word(text, column, word),
            Ask::Prefix(prefix) => any_of(&|word| word.starts_with(prefix)),
            Ask::Fuzzy(near, most) => any_of(&|word| edits(word, near) <= *most),
            Ask::Phrase(words) => {
                let tf = text
                    .windows(words.len())
                    .filter(|part| part == words)
                    .count();
                let idf = words.iter().map(|word| self.idf(column, word)).sum();
                (tf > 0).then(|| self.weigh(column, idf, tf, text.len()))
            }
            Ask::Group(..) | Ask::And(..) => None,
        }
    }

    fn group(&self, row: &Row, must: &[Ask], any: &[Ask], not: &[Ask]) -> Option<f64> {
        let needed: Option<Vec<f64>> = must.iter().map(|ask| self.score(row, ask)).collect();
        let more = sum(any.iter().map(|ask| self.score(row, ask)));
        if not.iter().any(|ask| self.score(row, ask).is_some()) || must.is_empty() && more.is_none()
        {
            return None;
        }
        Some(needed?.iter().sum::<f64>() + more.unwrap_or(0.0))
    }
}

fn sum(scores: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    scores.flatten().reduce(|a, b| a + b)
}

/// The edit distance in which neighbours that changed places are one edit.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let same = usize::from(a[i - 1] != b[j - 1]);
                    let mut least = (table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                    least = least.min(table[i - 1][j - 1] + same);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(table[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    table[a.len()][b.len()]
}
