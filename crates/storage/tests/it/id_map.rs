//! [`IdMap`] against a plain map, for every type of id.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use longbow_storage::{Batch, Error, IdKind, IdMap, Key, MAX_ID_BYTES, key_at};
use proptest::prelude::*;

fn batch(ids: ArrayRef) -> Batch {
    let rows = RecordBatch::try_from_iter_with_nullable([("id", ids, true)]).unwrap();
    Batch::from_record_batch(&rows).unwrap()
}

fn types() -> Vec<DataType> {
    vec![
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
    ]
}

fn key<'a>(data_type: &DataType, id: i64, text: &'a str) -> Key<'a> {
    match data_type.is_integer() {
        true => Key::Int(id),
        false => Key::Str(text),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Column(Vec<i64>),
    Remove(i64),
    Insert(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        prop::collection::vec(0..120_i64, 0..60).prop_map(Step::Column),
        (0..120_i64).prop_map(Step::Remove),
        (0..120_i64).prop_map(Step::Insert),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #[test]
    fn it_is_a_map(data_type in prop::sample::select(types()), steps in steps()) {
        let mut model: HashMap<i64, u64> = HashMap::new();
        let mut map = IdMap::new(&data_type).unwrap();
        let mut row = 0;
        for step in steps {
            match step {
                Step::Column(ids) => {
                    let column: ArrayRef = Arc::new(Int64Array::from(ids.clone()));
                    let batch = batch(cast(&column, &data_type).unwrap());
                    let mut replaced = Vec::new();
                    map.insert_column(&batch, 0, row, &mut |row| replaced.push(row)).unwrap();
                    let expected: Vec<_> = ids.iter().zip(row..).filter_map(|(id, row)| model.insert(*id, row)).collect();
                    prop_assert_eq!(replaced, expected);
                    for (at, id) in ids.iter().enumerate() {
                        prop_assert_eq!(map.get(&key_at(&batch, 0, at).unwrap()), model.get(id).copied());
                    }
                    row += ids.len() as u64;
                }
                Step::Remove(id) => {
                    let text = id.to_string();
                    prop_assert_eq!(map.remove(&key(&data_type, id, &text)), model.remove(&id));
                }
                Step::Insert(id) => {
                    let text = id.to_string();
                    let before = map.insert(&key(&data_type, id, &text), row).unwrap();
                    prop_assert_eq!(before, model.insert(id, row));
                    row += 1;
                }
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(map.is_empty(), model.is_empty());
        }
        for id in 0..130 {
            let text = id.to_string();
            prop_assert_eq!(map.get(&key(&data_type, id, &text)), model.get(&id).copied());
        }
    }
}

#[test]
fn large_batches_are_inserted_as_small_ones_are() {
    let ids: Vec<i64> = (0..100_000_i64).map(|i| i * i % 60_000).collect();
    for data_type in [DataType::Int64, DataType::Utf8] {
        let mut model: HashMap<i64, u64> = HashMap::new();
        let mut expected: Vec<u64> = ids
            .iter()
            .zip(7..)
            .filter_map(|(id, row)| model.insert(*id, row))
            .collect();
        let column: ArrayRef = Arc::new(Int64Array::from(ids.clone()));
        let batch = batch(cast(&column, &data_type).unwrap());
        let mut map = IdMap::new(&data_type).unwrap();
        let mut replaced = Vec::new();
        map.insert_column(&batch, 0, 7, &mut |row| replaced.push(row))
            .unwrap();
        replaced.sort_unstable();
        expected.sort_unstable();
        assert_eq!(replaced, expected);
        assert_eq!(map.len(), model.len());
        for (id, row) in model {
            assert_eq!(map.get(&key(&data_type, id, &id.to_string())), Some(row));
        }
    }
}

#[test]
fn the_table_grows_in_small_steps() {
    let mut map = IdMap::new(&DataType::Int64).unwrap();
    let mut before = map.memory_bytes();
    for id in 0..400_000 {
        map.insert(&Key::Int(id), id as u64).unwrap();
        let now = map.memory_bytes();
        // One of 64 parts, of which the largest has a 48th of the ids, doubles at a time.
        assert!(
            id < 1_000 || now - before <= now / 24,
            "{id}: {before} to {now}"
        );
        before = now;
    }
}

#[test]
fn signs_are_kept_apart() {
    let mut signed = IdMap::new(&DataType::Int32).unwrap();
    signed
        .insert_column(
            &batch(Arc::new(arrow_array::Int32Array::from(vec![-1, 1]))),
            0,
            0,
            &mut |_| {},
        )
        .unwrap();
    assert_eq!(signed.get(&Key::Int(-1)), Some(0));
    assert_eq!(signed.get(&Key::UInt(1)), Some(1));
    assert_eq!(signed.get(&Key::UInt(u64::MAX)), None);

    let mut unsigned = IdMap::new(&DataType::UInt64).unwrap();
    unsigned
        .insert_column(
            &batch(Arc::new(UInt64Array::from(vec![u64::MAX, 1]))),
            0,
            0,
            &mut |_| {},
        )
        .unwrap();
    assert_eq!(unsigned.get(&Key::UInt(u64::MAX)), Some(0));
    assert_eq!(unsigned.get(&Key::Int(-1)), None);
    assert_eq!(unsigned.get(&Key::Str("1")), None);
    assert_eq!(unsigned.remove(&Key::Str("1")), None);
    let error = unsigned.insert(&Key::Int(-1), 5).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Int(-1) cannot be an id among unsigned integers"),
        "{error}"
    );
}

#[test]
fn a_null_id_is_named_and_nothing_is_inserted() {
    let mut map = IdMap::new(&DataType::Int64).unwrap();
    let ids = batch(Arc::new(Int64Array::from(vec![Some(1), Some(2), None])));
    let error = map.insert_column(&ids, 0, 0, &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::NullId { row: 2 }), "{error}");
    assert!(matches!(key_at(&ids, 0, 2), Err(Error::NullId { row: 2 })));
    assert!(matches!(key_at(&ids, 0, 3), Err(Error::RowRange { .. })));
    assert!(matches!(key_at(&ids, 1, 0), Err(Error::NoColumn { .. })));
    assert!(map.is_empty());
}

#[test]
fn a_too_long_id_is_named_and_nothing_is_inserted() {
    let long = "x".repeat(MAX_ID_BYTES + 1);
    for ids in [
        Arc::new(StringArray::from(vec!["a", &long])) as ArrayRef,
        Arc::new(StringViewArray::from(vec!["a", &long])),
    ] {
        let mut map = IdMap::new(ids.data_type()).unwrap();
        let error = map
            .insert_column(&batch(ids), 0, 0, &mut |_| {})
            .unwrap_err();
        assert!(matches!(error, Error::IdTooLong { row: 1, .. }), "{error}");
        assert!(map.is_empty());
        assert!(map.insert(&Key::Str(&long), 0).is_err());
        map.insert(&Key::Str(&long[1..]), 0).unwrap();
    }
}

#[test]
fn wrong_types_are_refused() {
    assert!(matches!(
        IdMap::new(&DataType::Float32),
        Err(Error::IdType { .. })
    ));
    let strings = batch(Arc::new(StringArray::from(vec!["a"])));
    let integers = batch(Arc::new(Int64Array::from(vec![1])));
    for (data_type, ids) in [
        (DataType::Int64, &strings),
        (DataType::Utf8, &integers),
        (DataType::UInt8, &integers),
    ] {
        let mut map = IdMap::new(&data_type).unwrap();
        let error = map.insert_column(ids, 0, 0, &mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::IdType { .. }), "{error}");
    }
}

#[test]
fn dead_rows_can_be_left_out() {
    let ids = batch(Arc::new(Int64Array::from(vec![7, 8, 7, 9])));
    let mut map = IdMap::new(&DataType::Int64).unwrap();
    let runs = [(10, 0, 2), (20, 2, 2)];
    map.insert_runs(&ids, 0, runs, &mut |row| row != 20, &mut |_| {})
        .unwrap();
    assert_eq!(map.get(&Key::Int(7)), Some(10));
    assert_eq!(map.get(&Key::Int(9)), Some(21));
    assert_eq!(map.len(), 3);
}

#[test]
fn memory_is_given_back_when_strings_are_removed() {
    let text = |i: usize| format!("{i:0>1000}");
    let mut map = IdMap::new(&DataType::Utf8).unwrap();
    for i in 0..8_000 {
        map.insert(&Key::Str(&text(i)), i as u64).unwrap();
    }
    let full = map.memory_bytes();
    assert!(full > 8_000_000);
    for i in 0..7_900 {
        assert_eq!(map.remove(&Key::Str(&text(i))), Some(i as u64));
    }
    assert!(
        map.memory_bytes() < full / 3,
        "{} of {full}",
        map.memory_bytes()
    );
    assert!((7_900..8_000).all(|i| map.get(&Key::Str(&text(i))) == Some(i as u64)));
}

#[test]
fn the_batch_is_not_changed() {
    let ids = batch(Arc::new(StringArray::from(vec!["a", "b", "a"])));
    let mut map = IdMap::new(&DataType::Utf8).unwrap();
    let mut replaced = Vec::new();
    map.insert_column(&ids, 0, 5, &mut |row| replaced.push(row))
        .unwrap();
    assert_eq!(replaced, [5]);
    assert_eq!(map.get(&Key::Str("a")), Some(7));
    assert_eq!(ids.column(0).unwrap().as_string::<i32>().value(2), "a");
}

#[test]
fn memory_is_foretold() {
    let spread = |n: i64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
    for count in [3_000, 20_000, 70_000, 200_000] {
        let integers = Int64Array::from_iter_values((0..count).map(spread));
        let texts = StringArray::from_iter_values((0..count).map(|n| format!("{n:012}")));
        let counted = Int64Array::from_iter_values(0..count);
        let all: [(IdKind, ArrayRef); 3] = [
            (IdKind::Integers, Arc::new(integers)),
            (IdKind::Text(12), Arc::new(texts)),
            (IdKind::Counted, Arc::new(counted)),
        ];
        for (kind, ids) in all {
            let mut map = IdMap::new(ids.data_type()).unwrap();
            let empty = map.memory_bytes();
            map.insert_column(&batch(ids), 0, 0, &mut |_| {}).unwrap();
            let (real, told) = (
                (map.memory_bytes() - empty) as f64,
                IdMap::estimated_bytes(kind, count as u64) as f64,
            );
            // Which table doubles when is chance.
            let near = (told - real).abs() <= 0.15 * real + 4_096.0;
            assert!(near, "{count} {kind:?}: told {told}, real {real}");
        }
    }
}
