//! The rows of a dataset, batch by batch.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{Schema, SchemaRef};
use longbow_engine::{Batch, Error, Piece, Scan};
use pyo3::prelude::*;

use crate::errors::of;
use crate::held::{Calls, Held};

/// A running scan of one moment of a dataset.
#[pyclass(frozen, module = "longbow._engine")]
#[derive(Debug)]
pub struct Rows {
    schema: SchemaRef,
    state: Held<State>,
}

#[derive(Debug)]
struct State {
    scan: Scan,
    /// Of the batch that was read last.
    ready: VecDeque<Piece>,
}

impl Rows {
    /// The rows that a scan gives.
    pub fn new(scan: Scan, calls: &Arc<Calls>) -> Rows {
        let schema = Arc::clone(scan.schema());
        let ready = VecDeque::new();
        Rows {
            schema,
            state: Held::new(State { scan, ready }, calls),
        }
    }
}

#[pymethods]
impl Rows {
    /// The Arrow schema of every batch.
    #[getter]
    fn schema(&self) -> PyArrowType<Schema> {
        PyArrowType(self.schema.as_ref().clone())
    }

    /// The next record batch, or None at the end. Where no row of it died its buffers are those of the dataset.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        let next = self.state.call(py, |slot| match slot.lock().as_mut() {
            Some(state) => state.next(),
            None => Ok(None),
        })?;
        Ok(next.map_err(of)?.map(PyArrowType))
    }
}

impl State {
    fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        while self.ready.is_empty() {
            match self.scan.next() {
                None => return Ok(None),
                Some(pieces) => self.ready.extend(pieces?),
            }
        }
        let Some(piece) = self.ready.pop_front() else {
            return Ok(None);
        };
        Ok(Some(match piece {
            Piece::Slice(batch) | Piece::Picked(batch) => batch,
            Piece::Kept { header, body, .. } => {
                let batch = Batch::from_message(self.scan.schema(), header, body)?;
                batch.view().clone()
            }
        }))
    }
}
