//! Distances as functions of SQL, computed by the kernels that searches use.
//!
//! | function | is | nearest first |
//! |---|---|---|
//! | `distance(a, b)` | the distance of the dataset's metric, as a search tells it | `ORDER BY … ` |
//! | `l2_distance(a, b)` | the Euclidean distance | `ORDER BY …` |
//! | `cosine_distance(a, b)` | 1 - the cosine of the angle; 1 if a vector is zero | `ORDER BY …` |
//! | `inner_product(a, b)` | the sum of the products of the elements | `ORDER BY … DESC` |
//!
//! `a` and `b` are lists of numbers of one length. Of a null vector, or one with a null element, the distance is null.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float32Array};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use longbow_engine::{METRIC_KEY, Metric, Scalar, Space, SpaceQuery, metric_name};

use super::refuse::ours;
use super::vectors::{Vectors, is_vector};
use crate::refusal::invalid;

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Distance {
    kind: Kind,
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// By the metric of the dataset that a vector comes from.
    Own,
    /// By this metric.
    Of(Metric),
}

/// All of them.
pub(super) fn functions() -> [ScalarUDF; 4] {
    let kinds = [
        Kind::Own,
        Kind::Of(Metric::Euclidean),
        Kind::Of(Metric::Cosine),
        Kind::Of(Metric::Dot),
    ];
    kinds.map(|kind| {
        ScalarUDF::new_from_impl(Distance {
            kind,
            signature: Signature::any(2, Volatility::Immutable),
        })
    })
}

/// Whether a function is one of them.
pub(super) fn is_one(name: &str) -> bool {
    [
        "distance",
        "l2_distance",
        "cosine_distance",
        "inner_product",
    ]
    .contains(&name)
}

impl Distance {
    /// Whether small values are near.
    pub fn ascends(&self) -> bool {
        self.kind != Kind::Of(Metric::Dot)
    }

    /// The metric that it computes for arguments of these fields.
    pub fn metric(&self, arguments: &[FieldRef]) -> Metric {
        match self.kind {
            Kind::Of(metric) => metric,
            Kind::Own => {
                let named = arguments
                    .iter()
                    .find_map(|field| field.metadata().get(METRIC_KEY));
                let all = [Metric::Euclidean, Metric::Cosine, Metric::Dot];
                let known = all
                    .into_iter()
                    .find(|metric| named.is_some_and(|name| name == metric_name(*metric)));
                known.unwrap_or(Metric::Euclidean)
            }
        }
    }

    /// The metric, for a column of a dataset with this metric.
    pub fn metric_on(&self, dataset: Metric) -> Metric {
        match self.kind {
            Kind::Of(metric) => metric,
            Kind::Own => dataset,
        }
    }

    fn of_raw(&self, space: &Space, raw: f32) -> f32 {
        let (distance, score) = space.to_distance_and_score(raw);
        if self.ascends() { distance } else { score }
    }

    /// Distances of a column to one vector.
    fn to_one(&self, metric: Metric, stored: &ArrayRef, query: &[f32]) -> Result<ArrayRef> {
        let column = Vectors::read(stored)?;
        let query = prepared(query, metric, column.scalar)?;
        let rows = (0..stored.len()).map(|row| {
            let Some(vector) = column.row(row) else {
                return Ok(None);
            };
            check_length(&query, vector)?;
            Ok(Some(self.of_raw(&query.space(), query.distance(vector))))
        });
        Ok(Arc::new(rows.collect::<Result<Float32Array>>()?))
    }

    /// Distances row by row.
    fn pairwise(&self, metric: Metric, stored: &ArrayRef, queries: &ArrayRef) -> Result<ArrayRef> {
        let (column, queries) = (Vectors::read(stored)?, Vectors::read_floats(queries)?);
        let rows = (0..stored.len()).map(|row| {
            let (Some(vector), Some(query)) = (column.row(row), queries.floats(row)) else {
                return Ok(None);
            };
            let query = prepared(&query, metric, column.scalar)?;
            check_length(&query, vector)?;
            Ok(Some(self.of_raw(&query.space(), query.distance(vector))))
        });
        Ok(Arc::new(rows.collect::<Result<Float32Array>>()?))
    }
}

fn prepared(vector: &[f32], metric: Metric, scalar: Scalar) -> Result<SpaceQuery> {
    let space = Space {
        scalar,
        metric,
        dim: vector.len(),
    };
    let query = SpaceQuery::new(space, vector).map_err(|error| {
        let text = format!("{error}; give vectors of finite numbers");
        ours(invalid("not_finite", &text))
    })?;
    let too_large = space.check_query(vector);
    too_large.map_err(|error| ours(invalid("value_too_large", &error.to_string())))?;
    Ok(query)
}

fn check_length(query: &SpaceQuery, vector: &[u8]) -> Result<()> {
    let space = query.space();
    let dim = vector.len() / space.scalar.size();
    if dim == space.dim && dim > 0 {
        return Ok(());
    }
    let text = format!(
        "a vector of {dim} elements was compared with one of {}; give vectors of one length",
        space.dim
    );
    Err(ours(invalid("dimension_mismatch", &text)))
}

impl ScalarUDFImpl for Distance {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Own => "distance",
            Kind::Of(Metric::Euclidean) => "l2_distance",
            Kind::Of(Metric::Cosine) => "cosine_distance",
            Kind::Of(Metric::Dot) => "inner_product",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if let Some(other) = arguments.iter().find(|argument| !is_vector(argument)) {
            let text = format!(
                "{} compares two vectors, and was given {other}; give columns of vectors or lists like [0.1, 0.2]",
                self.name()
            );
            return Err(ours(invalid("not_a_vector", &text)));
        }
        Ok(DataType::Float32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let metric = self.metric(&arguments.arg_fields);
        let [a, b] = arguments.args.as_slice() else {
            return Err(ours(invalid(
                "bad_sql",
                "a distance is of two vectors; give two",
            )));
        };
        // All metrics are symmetric.
        let (rows, one) = match (a, b) {
            (ColumnarValue::Array(a), ColumnarValue::Array(b)) => {
                return self.pairwise(metric, a, b).map(ColumnarValue::Array);
            }
            (ColumnarValue::Array(rows), ColumnarValue::Scalar(one))
            | (ColumnarValue::Scalar(one), ColumnarValue::Array(rows)) => (rows, one),
            (ColumnarValue::Scalar(a), ColumnarValue::Scalar(b)) => {
                let told = self.pairwise(metric, &a.to_array()?, &b.to_array()?)?;
                return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                    &told, 0,
                )?));
            }
        };
        match super::vectors::constant(one)? {
            Some(query) => self.to_one(metric, rows, &query).map(ColumnarValue::Array),
            None => Ok(ColumnarValue::Scalar(ScalarValue::Float32(None))),
        }
    }
}
