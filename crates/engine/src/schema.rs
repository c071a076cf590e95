//! What a dataset's schema means: which column is the id, which are vectors, and how it may grow.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use longbow_index::Space;
use longbow_kernels::{Metric, Scalar};

use crate::error::{Error, Result};
use crate::index_kind;
use crate::index_policy::IndexPolicy;
use crate::quantization::{self, Quantization};
use crate::recall_target;
use crate::text_column;

/// Longest vector that is accepted, in elements.
pub const MAX_DIM: usize = 65_536;
/// Metadata key of the schema that names the distance.
pub const METRIC_KEY: &str = "longbow.metric";

/// One vector column of a dataset.
#[derive(Debug, Clone)]
pub struct VectorColumn {
    /// Position in the schema.
    pub index: usize,
    /// Name of the column.
    pub name: String,
    /// Element type on disk and wire.
    pub element: DataType,
    /// What the kernels see: element type, dimension, metric. Elements without a kernel of their own are
    /// searched as float32.
    pub space: Space,
    /// Whether the stored bytes are what the kernels read, or must be cast to float32 first.
    pub native: bool,
    /// What decides the kind of its index, if its field says so.
    pub index_policy: Option<IndexPolicy>,
    /// What its graph is to hold of each vector, if its field says so.
    pub quantization: Option<Quantization>,
    /// The recall that its searches are to reach, if its field says so.
    pub recall_target: Option<f32>,
}

/// The schema of a dataset with its meaning.
#[derive(Debug)]
pub struct DatasetSchema {
    /// The Arrow schema, with the metadata of the first put.
    pub arrow: SchemaRef,
    /// Its fields as replies have them: any may be null.
    pub replied: Vec<FieldRef>,
    /// Counts the changes of the schema, from 1.
    pub version: u32,
    /// The distance of all vector columns.
    pub metric: Metric,
    /// Position of the id column.
    pub id: usize,
    /// The vector columns, in order of the schema.
    pub vectors: Vec<VectorColumn>,
}

impl DatasetSchema {
    /// Reads the meaning of a schema as a client sent it.
    ///
    /// # Errors
    /// Without an id column of integer or string type, without a vector column, with a column twice, with a
    /// dimension or metric out of range.
    pub fn new(arrow: &SchemaRef, version: u32) -> Result<Arc<Self>> {
        let mut seen = HashSet::new();
        for field in arrow.fields() {
            if !seen.insert(field.name()) {
                return Err(Error::DuplicateColumn {
                    column: field.name().clone(),
                });
            }
        }
        let id = arrow.index_of("id").map_err(|_| Error::NoIdColumn)?;
        let id_type = arrow.field(id).data_type();
        let is_text = matches!(
            id_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        );
        if !id_type.is_integer() && !is_text {
            return Err(Error::BadIdType {
                got: id_type.to_string(),
            });
        }
        let metric = metric_of(arrow)?.unwrap_or(Metric::Euclidean);
        let mut vectors = Vec::new();
        for (index, field) in arrow.fields().iter().enumerate() {
            if let Some(column) = vector_column(index, field, metric)? {
                vectors.push(column);
            }
        }
        if vectors.is_empty() {
            return Err(Error::NoVectorColumn);
        }
        Ok(Arc::new(DatasetSchema {
            arrow: Arc::clone(arrow),
            replied: arrow.fields().iter().map(nullable).collect(),
            version,
            metric,
            id,
            vectors,
        }))
    }

    /// The vector column to search: the one named, or `vector`, or the only one, or the first.
    ///
    /// # Errors
    /// If the name is unknown or is not a vector column.
    pub fn vector(&self, dataset: &str, name: Option<&str>) -> Result<&VectorColumn> {
        let Some(name) = name else {
            return Ok(self
                .vectors
                .iter()
                .find(|column| column.name == "vector")
                .unwrap_or(&self.vectors[0]));
        };
        if let Some(column) = self.vectors.iter().find(|column| column.name == name) {
            return Ok(column);
        }
        self.column(dataset, name)?;
        let have = self
            .vectors
            .iter()
            .map(|column| column.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        Err(Error::NotAVectorColumn {
            dataset: dataset.into(),
            column: name.into(),
            have,
        })
    }

    /// Position of a column by name.
    ///
    /// # Errors
    /// If there is none; the error lists those that exist.
    pub fn column(&self, dataset: &str, name: &str) -> Result<usize> {
        self.arrow.index_of(name).map_err(|_| {
            let have = self.arrow.fields().iter();
            let have: Vec<&str> = have.map(|field| field.name().as_str()).collect();
            let near = longbow_types::nearest(name, have.iter().copied());
            Error::ColumnNotFound {
                dataset: dataset.into(),
                column: name.into(),
                near: near.map(str::to_owned),
                have: have.join(", "),
            }
        })
    }

    /// Whether batches of `other` can be kept as they are: the same columns in the same order and of the same types.
    pub fn same_columns(&self, other: &Schema) -> bool {
        self.arrow.fields().len() == other.fields().len()
            && self
                .arrow
                .fields()
                .iter()
                .zip(other.fields())
                .all(|(a, b)| a.name() == b.name() && same_type(a.data_type(), b.data_type()))
    }

    /// The schema after a put of `incoming`: `None` if it adds nothing, else the grown one.
    ///
    /// # Errors
    /// If a column changed its type, dimension, quantization, recall target or tokenizer, if a vector column or the id is missing, if the metric differs.
    pub fn evolve(&self, dataset: &str, incoming: &SchemaRef) -> Result<Option<Arc<Self>>> {
        DatasetSchema::new(incoming, 0)?;
        if let Some(metric) = metric_of(incoming)?
            && metric != self.metric
        {
            return Err(Error::MetricChanged {
                dataset: dataset.into(),
                expected: metric_name(self.metric).into(),
                got: metric_name(metric).into(),
            });
        }
        let mut added = Vec::new();
        for field in incoming.fields() {
            match self.arrow.field_with_name(field.name()) {
                Ok(known) if same_type(known.data_type(), field.data_type()) => {
                    index_kind::check_same(dataset, known, field)?;
                    quantization::check_same(dataset, known, field)?;
                    recall_target::check_same(dataset, known, field)?;
                    text_column::check_same(dataset, known, field)?;
                }
                Ok(known) => {
                    return Err(Error::TypeChanged {
                        dataset: dataset.into(),
                        column: field.name().clone(),
                        expected: known.data_type().to_string(),
                        got: field.data_type().to_string(),
                    });
                }
                Err(_) => added.push(Arc::new(field.as_ref().clone().with_nullable(true))),
            }
        }
        for column in &self.vectors {
            if incoming.index_of(&column.name).is_err() {
                return Err(Error::ColumnMissing {
                    dataset: dataset.into(),
                    column: column.name.clone(),
                });
            }
        }
        if added.is_empty() {
            return Ok(None);
        }
        let mut fields = self.arrow.fields().to_vec();
        fields.extend(added);
        let grown = Schema::new_with_metadata(fields, self.arrow.metadata().clone());
        Ok(Some(DatasetSchema::new(
            &Arc::new(grown),
            self.version + 1,
        )?))
    }
}

/// Type equality that ignores what does not change the bytes: names and nullability of a vector's elements.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::FixedSizeList(x, n), DataType::FixedSizeList(y, m)) => {
            n == m && x.data_type() == y.data_type()
        }
        _ => a.equals_datatype(b),
    }
}

/// The schema with what cannot be kept as it came replaced: dictionaries by their values, every column nullable,
/// so that later puts may leave it out, and a vector's elements named alike whoever sent them.
pub fn stored_schema(incoming: &Schema) -> Schema {
    let plain = |field: &Arc<Field>| {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            DataType::FixedSizeList(item, size) => DataType::FixedSizeList(
                Arc::new(Field::new("item", item.data_type().clone(), true)),
                *size,
            ),
            other => other.clone(),
        };
        Field::new(field.name(), data_type, true).with_metadata(field.metadata().clone())
    };
    Schema::new_with_metadata(
        incoming.fields().iter().map(plain).collect::<Vec<_>>(),
        incoming.metadata().clone(),
    )
}

fn vector_column(index: usize, field: &Field, metric: Metric) -> Result<Option<VectorColumn>> {
    let DataType::FixedSizeList(item, dim) = field.data_type() else {
        return Ok(None);
    };
    let element = item.data_type();
    let native = match element {
        DataType::Float32 => Some(Scalar::F32),
        DataType::Float16 => Some(Scalar::F16),
        DataType::Int8 => Some(Scalar::I8),
        DataType::UInt8 => Some(Scalar::U8),
        _ if element.is_integer() || element == &DataType::Float64 => None,
        _ => return Ok(None),
    };
    let size = usize::try_from(*dim).unwrap_or(0);
    if size == 0 || size > MAX_DIM {
        return Err(Error::BadDimension {
            column: field.name().clone(),
            dim: i64::from(*dim),
            max: MAX_DIM,
        });
    }
    Ok(Some(VectorColumn {
        index,
        name: field.name().clone(),
        element: element.clone(),
        space: Space {
            scalar: native.unwrap_or(Scalar::F32),
            metric,
            dim: size,
        },
        native: native.is_some(),
        index_policy: IndexPolicy::of_field(field),
        quantization: Quantization::of_field(field),
        recall_target: recall_target::of_field(field),
    }))
}

fn metric_of(schema: &Schema) -> Result<Option<Metric>> {
    let Some(name) = schema.metadata().get(METRIC_KEY) else {
        return Ok(None);
    };
    match name.to_ascii_lowercase().as_str() {
        "euclidean" | "l2" => Ok(Some(Metric::Euclidean)),
        "cosine" => Ok(Some(Metric::Cosine)),
        "dot_product" | "dot" => Ok(Some(Metric::Dot)),
        _ => Err(Error::UnknownMetric { got: name.clone() }),
    }
}

/// The metric's name on the wire.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Euclidean => "euclidean",
        Metric::Cosine => "cosine",
        Metric::Dot => "dot_product",
    }
}

fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_nullable(true))
}
