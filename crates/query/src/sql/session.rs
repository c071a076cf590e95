//! A session: statements in, answers out, on threads of its own.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::execution::{FunctionRegistry, SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::parser::Statement;
use futures::{FutureExt, StreamExt, stream};
use longbow_engine::{Class, Deadline, Engine};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::answer::{Answer, Described};
use super::check::check;
use super::limits::{Limits, Setting};
use super::memory::bounded;
use super::moment::{DATASETS, Moment, SYSTEM};
use super::refuse::{ours, refuse};
use super::running::Running;
use super::system::{self, System};
use super::{assigned, parameters, rewrite, state, write};
use crate::parser;
use crate::refusal::{Refusal, Result, invalid, unimplemented};

/// Room for the recursion of whoever walks a plan; memory that is not touched costs nothing.
const STACK: usize = 64 << 20;
/// Batches that are ready before the client takes them.
const AHEAD: usize = 2;

/// SQL on an engine. Dropping it ends what runs.
#[derive(Debug)]
pub struct Session {
    inner: Arc<Inner>,
    /// Taken by the drop alone.
    workers: Option<Runtime>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    limits: Limits,
    base: SessionState,
    system: Arc<System>,
}

impl Session {
    /// A session on an engine, with what it is to tell of the node's settings.
    ///
    /// # Errors
    /// If there are no threads to be had.
    pub fn new(engine: &Engine, limits: Limits, settings: Vec<Setting>) -> Result<Self> {
        let workers = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(limits.threads.max(1))
            .thread_name("sql")
            .thread_stack_size(STACK)
            .enable_time()
            .build();
        let workers = workers.map_err(|error| {
            let text = format!("no threads for SQL: {error}; see that the system has some to give");
            Refusal::new(Class::ResourceExhausted, "no_threads", &text)
        })?;
        let system = System {
            settings,
            running: Arc::new(Running::new(limits.slow)),
        };
        let inner = Inner {
            engine: engine.clone(),
            base: state::base(&limits).map_err(|error| refuse(&error))?,
            limits,
            system: Arc::new(system),
        };
        Ok(Session {
            inner: Arc::new(inner),
            workers: Some(workers),
        })
    }

    /// What a statement would answer, without running it. The columns may depend on the values of parameters.
    ///
    /// # Errors
    /// If it cannot be planned.
    pub async fn describe(&self, text: &str, parameters: Option<RecordBatch>) -> Result<Described> {
        let (inner, text) = (Arc::clone(&self.inner), text.to_owned());
        let (tell, told) = oneshot::channel();
        self.spawn(async move {
            // Who asked may be gone.
            let _ = tell.send(unharmed(inner.describe(&text, parameters)).await);
        });
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Runs a statement. Of its parameters a query takes one row; a write is carried out for each.
    ///
    /// # Errors
    /// If it cannot be planned, or fails before its first row; a write, whenever it fails.
    pub async fn run(&self, text: &str, parameters: Option<RecordBatch>) -> Result<Answer> {
        self.start(text, parameters)
            .await
            .unwrap_or_else(|_| Err(ended()))
    }

    /// Schema, name and columns of every table.
    ///
    /// # Errors
    /// If a table of the node cannot be made.
    pub fn tables(&self) -> Result<Vec<(&'static str, String, SchemaRef)>> {
        let Inner { engine, system, .. } = self.inner.as_ref();
        let mut tables = Vec::new();
        for name in system::TABLES {
            if let Some(table) = system.table(engine, name) {
                let table = table.map_err(longbow_engine::Error::from)?;
                tables.push((SYSTEM, name.to_owned(), table.schema()));
            }
        }
        let datasets = engine.catalog().datasets();
        tables.extend(datasets.iter().map(|dataset| {
            let schema = Arc::clone(&dataset.view().schema.arrow);
            (DATASETS, dataset.name.clone(), schema)
        }));
        Ok(tables)
    }

    /// As [`Session::run`], for a caller without an async runtime.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_blocking(&self, text: &str, parameters: Option<RecordBatch>) -> Result<Answer> {
        let answer = self.start(text, parameters);
        answer.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }

    fn start(
        &self,
        text: &str,
        parameters: Option<RecordBatch>,
    ) -> oneshot::Receiver<Result<Answer>> {
        let (tell, told) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        self.spawn(inner.answer(text.to_owned(), parameters, tell));
        told
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(workers) = &self.workers {
            workers.spawn(work);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(workers) = self.workers.take() {
            // A runtime must not be waited for where another one runs.
            workers.shutdown_background();
        }
    }
}

/// What work gives, also if it panics: else rows would end as if there were no more. What it worked on is dropped with it.
async fn unharmed<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| {
        let text = "the statement panicked; the log tells where, report this";
        Err(Refusal::new(Class::Internal, "sql_internal", text))
    })
}

fn ended() -> Refusal {
    let text = "the statement ended without an answer: the node is stopping";
    Refusal::new(Class::Internal, "sql_internal", text)
}

/// A statement that is planned, and what it is planned with.
struct Planned {
    state: SessionState,
    plan: LogicalPlan,
}

impl Inner {
    fn parse(&self, text: &str, deadline: Deadline) -> Result<(SessionState, Statement)> {
        let tokens = check(text, self.limits.length)?;
        let moment = Moment::new(&self.engine, &self.system);
        let state = state::for_statement(&self.base, &self.engine, &moment, deadline)
            .map_err(|error| refuse(&error))?;
        let mut statements = parser::statements(tokens).map_err(|error| refuse(&error))?;
        match (statements.pop_front(), statements.is_empty()) {
            (Some(statement), true) => Ok((state, statement)),
            (Some(_), false) => {
                let text = "the text holds several statements; send them one by one";
                Err(Refusal::new(Class::Unimplemented, "unimplemented", text))
            }
            (None, _) => Err(invalid("bad_sql", "the text holds no statement; write one")),
        }
    }

    async fn plan(
        &self,
        text: &str,
        values: &[ScalarValue],
        deadline: Deadline,
    ) -> Result<Planned> {
        let (mut state, mut statement) = self.parse(text, deadline)?;
        for function in parameters::functions(values) {
            state
                .register_udf(Arc::new(function))
                .map_err(|error| refuse(&error))?;
        }
        rewrite::with_values(&mut statement, values)?;
        let plan = state.statement_to_plan(statement).await;
        let plan = plan.and_then(assigned::checked);
        let plan = plan.map_err(|error| refuse(&error))?;
        verify(&plan)?;
        Ok(Planned { state, plan })
    }

    async fn describe(&self, text: &str, bound: Option<RecordBatch>) -> Result<Described> {
        if let Some(bound) = bound.filter(|bound| bound.num_rows() > 0) {
            let values = parameters::values(&bound, 0)?;
            let plan = self.plan(text, &values, Deadline::default()).await?.plan;
            return Ok(Described {
                schema: Some(schema_of(&plan)),
                parameters: bound.schema(),
                writes: matches!(plan, LogicalPlan::Dml(_)),
            });
        }
        self.describe_unbound(text).await
    }

    async fn describe_unbound(&self, text: &str) -> Result<Described> {
        let (state, mut statement) = self.parse(text, Deadline::default())?;
        let (count, mut types) = rewrite::without_values(&mut statement)?;
        let plan = match state.statement_to_plan(statement).await {
            Ok(plan) => plan,
            // What a parameter without anything around it makes of a row is known only with its value.
            Err(error) if count > 0 && error.to_string().contains("laceholder") => {
                return Ok(Described {
                    schema: None,
                    parameters: parameter_schema(count, &types),
                    writes: false,
                });
            }
            Err(error) => return Err(refuse(&error)),
        };
        verify(&plan)?;
        let told = plan.get_parameter_types().map_err(|error| refuse(&error))?;
        for (name, data_type) in told {
            let number = name
                .strip_prefix('$')
                .and_then(|number| number.parse().ok());
            if let (Some(number), Some(data_type)) = (number, data_type) {
                types.insert(number, data_type);
            }
        }
        Ok(Described {
            schema: Some(schema_of(&plan)),
            parameters: parameter_schema(count, &types),
            writes: matches!(plan, LogicalPlan::Dml(_)),
        })
    }

    /// Runs a statement, tells its answer, and hands out its rows for as long as somebody takes them.
    async fn answer(
        self: Arc<Self>,
        text: String,
        parameters: Option<RecordBatch>,
        mut tell: oneshot::Sender<Result<Answer>>,
    ) {
        let mut run = self.system.running.begin(&text);
        let timeout = self.limits.timeout;
        let (limit, now) = ((!timeout.is_zero()).then_some(timeout), Instant::now());
        let deadline = limit.map(|limit| now + limit);
        let begin = self.begin(&text, parameters, Deadline::after(now.into_std(), limit));
        let begun = tokio::select! {
            () = tell.closed() => return,
            begun = self.within(deadline, begin) => begun,
        };
        let Begun { rows, writes, plan } = match begun {
            Ok(begun) => begun,
            Err(refusal) => {
                drop(run);
                let _ = tell.send(Err(refusal));
                return;
            }
        };
        let (sender, batches) = mpsc::channel(AHEAD);
        // Dropped before the sender: who sees the end of the rows no longer finds the statement among those that run.
        run.does(plan);
        let _run = run;
        let schema = rows.schema();
        if tell
            .send(Ok(Answer {
                schema,
                writes,
                batches,
            }))
            .is_err()
        {
            return;
        }
        self.hand_out(rows, &sender, deadline).await;
    }

    /// Hands out rows until their end, an error, or nobody takes them.
    async fn hand_out(
        &self,
        mut rows: SendableRecordBatchStream,
        sender: &mpsc::Sender<Result<RecordBatch>>,
        deadline: Option<Instant>,
    ) {
        loop {
            let next = async {
                let next = rows.next().await.transpose();
                next.map_err(|error| refuse(&error))
            };
            let next = tokio::select! {
                () = sender.closed() => return,
                next = self.within(deadline, next) => next,
            };
            let Some(next) = next.transpose() else {
                return;
            };
            let sent = match next {
                Ok(batch) => {
                    let send = async { Ok(sender.send(Ok(batch)).await) };
                    self.within(deadline, send).await
                }
                Err(refusal) => Err(refusal),
            };
            match sent {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(refusal) => {
                    // However slowly the rows are read: without it they would look like all that there are.
                    drop(rows);
                    let _ = sender.send(Err(refusal)).await;
                    return;
                }
            }
        }
    }

    async fn within<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let work = unharmed(bounded(&self.engine, &self.limits, work));
        let Some(deadline) = deadline else {
            return work.await;
        };
        match timeout_at(deadline, work).await {
            // A leaf of the plan saw it first.
            Err(_)
            | Ok(Err(Refusal {
                code: "timeout", ..
            })) => {
                let text = format!(
                    "the statement did not end within {:?}; ask for less, or raise LONGBOW_SQL_TIMEOUT",
                    self.limits.timeout
                );
                Err(Refusal::new(Class::DeadlineExceeded, "timeout", &text))
            }
            Ok(done) => done,
        }
    }

    async fn begin(
        &self,
        text: &str,
        parameters: Option<RecordBatch>,
        deadline: Deadline,
    ) -> Result<Begun> {
        let rows = match &parameters {
            None => 1,
            Some(parameters) => parameters.num_rows(),
        };
        let mut count = 0;
        for row in 0..rows.max(1) {
            let values = match &parameters {
                None => Vec::new(),
                Some(parameters) => parameters::values(parameters, row)?,
            };
            let Planned { state, plan } = self.plan(text, &values, deadline).await?;
            if let LogicalPlan::Dml(statement) = &plan {
                count += write::write(&state, statement)
                    .await
                    .map_err(|error| refuse(&error))?;
            } else if rows > 1 {
                let text = format!(
                    "{rows} rows of parameters are bound to a query, which takes one; run it for each"
                );
                return Err(invalid("bad_parameters", &text));
            } else {
                let begun = query(&state, &plan).await;
                return begun.map_err(|error| refuse(&error));
            }
        }
        let told = stream::iter([write::answer(count)]);
        let told = RecordBatchStreamAdapter::new(write::answer_schema(), told);
        Ok(Begun {
            rows: Box::pin(told),
            writes: true,
            plan: None,
        })
    }
}

/// A statement that runs.
struct Begun {
    rows: SendableRecordBatchStream,
    writes: bool,
    /// What a query does.
    plan: Option<Arc<dyn ExecutionPlan>>,
}

async fn query(state: &SessionState, plan: &LogicalPlan) -> datafusion::common::Result<Begun> {
    let schema = schema_of(plan);
    let plan = state.create_physical_plan(plan).await?;
    let rows = execute_stream(Arc::clone(&plan), state.task_ctx())?;
    // As it was described: what the optimiser learns of nulls is not told, for clients compare the two.
    let told = Arc::clone(&schema);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&told),
            columns,
            &rows,
        )?)
    });
    Ok(Begun {
        rows: Box::pin(RecordBatchStreamAdapter::new(schema, rows)),
        writes: false,
        plan: Some(plan),
    })
}

/// The columns of what a plan answers.
fn schema_of(plan: &LogicalPlan) -> SchemaRef {
    match plan {
        LogicalPlan::Dml(_) => write::answer_schema(),
        other => Arc::clone(other.schema().inner()),
    }
}

/// The columns of the parameters' rows.
fn parameter_schema(count: usize, types: &BTreeMap<usize, DataType>) -> SchemaRef {
    let field = |number: usize| {
        let data_type = types.get(&number).cloned().unwrap_or(DataType::Null);
        Field::new(format!("${number}"), data_type, true)
    };
    Arc::new(Schema::new((1..=count).map(field).collect::<Vec<_>>()))
}

/// Refuses what would change the session, or read and write files.
fn verify(plan: &LogicalPlan) -> Result<()> {
    let root = match plan {
        LogicalPlan::Dml(statement) => statement.input.as_ref(),
        other => other,
    };
    let checked = root.apply_with_subqueries(|node| {
        let what = match node {
            LogicalPlan::Ddl(ddl) => ddl.name().to_owned(),
            LogicalPlan::Statement(statement) => statement.name().to_owned(),
            LogicalPlan::Copy(_) => "COPY".to_owned(),
            LogicalPlan::Dml(_) => "a write inside of another statement".to_owned(),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Err(ours(unimplemented(&format!("the statement {what}"))))
    });
    checked
        .map(|_| ())
        .map_err(|error: DataFusionError| refuse(&error))
}

#[cfg(test)]
mod tests;
