//! Searches for each row of the input: the rows of a batch are searched for together, some at a time.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Int32Type, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, stream};
use longbow_engine::{Deadline, SearchReply, SearchRequest};

use super::nearest::{OWN, missing};
use super::refuse::ours;
use super::search_function::Found;
use super::state::deadline;
use super::vectors::Vectors;

/// Most rows that are searched for together: enough to keep the cores busy.
const MOST_QUERIES: usize = 512;
/// Most rows of a batch that is made, but of a single search.
const MOST_ROWS: usize = 8_192;

/// Where a column of the output comes from.
#[derive(Debug, Clone)]
enum Place {
    /// The input's column.
    Input(usize),
    /// The column of what is found.
    Found(String),
}

/// Joins each row of the input with what is found for its vector.
#[derive(Debug, Clone)]
pub(super) struct SearchEach {
    input: Arc<dyn ExecutionPlan>,
    vector: Arc<dyn PhysicalExpr>,
    found: Found,
    /// What is asked for, but for the vectors.
    request: SearchRequest,
    /// Whether rows stay for which nothing is found.
    outer: bool,
    places: Vec<Place>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SearchEach {
    /// The input's columns, then those of what is found.
    pub fn new(
        input: &Arc<dyn ExecutionPlan>,
        vector: Arc<dyn PhysicalExpr>,
        found: &Found,
        (schema, outer): (SchemaRef, bool),
    ) -> Self {
        let own = (0..input.schema().fields().len()).map(Place::Input);
        let columns = found.schema.fields().iter();
        let columns = columns.map(|field| Place::Found(field.name().clone()));
        let places = own.chain(columns).collect();
        Self::giving(input, (vector, found, outer), places, schema)
    }

    fn giving(
        input: &Arc<dyn ExecutionPlan>,
        (vector, found, outer): (Arc<dyn PhysicalExpr>, &Found, bool),
        places: Vec<Place>,
        schema: SchemaRef,
    ) -> Self {
        let columns = places.iter().filter_map(|place| match place {
            Place::Found(name) if name != "id" && !OWN.contains(&name.as_str()) => Some(name),
            _ => None,
        });
        let request = SearchRequest {
            columns: columns.cloned().collect(),
            first_query: Some(0),
            ..found.request.as_ref().clone()
        };
        let partitions = input.properties().partitioning.partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        SearchEach {
            input: Arc::clone(input),
            vector,
            found: found.clone(),
            request,
            outer,
            places,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same with a part of the columns.
    fn narrow(&self, kept: &BTreeSet<usize>) -> Result<Self> {
        let kept: Vec<usize> = kept.iter().copied().collect();
        let schema = Arc::new(self.schema.project(&kept)?);
        let places = kept.iter().map(|at| self.places[*at].clone()).collect();
        let what = (Arc::clone(&self.vector), &self.found, self.outer);
        Ok(Self::giving(&self.input, what, places, schema))
    }

    /// The same over another input.
    fn over(&self, children: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children else {
            let text = "a search for each row has one input".to_owned();
            return Err(DataFusionError::Internal(text));
        };
        let what = (Arc::clone(&self.vector), &self.found, self.outer);
        let (places, schema) = (self.places.clone(), Arc::clone(&self.schema));
        Ok(Arc::new(Self::giving(input, what, places, schema)))
    }

    /// Rows that are searched for together.
    fn queries(&self) -> usize {
        (MOST_ROWS / self.request.k.max(1)).clamp(1, MOST_QUERIES)
    }

    /// The rows of a block in a range, each with what is found for it.
    fn answer(
        &self,
        block: &Block,
        rows: Range<usize>,
        (partition, deadline): (usize, Deadline),
    ) -> Result<RecordBatch> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let timer = baseline.elapsed_compute().timer();
        let mut owners = Vec::with_capacity(rows.len());
        let mut vectors = Vec::with_capacity(rows.len());
        for row in rows.clone() {
            if let Some(vector) = block.vectors.floats(row) {
                owners.push(row);
                vectors.push(vector);
            }
        }
        let reply = match vectors.is_empty() {
            true => None,
            false => Some(self.search(vectors, (partition, deadline))?),
        };
        let hits = self.hits(reply.as_ref(), &owners, rows)?;
        let answer = self.join(&block.batch, reply.as_ref(), &hits)?;
        timer.done();
        baseline.record_output(answer.num_rows());
        Ok(answer)
    }

    fn search(
        &self,
        vectors: Vec<Vec<f32>>,
        (partition, deadline): (usize, Deadline),
    ) -> Result<SearchReply> {
        let request = SearchRequest {
            vectors,
            timeout: deadline.left(),
            ..self.request.clone()
        };
        let found = &self.found;
        let reply = found.engine.search_at(&found.at, &request).map_err(ours)?;
        let count = |name: &'static str, value: u64| {
            let counter = MetricBuilder::new(&self.metrics).counter(name, partition);
            counter.add(usize::try_from(value).unwrap_or(usize::MAX));
        };
        count("searches", request.vectors.len() as u64);
        count("rows_scanned", reply.info.rows_scanned);
        count("distance_computations", reply.info.distance_computations);
        count("nodes_popped", reply.info.nodes_popped);
        Ok(reply)
    }

    /// Which rows of the input, and of the reply, are the rows of the answer: in the order of the input, the best first.
    fn hits(
        &self,
        reply: Option<&SearchReply>,
        owners: &[usize],
        rows: Range<usize>,
    ) -> Result<Hits> {
        let queries: &[i32] = match reply {
            None => &[],
            Some(reply) => {
                let column = reply.batch.column_by_name("query_index");
                let column = column.and_then(|column| column.as_primitive_opt::<Int32Type>());
                column.ok_or_else(|| ours(missing("query_index")))?.values()
            }
        };
        let of_hit = |query: &i32| usize::try_from(*query).ok().and_then(|at| owners.get(at));
        let mut found = queries.iter().filter_map(of_hit).zip(0u32..).peekable();
        let mut hits = Hits::default();
        for row in rows {
            let before = hits.len();
            while let Some((_, hit)) = found.next_if(|(owner, _)| **owner == row) {
                hits.push(row, Some(hit));
            }
            if self.outer && hits.len() == before {
                hits.push(row, None);
            }
        }
        Ok(hits)
    }

    fn join(
        &self,
        input: &RecordBatch,
        reply: Option<&SearchReply>,
        hits: &Hits,
    ) -> Result<RecordBatch> {
        let own = UInt32Array::from(hits.own.clone());
        let found = UInt32Array::from(hits.found.clone());
        let column = |(place, at): (&Place, usize)| -> Result<ArrayRef> {
            let name = match place {
                Place::Input(at) => return Ok(take(input.column(*at), &own, None)?),
                Place::Found(name) => name,
            };
            let Some(reply) = reply else {
                let data_type = self.schema.field(at).data_type();
                return Ok(new_null_array(data_type, hits.len()));
            };
            let column = reply.batch.column_by_name(name);
            let column = column.ok_or_else(|| ours(missing(name)))?;
            match found.null_count() == 0 && found.len() == column.len() {
                // They are all there, in this order.
                true => Ok(Arc::clone(column)),
                false => Ok(take(column, &found, None)?),
            }
        };
        let columns = self.places.iter().zip(0..).map(column);
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(hits.len()));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns, &rows)?)
    }
}

/// Rows of an answer, as the rows of the input and of the reply that they are made of.
#[derive(Default)]
struct Hits {
    own: Vec<u32>,
    found: Vec<Option<u32>>,
}

impl Hits {
    fn len(&self) -> usize {
        self.own.len()
    }

    fn push(&mut self, own: usize, found: Option<u32>) {
        self.own.push(u32::try_from(own).unwrap_or(u32::MAX));
        self.found.push(found);
    }
}

/// A batch of the input with the vectors of its rows.
struct Block {
    batch: RecordBatch,
    vectors: Vectors,
}

/// A stream of answers.
struct Answers {
    search: Arc<SearchEach>,
    partition: usize,
    /// Of the statement.
    deadline: Deadline,
    input: SendableRecordBatchStream,
    block: Option<Arc<Block>>,
    /// Rows of the block that were searched for.
    done: usize,
    /// What the last answer holds.
    held: MemoryReservation,
}

impl Answers {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let block = loop {
            match &self.block {
                Some(block) if self.done < block.batch.num_rows() => break Arc::clone(block),
                _ => {}
            }
            let Some(batch) = self.input.next().await.transpose()? else {
                self.held.free();
                return Ok(None);
            };
            let vectors = self.search.vector.evaluate(&batch)?;
            let vectors = Vectors::read_floats(&vectors.into_array(batch.num_rows())?)?;
            self.block = Some(Arc::new(Block { batch, vectors }));
            self.done = 0;
        };
        let end = block
            .batch
            .num_rows()
            .min(self.done + self.search.queries());
        let rows = std::mem::replace(&mut self.done, end)..end;
        let (search, within) = (Arc::clone(&self.search), (self.partition, self.deadline));
        let answer = move || search.answer(&block, rows, within);
        let answer = tokio::task::spawn_blocking(answer)
            .await
            .map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        self.held.try_resize(answer.get_array_memory_size())?;
        Ok(Some(answer))
    }
}

impl DisplayAs for SearchEach {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns = self.places.iter().filter_map(|place| match place {
            Place::Found(name) => Some(name.as_str()),
            Place::Input(_) => None,
        });
        let first = columns.next().unwrap_or_default().to_owned();
        let columns = columns.fold(first, |all, name| all + ", " + name);
        write!(
            f,
            "SearchEach: vector={}, {}, columns=[{columns}]",
            self.vector, self.found
        )
    }
}

impl ExecutionPlan for SearchEach {
    fn name(&self) -> &str {
        "SearchEach"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        // Each search takes the cores that are idle.
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(&children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(&children)
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        each(&self.vector)
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let exprs = projection.expr();
        let columns = exprs.iter().flat_map(|one| collect_columns(&one.expr));
        let kept: BTreeSet<usize> = columns.map(|column| column.index()).collect();
        if kept.len() == self.places.len() {
            return Ok(None);
        }
        let narrow = self.narrow(&kept)?;
        let moved = |one: &ProjectionExpr| -> Result<ProjectionExpr> {
            let expr = Arc::clone(&one.expr);
            Ok(ProjectionExpr {
                expr: expr.transform_up(|expr| moved(expr, &kept)).data()?,
                alias: one.alias.clone(),
            })
        };
        let exprs = exprs.iter().map(moved).collect::<Result<Vec<_>>>()?;
        Ok(Some(Arc::new(ProjectionExec::try_new(
            exprs,
            Arc::new(narrow),
        )?)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new("SearchEach");
        let answers = Answers {
            search: Arc::new(self.clone()),
            partition,
            deadline: deadline(&context),
            input: self.input.execute(partition, Arc::clone(&context))?,
            block: None,
            done: 0,
            held: consumer.register(context.memory_pool()),
        };
        let answers = stream::try_unfold(answers, |mut answers| async move {
            let next = answers.next().await?;
            Ok(next.map(|next| (next, answers)))
        });
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, answers)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// A column where it is once only some are kept.
fn moved(
    expr: Arc<dyn PhysicalExpr>,
    kept: &BTreeSet<usize>,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let Some(column) = expr.downcast_ref::<Column>() else {
        return Ok(Transformed::no(expr));
    };
    let at = kept.range(..column.index()).count();
    Ok(Transformed::yes(Arc::new(Column::new(column.name(), at))))
}
