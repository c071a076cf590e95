//! A search as a table: `SELECT * FROM vector_search('docs', [0.1, 0.2], 10)`.
//!
//! Its rows are the k nearest, with `score`, `distance` and the dataset's columns; a WHERE after it leaves out some of
//! them. The arguments may be named: `vector_search('docs', [0.1, 0.2], k => 5, exact => true)`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, project_schema};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use longbow_engine::{Engine, Error, MAX_K, SearchRequest};

use super::moment::Moment;
use super::nearest::{Nearest, OWN};
use super::refuse::ours;
use super::vectors;
use crate::refusal::invalid;

/// The function's name.
pub(super) const NAME: &str = "vector_search";

/// Its arguments in order, each with what stands in for a parameter where only the shape of the answer is asked for.
pub(super) const ARGUMENTS: [(&str, &str); 8] = [
    ("dataset", "''"),
    ("vector", "[0.0]"),
    ("k", "10"),
    ("column", "NULL"),
    ("ef", "NULL"),
    ("recall_target", "NULL"),
    ("exact", "NULL"),
    ("max_distance", "NULL"),
];

/// Rows that are found unless the statement says how many.
const DEFAULT_K: i64 = 10;

/// The function, for one statement.
#[derive(Debug)]
pub(super) struct VectorSearch {
    /// What the statement sees.
    pub moment: Moment,
    pub engine: Engine,
}

impl TableFunctionImpl for VectorSearch {
    fn call_with_args(
        &self,
        arguments: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::read(arguments.exprs())?;
        let dataset = arguments.text("dataset")?;
        let dataset =
            dataset.ok_or_else(|| wrong("dataset", "nothing", "the name of a dataset"))?;
        let table = self
            .moment
            .dataset(&dataset)
            .ok_or_else(|| ours(Error::DatasetNotFound(dataset.clone())))?;
        let vector = arguments.of("vector").map_or(Ok(None), vectors::constant)?;
        let vector = vector
            .ok_or_else(|| wrong("vector", "nothing", "a list of numbers like [0.1, 0.2]"))?;
        let k = arguments.integer("k")?.unwrap_or(DEFAULT_K);
        let column = arguments.text("column")?;
        let column = table
            .view
            .schema
            .vector(&dataset, column.as_deref())
            .map_err(ours)?;
        let ef = arguments.integer("ef")?;
        let request = SearchRequest {
            column: Some(column.name.clone()),
            ef: ef.map(|ef| usize::try_from(ef).unwrap_or(0)),
            recall_target: arguments.number("recall_target")?,
            exact: arguments.switch("exact")?.unwrap_or(false),
            max_distance: arguments.number("max_distance")?,
            ..SearchRequest::nearest(
                vector,
                usize::try_from(k).map_err(|_| ours(Error::BadK { got: k, max: MAX_K }))?,
            )
        };
        request.check().map_err(ours)?;
        Ok(Arc::new(Found {
            engine: self.engine.clone(),
            schema: schema_of(&table.schema()),
            dataset,
            request,
        }))
    }
}

/// Id, score and distance, then the dataset's other columns but those of the answer's own names.
fn schema_of(table: &Schema) -> SchemaRef {
    let own = |name| Arc::new(Field::new(name, DataType::Float32, false));
    let (id, others): (Vec<_>, Vec<_>) = table
        .fields()
        .iter()
        .cloned()
        .partition(|field| field.name() == "id");
    let others = others
        .into_iter()
        .filter(|field| !OWN.contains(&field.name().as_str()));
    let fields = id
        .into_iter()
        .chain([own("score"), own("distance")])
        .chain(others);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What the function was called with.
struct Arguments(Vec<ScalarValue>);

impl Arguments {
    fn read(expressions: &[Expr]) -> Result<Self> {
        if expressions.len() > ARGUMENTS.len() {
            let text = format!(
                "vector_search takes at most {} arguments, and was given {}",
                ARGUMENTS.len(),
                expressions.len()
            );
            return Err(ours(invalid(
                "bad_sql",
                &format!("{text}; leave the last ones out"),
            )));
        }
        let constant = |(expression, (name, _)): (&Expr, (&str, &str))| match expression {
            Expr::Literal(value, _) => Ok(value.clone()),
            other => Err(wrong(name, &other.to_string(), "a constant or a parameter")),
        };
        expressions
            .iter()
            .zip(ARGUMENTS)
            .map(constant)
            .collect::<Result<_>>()
            .map(Arguments)
    }

    /// An argument that is given.
    fn of(&self, name: &str) -> Option<&ScalarValue> {
        let at = ARGUMENTS.iter().position(|(known, _)| *known == name)?;
        self.0.get(at).filter(|value| !value.is_null())
    }

    fn cast(&self, name: &str, to: &DataType, expected: &str) -> Result<Option<ScalarValue>> {
        let Some(value) = self.of(name) else {
            return Ok(None);
        };
        let refused = || wrong(name, &value.to_string(), expected);
        let fits = match to {
            DataType::Utf8 => value.data_type().is_string(),
            DataType::Boolean => value.data_type() == DataType::Boolean,
            DataType::Int64 => value.data_type().is_integer(),
            _ => value.data_type().is_numeric(),
        };
        if !fits {
            return Err(refused());
        }
        value.cast_to(to).map(Some).map_err(|_| refused())
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        match self.cast(name, &DataType::Utf8, "a text")? {
            Some(ScalarValue::Utf8(text)) => Ok(text),
            _ => Ok(None),
        }
    }

    fn integer(&self, name: &str) -> Result<Option<i64>> {
        match self.cast(name, &DataType::Int64, "an integer")? {
            Some(ScalarValue::Int64(number)) => Ok(number),
            _ => Ok(None),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f32>> {
        match self.cast(name, &DataType::Float32, "a number")? {
            Some(ScalarValue::Float32(number)) => Ok(number),
            _ => Ok(None),
        }
    }

    fn switch(&self, name: &str) -> Result<Option<bool>> {
        match self.cast(name, &DataType::Boolean, "true or false")? {
            Some(ScalarValue::Boolean(given)) => Ok(given),
            _ => Ok(None),
        }
    }
}

fn wrong(name: &str, got: &str, expected: &str) -> datafusion::common::DataFusionError {
    let text = format!("vector_search was given {got} as '{name}'; give {expected}");
    ours(invalid("bad_value", &text))
}

/// What a search finds, as a table.
#[derive(Debug)]
struct Found {
    engine: Engine,
    dataset: String,
    request: SearchRequest,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Found {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = project_schema(&self.schema, projection)?;
        let mut request = self.request.clone();
        // The nearest come first, so that fewer rows are the nearest of them.
        request.k = request.k.min(limit.unwrap_or(usize::MAX).max(1));
        Ok(Arc::new(Nearest::new(
            &self.engine,
            &self.dataset,
            request,
            &schema,
        )))
    }
}
