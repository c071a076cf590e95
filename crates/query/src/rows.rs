//! Rows as JSON objects.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::ReaderBuilder;
use arrow_json::WriterBuilder;
use arrow_json::reader::infer_json_schema_from_iterator;
use arrow_json::writer::JsonArray;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use serde_json::Value;

use crate::once::Once;
use crate::refusal::{Result, invalid};

/// Whole numbers below it are all told apart as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The greatest float16.
const MOST_FLOAT16: f64 = 65_504.0;

/// How rows are read that a dataset does not say.
#[derive(Debug, Clone, Default)]
pub struct RowsAs {
    /// Columns, beside `vector`, whose lists of numbers are vectors; empty names are passed over.
    pub vectors: Vec<String>,
    /// The metric of a dataset that the rows create, or that is to be that of the one that there is.
    pub metric: Option<String>,
}

/// Reads rows: a JSON array of objects, or objects one after the other. A column that the dataset has is of its type there;
/// of a new one the type is taken from the values: integers, floats, strings, booleans, lists and objects of those, and for
/// `vector` a vector of float32 of the first row's length.
///
/// # Errors
/// InvalidArgument for what is no such JSON, for a value that is not of its column's type, and for `vectors` that are none.
pub fn read(bytes: &[u8], known: Option<&SchemaRef>, how: &RowsAs) -> Result<RecordBatch> {
    let rows = objects(bytes)?;
    let wrong = |error: ArrowError| {
        let text = format!("the rows cannot be read: {error}; give each column values of one type");
        invalid("bad_rows", &text)
    };
    let inferred = infer_json_schema_from_iterator(rows.iter().map(Ok)).map_err(wrong)?;
    let is_known = |name: &str| known.is_some_and(|known| known.field_with_name(name).is_ok());
    let field = |field: &FieldRef| -> FieldRef {
        let name = field.name();
        if let Some(known) = known.and_then(|known| known.field_with_name(name).ok()) {
            return Arc::new(known.clone());
        }
        let is_vector = name == "vector" || how.vectors.contains(name);
        match rows.iter().find_map(|row| row.get(name)?.as_array()) {
            Some(first) if is_vector => vector_field(name, first.len()),
            _ => Arc::clone(field),
        }
    };
    // A column of nulls alone gets its type from its first value, not for ever from their lack.
    let fields = inferred.fields().iter().map(field);
    let fields = fields.filter(|field| !field.data_type().is_null() || is_known(field.name()));
    let fields: Vec<FieldRef> = fields.collect();
    check_vectors(how, &fields, known)?;
    let mut metadata = known.map_or(HashMap::new(), |known| known.metadata().clone());
    // Of a dataset that there is, whoever takes the rows refuses another.
    if let Some(metric) = &how.metric {
        metadata.insert(longbow_engine::METRIC_KEY.to_owned(), metric.clone());
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    check_fit(&rows, &schema)?;
    let reader = ReaderBuilder::new(schema).with_batch_size(rows.len().max(1));
    let mut decoder = reader.build_decoder().map_err(wrong)?;
    decoder.serialize(&rows).map_err(wrong)?;
    let batch = decoder.flush().map_err(wrong)?;
    batch.ok_or_else(|| invalid("bad_rows", "there are no rows; send at least one"))
}

/// Rows as JSON objects, null where a value is.
///
/// # Errors
/// If a column is of a type that JSON cannot say.
pub fn write(batch: &RecordBatch) -> Result<Vec<Value>> {
    let bytes = write_bytes(batch).map_err(|error| {
        let text = format!("the rows cannot be written as JSON: {error}; ask for other columns");
        invalid("bad_columns", &text)
    })?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Rows as a JSON array of objects, null where a value is.
///
/// # Errors
/// If a column is of a type that JSON cannot say.
pub fn write_bytes(batch: &RecordBatch) -> std::result::Result<Vec<u8>, ArrowError> {
    let writer = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = writer.build::<_, JsonArray>(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    let rows = writer.into_inner();
    Ok(if rows.is_empty() {
        b"[]".to_vec()
    } else {
        rows
    })
}

/// Refuses names of vectors of which neither the rows nor the dataset have any.
fn check_vectors(how: &RowsAs, fields: &[FieldRef], known: Option<&SchemaRef>) -> Result<()> {
    for name in how.vectors.iter().filter(|name| !name.is_empty()) {
        let new = fields.iter().find(|field| field.name() == name);
        let old = || known.and_then(|known| known.field_with_name(name).ok());
        let of = new.map(AsRef::as_ref).or_else(old);
        if !of.is_some_and(|field| matches!(field.data_type(), DataType::FixedSizeList(..))) {
            let text = format!(
                "vectors names '{name}', which is no column of vectors; name columns whose values are lists of numbers"
            );
            return Err(invalid("bad_value", &text));
        }
    }
    Ok(())
}

/// Refuses values that are not of their column's type: what reads them cuts fractions off, and takes texts for numbers.
fn check_fit(rows: &[Value], schema: &Schema) -> Result<()> {
    for (number, row) in rows.iter().enumerate() {
        for field in schema.fields() {
            let (name, kind) = (field.name(), field.data_type());
            let Some(wrong) = row.get(name).and_then(|value| misfit(value, kind)) else {
                continue;
            };
            let shown: String = wrong.to_string().chars().take(80).collect();
            let text = format!(
                "column '{name}' of row {number} (from 0) is of {kind}, and has the value {shown}; give each column values of its type"
            );
            return Err(invalid("bad_rows", &text));
        }
    }
    Ok(())
}

/// What in a value is a number or a truth where the type has no such one; values of other types are for their decoder to refuse.
fn misfit<'a>(value: &'a Value, kind: &DataType) -> Option<&'a Value> {
    let fits = match (kind, value) {
        (_, Value::Null) => true,
        (DataType::List(item) | DataType::LargeList(item), Value::Array(all))
        | (DataType::FixedSizeList(item, _), Value::Array(all)) => {
            return all.iter().find_map(|one| misfit(one, item.data_type()));
        }
        (DataType::Struct(fields), Value::Object(all)) => {
            let within = |field: &FieldRef| misfit(all.get(field.name())?, field.data_type());
            return fields.iter().find_map(within);
        }
        (DataType::Dictionary(_, of), _) => return misfit(value, of),
        (DataType::Boolean, _) => value.is_boolean(),
        (kind, Value::Number(number)) if kind.is_integer() => {
            let is_whole = |x: f64| x.fract() == 0.0 && x.abs() < EXACT;
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(is_whole)
        }
        // Who writes numbers as floats has no other way to say one that is beyond these.
        (kind, Value::String(text)) if kind.is_integer() => {
            text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
        }
        (kind, _) if kind.is_integer() => false,
        // JSON has no numbers that are not finite.
        (kind, Value::String(text)) if kind.is_floating() => {
            let is_name = !text.contains(|c: char| c.is_ascii_digit());
            is_name && text.parse().is_ok_and(|x: f64| !x.is_finite())
        }
        (kind, Value::Number(number)) if kind.is_floating() => {
            let most = match kind {
                DataType::Float16 => MOST_FLOAT16,
                DataType::Float32 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            number.as_f64().is_some_and(|x| x.abs() <= most)
        }
        (kind, _) if kind.is_floating() => false,
        _ => true,
    };
    (!fits).then_some(value)
}

fn vector_field(name: &str, dim: usize) -> FieldRef {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let dim = i32::try_from(dim).unwrap_or(i32::MAX);
    Arc::new(Field::new(name, DataType::FixedSizeList(item, dim), true))
}

fn objects(bytes: &[u8]) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Once>() {
        match value {
            Ok(Once(Value::Array(more))) => rows.extend(more),
            Ok(Once(one)) => rows.push(one),
            Err(error) => {
                let text =
                    format!("the rows cannot be read as JSON: {error}; send an array of objects");
                return Err(invalid("bad_json", &text));
            }
        }
    }
    match rows.iter().find(|row| !row.is_object()) {
        Some(other) => {
            let shown: String = other.to_string().chars().take(80).collect();
            let text = format!("a row is {shown}; expected an object of columns and values");
            Err(invalid("bad_rows", &text))
        }
        None if rows.is_empty() => Err(invalid("bad_rows", "there are no rows; send at least one")),
        None => Ok(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &str, expected: &[(&str, &str)]) -> RecordBatch {
        let batch = read(rows.as_bytes(), None, &RowsAs::default()).expect("good rows");
        let schema = batch.schema();
        let fields = schema.fields().iter();
        let mut got: Vec<(&str, String)> = fields
            .map(|field| (field.name().as_str(), field.data_type().to_string()))
            .collect();
        got.sort();
        let got: Vec<(&str, &str)> = got
            .iter()
            .map(|(name, kind)| (*name, kind.as_str()))
            .collect();
        assert_eq!(got, expected, "{rows}");
        batch
    }

    #[test]
    fn types_are_those_of_the_dataset_or_of_the_values() {
        let rows = r#"[{"id": 1, "vector": [1, 2.5], "word": "a"}, {"id": 2, "vector": [0, 1]}]"#;
        let vector = "FixedSizeList(2 x Float32)";
        let expected = [("id", "Int64"), ("vector", vector), ("word", "Utf8")];
        assert_eq!(check(rows, &expected).num_rows(), 2);
        let lines = "{\"id\": \"x\", \"vector\": [1, 2]}\n{\"id\": \"y\", \"vector\": [3, 4]}\n";
        let batch = check(lines, &[("id", "Utf8"), ("vector", vector)]);
        let untold = r#"{"id": 1, "vector": [1, 2], "n": null}"#;
        check(untold, &[("id", "Int64"), ("vector", vector)]);
        let known = Schema::new(vec![
            Field::new("id", DataType::Utf8, true),
            Field::new("n", DataType::Int8, true),
        ]);
        let known = Some(Arc::new(known));
        let batch_of = |rows: &str| read(rows.as_bytes(), known.as_ref(), &RowsAs::default());
        let typed = batch_of(r#"{"id": "z", "n": 5}"#).expect("good rows");
        let kind = |batch: &RecordBatch, name: &str| {
            batch
                .column_by_name(name)
                .expect("a column")
                .data_type()
                .clone()
        };
        assert_eq!(kind(&typed, "n"), DataType::Int8);
        let null = batch_of(r#"{"id": "z", "n": null}"#).expect("good rows");
        assert_eq!(kind(&null, "n"), DataType::Int8);
        assert_eq!(kind(&batch, "id"), DataType::Utf8);
        assert_eq!(
            batch_of(r#"{"id": "z", "n": 500}"#)
                .expect_err("too large")
                .code,
            "bad_rows"
        );
    }

    #[test]
    fn values_are_of_their_columns_types() {
        let item = |kind| Arc::new(Field::new("item", kind, true));
        let within = Field::new("n", DataType::UInt8, true);
        let known = Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("on", DataType::Boolean, true),
            Field::new("at", DataType::Float64, true),
            Field::new("v", DataType::FixedSizeList(item(DataType::Int8), 2), true),
            Field::new("all", DataType::List(item(DataType::Float32)), true),
            Field::new("in", DataType::Struct(vec![within].into()), true),
        ]);
        let known = Some(Arc::new(known));
        let read = |row: &str| {
            let rows = format!(r#"[{{"id": 0}}, {row}]"#);
            read(rows.as_bytes(), known.as_ref(), &RowsAs::default())
        };
        for row in [
            r#"{"id": 7.0, "on": true, "at": 1, "v": [1, -2], "all": [1, 2.5], "in": {"n": 3}}"#,
            r#"{"id": -1e3, "on": null, "at": "NaN", "v": null, "all": ["inf", null], "in": {}}"#,
            r#"{"id": "9007199254740993", "all": [3.4e38]}"#,
        ] {
            let batch = read(row).expect(row);
            assert_eq!(batch.num_rows(), 2);
        }
        for (row, value) in [
            (r#"{"id": 7.9}"#, "7.9"),
            (r#"{"id": "3.5"}"#, r#""3.5""#),
            (r#"{"id": 9007199254740993.0}"#, "90071992547409"),
            (r#"{"id": 1, "at": "1e999"}"#, "1e999"),
            (r#"{"id": 1, "all": [-1e39]}"#, "-1e"),
            (r#"{"id": 1e300}"#, "1e"),
            (r#"{"id": 1, "on": 1}"#, "1"),
            (r#"{"id": 1, "at": "1.5"}"#, r#""1.5""#),
            (r#"{"id": 1, "v": [1, 0.5]}"#, "0.5"),
            (r#"{"id": 1, "all": [1, "2"]}"#, r#""2""#),
            (r#"{"id": 1, "in": {"n": -0.5}}"#, "-0.5"),
        ] {
            let refused = read(row).expect_err(row);
            assert_eq!(refused.code, "bad_rows", "{row}");
            let said = refused.to_string();
            assert!(said.contains("row 1 ") && said.contains(value), "{said}");
        }
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for (rows, code) in [
            ("", "bad_rows"),
            ("[]", "bad_rows"),
            ("[1]", "bad_rows"),
            ("[{\"id\": 1}", "bad_json"),
            (r#"[{"id": 1, "n": 2, "n": 3}]"#, "bad_json"),
            (
                r#"[{"id": 1, "vector": [1, 2]}, {"id": 2, "vector": [1]}]"#,
                "bad_rows",
            ),
        ] {
            let refused = read(rows.as_bytes(), None, &RowsAs::default()).expect_err(rows);
            assert_eq!(refused.code, code, "{rows}: {refused}");
        }
    }
}
