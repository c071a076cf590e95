//! The rows of a dataset, batch by batch.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::Schema;
use longbow_engine::{Batch, Error, Piece, Scan};
use pyo3::prelude::*;

use crate::errors::of;

/// A running scan of one moment of a dataset.
#[pyclass(frozen, module = "longbow._engine")]
#[derive(Debug)]
pub struct Rows(Mutex<State>);

#[derive(Debug)]
struct State {
    scan: Scan,
    /// Of the batch that was read last.
    ready: VecDeque<Piece>,
}

impl Rows {
    /// The rows that a scan gives.
    pub fn new(scan: Scan) -> Rows {
        Rows(Mutex::new(State {
            scan,
            ready: VecDeque::new(),
        }))
    }
}

#[pymethods]
impl Rows {
    /// The Arrow schema of every batch.
    #[getter]
    fn schema(&self) -> PyArrowType<Schema> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        PyArrowType(state.scan.schema().as_ref().clone())
    }

    /// The next record batch, or None at the end. Where no row of it died its buffers are those of the dataset.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        let next = py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.next()
        });
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
