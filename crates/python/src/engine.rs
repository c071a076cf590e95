//! The engine as an object of Python.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{Schema, SchemaRef};
use longbow_disk::{Disk, MemoryDisk, RealDisk};
use longbow_engine::{Class, Dataset, Engine as Inner, Options, PutOptions, SearchRequest};
use longbow_query::sql::Limits;
use longbow_query::{Answer, Refusal, SearchObject, Ticket};
use longbow_types::{Config, Host, Inputs, resolve};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{invalid, of, raised};
use crate::held::{Calls, Held};
use crate::nearest::{Nearest, Table};
use crate::parsed::Parsed;
use crate::put::Put;
use crate::queries::Queries;
use crate::rows::Rows;
use crate::sql::{Begun, SqlRows};

/// Name, schema, rows and bytes of a dataset.
type Info = (String, PyArrowType<Schema>, u64, u64);

/// An engine in this process.
#[pyclass(frozen, module = "longbow._engine")]
#[derive(Debug)]
pub struct Engine {
    /// None once it is closed.
    inner: Held<Inner>,
    /// None once it is closed.
    sql: Held<Begun>,
    /// Whether it is on a folder, rather than in memory.
    kept: bool,
    /// The last entry of the log when it was opened, if a checkpoint then would have told nothing new.
    saved: Option<u64>,
    /// Searches as they were sent of late.
    parsed: Parsed,
}

impl Engine {
    /// Lets go of Python's lock for as long as the engine works.
    fn working<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Inner) -> longbow_query::Result<T> + Send,
    ) -> PyResult<T> {
        let worked = self.inner.call(py, |slot| {
            // The lock is for the look alone: calls work side by side, and are not in the way of a close.
            let inner = slot.lock().clone();
            work(&inner.ok_or_else(closed)?)
        })?;
        worked.map_err(raised)
    }

    fn lean_search<'py>(
        &self,
        py: Python<'py>,
        dataset: &str,
        mut request: SearchRequest,
        many: Option<usize>,
    ) -> PyResult<Nearest<'py>> {
        request.is_bare = true;
        if many == Some(0) {
            return Err(invalid("missing_query", "no vectors to search for"));
        }
        let found = self.working(py, |inner| {
            let reply = inner.search(dataset, &request)?.batch;
            Table::new(&reply, request.k, many, inner.options().memory_limit)
        })?;
        found.into_python(py)
    }

    /// As [`Engine::close`], of an engine that nobody else can ask any more.
    fn end(&self, inner: &Inner) -> longbow_engine::Result<()> {
        let moved = self.saved != Some(inner.log_indices().0);
        let new = self.kept && (moved || inner.rebuilt_graphs() > 0);
        let saved = if new {
            inner.checkpoint().map(|_| ())
        } else {
            Ok(())
        };
        // Also where that failed: the log has all that was acknowledged.
        inner.close().and(saved)
    }
}

#[pymethods]
impl Engine {
    /// Opens a data folder, or an engine in memory without one. The settings are texts, as the command line takes them.
    #[new]
    fn open(py: Python<'_>, path: Option<&str>, settings: Vec<(String, String)>) -> PyResult<Self> {
        let config = configured(path, settings)?;
        let mut options = Options::configured(&config);
        let disk: Arc<dyn Disk> = match path {
            Some(_) => Arc::new(RealDisk),
            None => {
                options = options.in_memory();
                Arc::new(MemoryDisk::new())
            }
        };
        let inner = py.detach(|| Inner::open(disk, options)).map_err(of)?;
        let calls = Arc::new(Calls::default());
        Ok(Engine {
            sql: Held::new(Begun::within(Limits::configured(&config)), &calls),
            saved: (inner.recovered().replayed == 0).then(|| inner.log_indices().0),
            inner: Held::new(inner, &calls),
            kept: path.is_some(),
            parsed: Parsed::default(),
        })
    }

    /// Makes a checkpoint if there is something new, so that the next one to open the folder need not build the
    /// indexes anew; then ends the engine's threads once everything is written and synced, and waits for the calls of
    /// other threads, which are refused or done by then. Harmless to call twice, and in a fork of the process.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.inner.is_forked() {
            return Ok(());
        }
        // Statements that run end with it.
        self.sql.call(py, |slot| drop(slot.lock().take()))?;
        let ended = self.inner.call(py, |slot| {
            let taken = slot.lock().take();
            taken.map_or(Ok(()), |inner| self.end(&inner))
        })?;
        self.inner.calls().wait(py);
        ended.map_err(of)
    }

    /// An action by name: JSON in, JSON out.
    fn call<'py>(&self, py: Python<'py>, name: &str, body: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let answer = self.working(py, |inner| longbow_query::run(inner, name, body))?;
        Ok(PyBytes::new(
            py,
            match answer {
                Answer::Deleted(gone) => longbow_query::deleted(gone).to_string().into_bytes(),
                Answer::Json(value) => value.to_string().into_bytes(),
            }
            .as_slice(),
        ))
    }

    /// A search: the object as clients write it, and the queries as a buffer. `first` is the number of the first one,
    /// for a caller that asks in pieces.
    fn search(
        &self,
        py: Python<'_>,
        search: &[u8],
        queries: Option<&Bound<'_, PyAny>>,
        first: Option<i32>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let queries = queries.map(Queries::read).transpose()?;
        let found = self.working(py, |inner| {
            let mut object = SearchObject::parse(search)?;
            if let Some(queries) = queries {
                object = object.with_queries(queries.vectors, queries.many);
            }
            let (dataset, mut request) = object.into_request()?;
            request.first_query = first.or(request.first_query);
            Ok(inner.search(&dataset, &request)?.batch)
        })?;
        Ok(PyArrowType(found))
    }

    /// The lean search: ids and distances. Of several queries each has `k` places.
    #[pyo3(signature = (dataset, queries, k, ef, exact, column, /))]
    #[expect(
        clippy::too_many_arguments,
        reason = "to pack them in Python takes as long as some of the search"
    )]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        dataset: &str,
        queries: &Bound<'py, PyAny>,
        k: i64,
        ef: Option<i64>,
        exact: Option<bool>,
        column: Option<String>,
    ) -> PyResult<Nearest<'py>> {
        Queries::check_array(queries)?;
        let queries = Queries::read(queries)?;
        let many = queries.many.then_some(queries.vectors.len());
        let request = SearchRequest {
            vectors: queries.vectors,
            first_query: many.map(|_| 0),
            exact: exact.unwrap_or(false),
            column,
            ..lean(k, ef).map_err(raised)?
        };
        self.lean_search(py, dataset, request, many)
    }

    /// The same for a search as clients write it.
    fn nearest_where<'py>(
        &self,
        py: Python<'py>,
        search: &[u8],
        queries: &Bound<'py, PyAny>,
    ) -> PyResult<Nearest<'py>> {
        let queries = Queries::read(queries)?;
        let many = queries.many.then_some(queries.vectors.len());
        let parsed = self.parsed.request(search, queries);
        let (dataset, request) = parsed.map_err(raised)?;
        self.lean_search(py, &dataset, request, many)
    }

    /// The rows that a ticket, as clients write it, asks for.
    fn scan(&self, py: Python<'_>, ticket: &[u8]) -> PyResult<Rows> {
        self.working(py, |inner| match Ticket::parse(ticket)? {
            Ticket::Scan { dataset, request } => Ok(Rows::new(
                inner.scan(&dataset, &request)?,
                self.inner.calls(),
            )),
            Ticket::Search { .. } => Err(longbow_query::invalid(
                "bad_ticket",
                "the ticket is of a search; expected one of rows",
            )),
        })
    }

    /// Runs a SQL statement with the values of its parameters.
    fn sql(
        &self,
        py: Python<'_>,
        text: &str,
        parameters: Option<PyArrowType<RecordBatch>>,
    ) -> PyResult<SqlRows> {
        let inner = self.working(py, |inner| Ok(inner.clone()))?;
        let answer = self.sql.call(py, |slot| {
            let session = slot.lock().as_mut().ok_or_else(closed)?.session(&inner)?;
            session.run_blocking(text, parameters.map(|batch| batch.0))
        })?;
        Ok(SqlRows::new(answer.map_err(raised)?, self.inner.calls()))
    }

    /// Begins an insert.
    fn put(
        &self,
        py: Python<'_>,
        dataset: &str,
        schema: PyArrowType<Schema>,
        until_durable: bool,
        add_columns: bool,
    ) -> PyResult<Put> {
        if until_durable && !self.kept {
            let text = "the database is in memory, where nothing is durable; open one on a path";
            return Err(invalid("in_memory", text));
        }
        let schema: SchemaRef = Arc::new(schema.0);
        let kept = self.kept;
        let options = PutOptions {
            until_durable,
            add_columns,
        };
        self.working(py, |inner| {
            let calls = self.inner.calls();
            Ok(Put::begin(inner, calls, dataset, &schema, options, kept)?)
        })
    }

    /// Every dataset.
    fn datasets(&self, py: Python<'_>) -> PyResult<Vec<Info>> {
        self.working(py, |inner| {
            let datasets = inner.catalog().datasets();
            Ok(datasets.iter().map(|dataset| info(dataset)).collect())
        })
    }

    /// One dataset.
    fn dataset(&self, py: Python<'_>, name: &str) -> PyResult<Info> {
        self.working(py, |inner| Ok(info(inner.dataset(name)?.as_ref())))
    }
}

fn closed() -> Refusal {
    let text = "the database was closed; open it again";
    Refusal::new(Class::FailedPrecondition, "closed", text)
}

/// The request of a lean search of some effort, still without its queries.
fn lean(k: i64, ef: Option<i64>) -> longbow_query::Result<SearchRequest> {
    let max = longbow_engine::MAX_K;
    let bad_k = |_| longbow_engine::Error::BadK { got: k, max };
    let bad_ef = |_| longbow_query::invalid("bad_value", "ef is negative; expected 1 to 65536");
    Ok(SearchRequest {
        ef: ef.map(usize::try_from).transpose().map_err(bad_ef)?,
        ..SearchRequest::nearest(Vec::new(), usize::try_from(k).map_err(bad_k)?)
    })
}

fn info(dataset: &Dataset) -> Info {
    let view = dataset.view();
    let schema = view.schema.arrow.as_ref().clone();
    let (name, rows, bytes) = (dataset.name.clone(), view.live, view.bytes());
    (name, PyArrowType(schema), rows, bytes)
}

/// The node's own configuration, of the settings given; no environment and no file is read.
fn configured(path: Option<&str>, settings: Vec<(String, String)>) -> PyResult<Config> {
    let mut known = [&Options::KEYS[..], &Limits::KEYS].concat();
    known.sort_unstable();
    let unknown = |key: &str| !known.contains(&key);
    if let Some((key, _)) = settings.iter().find(|(key, _)| unknown(key)) {
        let known = known.join(", ");
        let text = format!("an engine has no setting '{key}'; known are {known}");
        return Err(invalid("unknown_key", &text));
    }
    let inputs = Inputs {
        flags: settings
            .into_iter()
            .map(|(key, value)| (key.replace('_', "-"), value))
            .collect(),
        environment: Vec::new(),
        file: None,
        host: Host::probe(),
    };
    let resolved = resolve(&inputs).map_err(|error| invalid("bad_value", &error.to_string()))?;
    Ok(Config {
        data_path: Path::new(path.unwrap_or("/memory")).to_path_buf(),
        ..resolved.config()
    })
}
