//! What is remembered of filters, and what rows that are gone may do to them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use longbow_disk::MemoryDisk;
use longbow_engine::{
    Engine, Error, Filter, FilterError, Piece, Predicate, ScanRequest, SearchRequest,
};

use crate::condition::{Comparison, Condition};
use crate::quantized::{delete, open, put, schema, vector};

/// Even ids; one id makes it fail.
#[derive(Debug)]
struct Even {
    fails_at: i64,
    key: Option<String>,
}

#[derive(Debug)]
struct BoundEven(i64);

#[derive(Debug, thiserror::Error)]
#[error("row {0} fails")]
struct Fails(i64);

impl FilterError for Fails {
    fn code(&self) -> &'static str {
        "fails"
    }
}

impl Filter for Even {
    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn bind(
        &self,
        _dataset: &str,
        schema: &SchemaRef,
    ) -> Result<Box<dyn Predicate>, Box<dyn FilterError>> {
        assert_eq!(schema.field(0).name(), "id");
        Ok(Box::new(BoundEven(self.fails_at)))
    }
}

impl Predicate for BoundEven {
    fn columns(&self) -> &[usize] {
        &[0]
    }

    fn mask(&self, rows: &RecordBatch) -> Result<BooleanArray, Box<dyn FilterError>> {
        let ids = rows.column(0).as_primitive::<Int64Type>();
        if ids.values().contains(&self.0) {
            return Err(Box::new(Fails(self.0)));
        }
        Ok(ids.iter().map(|id| id.map(|id| id % 2 == 0)).collect())
    }
}

fn found(engine: &Engine, filter: &Arc<dyn Filter>) -> Result<Vec<i64>, Error> {
    let request = SearchRequest {
        filter: Some(Arc::clone(filter)),
        ..SearchRequest::nearest(vector(1), 1_000)
    };
    let reply = engine.search("d", &request)?;
    let mut ids = ids(&reply.batch);
    ids.sort_unstable();
    Ok(ids)
}

fn scanned(engine: &Engine, filter: &Arc<dyn Filter>) -> Result<Vec<i64>, Error> {
    let request = ScanRequest {
        filter: Some(Arc::clone(filter)),
        ..ScanRequest::default()
    };
    let mut all = Vec::new();
    for pieces in engine.scan("d", &request)? {
        for piece in pieces? {
            match piece {
                Piece::Slice(batch) | Piece::Picked(batch) => all.extend(ids(&batch)),
                Piece::Kept { .. } => panic!("rows were left out"),
            }
        }
    }
    all.sort_unstable();
    Ok(all)
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    let ids = batch.column_by_name("id").expect("an id column");
    ids.as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn a_dead_row_does_not_make_a_filter_fail() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    put(
        &engine,
        &schema("euclidean", DataType::Float32, None),
        0..20,
        0,
    );
    for key in [None, Some("even".to_owned())] {
        let filter: Arc<dyn Filter> = Arc::new(Even { fails_at: 7, key });
        for answer in [found(&engine, &filter), scanned(&engine, &filter)] {
            let refused = answer.expect_err("row 7 lives");
            assert_eq!(
                (refused.code(), refused.to_string().as_str()),
                ("fails", "row 7 fails")
            );
        }
    }
    delete(&engine, 7..9);
    for key in [None, Some("even".to_owned())] {
        let filter: Arc<dyn Filter> = Arc::new(Even { fails_at: 7, key });
        let expected = [0, 2, 4, 6, 10, 12, 14, 16, 18];
        assert_eq!(found(&engine, &filter).expect("row 7 is dead"), expected);
        assert_eq!(scanned(&engine, &filter).expect("row 7 is dead"), expected);
    }
}

#[test]
fn what_is_remembered_follows_every_change() {
    let disk = MemoryDisk::new();
    let engine = open(&disk);
    let schema = schema("euclidean", DataType::Float32, None);
    let filter = Condition::new("id", Comparison::Lt, 50).shared();
    let check = |expected: Vec<i64>| {
        assert_eq!(found(&engine, &filter).expect("a search"), expected);
        let fresh = Condition::new("id", Comparison::Lt, 50)
            .forgotten()
            .shared();
        assert_eq!(found(&engine, &fresh).expect("a search"), expected);
    };
    put(&engine, &schema, 40..60, 0);
    check((40..50).collect());
    put(&engine, &schema, 30..45, 1);
    check((30..50).collect());
    delete(&engine, 35..40);
    check((30..35).chain(40..50).collect());
    engine.checkpoint().expect("a checkpoint");
    engine.tidy().expect("compaction");
    put(&engine, &schema, 0..3, 2);
    check((0..3).chain(30..35).chain(40..50).collect());
    let doomed = Condition::new("id", Comparison::Ge, 32);
    engine
        .delete_where("d", &doomed)
        .and_then(|gone| gone.wait())
        .expect("acknowledged");
    check((0..3).chain(30..32).collect());
}
