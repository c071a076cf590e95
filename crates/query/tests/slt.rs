//! Runs the files of `slt/`: statements and what they answer, in the format of sqllogictest.
//!
//! ```text
//! statement ok              a statement that succeeds; the count of a write is not looked at
//! statement error CODE      one that is refused with this code
//! query [rowsort]           a query, then ---- and its rows, the values of each separated by a blank
//! ```
//!
//! NULL stands for null and (empty) for the empty text. Each file begins with an engine of its own, in memory, which holds
//! the dataset `docs` of five rows.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, BooleanArray, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::Float32Type;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options};
use longbow_query::Refusal;
use longbow_query::sql::{Limits, Session};

/// A column of a name.
fn column(name: &str, values: impl Array + 'static) -> (&str, Arc<dyn Array>, bool) {
    (name, Arc::new(values), true)
}

/// Five rows with nulls among them, at (0, 0), (1, 0), (2, 0), (3, 0) and (0, 4).
fn docs() -> RecordBatch {
    let vectors = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.0, 4.0]];
    let vectors = vectors.map(|vector| Some(vector.map(Some)));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    let titles = [Some("Dune"), Some("Emma"), None, Some("Ulysses"), Some("")];
    let years = [Some(1965), Some(1815), Some(1961), Some(1922), None];
    let prices = [Some(9.5), Some(4.25), None, Some(12.0), Some(4.25)];
    let sold = [Some(true), Some(false), Some(true), None, Some(false)];
    let seconds = [
        Some(0),
        Some(86_400),
        Some(1_700_000_000),
        Some(1_700_086_400),
        None,
    ];
    let times = seconds.map(|second| second.map(|second| second * 1_000_000));
    RecordBatch::try_from_iter_with_nullable([
        column("id", Int64Array::from(vec![1, 2, 3, 4, 5])),
        column("vector", vectors),
        column("title", StringArray::from(titles.to_vec())),
        column("year", Int64Array::from(years.to_vec())),
        column("price", Float64Array::from(prices.to_vec())),
        column("sold", BooleanArray::from(sold.to_vec())),
        column("at", TimestampMicrosecondArray::from(times.to_vec())),
    ])
    .expect("a batch")
}

fn session() -> Session {
    let engine =
        Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data")).expect("an engine");
    let batch = docs();
    let mut put = engine.put("docs", &batch.schema()).expect("a put");
    put.record_batch(&batch)
        .expect("taken")
        .wait()
        .expect("acknowledged");
    Session::new(&engine, Limits::default(), Vec::new()).expect("a session")
}

/// The rows of an answer as lines.
fn lines(session: &Session, text: &str) -> Result<Vec<String>, Refusal> {
    let mut answer = session.run_blocking(text, None)?;
    let mut lines = Vec::new();
    while let Some(batch) = answer.next_blocking() {
        let batch = batch?;
        let options = FormatOptions::default().with_null("NULL");
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> = columns
            .collect::<Result<_, _>>()
            .expect("values that can be shown");
        for row in 0..batch.num_rows() {
            let values = columns
                .iter()
                .map(|column| match column.value(row).to_string() {
                    value if value.is_empty() => "(empty)".to_owned(),
                    value => value,
                });
            lines.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    Ok(lines)
}

/// What a record of a file says, and the line that it begins on.
struct Record<'a> {
    line: usize,
    head: &'a str,
    body: Vec<&'a str>,
}

fn records(text: &str) -> Vec<Record<'_>> {
    let mut records: Vec<Record<'_>> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            open = false;
        } else if let (true, Some(record)) = (open, records.last_mut()) {
            record.body.push(line);
        } else {
            let (line, head) = (number + 1, line);
            records.push(Record {
                line,
                head,
                body: Vec::new(),
            });
            open = true;
        }
    }
    records
}

/// What is wrong with a record, if something is.
fn complaint(session: &Session, record: &Record<'_>) -> Option<String> {
    let split = record.body.iter().position(|line| *line == "----");
    let (statement, expected) = record.body.split_at(split.unwrap_or(record.body.len()));
    let told = lines(session, &statement.join("\n"));
    let words: Vec<&str> = record.head.split(' ').collect();
    match (words.as_slice(), told) {
        (["statement", "ok"], Ok(_)) => None,
        (["statement", "error", code], Err(refusal)) if refusal.code == *code => None,
        (["query", order @ ..], Ok(mut rows)) => {
            let mut expected: Vec<&str> = expected.iter().skip(1).copied().collect();
            if order == ["rowsort"] {
                rows.sort();
                expected.sort_unstable();
            }
            (rows != expected).then(|| {
                format!(
                    "expected\n{}\ngot\n{}",
                    expected.join("\n"),
                    rows.join("\n")
                )
            })
        }
        (_, Err(refusal)) => Some(format!("got {refusal}")),
        (_, Ok(rows)) => Some(format!("got\n{}", rows.join("\n"))),
    }
}

#[test]
fn every_file_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "only {} files", files.len());
    let mut complaints = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        let records = records(&text);
        assert!(!records.is_empty(), "{} is empty", file.display());
        let session = session();
        for record in records {
            if let Some(complaint) = complaint(&session, &record) {
                let _ = writeln!(
                    complaints,
                    "{}:{}: {}\n{complaint}\n",
                    file.display(),
                    record.line,
                    record.head
                );
            }
        }
    }
    assert!(complaints.is_empty(), "\n{complaints}");
}

#[test]
fn a_file_that_is_wrong_fails() {
    let session = session();
    for text in [
        "query\nSELECT 1\n----\n2",
        "query\nSELECT 1\n----",
        "statement ok\nSELEC 1",
        "statement error bad_sql\nSELECT 1",
        "statement error unknown_table\nSELEC 1",
        "nonsense\nSELECT 1",
    ] {
        assert!(complaint(&session, &records(text)[0]).is_some(), "{text}");
    }
}
