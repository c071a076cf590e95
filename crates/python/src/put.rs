//! An insert: batches in, acknowledgements counted.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, SchemaRef};
use longbow_engine::{Engine, Error, Pending, PutOptions, PutSession};
use longbow_query::{Refusal, invalid};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::held::{Calls, Held};

/// Bytes that may wait for the log before the caller waits for it.
const IN_FLIGHT_BYTES: usize = 64 << 20;

/// One stream of batches into one dataset.
#[pyclass(frozen, module = "longbow._engine")]
#[derive(Debug)]
pub struct Put(Held<State>);

#[derive(Debug)]
struct State {
    engine: Engine,
    session: Option<PutSession>,
    waiting: VecDeque<(Pending, usize)>,
    bytes: usize,
    told: Told,
    /// Whether what is acknowledged survives the end of the process.
    kept: bool,
}

/// The acknowledgements so far, added up.
#[derive(Debug, Clone, Copy)]
struct Told {
    rows: u64,
    batches: u64,
    offset: Option<u64>,
    durable: bool,
    slow_downs: u64,
}

impl Put {
    /// Begins a stream; `kept` says whether the engine's disk outlives the process.
    ///
    /// # Errors
    /// If the dataset's name or the schema is not acceptable.
    pub fn begin(
        engine: &Engine,
        calls: &Arc<Calls>,
        dataset: &str,
        schema: &SchemaRef,
        options: PutOptions,
        kept: bool,
    ) -> Result<Put, Error> {
        engine.check_writable()?;
        let session = engine.put_with(dataset, schema, options)?;
        let state = State {
            engine: engine.clone(),
            session: Some(session),
            waiting: VecDeque::new(),
            bytes: 0,
            told: Told {
                rows: 0,
                batches: 0,
                offset: None,
                durable: true,
                slow_downs: 0,
            },
            kept,
        };
        Ok(Put(Held::new(state, calls)))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State) -> longbow_query::Result<T> + Send,
    ) -> PyResult<T> {
        let worked = self.0.call(py, |slot| match slot.lock().as_mut() {
            Some(state) => work(state),
            None => Err(ended().into()),
        })?;
        worked.map_err(raised)
    }
}

#[pymethods]
impl Put {
    /// Hands a batch to the log, and waits if too much of the stream waits there already.
    fn write(&self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        let PyArrowType(batch) = batch;
        self.with(py, move |state| {
            check(&batch).map_err(|error| invalid("bad_batch", &error.to_string()))?;
            Ok(state.write(&batch)?)
        })
    }

    /// Waits until all is acknowledged, and ends the stream: rows, batches, the offset of the last one, whether all are
    /// durable, and how often less speed was asked for.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, u64, Option<u64>, bool, u64)> {
        let told = self.with(py, |state| state.finish().map_err(Refusal::from))?;
        Ok((
            told.rows,
            told.batches,
            told.offset,
            told.durable,
            told.slow_downs,
        ))
    }

    /// Waits until what was written is acknowledged, and ends the stream without more.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| {
            state.session = None;
            Ok(state.settle(0)?)
        })
    }
}

impl State {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.engine.check_writable()?;
        let session = self.session.as_mut().ok_or_else(ended)?;
        let bytes = batch.get_array_memory_size();
        self.waiting
            .push_back((session.record_batch(batch)?, bytes));
        self.bytes += bytes;
        self.settle(IN_FLIGHT_BYTES)
    }

    fn finish(&mut self) -> Result<Told, Error> {
        self.settle(0)?;
        if let Some(session) = self.session.take() {
            session.finish()?;
        }
        Ok(self.told)
    }

    /// Waits until no more than `most` bytes wait.
    fn settle(&mut self, most: usize) -> Result<(), Error> {
        while self.bytes > most || most == 0 {
            let Some((pending, bytes)) = self.waiting.pop_front() else {
                break;
            };
            self.bytes -= bytes;
            let applied = pending.wait()?;
            self.told.rows += applied.rows;
            self.told.batches += 1;
            self.told.offset = Some(applied.offset);
            self.told.durable &= applied.durable && self.kept;
            self.told.slow_downs += u64::from(self.engine.pressure().is_some());
        }
        Ok(())
    }
}

fn ended() -> Error {
    Error::Stopped("the stream has ended".into())
}

/// Checks what the C data interface takes on trust: offsets, and that text is UTF-8. Numbers need no look.
fn check(batch: &RecordBatch) -> Result<(), arrow_schema::ArrowError> {
    let free = |kind: &DataType| kind.is_primitive() || *kind == DataType::Boolean;
    for column in batch.columns() {
        match column.data_type() {
            kind if free(kind) => {}
            DataType::FixedSizeList(item, _) if free(item.data_type()) => {}
            _ => column.to_data().validate_full()?,
        }
    }
    Ok(())
}
