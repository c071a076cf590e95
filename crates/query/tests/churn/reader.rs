//! A reader: random filtered requests, each answer beside what may be in it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use longbow_engine::Engine;
use longbow_query::Ticket;
use longbow_query::sql::Session;
use serde_json::json;

use crate::Dataset;
use crate::condition::Condition;
use crate::model::Before;
use crate::random::Random;
use crate::rows::{COLUMNS, RANKS, Row, VECTORS, Vectors, distance, read};

/// Conditions that readers come back to: what is remembered of them must follow every write.
const REMEMBERED: usize = 64;

/// What all readers share.
pub struct Readers<'a> {
    pub engine: &'a Engine,
    pub sql: &'a Session,
    pub datasets: &'a [Dataset],
    pub known: Mutex<Vec<Condition>>,
    /// How often each way was gone, and how many rows came back.
    pub ways: Mutex<BTreeMap<String, usize>>,
}

/// One request.
struct Query<'a> {
    to: &'a Dataset,
    vectors: Vectors,
    vector: Vec<f32>,
    k: usize,
    exact: bool,
    condition: Condition,
    as_sql: bool,
}

impl Readers<'_> {
    /// Asks the `number`th question, and checks the answer.
    pub fn ask(&self, number: u64) {
        let mut random = Random(number.wrapping_mul(0x9E37_79B9));
        let vectors = *random.pick(&VECTORS);
        let query = Query {
            to: &self.datasets[random.below(self.datasets.len() as u64) as usize],
            vectors,
            vector: vectors.vector(!number),
            k: 1 + random.below(100) as usize,
            exact: random.once_in(8),
            condition: self.condition(&mut random),
            as_sql: random.once_in(2),
        };
        let before = query.to.model.begin();
        let way = match random.below(20) {
            0 => query.scan(self.engine, &before),
            1 => query.select(self.sql, &before),
            _ => query.search(self.engine, &before, &mut random),
        };
        let mut ways = self.ways.lock().expect("no reader panicked");
        *ways.entry(way).or_default() += 1;
    }

    fn condition(&self, random: &mut Random) -> Condition {
        // One so often that its rows get codes.
        if random.once_in(4) {
            return Condition::Number("rank", "<", RANKS * 3 / 10);
        }
        let mut known = self.known.lock().expect("no reader panicked");
        if known.len() == REMEMBERED && random.once_in(2) {
            return random.pick(&known).clone();
        }
        let new = Condition::random(random);
        match known.len() == REMEMBERED {
            true => known[random.below(REMEMBERED as u64) as usize] = new.clone(),
            false => known.push(new.clone()),
        }
        new
    }
}

impl Query<'_> {
    /// A search as a ticket asks for it; how it was answered.
    fn search(&self, engine: &Engine, before: &Before, random: &mut Random) -> String {
        let mut search = json!({
            "dataset": self.to.name,
            "column": self.vectors.name,
            "vector": self.vector,
            "k": self.k,
            "exact": self.exact,
            "columns": COLUMNS,
            "include_vectors": random.once_in(10),
        });
        self.add_condition(&mut search, random.once_in(10));
        if random.once_in(3) {
            search["ef"] = (1 + random.below(100)).into();
        }
        let ticket = json!({"search": search}).to_string();
        let Ok(Ticket::Search { dataset, request }) = Ticket::parse(ticket.as_bytes()) else {
            panic!("{ticket} is good");
        };
        let found = engine.search(&dataset, &request);
        let found = found.unwrap_or_else(|error| panic!("{ticket}: {error}"));
        let rows = self.check(&found.batch, before, &ticket);
        let steady = self.steady(before);
        assert!(
            rows.len() >= self.k.min(steady.len()),
            "{} rows of {} that pass all the time: {ticket} {:?}",
            rows.len(),
            steady.len(),
            found.info
        );
        assert!(rows.len() <= self.k, "{ticket}");
        assert_eq!(rows.len() < self.k, found.info.short_because.is_some());
        let distances = found.batch.column_by_name("distance").expect("distances");
        let distances = distances.as_primitive::<Float32Type>().values();
        let distances: Vec<f64> = distances
            .iter()
            .map(|distance| (*distance).into())
            .collect();
        self.check_distances(&rows, &distances, &ticket);
        if request.include_vectors {
            self.check_vectors(&found.batch, &rows);
        }
        if found.info.strategy.starts_with("exact") && random.once_in(4) {
            self.check_nearest(&steady, &distances, &ticket);
        }
        found.info.strategy.to_owned()
    }

    fn add_condition(&self, request: &mut serde_json::Value, forgettable: bool) {
        if self.as_sql {
            let now = if forgettable {
                " AND now() > '2020-01-01'"
            } else {
                ""
            };
            request["where"] = format!("{}{now}", self.condition.to_sql()).into();
        } else {
            request["filters"] = json!([self.condition.to_json()]);
        }
    }

    /// All rows that pass, as a ticket asks for them.
    fn scan(&self, engine: &Engine, before: &Before) -> String {
        let mut ticket = json!({"name": self.to.name});
        self.add_condition(&mut ticket, false);
        let ticket = ticket.to_string();
        let Ok(Ticket::Scan { dataset, request }) = Ticket::parse(ticket.as_bytes()) else {
            panic!("{ticket} is good");
        };
        let scan = engine.scan(&dataset, &request).expect("a scan");
        let batches = scan.decoded().map(|batch| batch.expect("rows"));
        self.check_all(batches.collect(), before, &ticket);
        "scan".to_owned()
    }

    /// The nearest rows, or all that pass, as SQL.
    fn select(&self, sql: &Session, before: &Before) -> String {
        let mut text = format!(
            "SELECT id, {}, distance({}, {:?}) AS distance FROM {} WHERE {}",
            COLUMNS.join(", "),
            self.vectors.name,
            self.vector,
            self.to.name,
            self.condition.to_sql()
        );
        if self.exact {
            self.check_all(run(sql, &text), before, &text);
            return "sql".to_owned();
        }
        text += &format!(" ORDER BY distance LIMIT {}", self.k);
        let (mut rows, mut distances) = (Vec::new(), Vec::new());
        for batch in run(sql, &text) {
            rows.extend(self.check(&batch, before, &text));
            let column = batch.column_by_name("distance").expect("distances");
            match column.as_primitive_opt::<Float64Type>() {
                Some(column) => distances.extend(column.values()),
                None => {
                    let column = column.as_primitive::<Float32Type>().values();
                    distances.extend(column.iter().map(|distance| f64::from(*distance)));
                }
            }
        }
        let steady = self.steady(before).len();
        assert!(
            rows.len() >= self.k.min(steady),
            "{} of {steady}: {text}",
            rows.len()
        );
        assert!(rows.len() <= self.k, "{text}");
        self.check_distances(&rows, &distances, &text);
        "sql_nearest".to_owned()
    }

    /// The rows that pass the condition at every moment from then until now.
    fn steady(&self, before: &Before) -> Vec<Row> {
        let mut steady = before.steady(&self.to.model);
        steady.retain(|row| self.condition.holds(row) == Some(true));
        steady
    }

    /// An answer of all rows that pass.
    fn check_all(&self, batches: Vec<RecordBatch>, before: &Before, asked: &str) {
        let mut rows = Vec::new();
        for batch in batches {
            rows.extend(self.check(&batch, before, asked));
        }
        let ids: HashSet<i64> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), rows.len(), "a row is there twice: {asked}");
        for row in self.steady(before) {
            assert!(ids.contains(&row.id), "{row:?} is missing: {asked}");
        }
    }

    /// Every row of an answer was there, is what was written, passes, and is there once.
    fn check(&self, batch: &RecordBatch, before: &Before, asked: &str) -> Vec<Row> {
        let rows = read(batch);
        let mut seen = HashSet::new();
        for row in &rows {
            assert!(seen.insert(row.id), "{row:?} is there twice: {asked}");
            let seen = before.may_be_seen(row, &self.to.model);
            assert!(seen, "{row:?} was not there: {asked}");
            assert_eq!(*row, Row::new(row.id, row.version), "{asked}");
            assert_eq!(self.condition.holds(row), Some(true), "{row:?}: {asked}");
        }
        rows
    }

    fn distance(&self, row: &Row) -> f64 {
        let vector = self.vectors.of(row.id, row.version);
        distance(self.to.metric, &self.vector, &vector)
    }

    /// Distances are those of the rows, and ascend.
    fn check_distances(&self, rows: &[Row], distances: &[f64], asked: &str) {
        assert!(distances.is_sorted(), "{distances:?}: {asked}");
        assert_eq!(rows.len(), distances.len());
        for (row, said) in rows.iter().zip(distances) {
            let true_one = self.distance(row);
            assert!(
                (said - true_one).abs() < 1e-4,
                "{said}, not {true_one}: {asked}"
            );
        }
    }

    fn check_vectors(&self, batch: &RecordBatch, rows: &[Row]) {
        let vectors = batch.column_by_name(self.vectors.name).expect("vectors");
        let vectors = vectors.as_fixed_size_list().values().clone();
        let vectors = vectors
            .as_primitive::<Float32Type>()
            .values()
            .chunks(self.vectors.dim);
        for (row, vector) in rows.iter().zip(vectors) {
            assert_eq!(vector, self.vectors.of(row.id, row.version), "{row:?}");
        }
    }

    /// No row that passes all the time is nearer than one of an exact answer in its place.
    fn check_nearest(&self, steady: &[Row], distances: &[f64], asked: &str) {
        let mut nearest: Vec<f64> = steady.iter().map(|row| self.distance(row)).collect();
        nearest.sort_by(f64::total_cmp);
        for (at, (said, steady)) in distances.iter().zip(&nearest).enumerate() {
            assert!(
                *said <= steady + 1e-4,
                "{at}: {said}, not {steady}: {asked}"
            );
        }
    }
}

fn run(sql: &Session, text: &str) -> Vec<RecordBatch> {
    let mut answer = sql
        .run_blocking(text, None)
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut batches = Vec::new();
    while let Some(batch) = answer.next_blocking() {
        batches.push(batch.unwrap_or_else(|error| panic!("{text}: {error}")));
    }
    batches
}
