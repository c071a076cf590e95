//! `INSERT` and `DELETE`: what to write is computed like any other answer, and written like any other write.
//!
//! An INSERT replaces rows of the same id, as every put does. Both are acknowledged row by row of the answer's count: when
//! they fail half way, what was written before stays, and the error says so.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Column, Result};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use longbow_engine::{Error, Id, Pending};

use super::refuse::ours;
use super::table::DatasetTable;
use crate::refusal::{invalid, unimplemented};

/// Batches that wait for their acknowledgement while more are computed.
const AHEAD: usize = 16;
/// Most rows of one entry of a deletion.
const DELETED_AT_ONCE: usize = 100_000;
/// How often a deletion looks again when somebody else deleted one of its rows meanwhile.
const TRIES: usize = 10;

/// The columns of what a write answers.
pub(super) fn answer_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(
        "count",
        DataType::UInt64,
        false,
    )]))
}

/// What a write answers.
///
/// # Errors
/// None, for one count is one row.
pub(super) fn answer(count: u64) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(
        answer_schema(),
        vec![Arc::new(UInt64Array::from(vec![count]))],
    )?)
}

/// Carries out an INSERT or a DELETE, and returns how many rows it wrote.
///
/// # Errors
/// If it is another kind of write, if its rows do not fit the dataset, or the log refuses.
pub(super) async fn write(state: &SessionState, statement: &DmlStatement) -> Result<u64> {
    let provider = source_as_provider(&statement.target)?;
    let provider: &dyn std::any::Any = provider.as_ref();
    let Some(table) = provider.downcast_ref::<DatasetTable>() else {
        let text = format!(
            "the table '{}' tells of the node and cannot be written; write to a dataset",
            statement.table_name
        );
        return Err(ours(invalid("read_only_table", &text)));
    };
    match &statement.op {
        WriteOp::Insert(InsertOp::Append | InsertOp::Replace) => {
            insert(state, table, statement).await
        }
        WriteOp::Delete => delete(state, table, statement).await,
        other => Err(ours(unimplemented(&format!(
            "the statement {}",
            other.name().to_uppercase()
        )))),
    }
}

async fn rows(state: &SessionState, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
    let plan = state.create_physical_plan(plan).await?;
    execute_stream(plan, state.task_ctx())
}

async fn insert(
    state: &SessionState,
    table: &DatasetTable,
    statement: &DmlStatement,
) -> Result<u64> {
    let schema = &table.view.schema.arrow;
    let mut batches = rows(state, &statement.input).await?;
    let mut put = blocking(|| table.engine.put(&table.name, schema)).map_err(ours)?;
    let mut pending: VecDeque<Pending> = VecDeque::new();
    let mut count = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let batch = RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec())?;
        pending.push_back(blocking(|| put.record_batch(&batch)).map_err(ours)?);
        if pending.len() >= AHEAD {
            count += oldest(&mut pending).await?;
        }
    }
    while !pending.is_empty() {
        count += oldest(&mut pending).await?;
    }
    Ok(count)
}

async fn oldest(pending: &mut VecDeque<Pending>) -> Result<u64> {
    match pending.pop_front() {
        Some(pending) => Ok(pending.done().await.map_err(ours)?.rows),
        None => Ok(0),
    }
}

async fn delete(
    state: &SessionState,
    table: &DatasetTable,
    statement: &DmlStatement,
) -> Result<u64> {
    let id = statement
        .input
        .schema()
        .iter()
        .find(|(_, field)| field.name() == "id");
    let id = id.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())));
    let id = id.ok_or_else(|| ours(Error::NoIdColumn))?;
    let ids = LogicalPlanBuilder::new_from_arc(Arc::clone(&statement.input))
        .project(vec![id])?
        .build()?;
    let mut batches = rows(state, &ids).await?;
    let (mut count, mut doomed) = (0, Vec::new());
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let column = batch.column(0);
        for row in 0..column.len() {
            doomed.push(Id::of(column, row).map_err(ours)?);
        }
        if doomed.len() >= DELETED_AT_ONCE {
            count += delete_ids(table, std::mem::take(&mut doomed)).await?;
        }
    }
    Ok(count + delete_ids(table, doomed).await?)
}

/// Deletes those of the rows that are still there.
async fn delete_ids(table: &DatasetTable, mut doomed: Vec<Id>) -> Result<u64> {
    for _ in 0..TRIES {
        let dataset = table.engine.dataset(&table.name).map_err(ours)?;
        doomed.retain(|id| dataset.find(id).is_some());
        if doomed.is_empty() {
            return Ok(0);
        }
        let deleted = match blocking(|| table.engine.delete_ids(&table.name, doomed.clone())) {
            Ok(pending) => pending.done().await,
            Err(error) => Err(error),
        };
        match deleted {
            Ok(applied) => return Ok(applied.rows),
            // Somebody else deleted one of them in between; nothing was changed, so look again.
            Err(Error::IdNotFound { .. }) => {}
            Err(error) => return Err(ours(error)),
        }
    }
    let text = "others kept deleting the same rows; run the statement again";
    Err(ours(crate::refusal::Refusal::new(
        longbow_engine::Class::Unavailable,
        "delete_contended",
        text,
    )))
}

/// Runs a call of the engine that may block without holding up other statements.
fn blocking<T>(call: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(call)
}
