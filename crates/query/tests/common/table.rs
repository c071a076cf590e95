//! Rows of many types.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int8Array,
    Int64Array, RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field};

const WORDS: [&str; 10] = [
    "apple",
    "Apple pie",
    "100% sure",
    "a_b",
    "",
    "grün",
    "naïve",
    "",
    "x'y",
    "zebra",
];

/// Rows with the ids from 0 on, and vector columns of these names and dimensions; of row 7 and every tenth after it all but
/// the id and the vectors is null.
pub fn table(rows: i64, vectors: &[(&'static str, i32)]) -> RecordBatch {
    let ids = || 0..rows;
    let some = || ids().map(|id| (id % 10 != 7).then_some(id));
    let vectors = vectors.iter().map(|(name, dim)| {
        let of = |id| Some((0..*dim).map(move |at| Some(if at == 0 { id as f32 } else { 0.0 })));
        let all = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(ids().map(of), *dim);
        (*name, Arc::new(all) as ArrayRef)
    });
    let n: Int8Array = some().map(|id| Some((id? % 100) as i8 - 5)).collect();
    let x: Float64Array = some().map(|id| Some(id? as f64 / 4.0)).collect();
    let word: StringArray = some().map(|id| Some(WORDS[id? as usize % 10])).collect();
    let parity = |id: Option<i64>| Some(if id? % 2 == 0 { "even" } else { "odd" });
    let kind: DictionaryArray<Int32Type> = some().map(parity).collect();
    let good: BooleanArray = some().map(|id| Some(id? < 3)).collect();
    let day = |id: Option<i64>| Some(1_700_000_000_000 + id? * 86_400_000);
    let at: TimestampMillisecondArray = some().map(day).collect();
    let mut lists = ListBuilder::new(Int32Builder::new());
    for id in ids().map(|id| id % 10) {
        (0..id).for_each(|value| lists.values().append_value(value as i32));
        lists.append(id != 7);
    }
    let inner: ArrayRef = Arc::new(some().map(|id| Some(id? * 10)).collect::<Int64Array>());
    let inner = (Arc::new(Field::new("b", DataType::Int64, true)), inner);
    let number = || Arc::new(Int64Array::from_iter_values(ids())) as ArrayRef;
    let columns: [(&str, ArrayRef); 9] = [
        ("n", Arc::new(n)),
        ("x", Arc::new(x)),
        ("word", Arc::new(word)),
        ("kind", Arc::new(kind)),
        ("good", Arc::new(good)),
        ("at", Arc::new(at)),
        ("list", Arc::new(lists.finish())),
        ("a", Arc::new(StructArray::from(vec![inner]))),
        ("Big Name", number()),
    ];
    let all = std::iter::once(("id", number()))
        .chain(vectors)
        .chain(columns);
    let nullable = all.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable).expect("a batch")
}
