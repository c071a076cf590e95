//! The lean search: ids and distances as arrays of numpy's.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use longbow_engine::{Class, Error};
use longbow_query::Refusal;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What Python gets, two arrays: the ids (int64, uint64, or objects for text), and the distances as float32.
pub type Nearest<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The ids of a reply.
#[derive(Debug)]
enum Ids {
    Signed(ScalarBuffer<i64>),
    Unsigned(ScalarBuffer<u64>),
    Text(Vec<Option<String>>),
}

/// A reply's ids and distances, `k` places to a query.
#[derive(Debug)]
pub struct Table {
    ids: Ids,
    distances: ScalarBuffer<f32>,
    /// How many queries were asked, and places of each; None for one by itself, of as many places as rows.
    shape: Option<[usize; 2]>,
}

impl Table {
    /// Takes a reply apart. Where `queries` says how many were asked, each has `k` places, and those without a row hold
    /// the id -1 (the greatest one of an unsigned type, none of text) at an infinite distance.
    ///
    /// # Errors
    /// If the reply lacks a column that every reply has, or its places take more than `limit` bytes.
    pub fn new(
        reply: &RecordBatch,
        k: usize,
        queries: Option<usize>,
        limit: u64,
    ) -> longbow_query::Result<Table> {
        let ids = reply.column_by_name("id").ok_or_else(|| lacks("id"))?;
        let distances = reply.column_by_name("distance");
        let distances = distances.and_then(|column| column.as_primitive_opt::<Float32Type>());
        let distances = distances.ok_or_else(|| lacks("distance"))?.values();
        let places = match queries {
            Some(queries) if queries.checked_mul(k) != Some(reply.num_rows()) => {
                Some(places(reply, k, queries, limit)?)
            }
            _ => None,
        };
        Ok(Table {
            ids: Ids::new(ids, places.as_deref()).map_err(Error::from)?,
            distances: numbers(distances, places.as_deref(), f32::INFINITY),
            shape: queries.map(|queries| [queries, k]),
        })
    }

    /// As Python's objects.
    ///
    /// # Errors
    /// If Python has no numpy.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Nearest<'_>> {
        load_numpy(py)?;
        let shape = self.shape;
        let ids = match self.ids {
            Ids::Signed(ids) => shaped(PyArray1::from_slice(py, &ids), shape)?,
            Ids::Unsigned(ids) => shaped(PyArray1::from_slice(py, &ids), shape)?,
            Ids::Text(ids) => {
                let object = |id| Ok(Option::<String>::into_pyobject(id, py)?.unbind());
                let ids = ids.into_iter().map(object).collect::<PyResult<Vec<_>>>()?;
                shaped(PyArray1::from_vec(py, ids), shape)?
            }
        };
        let distances = PyArray1::from_slice(py, &self.distances);
        Ok((ids, shaped(distances, shape)?))
    }
}

/// Loads numpy, if it is not: what uses it takes it to be there.
///
/// # Errors
/// If Python has none.
pub fn load_numpy(py: Python<'_>) -> PyResult<()> {
    static NUMPY: PyOnceLock<()> = PyOnceLock::new();
    NUMPY.get_or_try_init(py, || py.import("numpy").map(drop))?;
    Ok(())
}

fn shaped<'py, T: Element>(
    flat: Bound<'py, PyArray1<T>>,
    shape: Option<[usize; 2]>,
) -> PyResult<Bound<'py, PyAny>> {
    match shape {
        Some(shape) => Ok(flat.reshape(shape)?.into_any()),
        None => Ok(flat.into_any()),
    }
}

impl Ids {
    fn new(column: &ArrayRef, places: Option<&[Option<usize>]>) -> Result<Ids, ArrowError> {
        let kind = column.data_type();
        if *kind == DataType::UInt64 {
            let ids = column.as_primitive::<UInt64Type>();
            return Ok(Ids::Unsigned(numbers(ids.values(), places, u64::MAX)));
        }
        if let Some(ids) = column.as_primitive_opt::<Int64Type>() {
            return Ok(Ids::Signed(numbers(ids.values(), places, -1)));
        }
        if kind.is_integer() {
            let wide = cast(column, &DataType::Int64)?;
            let ids = wide.as_primitive::<Int64Type>();
            return Ok(Ids::Signed(numbers(ids.values(), places, -1)));
        }
        let text = cast(column, &DataType::Utf8)?;
        let ids: Vec<Option<String>> = text
            .as_string::<i32>()
            .iter()
            .map(|id| id.map(str::to_owned))
            .collect();
        Ok(Ids::Text(match places {
            Some(places) => spread(&ids, places, None),
            None => ids,
        }))
    }
}

/// Bytes of a place on its way: its row, its id and its distance, and both again as Python's.
const PLACE_BYTES: usize = 48;

/// For each place the row that stands there. There may be many more places than rows: what they take is asked for first.
fn places(
    reply: &RecordBatch,
    k: usize,
    queries: usize,
    limit: u64,
) -> longbow_query::Result<Vec<Option<usize>>> {
    let numbers = reply.column_by_name("query_index");
    let numbers = numbers.and_then(|column| column.as_primitive_opt::<Int32Type>());
    let numbers = numbers.ok_or_else(|| lacks("query_index"))?.values();
    let bytes = queries.saturating_mul(k).saturating_mul(PLACE_BYTES);
    let mut places = Vec::new();
    if bytes as u64 > limit || places.try_reserve_exact(queries * k).is_err() {
        let text = format!(
            "{k} places for each of {queries} queries take {bytes} bytes, and memory_limit is {limit}; ask for fewer"
        );
        return Err(Refusal::new(
            Class::ResourceExhausted,
            "memory_limit",
            &text,
        ));
    }
    places.resize(queries * k, None);
    let mut taken = vec![0; queries];
    for (row, query) in numbers.iter().enumerate() {
        let query = usize::try_from(*query).unwrap_or(usize::MAX);
        if let Some(taken) = taken.get_mut(query) {
            places[query * k + *taken] = Some(row);
            *taken += 1;
        }
    }
    Ok(places)
}

fn spread<T: Clone>(values: &[T], places: &[Option<usize>], nothing: T) -> Vec<T> {
    let at = |place: &Option<usize>| place.map_or(nothing.clone(), |row| values[row].clone());
    places.iter().map(at).collect()
}

/// Numbers at their places; as they are, without a copy, where there are no others.
fn numbers<T: ArrowNativeType>(
    values: &ScalarBuffer<T>,
    places: Option<&[Option<usize>]>,
    nothing: T,
) -> ScalarBuffer<T> {
    places.map_or_else(
        || values.clone(),
        |places| spread(values, places, nothing).into(),
    )
}

fn lacks(column: &str) -> Error {
    ArrowError::SchemaError(format!("a reply without the column '{column}'")).into()
}
