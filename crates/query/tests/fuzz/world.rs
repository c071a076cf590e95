//! The engine that requests are made to, and each way in.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int8Array,
    Int64Array, RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field};
use futures::executor::block_on;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options, SearchRequest, TextQuery};
use longbow_query::rows::RowsAs;
use longbow_query::sql::{Limits, Session};
use longbow_query::{Conditions, Refusal, SearchObject, Ticket};
use serde_json::json;

/// Rows of the dataset.
const ROWS: i64 = 300;
/// Batches of an answer that are read; a client may go away at any time.
const READ: usize = 100;

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Ticket,
    Search,
    Action(&'static str),
    Where,
    Statement,
    Describe,
    Words,
    Cursor,
    Rows,
}

/// All ways in.
pub const WAYS: [Way; 14] = [
    Way::Ticket,
    Way::Search,
    Way::Action("delete"),
    Way::Action("HybridSearch"),
    Way::Action("VectorSearchByID"),
    Way::Action("CreateNamespace"),
    Way::Action("DeleteNamespace"),
    Way::Action("check_readiness"),
    Way::Where,
    Way::Statement,
    Way::Describe,
    Way::Words,
    Way::Cursor,
    Way::Rows,
];

/// An engine with one dataset, and SQL on it.
pub struct World {
    pub engine: Engine,
    sql: Session,
}

impl World {
    /// As every run begins.
    pub fn new() -> World {
        let engine = Engine::open(Arc::new(MemoryDisk::new()), Options::new("/data"));
        let engine = engine.expect("an engine");
        let limits = Limits {
            memory: 64 << 20,
            timeout: std::time::Duration::from_secs(2),
            ..Limits::default()
        };
        let sql = Session::new(&engine, limits, Vec::new()).expect("a session");
        let world = World { engine, sql };
        world.fill();
        world
    }

    /// Puts all rows, those that are there too.
    fn fill(&self) {
        let batch = table();
        let mut put = self.engine.put("docs", &batch.schema()).expect("a put");
        let pending = put.record_batch(&batch).expect("taken");
        pending.wait().expect("acknowledged");
    }

    /// Puts the rows again if many were deleted, and drops what was made beside them.
    pub fn tidy_up(&self) {
        let docs = self.engine.dataset("docs");
        if docs.is_ok_and(|docs| (250..2_000).contains(&docs.view().live)) {
            return;
        }
        for dataset in self.engine.catalog().datasets() {
            self.engine.drop_dataset(&dataset.name).expect("dropped");
        }
        self.fill();
    }

    /// Makes a request; whether it was answered.
    pub fn ask(&self, way: Way, bytes: &[u8]) -> Result<(), Refusal> {
        let text = String::from_utf8_lossy(bytes);
        match way {
            Way::Ticket => self.get(bytes),
            Way::Search => {
                let (dataset, request) = SearchObject::parse(bytes)?.into_request()?;
                self.search(&dataset, &request)
            }
            Way::Action(name) => longbow_query::run(&self.engine, name, bytes).map(drop),
            Way::Where => {
                let filter = Conditions::shared(None, Some(text.into_owned()))?;
                let request = SearchRequest {
                    filter,
                    ..SearchRequest::nearest(vec![1.0, 2.0], 5)
                };
                self.search("docs", &request)
            }
            Way::Statement => {
                let mut answer = self.sql.run_blocking(&text, None)?;
                for _ in 0..READ {
                    let Some(batch) = answer.next_blocking() else {
                        break;
                    };
                    batch?;
                }
                Ok(())
            }
            Way::Describe => block_on(self.sql.describe(&text, None)).map(drop),
            Way::Words => {
                let request = SearchRequest {
                    vectors: Vec::new(),
                    text: Some(TextQuery {
                        text: text.into_owned(),
                        columns: None,
                    }),
                    ..SearchRequest::nearest(Vec::new(), 5)
                };
                request.check()?;
                self.search("docs", &request)
            }
            Way::Cursor => {
                let ticket = json!({"search": {"dataset": "docs", "vector": [1, 2], "k": 3, "cursor": text}});
                self.get(ticket.to_string().as_bytes())
            }
            Way::Rows => self.put(bytes),
        }
    }

    fn search(&self, dataset: &str, request: &SearchRequest) -> Result<(), Refusal> {
        let found = self.engine.search(dataset, request)?;
        // As the gateway writes it.
        longbow_query::rows::write(&found.batch).map(drop)
    }

    fn get(&self, ticket: &[u8]) -> Result<(), Refusal> {
        match Ticket::parse(ticket)? {
            Ticket::Search { dataset, request } => self.search(&dataset, &request),
            Ticket::Scan { dataset, request } => {
                for batch in self.engine.scan(&dataset, &request)?.decoded().take(READ) {
                    longbow_query::rows::write(&batch?)?;
                }
                Ok(())
            }
        }
    }

    fn put(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let known = self.engine.catalog().find("docs");
        let known = known.map(|dataset| dataset.view().schema.arrow.clone());
        let batch = longbow_query::rows::read(bytes, known.as_ref(), &RowsAs::default())?;
        let mut put = self.engine.put("docs", &batch.schema())?;
        put.record_batch(&batch)?.wait()?;
        Ok(())
    }
}

/// Rows of many types; of every seventh all but the id and the vectors is null.
fn table() -> RecordBatch {
    let ids = || 0..ROWS;
    let some = || ids().map(|id| (id % 7 != 6).then_some(id));
    let vectors = |dim: usize| -> ArrayRef {
        let of = move |id: i64| Some((0..dim).map(move |at| Some(id as f32 + at as f32)));
        let dim = dim as i32;
        let of_all =
            FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(ids().map(of), dim);
        Arc::new(of_all)
    };
    let words = [
        "apple",
        "Apple pie",
        "100% sure",
        "a_b",
        "",
        "grün",
        "x'y",
        "zebra",
    ];
    let n: Int8Array = some().map(|id| Some((id? % 100) as i8 - 5)).collect();
    let x: Float64Array = some().map(|id| Some(id? as f64 / 4.0)).collect();
    let word: StringArray = some().map(|id| Some(words[id? as usize % 8])).collect();
    let parity = |id: Option<i64>| Some(if id? % 2 == 0 { "even" } else { "odd" });
    let kind: DictionaryArray<Int32Type> = some().map(parity).collect();
    let good: BooleanArray = some().map(|id| Some(id? < 3)).collect();
    let day = |id: Option<i64>| Some(1_700_000_000_000 + id? * 86_400_000);
    let at: TimestampMillisecondArray = some().map(day).collect();
    let mut lists = ListBuilder::new(Int32Builder::new());
    for id in ids() {
        (0..id % 5).for_each(|value| lists.values().append_value(value as i32));
        lists.append(id % 7 != 6);
    }
    let inner: ArrayRef = Arc::new(some().collect::<Int64Array>());
    let inner = (Arc::new(Field::new("b", DataType::Int64, true)), inner);
    let numbers = || Int64Array::from_iter_values(ids());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(numbers())),
        ("vector", vectors(2)),
        ("other", vectors(3)),
        ("n", Arc::new(n)),
        ("x", Arc::new(x)),
        ("word", Arc::new(word)),
        ("kind", Arc::new(kind)),
        ("good", Arc::new(good)),
        ("at", Arc::new(at)),
        ("list", Arc::new(lists.finish())),
        ("a", Arc::new(StructArray::from(vec![inner]))),
        ("Big Name", Arc::new(numbers())),
    ];
    let nullable = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable).expect("a batch")
}
