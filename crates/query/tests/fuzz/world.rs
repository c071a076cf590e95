//! The engine that requests are made to, and each way in.

use std::sync::Arc;

use futures::executor::block_on;
use longbow_disk::MemoryDisk;
use longbow_engine::{Engine, Options, SearchRequest, TextQuery};
use longbow_query::rows::RowsAs;
use longbow_query::sql::{Limits, Session};
use longbow_query::{Conditions, Refusal, SearchObject, Ticket};
use serde_json::json;

use crate::table::table;

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
        let batch = table(ROWS, &[("vector", 2), ("other", 3)]);
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
