//! A dataset as a table of DataFusion.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Constraint, Constraints, Result, Statistics};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use longbow_engine::{Dataset, Engine, METRIC_KEY, Moment, VectorColumn, View, metric_name};

use super::pushdown::{Where, can_push};
use super::scan::DatasetScan;

/// A dataset at one moment.
#[derive(Debug, Clone)]
pub(super) struct DatasetTable {
    pub engine: Engine,
    pub name: String,
    /// For searches of it.
    pub at: Arc<Moment>,
    pub view: Arc<View>,
    schema: SchemaRef,
    constraints: Constraints,
}

impl DatasetTable {
    /// The dataset as it is now.
    pub fn new(engine: &Engine, dataset: Arc<Dataset>) -> Self {
        let at = Arc::new(Moment::of(dataset));
        let view = Arc::clone(at.view());
        let schema = schema_of(&view);
        DatasetTable {
            engine: engine.clone(),
            name: at.name().to_owned(),
            at,
            schema,
            constraints: Constraints::new_unverified(vec![Constraint::PrimaryKey(vec![
                view.schema.id,
            ])]),
            view,
        }
    }

    /// The vector column of this name, if there is one.
    pub fn vector_column(&self, name: &str) -> Option<&VectorColumn> {
        self.view
            .schema
            .vectors
            .iter()
            .find(|column| column.name == name)
    }

    /// Whether every row has a vector in this column: those from before the column was added have none.
    pub fn is_full(&self, column: &VectorColumn) -> bool {
        self.view.parts(0).all(|part| {
            let at = part.batch.schema().index_of(&column.name);
            at.is_ok_and(|at| part.batch.null_count(at) == 0)
        })
    }

    /// How many rows a scan gives, exactly if it has no filter.
    pub fn statistics_of(
        &self,
        schema: &Schema,
        filtered: bool,
        limit: Option<usize>,
    ) -> Statistics {
        let rows = usize::try_from(self.view.live).unwrap_or(usize::MAX);
        let rows = rows.min(limit.unwrap_or(usize::MAX));
        let rows = match filtered {
            false => Precision::Exact(rows),
            true => Precision::Inexact(rows),
        };
        Statistics::new_unknown(schema).with_num_rows(rows)
    }
}

/// The dataset's columns, each vector with the metric that it is compared by.
fn schema_of(view: &View) -> SchemaRef {
    let metric = metric_name(view.schema.metric);
    let mut fields = view.schema.arrow.fields().to_vec();
    for column in &view.schema.vectors {
        let field = fields[column.index].as_ref().clone();
        let mut metadata = field.metadata().clone();
        metadata.insert(METRIC_KEY.to_owned(), metric.to_owned());
        fields[column.index] = Arc::new(field.with_metadata(metadata));
    }
    Arc::new(Schema::new(fields))
}

#[async_trait]
impl TableProvider for DatasetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = Arc::new(self.clone());
        let filter = Where::all(filters, &self.schema);
        Ok(Arc::new(DatasetScan::new(
            table, projection, filter, limit,
        )?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let pushed = |filter: &&Expr| match can_push(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(pushed).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.statistics_of(&self.schema, false, None))
    }
}
