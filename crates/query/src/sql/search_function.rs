//! Searches as tables: `SELECT * FROM vector_search('docs', [0.1, 0.2], 10)`, and
//! `SELECT * FROM hybrid_search('docs', [0.1, 0.2], 'red shoes', 10)`.
//!
//! Their rows are the k best, with `score`, `distance` and the dataset's columns; a WHERE after it leaves out some of
//! them, and the argument `filter` chooses the rows of which the best are found. The arguments may be named:
//! `vector_search('docs', [0.1, 0.2], k => 5, filter => 'year > 1990')`. The vector may be a column of a table before it in
//! FROM (`lateral.rs`).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, project_schema};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use longbow_engine::{Engine, Error, Fusion, MAX_K, SearchRequest, TextQuery};

use super::lateral::misplaced;
use super::moment::Moment;
use super::nearest::{Nearest, OWN, told};
use super::refuse::ours;
use super::vectors;
use crate::filter::Conditions;
use crate::refusal::invalid;

/// A search that can stand as a table.
#[derive(Debug)]
pub(super) struct Function {
    pub name: &'static str,
    /// In order, each with what stands in for a parameter where only the shape of the answer is asked for.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Whether words alone may be searched for: then there may be no distance.
    by_words: bool,
}

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "vector_search",
        arguments: &[
            ("dataset", "''"),
            ("vector", "[0.0]"),
            ("k", "10"),
            ("column", "NULL"),
            ("ef", "NULL"),
            ("recall_target", "NULL"),
            ("exact", "NULL"),
            ("max_distance", "NULL"),
            ("filter", "NULL"),
            ("nprobe", "NULL"),
        ],
        by_words: false,
    },
    Function {
        name: "hybrid_search",
        arguments: &[
            ("dataset", "''"),
            ("vector", "NULL"),
            ("words", "'a'"),
            ("k", "10"),
            ("alpha", "NULL"),
            ("fusion", "NULL"),
            ("text_columns", "NULL"),
            ("column", "NULL"),
            ("ef", "NULL"),
            ("exact", "NULL"),
            ("filter", "NULL"),
            ("nprobe", "NULL"),
        ],
        by_words: true,
    },
];

impl Function {
    /// The function of a name, in capitals or not.
    pub fn named(name: &str) -> Option<&'static Function> {
        FUNCTIONS
            .iter()
            .find(|function| function.name.eq_ignore_ascii_case(name))
    }

    /// Which argument the vector is.
    pub fn place_of_vector(&self) -> usize {
        let mut names = self.arguments.iter();
        names.position(|(name, _)| *name == "vector").unwrap_or(0)
    }

    fn wrong(&self, name: &str, got: &str, expected: &str) -> DataFusionError {
        let text = format!("{} was given {got} as '{name}'; give {expected}", self.name);
        ours(invalid("bad_value", &text))
    }
}

/// Rows that are found unless the statement says how many.
const DEFAULT_K: i64 = 10;

/// A function, for one statement.
#[derive(Debug)]
pub(super) struct SearchFunction {
    pub function: &'static Function,
    /// What the statement sees.
    pub moment: Moment,
    pub engine: Engine,
}

impl TableFunctionImpl for SearchFunction {
    fn call_with_args(
        &self,
        arguments: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::read(self.function, arguments.exprs())?;
        Ok(Arc::new(self.found(&arguments, None)?))
    }
}

impl SearchFunction {
    /// What is found for the constant vector, or for that of each row of another table.
    pub fn found(&self, arguments: &Arguments, each: Option<Expr>) -> Result<Found> {
        let dataset = arguments.needed("dataset", "the name of a dataset")?;
        let table = self
            .moment
            .dataset(&dataset)
            .ok_or_else(|| ours(Error::DatasetNotFound(dataset.clone())))?;
        let column = arguments.text("column")?;
        let column = table
            .view
            .schema
            .vector(&dataset, column.as_deref())
            .map_err(ours)?;
        let request = SearchRequest {
            column: Some(column.name.clone()),
            ..arguments.request(each.is_some())?
        };
        request.check().map_err(ours)?;
        Ok(Found {
            function: self.function,
            engine: self.engine.clone(),
            schema: schema_of(&table.schema(), self.function.by_words),
            at: Arc::clone(&table.at),
            request: Arc::new(request),
            each,
        })
    }
}

/// Id, score and distance, then the dataset's other columns but those of the answer's own names.
fn schema_of(table: &Schema, by_words: bool) -> SchemaRef {
    let own = |name, nullable| Arc::new(Field::new(name, DataType::Float32, nullable));
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
        .chain([own("score", false), own("distance", by_words)])
        .chain(others);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What a function was called with.
pub(super) struct Arguments {
    function: &'static Function,
    values: Vec<ScalarValue>,
}

impl Arguments {
    /// Reads constants, in the order of the function's arguments.
    ///
    /// # Errors
    /// If there are too many, or one is no constant.
    pub fn read(function: &'static Function, expressions: &[Expr]) -> Result<Self> {
        let most = function.arguments.len();
        if expressions.len() > most {
            let text = format!(
                "{} takes at most {most} arguments, and was given {}; leave the last ones out",
                function.name,
                expressions.len()
            );
            return Err(ours(invalid("bad_sql", &text)));
        }
        let constant = |(expression, (name, _)): (&Expr, &(&str, &str))| match expression {
            Expr::Literal(value, _) => Ok(value.clone()),
            other => {
                let expected = match *name {
                    "vector" => {
                        "a constant or a parameter, or a column of a table before it in FROM"
                    }
                    _ => "a constant or a parameter",
                };
                Err(function.wrong(name, &other.to_string(), expected))
            }
        };
        let values = expressions.iter().zip(function.arguments).map(constant);
        Ok(Arguments {
            function,
            values: values.collect::<Result<_>>()?,
        })
    }

    /// What to find, but for the column, and for the vector if there will be one for each row.
    fn request(&self, each: bool) -> Result<SearchRequest> {
        let vector = match each {
            true => Some(Vec::new()),
            false => self.of("vector").map_or(Ok(None), vectors::constant)?,
        };
        let text = match self.function.by_words {
            true => Some(TextQuery {
                text: self.needed("words", "what to look for")?,
                columns: self.text("text_columns")?.map(|names| {
                    let names = names.split(',').map(|name| name.trim().to_owned());
                    names.collect()
                }),
            }),
            false => None,
        };
        if vector.is_none() && text.is_none() {
            let expected = "a list of numbers like [0.1, 0.2]";
            return Err(self.function.wrong("vector", "nothing", expected));
        }
        let fusion = self.text("fusion")?;
        let fusion = fusion.as_deref().map(Fusion::parse).transpose();
        let filter = Conditions::shared(None, self.text("filter")?).map_err(ours)?;
        let k = self.integer("k")?.unwrap_or(DEFAULT_K);
        let ef = self.integer("ef")?.map(SearchRequest::read_ef);
        let nprobe = self.integer("nprobe")?.map(SearchRequest::read_nprobe);
        Ok(SearchRequest {
            vectors: vector.into_iter().collect(),
            ef: ef.transpose().map_err(ours)?,
            nprobe: nprobe.transpose().map_err(ours)?,
            recall_target: self.number("recall_target")?,
            exact: self.switch("exact")?.unwrap_or(false),
            max_distance: self.number("max_distance")?,
            filter,
            text,
            alpha: self.number("alpha")?,
            fusion: fusion.map_err(ours)?.unwrap_or_default(),
            ..SearchRequest::nearest(
                Vec::new(),
                usize::try_from(k).map_err(|_| ours(Error::BadK { got: k, max: MAX_K }))?,
            )
        })
    }

    /// An argument that is given.
    fn of(&self, name: &str) -> Option<&ScalarValue> {
        let mut names = self.function.arguments.iter();
        let at = names.position(|(known, _)| *known == name)?;
        self.values.get(at).filter(|value| !value.is_null())
    }

    /// A text that must be given.
    fn needed(&self, name: &str, expected: &str) -> Result<String> {
        self.text(name)?
            .ok_or_else(|| self.function.wrong(name, "nothing", expected))
    }

    fn cast(&self, name: &str, to: &DataType, expected: &str) -> Result<Option<ScalarValue>> {
        let Some(value) = self.of(name) else {
            return Ok(None);
        };
        let refused = || self.function.wrong(name, &value.to_string(), expected);
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

/// What a search finds, as a table.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub function: &'static Function,
    pub engine: Engine,
    /// The dataset as the statement sees it.
    pub at: Arc<longbow_engine::Moment>,
    pub request: Arc<SearchRequest>,
    pub schema: SchemaRef,
    /// The vector, of the columns of another table, for each of whose rows is searched; then it cannot be read alone.
    pub each: Option<Expr>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(self.at.name(), &self.request, f)
    }
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
        if self.each.is_some() {
            return Err(ours(misplaced(self.function)));
        }
        let mut request = self.request.as_ref().clone();
        // The nearest come first, so that fewer rows are the nearest of them. Of fused answers that is not so.
        if request.text.is_none() {
            request.k = request.k.min(limit.unwrap_or(usize::MAX).max(1));
        }
        Ok(Arc::new(Nearest::new(
            &self.engine,
            &self.at,
            request,
            &schema,
        )))
    }
}
