//! Reading the rows of a dataset: the leaf of most plans.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, project_schema};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::stream;
use longbow_engine::{Batch, Deadline, Filter, Piece, Scan, ScanRequest};

use super::pushdown::shown;
use super::refuse::ours;
use super::state::deadline;
use super::table::DatasetTable;

/// Most rows of a batch: operators after the scan hold several at a time. Slices of stored batches cost nothing.
const BATCH_ROWS: usize = 8_192;

/// Reads a dataset at one moment, or its first rows.
#[derive(Debug, Clone)]
pub(super) struct DatasetScan {
    pub table: Arc<DatasetTable>,
    /// What every row meets.
    pub filter: Option<Arc<dyn Filter>>,
    limit: Option<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DatasetScan {
    /// A scan of the columns at these places, all if none are named.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn new(
        table: Arc<DatasetTable>,
        projection: Option<&Vec<usize>>,
        filter: Option<Arc<dyn Filter>>,
        limit: Option<usize>,
    ) -> Result<Self> {
        use datafusion::catalog::TableProvider;
        let schema = project_schema(&table.schema(), projection)?;
        Ok(DatasetScan {
            properties: leaf(&schema),
            table,
            filter,
            limit,
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn begin(&self, deadline: Deadline) -> Result<Scan> {
        let fields = self.schema.fields().iter();
        let mut columns: Vec<String> = fields.map(|field| field.name().clone()).collect();
        if columns.is_empty() {
            // No columns at all would mean all of them; any one tells how many rows there are.
            columns.push("id".to_owned());
        }
        let request = ScanRequest {
            columns,
            limit: self.limit.map(|limit| limit as u64),
            filter: self.filter.clone(),
            deadline,
            ..ScanRequest::default()
        };
        Scan::new(&self.table.name, Arc::clone(&self.table.view), &request).map_err(ours)
    }
}

/// The properties of a leaf that gives its rows one batch after the other, in no order.
pub(super) fn leaf(schema: &SchemaRef) -> Arc<PlanProperties> {
    let properties = PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    );
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for DatasetScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(
            f,
            "DatasetScan: dataset={}, columns=[{}]",
            self.table.name,
            columns.join(", ")
        )?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={}", shown(filter.as_ref()))?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for DatasetScan {
    fn name(&self) -> &str {
        "DatasetScan"
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
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = Batches {
            scan: self.begin(deadline(&context))?,
            schema: Arc::clone(&self.schema),
            ready: Vec::new(),
            metrics,
        };
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::iter(batches));
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.table.statistics_of(
            &self.schema,
            self.filter.is_some(),
            self.limit,
        )))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(DatasetScan {
            limit: limit.or(self.limit),
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// The batches of a scan, none with more than [`BATCH_ROWS`] rows.
struct Batches {
    scan: Scan,
    schema: SchemaRef,
    /// Of the stored batch that was read last, the last first.
    ready: Vec<RecordBatch>,
    metrics: BaselineMetrics,
}

impl Batches {
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        while self.ready.is_empty() {
            let Some(pieces) = self.scan.next() else {
                return Ok(None);
            };
            for piece in pieces.map_err(ours)?.into_iter().rev() {
                let batch = self.batch(piece)?;
                let starts = (0..batch.num_rows()).step_by(BATCH_ROWS).rev();
                let slices = starts
                    .map(|start| batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start)));
                self.ready.extend(slices);
            }
        }
        Ok(self.ready.pop())
    }

    /// A piece under the table's own fields.
    fn batch(&self, piece: Piece) -> Result<RecordBatch> {
        let batch = match piece {
            Piece::Slice(batch) | Piece::Picked(batch) => batch,
            Piece::Kept { header, body, .. } => {
                let batch = Batch::from_message(self.scan.schema(), header, body);
                batch
                    .map_err(|error| ours(longbow_engine::Error::from(error)))?
                    .view()
                    .clone()
            }
        };
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = match self.schema.fields().len() {
            0 => Vec::new(),
            _ => batch.columns().to_vec(),
        };
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &rows,
        )?)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let timer = self.metrics.elapsed_compute().clone();
        let _timer = timer.timer();
        let next = self.read().transpose()?;
        if let Ok(batch) = &next {
            self.metrics.record_output(batch.num_rows());
        }
        Some(next)
    }
}
