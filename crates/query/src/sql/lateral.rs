//! A search for each row of a table: `FROM queries q, LATERAL vector_search('docs', q.vector, 5) n`.
//!
//! DataFusion plans table functions of constants alone. So a function whose vector is of the row before it is planned here,
//! as a table that cannot be read, and before anything else is done to the plan, the join with that table becomes a node
//! of its own, [`LateralSearch`], which has the table before it as its input. What carries it out is in
//! `lateral_exec.rs`.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result, ScalarValue};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, Extension, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
    UserDefinedLogicalNode, UserDefinedLogicalNodeCore, build_join_schema,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, TableFactor};

use super::lateral_exec::SearchEach;
use super::refuse::ours;
use super::search_function::{Arguments, Found, Function, SearchFunction};
use super::vectors::is_vector;
use crate::refusal::{Refusal, invalid, unimplemented};

/// Plans functions whose vector is of the row before them; for one statement.
#[derive(Debug)]
pub(super) struct PlanLateral(pub Vec<SearchFunction>);

impl RelationPlanner for PlanLateral {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Function {
            name, args, alias, ..
        } = &relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let named = Function::named(&name.to_string());
        let search = named.and_then(|named| {
            let mut functions = self.0.iter();
            functions.find(|search| std::ptr::eq(search.function, named))
        });
        let exprs = args.iter().map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                context.sql_to_expr(expr.clone(), &DFSchema::empty())
            }
            other => Err(ours(invalid(
                "bad_sql",
                &format!("{other} is no argument of a function; give a value"),
            ))),
        });
        let Some(search) = search else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        if !exprs.iter().any(Expr::contains_outer) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let found = search.for_each(exprs, context.context_provider().options())?;
        let source = provider_as_source(Arc::new(found));
        let plan = LogicalPlanBuilder::scan(search.function.name, source, None)?.build()?;
        let planned = PlannedRelation::new(plan, alias.clone());
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

impl SearchFunction {
    /// A search for each row of what stands before it, whose columns are those of the outer query in `exprs`.
    fn for_each(&self, mut exprs: Vec<Expr>, options: &ConfigOptions) -> Result<Found> {
        let null = Expr::Literal(ScalarValue::Null, None);
        let mut vector = null.clone();
        if let Some(place) = exprs.get_mut(self.function.place_of_vector()) {
            vector = std::mem::replace(place, null);
        }
        let context = SimplifyContext::builder().with_config_options(Arc::new(options.clone()));
        let simplifier = ExprSimplifier::new(context.build());
        let simple = |expr: Expr| {
            if expr.contains_outer() {
                return Ok(expr);
            }
            let expr = simplifier.coerce(expr, &DFSchema::empty())?;
            simplifier.simplify(expr)
        };
        let exprs = exprs.into_iter().map(simple).collect::<Result<Vec<_>>>()?;
        let arguments = Arguments::read(self.function, &exprs)?;
        let of_row = vector.transform_up(|expr| {
            Ok(match expr {
                Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
                other => Transformed::no(other),
            })
        });
        self.found(&arguments, Some(of_row.data()?))
    }
}

/// Makes nodes of searches for each row of a table.
#[derive(Debug)]
pub(super) struct JoinSearches;

impl AnalyzerRule for JoinSearches {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let joined = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) => match searched(&join.right) {
                Some(found) => Ok(Transformed::yes(joined(join, found)?)),
                None => Ok(Transformed::no(LogicalPlan::Join(join))),
            },
            other => Ok(Transformed::no(other)),
        });
        joined.data()
    }

    fn name(&self) -> &str {
        "join_searches"
    }
}

/// What is searched for each row of the other side of a join, if it is that.
fn searched(side: &LogicalPlan) -> Option<Found> {
    match side {
        LogicalPlan::SubqueryAlias(alias) => searched(&alias.input),
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let found = provider.downcast_ref::<Found>()?;
            found.each.is_some().then(|| found.clone())
        }
        _ => None,
    }
}

fn joined(join: Join, found: Found) -> Result<LogicalPlan> {
    let is_true = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Boolean(Some(true)), _));
    let on = join.on.into_iter().map(|(left, right)| left.eq(right));
    let condition = conjunction(on.chain(join.filter).filter(|expr| !is_true(expr)));
    let outer = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left if condition.is_none() => true,
        JoinType::Left => {
            let name = found.function.name;
            let text = format!(
                "a condition of LEFT JOIN LATERAL {name}(…) other than ON true (give it as the argument filter, or join without LEFT)"
            );
            return Err(ours(unimplemented(&text)));
        }
        other => {
            let text = format!("{other} JOIN with {} for each row", found.function.name);
            return Err(ours(unimplemented(&text)));
        }
    };
    let vector = found.each.clone().unwrap_or_default();
    let input = Arc::unwrap_or_clone(join.left);
    if let Some(column) = vector
        .column_refs()
        .into_iter()
        .find(|column| !input.schema().has_column(column))
    {
        let text = format!(
            "the vector of {} is of column '{column}', which is of no table before it in FROM; name that table before it",
            found.function.name
        );
        return Err(ours(invalid("unknown_column", &text)));
    }
    let right = Arc::clone(join.right.schema());
    let node = LateralSearch::new(input, vector, found, right, outer)?;
    let plan = LogicalPlan::Extension(Extension {
        node: Arc::new(node),
    });
    Ok(match condition {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?),
        None => plan,
    })
}

/// The rows of a table, each with what was found for its vector.
#[derive(Debug, Clone)]
struct LateralSearch {
    input: LogicalPlan,
    /// Of the input's columns.
    vector: Expr,
    found: Found,
    /// The columns of what is found, under the names that they have in the statement.
    right: DFSchemaRef,
    /// Whether rows stay for which nothing is found.
    outer: bool,
    schema: DFSchemaRef,
}

impl LateralSearch {
    fn new(
        input: LogicalPlan,
        vector: Expr,
        found: Found,
        right: DFSchemaRef,
        outer: bool,
    ) -> Result<Self> {
        let kind = match outer {
            true => JoinType::Left,
            false => JoinType::Inner,
        };
        let schema = Arc::new(build_join_schema(input.schema(), &right, &kind)?);
        Ok(LateralSearch {
            input,
            vector,
            found,
            right,
            outer,
            schema,
        })
    }
}

impl PartialEq for LateralSearch {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input
            && self.vector == other.vector
            && self.right == other.right
            && self.outer == other.outer
            && Arc::ptr_eq(&self.found.request, &other.found.request)
    }
}

impl Eq for LateralSearch {}

impl Hash for LateralSearch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.input, &self.vector, self.outer).hash(state);
    }
}

impl PartialOrd for LateralSearch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for LateralSearch {
    fn name(&self) -> &str {
        "LateralSearch"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.vector.clone()]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let names = self.right.fields().iter().map(|field| field.name());
        names.cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LateralSearch: vector={}, {}", self.vector, self.found)
    }

    fn with_exprs_and_inputs(
        &self,
        mut exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let (Some(vector), Some(input)) = (exprs.pop(), inputs.pop()) else {
            let text = "a lateral search has one vector and one input".to_owned();
            return Err(DataFusionError::Internal(text));
        };
        let (found, right) = (self.found.clone(), Arc::clone(&self.right));
        Self::new(input, vector, found, right, self.outer)
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let columns = self.input.schema().fields().len();
        let needed = output.iter().copied().filter(|at| *at < columns);
        Some(vec![needed.collect()])
    }
}

/// Plans statements with [`LateralSearch`] in them.
#[derive(Debug)]
pub(super) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(PlanSearches)]);
        planner.create_physical_plan(plan, session).await
    }
}

#[derive(Debug)]
struct PlanSearches;

#[async_trait]
impl ExtensionPlanner for PlanSearches {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<LateralSearch>(), inputs) else {
            return Ok(None);
        };
        let schema = node.input.schema();
        let vector = planner.create_physical_expr(&node.vector, schema, session, context)?;
        check(vector.as_ref(), schema)?;
        let (found, outer) = (&node.found, node.outer);
        let schema = Arc::clone(node.schema.inner());
        let searches = SearchEach::new(input, vector, found, (schema, outer));
        Ok(Some(Arc::new(searches)))
    }
}

fn check(vector: &dyn PhysicalExpr, schema: &DFSchema) -> Result<()> {
    let data_type = vector.data_type(schema.as_arrow())?;
    if is_vector(&data_type) {
        return Ok(());
    }
    let text = format!("{vector} is {data_type}, which is no vector; give a column of vectors");
    Err(ours(invalid("not_a_vector", &text)))
}

/// Why a search for each row cannot be read like a table.
pub(super) fn misplaced(function: &Function) -> Refusal {
    let name = function.name;
    unimplemented(&format!(
        "a search for each row of a table other than right after it in FROM, without a subquery around it or names for its columns, as in FROM queries q, LATERAL {name}('docs', q.vector, …) AS n"
    ))
}
