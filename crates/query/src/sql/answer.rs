//! What a statement answers.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{SchemaRef, UInt64Type};
use tokio::sync::mpsc;

use crate::refusal::Result;

/// What a statement would answer.
#[derive(Debug, Clone)]
pub struct Described {
    /// The columns of its rows; none if they depend on parameters in a way that only their values settle.
    pub schema: Option<SchemaRef>,
    /// Its parameters, `$1` first; of the type Null where any will do.
    pub parameters: SchemaRef,
    /// Whether it changes data.
    pub writes: bool,
}

/// The rows that a statement answers, as they come. Dropping it ends the statement.
#[derive(Debug)]
pub struct Answer {
    pub(super) schema: SchemaRef,
    pub(super) writes: bool,
    pub(super) batches: mpsc::Receiver<Result<RecordBatch>>,
}

impl Answer {
    /// The columns of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` after the last one. After an error there are no more.
    ///
    /// # Errors
    /// What went wrong while the statement ran.
    pub async fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.batches.recv().await
    }

    /// How many rows a write wrote; of a query, how many it answers.
    ///
    /// # Errors
    /// As [`Answer::next`].
    pub async fn count(mut self) -> Result<u64> {
        let mut count = 0;
        while let Some(batch) = self.next().await {
            let batch = batch?;
            let told = self.writes.then(|| batch.columns().first()).flatten();
            let told = told.and_then(|column| column.as_primitive_opt::<UInt64Type>());
            count += match told {
                Some(told) => told.values().iter().sum(),
                None => batch.num_rows() as u64,
            };
        }
        Ok(count)
    }

    /// As [`Answer::next`], for a caller without an async runtime.
    ///
    /// # Errors
    /// As [`Answer::next`].
    pub fn next_blocking(&mut self) -> Option<Result<RecordBatch>> {
        self.batches.blocking_recv()
    }
}
