//! SQL, and the rows that a statement answers.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{Schema, SchemaRef};
use longbow_engine::Engine;
use longbow_query::sql::{Answer, Limits, Session};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::held::{Calls, Held};

/// The session of a database, begun with its first statement: most databases see none, and it has threads.
#[derive(Debug)]
pub struct Begun {
    limits: Limits,
    session: Option<Arc<Session>>,
}

impl Begun {
    /// None yet; its statements will have these limits.
    pub fn within(limits: Limits) -> Begun {
        let session = None;
        Begun { limits, session }
    }

    /// The session.
    ///
    /// # Errors
    /// If the system has no threads for it.
    pub fn session(&mut self, engine: &Engine) -> longbow_query::Result<Arc<Session>> {
        if let Some(session) = &self.session {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::new(engine, self.limits.clone(), Vec::new())?);
        Ok(Arc::clone(self.session.insert(session)))
    }
}

/// The rows of an answer, as they are computed.
#[pyclass(frozen, module = "longbow._engine")]
#[derive(Debug)]
pub struct SqlRows {
    schema: SchemaRef,
    answer: Held<Answer>,
}

impl SqlRows {
    /// The rows of this answer.
    pub fn new(answer: Answer, calls: &Arc<Calls>) -> SqlRows {
        SqlRows {
            schema: Arc::clone(answer.schema()),
            answer: Held::new(answer, calls),
        }
    }
}

#[pymethods]
impl SqlRows {
    /// The Arrow schema of every batch.
    #[getter]
    fn schema(&self) -> PyArrowType<Schema> {
        PyArrowType(self.schema.as_ref().clone())
    }

    /// The next record batch, or None at the end.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        let next = self.answer.call(py, |slot| {
            slot.lock().as_mut().and_then(Answer::next_blocking)
        })?;
        Ok(next.transpose().map_err(raised)?.map(PyArrowType))
    }
}
