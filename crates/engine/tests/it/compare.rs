//! An engine beside its model.

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_select::concat::concat_batches;
use longbow_engine::{
    Engine, Id, Piece, Result, ScanRequest, SearchReply, SearchRequest, TextQuery,
};
use longbow_storage::Batch;

use crate::condition::Comparison;
use crate::model::Model;
use crate::random::Random;
use crate::rows::{Extra, Row, SECOND_DIM, Shape, Test};

/// The rows of a scan, in one batch.
pub fn scan(engine: &Engine, name: &str, request: &ScanRequest) -> Result<RecordBatch> {
    let scan = engine.scan(name, request)?;
    let schema = scan.schema().clone();
    let mut batches = Vec::new();
    for pieces in scan {
        for piece in pieces? {
            batches.push(match piece {
                Piece::Kept { header, body, rows } => {
                    let batch = Batch::from_message(&schema, header, body)?.record_batch(None)?;
                    assert_eq!(batch.num_rows(), rows);
                    batch
                }
                Piece::Slice(batch) | Piece::Picked(batch) => batch,
            });
        }
    }
    Ok(concat_batches(&schema, &batches)?)
}

/// How a dataset differs from its model, if it does: its rows, in order, with all columns.
pub fn difference(engine: &Engine, name: &str, shape: &Shape, model: &Model) -> Option<String> {
    let Ok(dataset) = engine.dataset(name) else {
        return model.exists.then(|| format!("{name} is gone"));
    };
    if !model.exists {
        return Some(format!("{name} is there"));
    }
    let rows = model.rows().cloned().collect::<Vec<_>>();
    let expected = shape.batch(&model.extras, &rows);
    let got = match scan(engine, name, &ScanRequest::default()) {
        Ok(got) => got,
        Err(error) => return Some(format!("the scan of {name} fails: {error}")),
    };
    if got.schema().fields() != expected.schema().fields() {
        return Some(format!(
            "{name} has {:?}, expected {:?}",
            got.schema(),
            expected.schema()
        ));
    }
    for (at, field) in got.schema().fields().iter().enumerate() {
        let (got, expected) = (got.column(at), expected.column(at));
        if got != expected {
            let same = |row: &usize| got.slice(*row, 1) == expected.slice(*row, 1);
            let shorter = got.len().min(expected.len());
            let row = (0..shorter).find(|row| !same(row)).unwrap_or(shorter);
            let (found, wanted) = (got.len(), expected.len());
            let show = |column: &ArrayRef| {
                format!("{:?}", column.slice(row, usize::from(row < column.len())))
            };
            return Some(format!(
                "{name}.{} has {found} of {wanted} rows, row {row} is {}, expected {}",
                field.name(),
                show(got),
                show(expected)
            ));
        }
    }
    let live = dataset.view().live;
    (live != rows.len() as u64).then(|| format!("{name} counts {live} of {} rows", rows.len()))
}

/// Fails if a dataset is not as its model in what scans, lookups and searches say. Gives how many of the nearest
/// rows the searches by graph found, and how many there are.
pub fn check(
    engine: &Engine,
    name: &str,
    shape: &Shape,
    model: &Model,
    random: &mut Random,
) -> [usize; 2] {
    if let Some(difference) = difference(engine, name, shape, model) {
        panic!("{difference}");
    }
    check_text(engine, name, shape, model, random);
    if !model.exists {
        return [0, 0];
    }
    check_window(engine, name, shape, model, random);
    check_lookups(engine, name, shape, model, random);
    let mut recall = search(engine, name, shape, model, false, random);
    if model.extras.contains(&Extra::Second) {
        let more = search(engine, name, shape, model, true, random);
        recall = [recall[0] + more[0], recall[1] + more[1]];
    }
    recall
}

/// A scan of some columns of some rows.
fn check_window(engine: &Engine, name: &str, shape: &Shape, model: &Model, random: &mut Random) {
    let tests = test(model, random);
    let (offset, limit) = (random.below(model.len() as u64 + 2), random.below(30));
    let window = ScanRequest {
        columns: vec!["version".into(), "id".into()],
        limit: Some(limit),
        offset,
        filter: tests.map(|test| test.condition(shape).shared()),
        ..ScanRequest::default()
    };
    let passing = model
        .rows()
        .filter(|row| tests.iter().all(|test| row.passes(test)));
    let expected = passing
        .skip(offset as usize)
        .take(limit as usize)
        .cloned()
        .collect::<Vec<_>>();
    let got = scan(engine, name, &window).expect("a scan");
    let whole = shape.batch(&[], &expected);
    assert_eq!(got.num_columns(), 2, "{window:?}");
    assert_eq!(got.column(0), whole.column(2), "{window:?}");
    assert_eq!(got.column(1), whole.column(0), "{window:?}");
}

/// Rows by id.
fn check_lookups(engine: &Engine, name: &str, shape: &Shape, model: &Model, random: &mut Random) {
    let dataset = engine.dataset(name).expect("it exists");
    for _ in 0..5 {
        let key = random.below(200) as u32;
        let (row, found) = (model.get(key), dataset.find(&shape.id(key)));
        assert_eq!(found.is_some(), row.is_some(), "{name}: key {key}");
        let vector = engine.vector_of(name, &shape.id(key), Some("vector")).ok();
        assert_eq!(
            vector,
            row.map(|row| shape.vector(row.version).to_vec()),
            "{name}: key {key}"
        );
    }
}

/// A test that some rows may pass, or none of them.
pub fn test(model: &Model, random: &mut Random) -> Option<Test> {
    const ORDERS: [Comparison; 6] = [
        Comparison::Eq,
        Comparison::Ne,
        Comparison::Gt,
        Comparison::Ge,
        Comparison::Lt,
        Comparison::Le,
    ];
    let newest = model.rows().next_back().map_or(1, |row| row.version);
    let oldest = model.rows().next().map_or(0, |row| row.version);
    let comparison = *random.pick(&ORDERS);
    let (field, value) = match random.below(5) {
        0 => return None,
        1 => (
            "version",
            oldest + random.below(u64::from(newest.max(oldest) - oldest) + 1) as u32,
        ),
        2 => ("tag", random.below(10) as u32),
        3 if model.extras.contains(&Extra::Number) => ("number", random.below(50) as u32),
        _ => ("id", random.below(150) as u32),
    };
    Some(Test {
        field,
        comparison,
        value,
    })
}

/// Searches of one vector column, exact and by default, with and without a filter.
fn search(
    engine: &Engine,
    name: &str,
    shape: &Shape,
    model: &Model,
    second: bool,
    random: &mut Random,
) -> [usize; 2] {
    let query = match second {
        false => shape.numbers::<4>(random.next()).to_vec(),
        true => (0..SECOND_DIM).map(|_| random.below(32) as f32).collect(),
    };
    let k = 1 + random.below(20) as usize;
    let filter = test(model, random);
    let plain = SearchRequest {
        column: Some(if second { "second" } else { "vector" }.into()),
        ..SearchRequest::nearest(query.clone(), k)
    };
    let filtered = SearchRequest {
        filter: filter.map(|test| test.condition(shape).shared()),
        ..plain.clone()
    };
    let look = Look {
        shape,
        model,
        second,
        query: &query,
    };
    for exact in [plain.clone(), filtered.clone()].map(|request| SearchRequest {
        exact: true,
        ..request
    }) {
        let reply = engine.search(name, &exact).expect("a search");
        let test = filter.as_ref().filter(|_| exact.filter.is_some());
        assert_eq!(
            look.found(&reply),
            Vec::from_iter(look.nearest(k, test)),
            "{name}: {exact:?}"
        );
    }
    let mut recall = [0, 0];
    for request in [plain, filtered] {
        let test = filter.as_ref().filter(|_| request.filter.is_some());
        let reply = engine.search(name, &request).expect("a search");
        let (found, nearest) = (look.found(&reply), look.nearest(k, test));
        assert_eq!(
            found.len(),
            nearest.len(),
            "{name}: {request:?} came short: {:?}",
            reply.info
        );
        let exact = ["exact", "exact_filtered", "graph_then_exact"];
        // A graph and a tail is not exact however many rows the tail has: dead ones count too.
        if exact.contains(&reply.info.strategy) {
            assert_eq!(found, nearest, "{name}: {request:?}, {:?}", reply.info);
        }
        let last = nearest.last().copied().unwrap_or(Near(0.0));
        recall[0] += found
            .iter()
            .filter(|distance| distance.0 <= last.0 + SLACK)
            .count();
        recall[1] += nearest.len();
    }
    recall
}

/// How far apart distances may be that are the same: sums are made in another order.
const SLACK: f32 = 2e-3;

/// A distance.
#[derive(Debug, Clone, Copy)]
struct Near(f32);

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        (self.0 - other.0).abs() <= SLACK
    }
}

/// One query on one column.
struct Look<'a> {
    shape: &'a Shape,
    model: &'a Model,
    second: bool,
    query: &'a [f32],
}

impl Look<'_> {
    /// The distances of a reply. Each row of it lives, has that distance, and is there once.
    fn found(&self, reply: &SearchReply) -> Vec<Near> {
        let distances = reply.batch.column_by_name("distance").expect("a column");
        let distances = distances.as_primitive::<Float32Type>();
        assert_eq!(distances.null_count(), 0);
        let ids = reply.ids().expect("ids");
        let mut seen = std::collections::HashSet::new();
        let close = |id: &Id, distance: f32| {
            let row: &Row = self
                .model
                .get(self.shape.key(id))
                .expect("only living rows");
            let own = self
                .model
                .distance(self.shape, self.second, self.query, row);
            own.is_some_and(|own| (own - distance).abs() < 1e-3)
        };
        for (id, distance) in ids.iter().zip(distances.values()) {
            assert!(seen.insert(id.clone()), "{id} is there twice");
            assert!(close(id, *distance), "{id} is not {distance} away");
        }
        distances.values().iter().copied().map(Near).collect()
    }

    fn nearest(&self, k: usize, test: Option<&Test>) -> Vec<Near> {
        let distances = self
            .model
            .nearest(self.shape, self.second, self.query, k, test);
        distances.into_iter().map(Near).collect()
    }
}

/// Fails if the words of tags and texts do not find the rows that have them, with the scores of the definition.
fn check_text(engine: &Engine, name: &str, shape: &Shape, model: &Model, random: &mut Random) {
    if !model.exists {
        return;
    }
    let (tag, text) = (random.below(10) as u32, random.below(50) as u32);
    let words = format!("t{tag} s{text}");
    let query = TextQuery {
        text: words,
        columns: None,
    };
    let found = engine.text_search(name, &query, usize::MAX >> 1);
    let found = found.expect("a good query of a dataset that is there");
    let rows: Vec<&Row> = model.rows().collect();
    let tag_of = |row: &Row| row.tag;
    let has_text = model.extras.contains(&Extra::Text);
    let text_of = |row: &Row| row.extras[Extra::Text as usize].filter(|_| has_text);
    // All texts are of one word, so each is as long as the mean.
    let score = |of: &dyn Fn(&Row) -> Option<u32>, value: u32, row: &Row| {
        let n = rows.iter().filter(|row| of(row).is_some()).count() as f64;
        let df = rows.iter().filter(|row| of(row) == Some(value)).count() as f64;
        let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
        (of(row) == Some(value)).then_some(idf / 2.2)
    };
    let tagged = rows.iter().find(|row| tag_of(row) == Some(tag));
    let by_tag = tagged.and_then(|row| score(&tag_of, tag, row));
    let worded = rows.iter().find(|row| text_of(row) == Some(text));
    let by_text = worded.and_then(|row| score(&text_of, text, row));
    let mut expected = std::collections::HashMap::new();
    for row in &rows {
        let by_tag = by_tag.filter(|_| tag_of(row) == Some(tag));
        let by_text = by_text.filter(|_| text_of(row) == Some(text));
        if by_tag.is_some() || by_text.is_some() {
            let sum = by_tag.unwrap_or(0.0) + by_text.unwrap_or(0.0);
            expected.insert(shape.id(row.key).to_string(), sum);
        }
    }
    assert_eq!(found.len(), expected.len(), "{name}: {query:?}");
    for (id, score) in &found {
        let right = expected.get(&id.to_string()).copied().unwrap_or(-1.0);
        let close = (f64::from(*score) - right).abs() < 1e-5;
        assert!(close, "{name}: {query:?} gives {id} {score}, not {right}");
    }
    assert!(found.windows(2).all(|pair| pair[0].1 >= pair[1].1));
}
