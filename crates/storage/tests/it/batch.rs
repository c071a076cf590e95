//! [`Batch`]: what goes in comes out, nothing is copied that need not be, and no bytes make it panic.

use std::sync::Arc;

use crate::common::{at_skew, encode, record_batch, shape, usual};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray, Int64Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use longbow_storage::{Batch, Error, coalesce};
use proptest::prelude::*;

fn received(batch: &RecordBatch, header: Bytes, body: Bytes) -> Batch {
    Batch::from_message(&batch.schema(), header, body).unwrap()
}

proptest! {
    #[test]
    fn every_type_comes_back((kinds, rows, seed) in shape(), alignment in prop::sample::select(vec![8, 16, 64]), skew in 0..16_usize) {
        let original = record_batch(&kinds, rows, seed);
        let (header, body) = encode(&original, alignment, None);
        let batch = received(&original, header, at_skew(&body, skew));
        prop_assert_eq!(batch.view(), &original);
        let again = received(&original, batch.header().clone(), batch.body().clone());
        prop_assert_eq!(again.body().as_ptr(), batch.body().as_ptr(), "kept once, kept as it is");
        prop_assert_eq!(again.view(), &original);
        let made = Batch::from_record_batch(&original).unwrap();
        prop_assert_eq!(made.view(), &original);
    }

    #[test]
    fn compressed_comes_back((kinds, rows, seed) in shape(), zstd in any::<bool>()) {
        let original = record_batch(&kinds, rows, seed);
        let codec = if zstd { CompressionType::ZSTD } else { CompressionType::LZ4_FRAME };
        let (header, body) = encode(&original, 8, Some(codec));
        let batch = received(&original, header, body);
        prop_assert_eq!(batch.view(), &original);
    }

    #[test]
    fn slices_come_back((kinds, rows, seed) in shape(), from in 0..200_usize, len in 0..200_usize) {
        let original = record_batch(&kinds, rows, seed);
        let from = from.min(rows);
        let part = original.slice(from, len.min(rows - from));
        let batch = Batch::from_record_batch(&part).unwrap();
        prop_assert_eq!(batch.view(), &part);
    }

    #[test]
    fn mutated_messages_never_panic(
        (kinds, rows, seed) in shape(),
        codec in prop::sample::select(vec![None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let original = record_batch(&kinds, rows, seed);
        let (header, body) = encode(&original, 64, codec);
        let (mut header, mut body) = (header.to_vec(), body.to_vec());
        for (at, value, in_header) in changes {
            let bytes = if in_header || body.is_empty() { &mut header } else { &mut body };
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len() + 1));
        }
        if let Ok(batch) = Batch::from_message(&original.schema(), header.into(), at_skew(&body, 0)) {
            read_everything(&batch);
        }
    }

    #[test]
    fn random_bytes_never_panic(header in prop::collection::vec(any::<u8>(), 0..400), body in prop::collection::vec(any::<u8>(), 0..100)) {
        let schema = usual(0, 1, 2).schema();
        prop_assert!(Batch::from_message(&schema, header.into(), body.into()).is_err());
    }

    #[test]
    fn another_schema_never_panics((kinds, rows, seed) in shape(), (other, _, other_seed) in shape()) {
        let original = record_batch(&kinds, rows, seed);
        let (header, body) = encode(&original, 64, None);
        let schema = record_batch(&other, 3, other_seed).schema();
        if let Ok(batch) = Batch::from_message(&schema, header, body) {
            read_everything(&batch);
        }
    }

    #[test]
    fn filter_and_take_agree_with_arrow((kinds, rows, seed) in shape(), keep in prop::collection::vec(any::<bool>(), 200)) {
        let original = record_batch(&kinds, rows, seed);
        let batch = Batch::from_record_batch(&original).unwrap();
        let mask = BooleanArray::from(keep[..rows].to_vec());
        let filtered = batch.filter(&mask).unwrap();
        let ranges: Vec<_> = (0..rows).filter(|row| keep[*row]).map(|row| row..row + 1).collect();
        let taken = batch.take(&ranges).unwrap();
        prop_assert_eq!(filtered.rows(), ranges.len());
        for (a, b) in filtered.view().columns().iter().zip(taken.view().columns()) {
            prop_assert_eq!(a, b);
        }
        for (row, range) in ranges.iter().enumerate() {
            prop_assert_eq!(filtered.slice(row, 1).unwrap(), original.slice(range.start, 1));
        }
    }
}

/// Touches every value through the view and through [`Batch::values`].
fn read_everything(batch: &Batch) {
    for i in 0..batch.view().num_columns() {
        let column = batch.column(i).unwrap();
        column.to_data().validate_full().unwrap();
        assert_eq!(column.len(), batch.rows());
        assert!(batch.null_count(i) <= batch.rows());
        if let Ok(values) = batch.values(i) {
            assert!(values.len() <= batch.body().len());
        }
    }
}

#[test]
fn the_fast_path_copies_nothing() {
    let made = usual(0, 100, 8);
    let body = at_skew(made.body(), 0);
    let batch = Batch::from_message(&made.schema(), made.header().clone(), body.clone()).unwrap();
    assert_eq!(batch.body().as_ptr(), body.as_ptr());
    assert_eq!(batch.header().as_ptr(), made.header().as_ptr());
    let inside = body.as_ptr_range();
    let column = batch.column(0).unwrap();
    let ids = column.as_primitive::<Int64Type>().values();
    assert!(inside.contains(&ids.as_ptr().cast()));
    assert!(inside.contains(&batch.values(1).unwrap().as_ptr()));
}

#[test]
fn a_body_aligned_enough_for_its_types_is_kept() {
    let made = usual(0, 100, 8);
    let eight = at_skew(made.body(), 8);
    let batch = Batch::from_message(&made.schema(), made.header().clone(), eight.clone()).unwrap();
    assert_eq!(batch.body().as_ptr(), eight.as_ptr());
    let odd = at_skew(made.body(), 3);
    let batch = Batch::from_message(&made.schema(), made.header().clone(), odd.clone()).unwrap();
    assert_ne!(batch.body().as_ptr(), odd.as_ptr());
    assert_eq!(batch.body(), &odd);
    assert_eq!(batch.header(), made.header());
}

#[test]
fn values_are_the_rows() {
    let batch = usual(7, 3, 4);
    let expected: Vec<u8> = (7..10_i64).flat_map(i64::to_le_bytes).collect();
    assert_eq!(batch.values(0).unwrap(), expected);
    assert_eq!(batch.values(1).unwrap().len(), 3 * 4 * 4);
    assert_eq!(batch.values(1).unwrap()[16..20], 11_f32.to_le_bytes());
    assert!(matches!(batch.values(2), Err(Error::NoValues { .. })));
    assert!(matches!(
        batch.values(9),
        Err(Error::NoColumn { asked: 9, have: 3 })
    ));
}

#[test]
fn null_counts_are_known() {
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let values = Int64Array::from(vec![Some(1), None, Some(3), Some(4)]);
    let vectors = arrow_array::FixedSizeListArray::new(
        item,
        2,
        Arc::new(values),
        Some(vec![true, false].into()),
    );
    let rows = RecordBatch::try_from_iter([("v", Arc::new(vectors) as _)]).unwrap();
    let batch = Batch::from_record_batch(&rows).unwrap();
    assert_eq!((batch.null_count(0), batch.child_null_count(0)), (1, 1));
    assert_eq!((batch.null_count(1), batch.child_null_count(1)), (0, 0));
}

#[test]
fn later_columns_are_null() {
    let batch = usual(0, 5, 2);
    let mut fields = batch.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("seen", DataType::Date32, true)));
    let newer = Arc::new(Schema::new(fields));
    let grown = batch.with_schema(&newer).unwrap();
    assert_eq!(grown.schema(), newer);
    assert_eq!(grown.null_count(3), 5);
    assert_eq!(
        grown.column(2).unwrap().as_ref(),
        batch.column(2).unwrap().as_ref()
    );

    let tagged = batch
        .schema()
        .as_ref()
        .clone()
        .with_metadata([("a".into(), "b".into())].into());
    let tagged = batch.with_schema(&Arc::new(tagged)).unwrap();
    assert_eq!(tagged.body().as_ptr(), batch.body().as_ptr());
    assert_eq!(tagged.schema().metadata()["a"], "b");
}

#[test]
fn names_of_nested_fields_follow_the_newer_schema() {
    let batch = usual(0, 5, 2);
    let mut fields = batch.schema().fields().to_vec();
    let element = Arc::new(Field::new("element", DataType::Float32, false));
    fields[1] = Arc::new(Field::new(
        "vector",
        DataType::FixedSizeList(element, 2),
        true,
    ));
    let named = Arc::new(Schema::new(fields.clone()));
    let renamed = batch.with_schema(&named).unwrap();
    assert_eq!(renamed.schema(), named);
    assert_eq!(renamed.body().as_ptr(), batch.body().as_ptr());

    fields.insert(0, Arc::new(Field::new("first", DataType::Utf8, true)));
    let moved = batch
        .with_schema(&Arc::new(Schema::new(fields.clone())))
        .unwrap();
    assert_eq!(moved.values(2).unwrap(), batch.values(1).unwrap());

    let error = batch
        .with_schema(&Arc::new(Schema::new(fields[..2].to_vec())))
        .unwrap_err();
    assert!(
        matches!(&error, Error::ColumnGone { column } if column == "vector"),
        "{error}"
    );
}

#[test]
fn a_changed_or_missing_column_is_named() {
    let batch = usual(0, 5, 2);
    let mut fields = batch.schema().fields().to_vec();
    fields[0] = Arc::new(Field::new("id", DataType::Int32, true));
    let error = batch
        .with_schema(&Arc::new(Schema::new(fields.clone())))
        .unwrap_err();
    assert!(
        matches!(&error, Error::ColumnType { column, .. } if column == "id"),
        "{error}"
    );
    fields[0] = batch.schema().fields()[0].clone();
    fields.push(Arc::new(Field::new("other", DataType::Int64, false)));
    let error = batch
        .with_schema(&Arc::new(Schema::new(fields)))
        .unwrap_err();
    assert!(
        matches!(&error, Error::ColumnMissing { column } if column == "other"),
        "{error}"
    );
}

#[test]
fn invalid_text_is_refused_by_column() {
    let batch = usual(0, 5, 2);
    let body = batch.body().to_vec();
    let at = body
        .windows(5)
        .position(|window| window == b"row 0")
        .unwrap();
    let mut broken = body;
    broken[at] = 0xFF;
    let error =
        Batch::from_message(&batch.schema(), batch.header().clone(), broken.into()).unwrap_err();
    assert!(
        matches!(&error, Error::Column { column, .. } if column == "text"),
        "{error}"
    );
}

#[test]
fn dictionaries_and_unions_are_refused_by_column() {
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let nested = DataType::List(Arc::new(Field::new("item", data_type, true)));
    let schema = Arc::new(Schema::new(vec![Field::new("tags", nested, true)]));
    let error = Batch::from_record_batch(&RecordBatch::new_empty(schema)).unwrap_err();
    assert!(
        matches!(&error, Error::UnsupportedType { column, .. } if column == "tags"),
        "{error}"
    );
}

#[test]
fn a_short_body_is_refused() {
    let batch = usual(0, 5, 2);
    let short = batch.body().slice(..batch.body().len() - 8);
    let error = Batch::from_message(&batch.schema(), batch.header().clone(), short).unwrap_err();
    assert!(matches!(error, Error::BodyLength { .. }), "{error}");
}

#[test]
fn a_bomb_is_not_inflated() {
    let zeros = Int64Array::from(vec![0_i64; 100_000]);
    let rows = RecordBatch::try_from_iter([("a", Arc::new(zeros) as _)]).unwrap();
    for codec in [CompressionType::ZSTD, CompressionType::LZ4_FRAME] {
        let (header, body) = encode(&rows, 64, Some(codec));
        let at = body
            .windows(8)
            .position(|window| window == 800_000_i64.to_le_bytes())
            .unwrap();
        for (declared, limit) in [(1_000_i64, false), (i64::MAX, true), (-2, false)] {
            let mut body = body.to_vec();
            body[at..at + 8].copy_from_slice(&declared.to_le_bytes());
            let error =
                Batch::from_message(&rows.schema(), header.clone(), body.into()).unwrap_err();
            let by_limit = matches!(error, Error::InflatedTotal { .. });
            assert_eq!(by_limit, limit, "{declared}: {error}");
        }
    }
}

#[test]
fn many_small_batches_become_one() {
    let schema = usual(0, 1, 2).schema();
    let small: Vec<Batch> = (0..50).map(|i| usual(i, 1, 2)).collect();
    let one = coalesce(&schema, &small).unwrap();
    assert_eq!(one.rows(), 50);
    let ids = one.column(0).unwrap();
    assert_eq!(
        ids.as_primitive::<Int64Type>().values()[..],
        (0..50).collect::<Vec<i64>>()
    );
    let only = coalesce(&schema, &small[..1]).unwrap();
    assert_eq!(only.body().as_ptr(), small[0].body().as_ptr());
    assert_eq!(coalesce(&schema, &[]).unwrap().rows(), 0);
}
