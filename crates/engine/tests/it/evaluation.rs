//! How filters are evaluated: piece by piece, until the time is over, and whatever a filter does the engine goes on.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use longbow_disk::MemoryDisk;
use longbow_engine::{
    Class, Deadline, Engine, Error, Filter, FilterError, Predicate, ScanRequest, SearchRequest,
    passing,
};

use crate::quantized::{delete, open, put, rows, schema, vector};

/// Even ids, evaluated so many rows at a time.
#[derive(Debug, Clone)]
struct Pieces {
    most: usize,
    panics: Option<Panics>,
    calls: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Panics {
    WhenBound,
    AtId(i64),
}

impl Pieces {
    fn new(most: usize, panics: Option<Panics>) -> Self {
        Pieces {
            most,
            panics,
            calls: Arc::default(),
        }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Filter for Pieces {
    fn key(&self) -> Option<&str> {
        None
    }

    fn bind(
        &self,
        _dataset: &str,
        _schema: &SchemaRef,
    ) -> Result<Box<dyn Predicate>, Box<dyn FilterError>> {
        assert_ne!(self.panics, Some(Panics::WhenBound), "no filter");
        Ok(Box::new(self.clone()))
    }
}

impl Predicate for Pieces {
    fn columns(&self) -> &[usize] {
        &[0]
    }

    fn mask(&self, rows: &RecordBatch) -> Result<BooleanArray, Box<dyn FilterError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let ids = rows.column(0).as_primitive::<Int64Type>();
        let ids = ids.values().iter().take(self.most);
        let even = ids.map(|id| {
            assert_ne!(self.panics, Some(Panics::AtId(*id)), "no row");
            Some(id % 2 == 0)
        });
        Ok(even.collect())
    }
}

fn engine() -> Engine {
    let engine = open(&MemoryDisk::new());
    put(
        &engine,
        &schema("euclidean", DataType::Float32, None),
        0..20,
        0,
    );
    engine
}

fn search(filter: &Pieces, timeout: Option<Duration>) -> SearchRequest {
    SearchRequest {
        filter: Some(Arc::new(filter.clone())),
        timeout,
        ..SearchRequest::nearest(vector(1), 100)
    }
}

fn scan(engine: &Engine, filter: &Pieces, deadline: Deadline) -> Result<usize, Error> {
    let request = ScanRequest {
        filter: Some(Arc::new(filter.clone())),
        deadline,
        ..ScanRequest::default()
    };
    let pieces = engine.scan("d", &request)?;
    pieces.decoded().map(|batch| Ok(batch?.num_rows())).sum()
}

#[test]
fn pieces_are_put_together_in_their_order() {
    let engine = engine();
    for most in [1, 3, 7, 19, 20, 100] {
        let filter = Pieces::new(most, None);
        let found = engine.search("d", &search(&filter, None)).expect("found");
        assert_eq!(found.batch.num_rows(), 10);
        assert_eq!(filter.calls(), 20_usize.div_ceil(most));
        let scanned = scan(&engine, &filter, Deadline::default());
        assert_eq!(scanned.expect("scanned"), 10);
    }
}

#[test]
fn between_pieces_the_clock_is_looked_at() {
    let batch = rows(&schema("euclidean", DataType::Float32, None), 0..20, 0);
    let limit = Duration::from_millis(5);
    for pieces in [0, 1, 4] {
        let filter = Pieces::new(3, None);
        let looks = Cell::new(0);
        let go_on = || {
            looks.set(looks.get() + 1);
            match looks.get() > pieces {
                true => Err(Error::Timeout(limit)),
                false => Ok(()),
            }
        };
        let refused = passing(&filter, &batch, &go_on).expect_err("no time");
        assert_eq!((refused.code(), filter.calls()), ("timeout", pieces));
    }
}

#[test]
fn no_filter_is_evaluated_after_the_end_of_the_time() {
    let engine = engine();
    let filter = Pieces::new(3, None);
    let refused = engine.search("d", &search(&filter, Some(Duration::ZERO)));
    assert_eq!(refused.expect_err("no time").code(), "timeout");
    let over = Deadline::after(std::time::Instant::now(), Some(Duration::ZERO));
    let refused = scan(&engine, &filter, over);
    assert_eq!(refused.expect_err("no time").code(), "timeout");
    assert_eq!(filter.calls(), 0);
    let enough = Some(Duration::from_secs(1_000));
    assert!(engine.search("d", &search(&filter, enough)).is_ok());
}

#[test]
fn a_filter_that_panics_is_refused_and_the_engine_goes_on() {
    let engine = engine();
    for (most, panics, said) in [
        (3, Panics::WhenBound, "no filter"),
        (3, Panics::AtId(0), "no row"),
        (3, Panics::AtId(19), "no row"),
        // It answers for no row at all, which would never end.
        (0, Panics::AtId(-1), "0 rows of 20"),
    ] {
        let filter = Pieces::new(most, Some(panics));
        let searched = engine.search("d", &search(&filter, None)).map(|_| 0);
        let scanned = scan(&engine, &filter, Deadline::default());
        let deleted = engine.delete_where("d", &filter).map(|_| 0);
        for refused in [searched, scanned, deleted] {
            let refused = refused.expect_err("a panic");
            assert_eq!(refused.code(), "filter_panicked", "{refused}");
            assert_eq!(refused.class(), Class::Internal);
            assert!(refused.to_string().contains(said), "{refused}");
        }
        let good = Pieces::new(most.max(1), None);
        let found = engine.search("d", &search(&good, None)).expect("found");
        assert_eq!(found.batch.num_rows(), 10);
    }
    let filter = Pieces::new(3, Some(Panics::AtId(7)));
    delete(&engine, 7..8);
    let found = engine.search("d", &search(&filter, None));
    assert_eq!(found.expect("row 7 is dead").batch.num_rows(), 10);
}
