//! DataFusion, set up once for a session and copied for each statement.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder, TaskContext};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::SessionConfig;
use longbow_engine::{Deadline, Engine};

use super::distance;
use super::lateral::{JoinSearches, PlanLateral, Planner};
use super::limits::Limits;
use super::moment::{CATALOG, DATASETS, Moment};
use super::order::AskIndex;
use super::search_function::{FUNCTIONS, SearchFunction};
use crate::greedy::limited;

/// How many of the greatest holders of memory an error names.
const NAMED_HOLDERS: std::num::NonZeroUsize =
    std::num::NonZeroUsize::new(3).expect("three is not zero");

/// What all statements of a session start from.
///
/// # Errors
/// If DataFusion refuses the configuration.
pub(super) fn base(limits: &Limits) -> Result<SessionState> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, DATASETS)
        .with_create_default_catalog_and_schema(false)
        .with_information_schema(true)
        .with_target_partitions(limits.threads.max(1));
    // Clients know plain strings longer than views.
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let pool = TrackConsumersPool::new(GreedyMemoryPool::new(limits.memory), NAMED_HOLDERS);
    let no_files = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(no_files)
        .build_arc()?;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_query_planner(Arc::new(Planner))
        // First of all, before the join is taken for one of two tables.
        .with_analyzer_rules(analyzer_rules())
        .with_physical_optimizer_rule(Arc::new(AskIndex));
    let mut state = limited(state).build();
    for function in distance::functions() {
        state.register_udf(Arc::new(function))?;
    }
    Ok(state)
}

/// Until when the statement may take that a leaf of a plan belongs to.
pub(super) fn deadline(context: &TaskContext) -> Deadline {
    let deadline = context.session_config().get_extension::<Deadline>();
    deadline.map_or(Deadline::default(), |deadline| *deadline)
}

/// A copy for one statement, which sees the engine as of a moment of its own.
///
/// # Errors
/// If DataFusion refuses a planner of ours.
pub(super) fn for_statement(
    base: &SessionState,
    engine: &Engine,
    moment: &Moment,
    deadline: Deadline,
) -> Result<SessionState> {
    let mut state = base.clone();
    // The leaves of its plans look at it while they are at work; DataFusion waits for them.
    state.config_mut().set_extension(Arc::new(deadline));
    state.register_catalog_list(Arc::new(moment.clone()));
    let search = |function| SearchFunction {
        function,
        moment: moment.clone(),
        engine: engine.clone(),
    };
    for function in &FUNCTIONS {
        state.register_udtf(function.name, Arc::new(search(function)));
    }
    let lateral = PlanLateral(FUNCTIONS.iter().map(search).collect());
    state.register_relation_planner(Arc::new(lateral))?;
    Ok(state)
}

fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(JoinSearches));
    rules
}
