//! Schemas as bytes: all types come back, and no bytes make reading panic.

use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use longbow_storage::{
    Error, check_schema, schema_from_message, schema_from_text, schema_to_message, schema_to_text,
};
use proptest::prelude::*;

use crate::common::{KINDS, record_batch};

/// All types that the batches of the tests have, and those that they have not.
fn every_type() -> SchemaRef {
    let kinds: Vec<usize> = (0..KINDS).collect();
    let mut fields = record_batch(&kinds, 1, 1).schema().fields().to_vec();
    let item = Arc::new(Field::new("item", DataType::Int8, true));
    for data_type in [
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Second),
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Duration(TimeUnit::Second),
        DataType::Interval(IntervalUnit::DayTime),
        DataType::Interval(IntervalUnit::YearMonth),
        DataType::ListView(item.clone()),
        DataType::LargeListView(item.clone()),
        DataType::Decimal32(5, 2),
        DataType::Decimal64(12, -2),
        DataType::RunEndEncoded(
            Arc::new(Field::new("run_ends", DataType::Int32, false)),
            item,
        ),
    ] {
        let name = format!("t{}", fields.len());
        fields.push(Arc::new(Field::new(name, data_type, true)));
    }
    let metadata = [("longbow.metric".into(), "cosine".into())];
    Arc::new(Schema::new(fields).with_metadata(metadata.into()))
}

#[test]
fn every_type_comes_back() {
    let schema = every_type();
    assert_eq!(
        schema_from_message(&schema_to_message(&schema)).unwrap(),
        schema
    );
    assert_eq!(schema_from_text(&schema_to_text(&schema)).unwrap(), schema);
}

#[test]
fn text_that_is_none_is_refused() {
    assert!(matches!(schema_from_text("?"), Err(Error::Base64(_))));
    assert!(matches!(schema_from_text("AAAA"), Err(Error::Header(_))));
}

#[test]
fn unions_are_refused_by_name() {
    let fields = [(0, Arc::new(Field::new("a", DataType::Int8, true)))];
    let union = DataType::Union(
        fields.into_iter().collect(),
        arrow_schema::UnionMode::Sparse,
    );
    let schema = Schema::new(vec![Field::new("u", union, true)]);
    let error = schema_from_message(&schema_to_message(&schema)).unwrap_err();
    assert!(
        matches!(&error, Error::FieldType { field, .. } if field == "u"),
        "{error}"
    );
}

#[test]
fn impossible_widths_are_refused() {
    for data_type in [
        DataType::Decimal128(39, 0),
        DataType::Decimal128(0, 0),
        DataType::FixedSizeBinary(-1),
        DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int8, true)), -1),
    ] {
        let schema = Schema::new(vec![Field::new("c", data_type, true)]);
        assert!(matches!(
            check_schema(&schema),
            Err(Error::UnsupportedType { .. })
        ));
    }
}

proptest! {
    #[test]
    fn mutated_messages_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut message = schema_to_message(&every_type()).to_vec();
        for (at, value) in changes {
            let at = at.index(message.len());
            message[at] = value;
        }
        if let Ok(schema) = schema_from_message(&message) {
            drop(check_schema(&schema));
            prop_assert!(schema_from_message(&schema_to_message(&schema)).is_ok());
        }
    }

    #[test]
    fn random_bytes_are_no_schema(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(schema_from_message(&bytes).is_err());
    }
}
