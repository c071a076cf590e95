//! The nearest rows of a dataset to a vector, found by its index: the other leaf of plans.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::stream;
use longbow_engine::{Engine, Moment, SearchReply, SearchRequest};

use super::pushdown::shown;
use super::refuse::ours;
use super::scan::leaf;
use super::state::deadline;
use crate::refusal::{Refusal, invalid};

/// Columns that an answer of a search has of its own.
pub(super) const OWN: [&str; 3] = ["query_index", "score", "distance"];

/// A search as a leaf of a plan.
#[derive(Debug, Clone)]
pub(super) struct Nearest {
    engine: Engine,
    /// The dataset as the statement sees it.
    at: Arc<Moment>,
    /// What to find. Its columns are set from the schema.
    request: SearchRequest,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Nearest {
    /// The rows that a search finds, with the columns of `schema`: those of the dataset, or `score` and `distance`.
    pub fn new(
        engine: &Engine,
        at: &Arc<Moment>,
        mut request: SearchRequest,
        schema: &SchemaRef,
    ) -> Self {
        let columns = schema.fields().iter().map(|field| field.name().clone());
        request.columns = columns
            .filter(|name| !OWN.contains(&name.as_str()))
            .collect();
        Nearest {
            engine: engine.clone(),
            at: Arc::clone(at),
            request,
            schema: Arc::clone(schema),
            properties: leaf(schema),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn search(&self, partition: usize) -> Result<RecordBatch> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let timer = baseline.elapsed_compute().timer();
        let found = self
            .engine
            .search_at(&self.at, &self.request)
            .map_err(ours)?;
        timer.done();
        let count = |name: &'static str, value: u64| {
            let counter = MetricBuilder::new(&self.metrics).counter(name, partition);
            counter.add(usize::try_from(value).unwrap_or(usize::MAX));
        };
        count("rows_scanned", found.info.rows_scanned);
        count("distance_computations", found.info.distance_computations);
        count("nodes_popped", found.info.nodes_popped);
        baseline.record_output(found.batch.num_rows());
        self.columns(&found)
    }

    fn columns(&self, found: &SearchReply) -> Result<RecordBatch> {
        let column = |name: &String| -> Result<ArrayRef> {
            let column = found.batch.column_by_name(name).cloned();
            column.ok_or_else(|| ours(missing(name)))
        };
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| column(field.name()));
        let rows = RecordBatchOptions::new().with_row_count(Some(found.batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &rows,
        )?)
    }
}

pub(super) fn missing(name: &str) -> Refusal {
    invalid(
        "unknown_column",
        &format!("the search gave no column '{name}'; leave it out"),
    )
}

impl DisplayAs for Nearest {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nearest: ")?;
        told(self.at.name(), &self.request, f)
    }
}

/// Says what is searched for.
pub(super) fn told(
    dataset: &str,
    request: &SearchRequest,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let SearchRequest {
        column,
        k,
        filter,
        exact,
        ef,
        nprobe,
        recall_target,
        ..
    } = request;
    write!(f, "dataset={dataset}")?;
    if let Some(column) = column {
        write!(f, ", column={column}")?;
    }
    write!(f, ", k={k}")?;
    if let Some(filter) = filter {
        write!(f, ", filter={}", shown(filter.as_ref()))?;
    }
    if *exact {
        write!(f, ", exact")?;
    }
    if let Some(ef) = ef {
        write!(f, ", ef={ef}")?;
    }
    if let Some(nprobe) = nprobe {
        write!(f, ", nprobe={nprobe}")?;
    }
    match recall_target {
        Some(target) => write!(f, ", recall_target={target}"),
        None => Ok(()),
    }
}

impl ExecutionPlan for Nearest {
    fn name(&self) -> &str {
        "Nearest"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut nearest = self.clone();
        nearest.request.timeout = deadline(&context).left();
        let found = stream::once(async move {
            let searched = tokio::task::spawn_blocking(move || nearest.search(partition)).await;
            searched.map_err(|error| {
                datafusion::common::DataFusionError::ExecutionJoin(Box::new(error))
            })?
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            found,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
