//! `ORDER BY distance(column, vector) LIMIT k`, answered by the column's index.
//!
//! A sort that keeps k rows by their distance to a constant needs no other rows than the k nearest. The rule finds such a
//! sort above a plain scan and puts a search in the place of the scan; all above stays, so that the k rows are sorted, cut
//! and projected as before. It holds off where the answer could be another one: with a second sort key (which decides
//! among equal distances), with rows that have no vector, and with a filter that the scan does not apply itself.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use longbow_engine::{MAX_K, SearchRequest};

use super::distance::Distance;
use super::nearest::{Nearest, OWN};
use super::scan::DatasetScan;
use super::vectors;

/// The rule.
#[derive(Debug)]
pub(super) struct AskIndex;

impl PhysicalOptimizerRule for AskIndex {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match rewritten(&plan)? {
                Some(better) => Transformed::yes(better),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "ask_index"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn rewritten(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = plan.downcast_ref::<SortExec>() else {
        return Ok(None);
    };
    let (Some(k), 1) = (sort.fetch(), sort.expr().len()) else {
        return Ok(None);
    };
    let key = sort.expr().first();
    if k == 0 || k > MAX_K {
        return Ok(None);
    }
    let order = Order {
        k,
        descending: key.options.descending,
    };
    match order.below(sort.input(), Arc::clone(&key.expr))? {
        Some(input) => Ok(Some(with_child(plan, input)?)),
        None => Ok(None),
    }
}

fn with_child(
    plan: &Arc<dyn ExecutionPlan>,
    child: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![child], options)
}

/// How many rows a sort keeps, and which end of it.
struct Order {
    k: usize,
    descending: bool,
}

impl Order {
    /// The plan below the sort with the scan replaced; nothing if `key` is not what an index orders by.
    fn below(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        key: Arc<dyn PhysicalExpr>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = plan.downcast_ref::<DatasetScan>() {
            return self.search(scan, &key);
        }
        let (input, key) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            (projection.input(), through(projection, key)?)
        } else if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
            (repartition.input(), key)
        } else if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
            if coalesce.fetch().is_some() {
                return Ok(None);
            }
            (coalesce.input(), key)
        } else {
            return Ok(None);
        };
        match self.below(input, key)? {
            Some(input) => Ok(Some(with_child(plan, input)?)),
            None => Ok(None),
        }
    }

    fn search(
        &self,
        scan: &DatasetScan,
        key: &Arc<dyn PhysicalExpr>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(call) = key.downcast_ref::<ScalarFunctionExpr>() else {
            return Ok(None);
        };
        let Some(distance) = (call.fun().inner().as_ref() as &dyn Any).downcast_ref::<Distance>()
        else {
            return Ok(None);
        };
        let [a, b] = call.args() else {
            return Ok(None);
        };
        let constant = |expr: &Arc<dyn PhysicalExpr>| {
            expr.downcast_ref::<Literal>()
                .map(|one| one.value().clone())
        };
        let (column, constant) = match (constant(a), constant(b)) {
            (None, Some(constant)) => (a, constant),
            (Some(constant), None) => (b, constant),
            _ => return Ok(None),
        };
        let schema = scan.schema();
        let taken = schema
            .fields()
            .iter()
            .any(|field| OWN.contains(&field.name().as_str()));
        let column = column
            .downcast_ref::<Column>()
            .and_then(|column| scan.table.vector_column(column.name()));
        let (Some(column), false, None) = (column, taken, scan.fetch()) else {
            return Ok(None);
        };
        let metric = column.space.metric;
        let nearest_first = distance.ascends() != self.descending;
        if distance.metric_on(metric) != metric || !nearest_first || !scan.table.is_full(column) {
            return Ok(None);
        }
        let Some(vector) = vectors::constant(&constant)? else {
            return Ok(None);
        };
        let request = SearchRequest {
            column: Some(column.name.clone()),
            filter: scan.filter.clone(),
            ..SearchRequest::nearest(vector, self.k)
        };
        let nearest = Nearest::new(&scan.table.engine, &scan.table.at, request, &schema);
        Ok(Some(Arc::new(nearest)))
    }
}

/// An expression over the columns of a projection, in terms of the columns that it projects.
fn through(
    projection: &ProjectionExec,
    key: Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let replaced = key.transform_up(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else {
            return Ok(Transformed::no(expr));
        };
        match projection.expr().get(column.index()) {
            Some(projected) => Ok(Transformed::yes(Arc::clone(&projected.expr))),
            None => Ok(Transformed::no(expr)),
        }
    });
    replaced.data()
}
