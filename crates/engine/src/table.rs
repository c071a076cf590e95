//! Answers as an Arrow table.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use arrow_array::{Array, ArrayRef, Float32Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use crate::answer::Answered;
use crate::error::Result;
use crate::gather::Located;
use crate::reply::{QUERY_KEY, QueryInfo, SearchReply, micros};
use crate::score_parts;
use crate::view::View;

/// Fields that are the same in all replies, made once: a search takes microseconds.
static SCORE: LazyLock<FieldRef> = LazyLock::new(|| floats("score", false));
static DISTANCE: LazyLock<FieldRef> = LazyLock::new(|| floats("distance", false));
/// Where some rows have none.
static SOME_DISTANCE: LazyLock<FieldRef> = LazyLock::new(|| floats("distance", true));

fn floats(name: &str, is_nullable: bool) -> FieldRef {
    Arc::new(Field::new(name, DataType::Float32, is_nullable))
}

/// The reply, with the columns and all that stands beside them.
pub(crate) fn table(
    view: &View,
    answers: &[Answered],
    columns: &[FieldRef],
    (first_query, parts, is_bare): (Option<i32>, Option<Vec<String>>, bool),
    mut info: QueryInfo,
    started: Instant,
) -> Result<SearchReply> {
    let hits = || answers.iter().flat_map(|answer| answer.hits.iter());
    let located = Located::new(view, hits().map(|hit| hit.row));
    let scores: Vec<f32> = hits().map(|hit| hit.score).collect();
    let distances: Float32Array = hits().map(|hit| hit.distance).collect();
    let mut fields: Vec<FieldRef> = Vec::with_capacity(columns.len() + 4);
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len() + 4);
    if let Some(first) = first_query {
        let of = |(query, one): (i32, &Answered)| vec![query; one.hits.len()];
        fields.push(Arc::new(Field::new("query_index", DataType::Int32, false)));
        arrays.push(Arc::new(Int32Array::from_iter_values(
            (first..).zip(answers).flat_map(of),
        )));
    }
    let mut gathered = columns.iter();
    if let Some(id) = gathered.next() {
        arrays.push(located.column(id)?);
        fields.push(Arc::clone(id));
    }
    fields.push(Arc::clone(&SCORE));
    arrays.push(Arc::new(Float32Array::from(scores)));
    let distance = match distances.null_count() > 0 {
        true => &SOME_DISTANCE,
        false => &DISTANCE,
    };
    fields.push(Arc::clone(distance));
    arrays.push(Arc::new(distances));
    if let Some(names) = parts {
        let rows = answers.iter().flat_map(|answer| &answer.parts);
        let (field, array) = score_parts::column(&names, rows)?;
        fields.push(field);
        arrays.push(array);
    }
    for field in gathered {
        arrays.push(located.column(field)?);
        fields.push(Arc::clone(field));
    }
    info.elapsed_us = micros(started.elapsed());
    let metadata = match is_bare {
        true => HashMap::new(),
        false => told(&info),
    };
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    Ok(SearchReply {
        batch: RecordBatch::try_new(schema, arrays)?,
        info,
    })
}

/// How a reply came to be, as metadata of its schema.
fn told(info: &QueryInfo) -> HashMap<String, String> {
    let json = serde_json::to_string(info).unwrap_or_default();
    HashMap::from([(QUERY_KEY.to_owned(), json)])
}
