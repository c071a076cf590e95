//! Rows of the tests: each is made of a key and a version, so that it can be told from any other.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float16Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use half::f16;
use longbow_engine::Id;

use crate::condition::{Comparison, Condition};
use crate::random::mix;

/// Elements of a vector.
pub const DIM: usize = 4;
/// Elements of a vector in the column that comes later.
pub const SECOND_DIM: usize = 3;

/// Types of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    Int,
    Text,
}

/// Types of elements of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    F32,
    F16,
    I8,
    U8,
    F64,
    I16,
}

impl Element {
    pub const ALL: [Element; 6] = [
        Element::F32,
        Element::F16,
        Element::I8,
        Element::U8,
        Element::F64,
        Element::I16,
    ];
}

/// What the rows of a dataset look like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub id: IdKind,
    pub element: Element,
    pub metric: &'static str,
}

/// Columns that a dataset does not have from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Number,
    Text,
    Real,
    /// A vector column: null in rows from before it was there, and needed in all later puts.
    Second,
}

impl Extra {
    pub const ALL: [Extra; 4] = [Extra::Number, Extra::Text, Extra::Real, Extra::Second];

    pub fn name(self) -> &'static str {
        match self {
            Extra::Number => "number",
            Extra::Text => "text",
            Extra::Real => "real",
            Extra::Second => "second",
        }
    }
}

/// One row. Its vector follows from its version, which no other row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: u32,
    pub version: u32,
    pub tag: Option<u32>,
    /// The values of [`Extra::ALL`]; those of the vector column are there or not.
    pub extras: [Option<u32>; 4],
}

/// A condition on rows.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    pub field: &'static str,
    pub comparison: Comparison,
    pub value: u32,
}

impl Shape {
    /// The id of a key.
    pub fn id(&self, key: u32) -> Id {
        match self.id {
            IdKind::Int => Id::Int(i64::from(key) - 20),
            IdKind::Text => Id::Text(format!("k{key:05}")),
        }
    }

    /// The key of an id.
    pub fn key(&self, id: &Id) -> u32 {
        match id {
            Id::Int(number) => u32::try_from(number + 20).expect("made of a key"),
            Id::Text(text) => text[1..].parse().expect("made of a key"),
            Id::Large(_) => panic!("no id is that large"),
        }
    }

    /// A vector of small numbers, which every element type holds exactly.
    pub fn vector(&self, version: u32) -> [f32; DIM] {
        self.numbers(mix(u64::from(version)))
    }

    /// The numbers of a vector, from 32 bits of `bits`.
    pub fn numbers<const N: usize>(&self, bits: u64) -> [f32; N] {
        let least = if self.element == Element::U8 {
            0.0
        } else {
            -8.0
        };
        std::array::from_fn(|at| ((bits >> (8 * at)) & 15) as f32 + least)
    }

    /// The vector of a version in the later column.
    pub fn second(&self, version: u32) -> [f32; SECOND_DIM] {
        std::array::from_fn(|at| (mix(u64::from(version) << 8 | at as u64) & 31) as f32)
    }

    /// The distance of two vectors as a search says it.
    pub fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        let pairs = || a.iter().zip(b);
        let dot: f32 = pairs().map(|(x, y)| x * y).sum();
        let norm = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
        match self.metric {
            "euclidean" => pairs().map(|(x, y)| (x - y) * (x - y)).sum::<f32>().sqrt(),
            "dot_product" => -dot,
            _ if norm(a) == 0.0 || norm(b) == 0.0 => 1.0,
            _ => 1.0 - dot / (norm(a) * norm(b)),
        }
    }

    /// The schema of a put with these columns beside the first four.
    pub fn schema(&self, extras: &[Extra]) -> SchemaRef {
        let id = match self.id {
            IdKind::Int => DataType::Int64,
            IdKind::Text => DataType::Utf8,
        };
        let mut fields = vec![
            Field::new("id", id, true),
            Field::new("vector", list_type(element_type(self.element), DIM), true),
            Field::new("version", DataType::UInt32, true),
            Field::new("tag", DataType::Utf8, true),
        ];
        fields.extend(extras.iter().map(|extra| {
            let data_type = match extra {
                Extra::Number => DataType::Int64,
                Extra::Text => DataType::Utf8,
                Extra::Real => DataType::Float64,
                Extra::Second => list_type(DataType::Float32, SECOND_DIM),
            };
            Field::new(extra.name(), data_type, true)
        }));
        let metric = HashMap::from([("longbow.metric".to_owned(), self.metric.to_owned())]);
        Arc::new(Schema::new_with_metadata(fields, metric))
    }

    /// Rows as Arrow has them.
    pub fn batch(&self, extras: &[Extra], rows: &[Row]) -> RecordBatch {
        let ids: ArrayRef = match self.id {
            IdKind::Int => Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|row| i64::from(row.key) - 20),
            )),
            IdKind::Text => Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| format!("k{:05}", row.key)),
            )),
        };
        let numbers = rows
            .iter()
            .flat_map(|row| self.vector(row.version))
            .collect::<Vec<_>>();
        let vectors = list(elements(self.element, &numbers), DIM, None);
        let versions = UInt32Array::from_iter_values(rows.iter().map(|row| row.version));
        let tags =
            StringArray::from_iter(rows.iter().map(|row| row.tag.map(|tag| format!("t{tag}"))));
        let mut columns = vec![ids, vectors, Arc::new(versions), Arc::new(tags)];
        columns.extend(extras.iter().map(|extra| self.extra(*extra, rows)));
        RecordBatch::try_new(self.schema(extras), columns).expect("columns fit the schema")
    }

    fn extra(&self, extra: Extra, rows: &[Row]) -> ArrayRef {
        let values = || rows.iter().map(|row| row.extras[extra as usize]);
        match extra {
            Extra::Number => Arc::new(Int64Array::from_iter(values().map(|v| v.map(i64::from)))),
            Extra::Text => Arc::new(StringArray::from_iter(
                values().map(|v| v.map(|v| format!("s{v}"))),
            )),
            Extra::Real => Arc::new(Float64Array::from_iter(
                values().map(|v| v.map(|v| f64::from(v) / 4.0)),
            )),
            Extra::Second => {
                let numbers = rows
                    .iter()
                    .flat_map(|row| match row.extras[extra as usize] {
                        Some(_) => self.second(row.version),
                        None => [0.0; SECOND_DIM],
                    });
                let there = NullBuffer::from_iter(values().map(|v| v.is_some()));
                list(
                    Arc::new(Float32Array::from_iter_values(numbers)),
                    SECOND_DIM,
                    Some(there),
                )
            }
        }
    }
}

impl Row {
    /// Whether the row passes a test; null passes none.
    pub fn passes(&self, test: &Test) -> bool {
        let value = match test.field {
            "id" => Some(self.key),
            "version" => Some(self.version),
            "tag" => self.tag,
            _ => self.extras[Extra::Number as usize],
        };
        let Some(order) = value.map(|value| value.cmp(&test.value)) else {
            return false;
        };
        match test.comparison {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
        }
    }
}

impl Test {
    /// The condition as a client writes it.
    pub fn condition(&self, shape: &Shape) -> Condition {
        let value = match self.field {
            "id" => match shape.id(self.value) {
                Id::Int(number) => number.to_string(),
                Id::Large(number) => number.to_string(),
                Id::Text(text) => text,
            },
            "tag" => format!("t{}", self.value),
            _ => self.value.to_string(),
        };
        let condition = Condition::new(self.field, self.comparison, value);
        // Nothing is remembered of some.
        if self.value % 4 == 3 {
            condition.forgotten()
        } else {
            condition
        }
    }
}

fn element_type(element: Element) -> DataType {
    match element {
        Element::F32 => DataType::Float32,
        Element::F16 => DataType::Float16,
        Element::I8 => DataType::Int8,
        Element::U8 => DataType::UInt8,
        Element::F64 => DataType::Float64,
        Element::I16 => DataType::Int16,
    }
}

fn elements(element: Element, numbers: &[f32]) -> ArrayRef {
    let numbers = numbers.iter().copied();
    match element {
        Element::F32 => Arc::new(Float32Array::from_iter_values(numbers)),
        Element::F16 => Arc::new(Float16Array::from_iter_values(numbers.map(f16::from_f32))),
        Element::I8 => Arc::new(Int8Array::from_iter_values(numbers.map(|x| x as i8))),
        Element::U8 => Arc::new(UInt8Array::from_iter_values(numbers.map(|x| x as u8))),
        Element::F64 => Arc::new(Float64Array::from_iter_values(numbers.map(f64::from))),
        Element::I16 => Arc::new(Int16Array::from_iter_values(numbers.map(|x| x as i16))),
    }
}

fn list_type(element: DataType, dim: usize) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new("item", element, true)), dim as i32)
}

fn list(values: ArrayRef, dim: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(FixedSizeListArray::try_new(item, dim as i32, values, nulls).expect("whole vectors"))
}
