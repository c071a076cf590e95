//! Rows whose whole content follows from their id and version, so that any wrong value is seen.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use arrow_schema::Schema;
use longbow_engine::METRIC_KEY;

use crate::random::{Random, mix};

/// Ranks are below this, evenly: by them a condition is as selective as it is to be.
pub const RANKS: i64 = 1_000_000;
/// Values of the column `kind`.
pub const KINDS: u64 = 20;
/// Values of the column `word`.
pub const WORDS: u64 = 100;

const SYLLABLES: [&str; 10] = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu"];

/// Columns that say what a row is.
pub const COLUMNS: [&str; 6] = ["version", "rank", "price", "kind", "word", "flag"];

/// A vector column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vectors {
    pub name: &'static str,
    pub dim: usize,
}

/// One whose graph holds whole vectors, and one whose graph holds codes where the metric has them.
pub const VECTORS: [Vectors; 2] = [
    Vectors {
        name: "plain",
        dim: 8,
    },
    Vectors {
        name: "long",
        dim: 96,
    },
];

impl Vectors {
    /// The vector of a row.
    pub fn of(self, id: i64, version: i64) -> Vec<f32> {
        self.vector(mix(id as u64) ^ mix(!version as u64) ^ self.dim as u64)
    }

    /// A vector that no other seed has.
    pub fn vector(self, seed: u64) -> Vec<f32> {
        let mut random = Random(seed);
        let element = |_| (random.next() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..self.dim).map(element).collect()
    }
}

/// The `number`th word.
pub fn word(number: u64) -> String {
    let syllable = |number: u64| SYLLABLES[(number % 10) as usize];
    format!("{}{}", syllable(number / 10), syllable(number))
}

/// The `number`th kind.
pub fn kind(number: u64) -> String {
    format!("kind{number}")
}

/// What a row holds beside its vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: i64,
    pub version: i64,
    pub rank: i64,
    pub price: Option<f64>,
    pub kind: u64,
    pub word: Option<u64>,
    pub flag: Option<bool>,
}

impl Row {
    /// The row of an id and a version.
    pub fn new(id: i64, version: i64) -> Row {
        let mut random = Random(mix(id as u64) ^ version as u64);
        let rank = random.below(RANKS as u64) as i64;
        let bits = random.next();
        Row {
            id,
            version,
            rank,
            price: (bits & 15 != 0).then_some((bits >> 4 & 0xFFFF) as f64 / 64.0),
            kind: (bits >> 20) % KINDS,
            word: (bits >> 28 & 15 != 0).then_some((bits >> 32) % WORDS),
            flag: (bits >> 40 & 15 != 0).then_some(bits >> 44 & 1 == 1),
        }
    }
}

/// Rows as they are put, of a dataset of this metric.
pub fn batch(rows: &[Row], metric: &str) -> RecordBatch {
    let ints = |of: fn(&Row) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
    };
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", ints(|row| row.id)),
        ("version", ints(|row| row.version)),
    ];
    let ranks = rows.iter().map(|row| row.rank as i32);
    columns.push(("rank", Arc::new(Int32Array::from_iter_values(ranks))));
    let prices: Float64Array = rows.iter().map(|row| row.price).collect();
    columns.push(("price", Arc::new(prices)));
    let kinds = rows.iter().map(|row| kind(row.kind));
    columns.push(("kind", Arc::new(StringArray::from_iter_values(kinds))));
    let words: StringArray = rows.iter().map(|row| row.word.map(word)).collect();
    columns.push(("word", Arc::new(words)));
    let flags: BooleanArray = rows.iter().map(|row| row.flag).collect();
    columns.push(("flag", Arc::new(flags)));
    for vectors in VECTORS {
        let of = |row: &Row| Some(vectors.of(row.id, row.version).into_iter().map(Some));
        let dim = vectors.dim as i32;
        let column =
            FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows.iter().map(of), dim);
        columns.push((vectors.name, Arc::new(column)));
    }
    let nullable = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).expect("columns of one length");
    let metadata = HashMap::from([(METRIC_KEY.to_owned(), metric.to_owned())]);
    let fields = batch.schema().fields().clone();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    batch.with_schema(schema).expect("the same fields")
}

/// The rows of an answer as it says them.
pub fn read(batch: &RecordBatch) -> Vec<Row> {
    let column = |name: &str| {
        let column = batch.column_by_name(name);
        column.unwrap_or_else(|| panic!("no column {name}"))
    };
    let (ids, versions) = (column("id"), column("version"));
    let ids = ids.as_primitive::<Int64Type>().values();
    let versions = versions.as_primitive::<Int64Type>().values();
    let ranks = column("rank").as_primitive::<Int32Type>();
    let prices = column("price").as_primitive::<Float64Type>();
    let kinds = column("kind").as_string::<i32>();
    let words = column("word").as_string::<i32>();
    let flags = column("flag").as_boolean();
    let place = |texts: &StringArray, at: usize, name: fn(u64) -> String, count: u64| {
        let text = texts.value(at);
        let found = (0..count).find(|number| name(*number) == text);
        found.unwrap_or_else(|| panic!("no row holds '{text}'"))
    };
    (0..batch.num_rows())
        .map(|at| Row {
            id: ids[at],
            version: versions[at],
            rank: i64::from(ranks.value(at)),
            price: prices.is_valid(at).then(|| prices.value(at)),
            kind: place(kinds, at, kind, KINDS),
            word: words.is_valid(at).then(|| place(words, at, word, WORDS)),
            flag: flags.is_valid(at).then(|| flags.value(at)),
        })
        .collect()
}

/// The distance between a query and a vector, as the metric's users know it.
pub fn distance(metric: &str, query: &[f32], vector: &[f32]) -> f64 {
    let pairs = || {
        let pairs = query.iter().zip(vector);
        pairs.map(|(a, b)| (f64::from(*a), f64::from(*b)))
    };
    let dot: f64 = pairs().map(|(a, b)| a * b).sum();
    match metric {
        "euclidean" => {
            let squares: f64 = pairs().map(|(a, b)| (a - b) * (a - b)).sum();
            squares.sqrt()
        }
        "cosine" => {
            let (one, other): (f64, f64) = pairs().fold((0.0, 0.0), |(one, other), (a, b)| {
                (one + a * a, other + b * b)
            });
            1.0 - dot / (one * other).sqrt()
        }
        _ => -dot,
    }
}
