//! What is found, and its scores, against the model: whatever is in pieces, outside of them, or dead.

use std::cell::Cell;

use longbow_text::{Alive, Builder, Column, Hit, Piece, Query, Search, Tokenizer};

use crate::model::{self, Ask, Row};
use crate::random::Random;

const WORDS: Tokenizer = Tokenizer::Words;
const COLUMNS: [Column; 2] = [
    Column {
        number: 3,
        tokenizer: WORDS,
    },
    Column {
        number: 300,
        tokenizer: WORDS,
    },
];

fn vocabulary(random: &mut Random) -> Vec<String> {
    let letter = |random: &mut Random| *random.pick(&['a', 'b', 'c', 'd', 'ü']);
    let word = |random: &mut Random| -> String {
        let first = *random.pick(&['a', 'b', 'c']);
        let second = *random.pick(&['a', 'b', 'c', 'd']);
        let more = random.below(4);
        [first, second]
            .into_iter()
            .chain((0..more).map(|_| letter(random)))
            .collect()
    };
    (0..60).map(|_| word(random)).collect()
}

fn row(random: &mut Random, row: u64, words: &[String]) -> Row {
    let text = |random: &mut Random| {
        // Some lengths beyond those that one byte would hold.
        let most = if random.once_in(10) { 90 } else { 12 };
        let word = |random: &mut Random| {
            let at = random
                .below(words.len() as u64)
                .min(random.below(words.len() as u64));
            words[at as usize].clone()
        };
        let count = random.below(most);
        (!random.once_in(8)).then(|| (0..count).map(|_| word(random)).collect())
    };
    let texts = vec![text(random), text(random)];
    Row { row, texts }
}

/// The texts as a client sends them.
fn texts(row: &Row) -> Vec<Option<String>> {
    let join = |words: &Vec<String>| words.join(" - ").to_uppercase();
    row.texts
        .iter()
        .map(|text| text.as_ref().map(join))
        .collect()
}

fn build(rows: &[Row]) -> Option<Piece> {
    let mut builder = Builder::new(&COLUMNS).expect("a builder");
    for row in rows {
        let texts = texts(row);
        let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        builder.add(row.row, &texts).expect("it is added");
    }
    builder.finish().expect("it is built")
}

/// Pieces of some thousand rows, the last rows in none, some of all dead.
struct World {
    rows: Vec<Row>,
    pieces: Vec<Piece>,
    /// Rows from here on are in no piece.
    watermark: u64,
    dead: Vec<bool>,
    words: Vec<String>,
}

impl World {
    fn new(random: &mut Random) -> World {
        let words = vocabulary(random);
        let (mut rows, mut pieces, mut next) = (Vec::new(), Vec::new(), random.below(1 << 40));
        for _ in 0..random.below(5) {
            let most = if random.once_in(4) { 3_000 } else { 60 };
            let count = random.below(most);
            let begin = rows.len();
            for _ in 0..count {
                rows.push(row(random, next, &words));
                next += 1 + u64::from(random.once_in(3)) * random.below(9);
            }
            pieces.extend(build(&rows[begin..]));
        }
        let watermark = next;
        for _ in 0..random.below(40) {
            rows.push(row(random, next, &words));
            next += 1;
        }
        let share = *random.pick(&[0, 1, 10, 60]);
        let dead = rows.iter().map(|_| random.below(100) < share).collect();
        World {
            rows,
            pieces,
            watermark,
            dead,
            words,
        }
    }

    fn is_dead(&self, row: u64) -> bool {
        let at = self
            .rows
            .binary_search_by_key(&row, |row| row.row)
            .expect("a row");
        self.dead[at]
    }

    fn alive(&self) -> Vec<Alive> {
        let of = |piece| Alive::of(piece, |_, _| true, |row| self.is_dead(row));
        self.pieces.iter().map(of).collect()
    }

    fn find(&self, text: &str, k: usize, wanted: &dyn Fn(u64) -> bool) -> Vec<Hit> {
        let query = Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut search = Search::new(&query, &COLUMNS).expect("few words");
        for row in self.rows.iter().filter(|row| row.row >= self.watermark) {
            if !self.is_dead(row.row) {
                let texts = texts(row);
                let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
                search.add(row.row, &texts);
            }
        }
        let alive = self.alive();
        let pieces: Vec<(&Piece, &Alive)> = self.pieces.iter().zip(&alive).collect();
        search.run(&pieces, k, wanted).expect("it runs").hits
    }

    fn check(&self, ask: &Ask, k: usize, wanted: &dyn Fn(u64) -> bool) {
        let living = |row: &&Row| !self.is_dead(row.row);
        let rows: Vec<Row> = self.rows.iter().filter(living).cloned().collect();
        let mut expected = model::search(&rows, COLUMNS.len(), ask);
        expected.retain(|(row, _)| wanted(*row));
        let text = ask.text();
        let found = self.find(&text, k, wanted);
        assert_eq!(found.len(), k.min(expected.len()), "{text}");
        for (hit, (row, score)) in found.iter().zip(&expected) {
            let right = expected.iter().find(|(row, _)| *row == hit.row);
            let (_, own) = right.unwrap_or_else(|| panic!("{text}: {} should not match", hit.row));
            assert!(
                (f64::from(hit.score) - score).abs() < 1e-5 * score.max(1.0),
                "{text}: {hit:?}, {row} {score}"
            );
            assert!(
                (f64::from(hit.score) - own).abs() < 1e-5 * own.max(1.0),
                "{text}: {hit:?}, {own}"
            );
        }
        let in_order = |pair: &[Hit]| (pair[1].score, pair[0].row) < (pair[0].score, pair[1].row);
        assert!(found.windows(2).all(in_order), "{text}: {found:?}");
    }
}

#[test]
fn scores_are_those_of_the_definition() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let world = World::new(&mut random);
        for _ in 0..6 {
            let ask = Ask::group(&mut random, &world.words, 2);
            let k = *random.pick(&[1, 10, 10_000]);
            let modulus = 1 + random.below(3);
            world.check(&ask, k, &|row| row % modulus == 0);
        }
    }
}

#[test]
fn merged_pieces_find_the_same_without_the_dead() {
    for seed in 1_000..1_040 {
        let mut random = Random(seed);
        let mut world = World::new(&mut random);
        let ask = Ask::group(&mut random, &world.words, 2);
        let before = world.find(&ask.text(), 100, &|_| true);
        let alive = world.alive();
        let living: usize = alive.iter().map(|alive| alive.documents).sum();
        let all: Vec<(&Piece, &Alive)> = world.pieces.iter().zip(&alive).collect();
        let merged = Piece::merge(&all).expect("it merges");
        assert_eq!(merged.as_ref().map_or(0, Piece::len), living);
        let read = |piece: Piece| Piece::decode(piece.encode().expect("bytes")).expect("a piece");
        world.pieces = merged.into_iter().map(read).collect();
        assert_eq!(world.find(&ask.text(), 100, &|_| true), before);
        world.check(&ask, 100, &|_| true);
    }
}

/// Length is rounded to a byte by tantivy's own scores, so these two would be equal.
#[test]
fn long_texts_differ_by_a_word() {
    let text = |count: usize| format!("needle{}", " hay".repeat(count));
    let mut builder = Builder::new(&COLUMNS[..1]).expect("a builder");
    for (row, count) in [(1, 300), (2, 299)] {
        builder
            .add(row, &[Some(&text(count))])
            .expect("it is added");
    }
    let piece = builder.finish().expect("it is built").expect("it has rows");
    let alive = Alive::of(&piece, |_, _| false, |_| true);
    let query = Query::parse("needle").expect("a query");
    let search = Search::new(&query, &COLUMNS[..1]).expect("one word");
    let hits = search
        .run(&[(&piece, &alive)], 2, &|_| true)
        .expect("it runs")
        .hits;
    let rows: Vec<u64> = hits.iter().map(|hit| hit.row).collect();
    assert!(rows == [2, 1] && hits[0].score > hits[1].score, "{hits:?}");
}

#[test]
fn a_search_that_is_told_to_end_gives_what_it_has() {
    let mut builder = Builder::new(&COLUMNS[..1]).expect("a builder");
    for row in 0..10_000 {
        builder.add(row, &[Some("needle")]).expect("it is added");
    }
    let piece = builder.finish().expect("it is built").expect("it has rows");
    let alive = Alive::of(&piece, |_, _| false, |_| true);
    let search = |pieces_of_time: u32| {
        let query = Query::parse("needle").expect("a query");
        let search = Search::new(&query, &COLUMNS[..1]).expect("one word");
        let left = Cell::new(pieces_of_time);
        let is_over = || left.replace(left.get().saturating_sub(1)) == 0;
        let found = search.run_until(&[(&piece, &alive)], 20_000, &|_| true, &is_over);
        let found = found.expect("it runs");
        (found.hits.len(), found.is_partial)
    };
    assert_eq!(search(u32::MAX), (10_000, false));
    assert_eq!(search(0), (0, true));
    let (found, is_partial) = search(2);
    assert!(0 < found && found < 10_000 && is_partial, "{found}");
}

#[test]
fn ngrams_find_words_within_words_and_stems_find_other_forms() {
    let columns = ["ngram", "de"].map(|name| Tokenizer::of_name(name).expect("a tokenizer"));
    let found = |tokenizer, query: &str| -> Vec<u64> {
        let column = [Column {
            number: 0,
            tokenizer,
        }];
        let mut search =
            Search::new(&Query::parse(query).expect("a query"), &column).expect("short");
        for (row, text) in ["Donaudampfschiff", "Damm und Schiffe", "東京都庁"]
            .iter()
            .enumerate()
        {
            search.add(row as u64, &[Some(text)]);
        }
        let hits = search.run(&[], 9, &|_| true).expect("it runs").hits;
        let mut rows: Vec<u64> = hits.iter().map(|hit| hit.row).collect();
        rows.sort_unstable();
        rows
    };
    for (query, expected) in [
        ("dampf", &[0][..]),
        ("schiff", &[0, 1]),
        ("京都庁", &[2]),
        ("du*", &[]),
        ("da*", &[0, 1]),
        ("damm~1", &[1]),
    ] {
        assert_eq!(found(columns[0], query), expected, "{query}");
    }
    for (query, expected) in [
        ("schiff", &[1][..]),
        ("schiffes", &[1]),
        ("schiff*", &[1]),
        ("dampf", &[]),
    ] {
        assert_eq!(found(columns[1], query), expected, "{query}");
    }
}

#[test]
fn a_prefix_of_many_words_says_what_it_left_out() {
    let words: Vec<String> = (0..200).map(|n| format!("w{n:03}")).collect();
    let query = Query::parse("w*").expect("a query");
    let mut search = Search::new(&query, &COLUMNS[..1]).expect("one word");
    // The later a word, the more rows have it.
    for row in 0..200 {
        search.add(row, &[Some(&words[200 - row as usize - 1..].join(" "))]);
    }
    let found = search.run(&[], 200, &|_| true).expect("it runs");
    assert_eq!((found.hits.len(), found.terms_left_out), (200, 72));
}
