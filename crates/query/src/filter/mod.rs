//! Filters: the conditions of a request, as one expression over the columns of a dataset.
//!
//! A request says them as JSON objects (`filters`) and as a predicate of SQL (`where`); both must hold. They become one
//! expression of DataFusion's, which types and evaluates it over the batches as they lie in the engine.

mod error;
mod expression;
mod object;
mod operator;
mod ranges;
mod size;
mod value;

use std::sync::{Arc, LazyLock};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::Volatility;
use datafusion::prelude::SessionConfig;
use longbow_engine::{ColumnRanges, Filter, FilterError, Predicate, passing};
use serde_json::Value;

pub use error::Error;
use object::Node;

use crate::evaluation::Evaluation;
use crate::refusal::{Refusal, Result};

/// What reads expressions: DataFusion's own functions, and column names as they are written.
pub(crate) static STATE: LazyLock<SessionState> = LazyLock::new(|| {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let state = SessionStateBuilder::new().with_config(config);
    crate::greedy::limited(state.with_default_features()).build()
});

/// Names of the functions whose value may change from call to call.
static UNSTEADY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let functions = STATE.scalar_functions().values();
    let unsteady =
        functions.filter(|function| function.signature().volatility != Volatility::Immutable);
    let names = unsteady.flat_map(|function| {
        let own = std::iter::once(function.name().to_owned());
        own.chain(function.aliases().iter().cloned())
    });
    names.map(|name| name.to_ascii_lowercase()).collect()
});

/// The conditions of a request.
#[derive(Debug)]
pub struct Conditions {
    nodes: Vec<Node>,
    predicate: Option<String>,
    key: Option<String>,
}

impl Conditions {
    /// Reads `filters` and `where` of a request; `None` if it has neither. Whether they suit a dataset is seen when they are
    /// bound to it.
    ///
    /// # Errors
    /// InvalidArgument for an object without field, operator or value, for an unknown operator, and for more than the
    /// limits allow.
    pub fn read(filters: Option<Vec<Value>>, predicate: Option<String>) -> Result<Option<Self>> {
        let filters = filters.unwrap_or_default();
        if filters.is_empty() && predicate.is_none() {
            return Ok(None);
        }
        if let Some(text) = &predicate {
            size::check(text)?;
        }
        let nodes = object::read_all(&filters)?;
        let key = Value::from(vec![Value::from(filters), Value::from(predicate.clone())]);
        let key = key.to_string();
        Ok(Some(Conditions {
            nodes,
            key: predicate.as_deref().is_none_or(is_steady).then_some(key),
            predicate,
        }))
    }

    /// As [`Conditions::read`], for a request of the engine's.
    ///
    /// # Errors
    /// As [`Conditions::read`].
    pub fn shared(
        filters: Option<Vec<Value>>,
        predicate: Option<String>,
    ) -> Result<Option<Arc<dyn Filter>>> {
        let conditions = Self::read(filters, predicate)?;
        Ok(conditions.map(|conditions| Arc::new(conditions) as Arc<dyn Filter>))
    }

    /// Which rows of a batch pass.
    ///
    /// # Errors
    /// If the conditions do not suit the batch, which is called `name`, or cannot be evaluated.
    pub fn mask(&self, name: &str, batch: &RecordBatch) -> Result<BooleanArray> {
        let mask = || {
            let bound = self.bind(name, &batch.schema())?;
            let rows = batch.project(bound.columns())?;
            passing(&*bound, &rows, &|| Ok(()))
        };
        let mask = mask().map_err(|error: longbow_engine::Error| Refusal::from(&error))?;
        Ok(BooleanArray::from(mask))
    }
}

/// Whether a predicate gives the same for the same row whenever it is asked. False for some that do, such as those with a
/// text in which the name of a function occurs.
fn is_steady(predicate: &str) -> bool {
    let predicate = predicate.to_ascii_lowercase();
    !UNSTEADY.iter().any(|name| predicate.contains(name))
}

impl Filter for Conditions {
    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn bind(
        &self,
        dataset: &str,
        schema: &SchemaRef,
    ) -> std::result::Result<Box<dyn Predicate>, Box<dyn FilterError>> {
        let bound = expression::bind(&self.nodes, self.predicate.as_deref(), dataset, schema)?;
        Ok(Box::new(bound))
    }
}

/// An expression bound to a schema.
#[derive(Debug)]
struct Bound {
    /// Over the columns alone that it reads.
    evaluation: Evaluation,
    columns: Vec<usize>,
    ranges: Vec<ColumnRanges>,
}

impl Predicate for Bound {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn ranges(&self) -> &[ColumnRanges] {
        &self.ranges
    }

    fn mask(&self, rows: &RecordBatch) -> std::result::Result<BooleanArray, Box<dyn FilterError>> {
        let mask = self.evaluation.mask(rows);
        mask.map_err(|error| Error::from(error).evaluating().into())
    }
}
