//! [`Dictionaries`]: encoded columns come back plain, whatever the keys and values, and nothing makes it panic.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_cast::cast;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{
    DictionaryHandling, DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use longbow_storage::{Dictionaries, Error, schema_from_message};
use proptest::prelude::*;

use crate::common::{Random, at_skew, column};

type Message = (Bytes, Bytes);

/// The schema as a client would send it, the dictionaries, and the batch.
fn encode(
    batch: &RecordBatch,
    compression: Option<CompressionType>,
) -> (SchemaRef, Vec<Message>, Message) {
    let options = IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let generator = IpcDataGenerator::default();
    let mut tracker = DictionaryTracker::new(false);
    let schema =
        generator.schema_to_bytes_with_dictionary_tracker(&batch.schema(), &mut tracker, &options);
    let schema = schema_from_message(&schema.ipc_message).unwrap();
    let (dictionaries, rows) = generator
        .encode(
            batch,
            &mut tracker,
            &options,
            &mut IpcWriteContext::default(),
        )
        .unwrap();
    let dictionaries = dictionaries
        .into_iter()
        .map(|data| (data.ipc_message.into(), data.arrow_data.into()))
        .collect();
    (
        schema,
        dictionaries,
        (rows.ipc_message.into(), rows.arrow_data.into()),
    )
}

fn dictionary(values: ArrayRef, rows: usize, random: &mut Random) -> ArrayRef {
    let keys = (0..rows).map(|_| match random.below(values.len() + 1) {
        0 => None,
        key => Some(key as i64 - 1),
    });
    let keys = arrow_array::PrimitiveArray::<Int64Type>::from_iter(keys);
    let array = DictionaryArray::new(keys, values);
    let key = [
        DataType::Int8,
        DataType::UInt16,
        DataType::Int32,
        DataType::Int64,
    ][random.below(4)]
    .clone();
    let to = DataType::Dictionary(Box::new(key), Box::new(array.values().data_type().clone()));
    cast(&array, &to).unwrap()
}

/// Two dictionary columns and one that is none.
fn sample(kinds: [usize; 2], rows: usize, seed: u64) -> RecordBatch {
    let mut random = Random(seed);
    let mut columns: Vec<(String, ArrayRef, bool)> =
        vec![("plain".into(), column(3, rows, &mut random), true)];
    for (i, kind) in kinds.into_iter().enumerate() {
        let count = random.below(6);
        let values = column(kind, count, &mut random);
        columns.push((format!("d{i}"), dictionary(values, rows, &mut random), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Kinds of [`column`] that may be values of a dictionary.
fn kinds() -> impl Strategy<Value = [usize; 2]> {
    let kind = prop_oneof![0..20_usize, Just(22), Just(28)];
    [kind.clone(), kind]
}

fn plain(batch: &RecordBatch) -> Vec<ArrayRef> {
    let columns = batch.columns().iter();
    columns
        .map(|column| match column.data_type() {
            DataType::Dictionary(_, values) => cast(column, values).unwrap(),
            _ => Arc::clone(column),
        })
        .collect()
}

proptest! {
    #[test]
    fn columns_come_back_plain(kinds in kinds(), rows in 0..50_usize, seed in any::<u64>(), skew in 0..16_usize, codec in prop::sample::select(vec![None, Some(CompressionType::LZ4_FRAME)])) {
        let batch = sample(kinds, rows, seed);
        let (schema, dictionaries, (header, body)) = encode(&batch, codec);
        let mut reader = Dictionaries::new(&schema).unwrap();
        for (header, body) in dictionaries {
            reader.add(&header, at_skew(&body, skew)).unwrap();
        }
        let read = reader.read(header, at_skew(&body, skew)).unwrap();
        prop_assert_eq!(read.columns(), &plain(&batch)[..]);
        prop_assert_eq!(&read.schema(), reader.plain_schema());
    }

    #[test]
    fn mutated_messages_never_panic(kinds in kinds(), rows in 0..50_usize, seed in any::<u64>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let (schema, dictionaries, rows) = encode(&sample(kinds, rows, seed), None);
        let mut parts: Vec<Vec<u8>> = dictionaries.into_iter().chain([rows]).flat_map(|(header, body)| [header.to_vec(), body.to_vec()]).collect();
        for (part, at, value) in changes {
            let part = part.index(parts.len());
            let bytes = &mut parts[part];
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        let mut reader = Dictionaries::new(&schema).unwrap();
        let (messages, _) = parts.as_chunks::<2>();
        let (rows, dictionaries) = messages.split_last().unwrap();
        for [header, body] in dictionaries {
            drop(reader.add(&header.clone().into(), body.clone().into()));
        }
        let [header, body] = rows;
        if let Ok(read) = reader.read(header.clone().into(), body.clone().into()) {
            for column in read.columns() {
                column.to_data().validate_full().unwrap();
            }
        }
    }
}

/// A stream of one dictionary column and its messages.
fn one(values: ArrayRef, keys: Vec<i32>) -> (Dictionaries, Vec<Message>, Message) {
    let array: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(keys), values));
    let batch = RecordBatch::try_from_iter([("d", array)]).unwrap();
    let (schema, dictionaries, rows) = encode(&batch, None);
    (Dictionaries::new(&schema).unwrap(), dictionaries, rows)
}

#[test]
fn a_missing_dictionary_is_refused() {
    let (mut reader, dictionaries, (header, body)) =
        one(Arc::new(Int64Array::from(vec![5])), vec![0]);
    let error = reader.read(header.clone(), body.clone()).unwrap_err();
    assert!(
        matches!(&error, Error::Column { column, .. } if column == "d"),
        "{error}"
    );
    let (dictionary, values) = dictionaries[0].clone();
    let error = reader.add(&header, body.clone()).unwrap_err();
    assert!(matches!(error, Error::NotDictionary { .. }), "{error}");
    reader.add(&dictionary, values).unwrap();
    assert_eq!(reader.read(header, body).unwrap().num_rows(), 1);
}

#[test]
fn a_dictionary_may_be_replaced() {
    let (mut reader, first, rows) = one(Arc::new(StringArray::from(vec!["a"])), vec![0, 0]);
    let (_, second, _) = one(Arc::new(StringArray::from(vec!["b"])), vec![0, 0]);
    for (dictionaries, expected) in [(first, "a"), (second, "b")] {
        for (header, body) in dictionaries {
            reader.add(&header, body).unwrap();
        }
        let read = reader.read(rows.0.clone(), rows.1.clone()).unwrap();
        let expected: ArrayRef = Arc::new(StringArray::from(vec![expected; 2]));
        assert_eq!(read.column(0), &expected);
    }
}

#[test]
fn a_dictionary_may_grow() {
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    let generator = IpcDataGenerator::default();
    let mut tracker = DictionaryTracker::new(false);
    let mut reader = None;
    for words in [vec!["a", "b"], vec!["a", "b", "c"]] {
        let expected: ArrayRef = Arc::new(StringArray::from(words.clone()));
        let keys = Int32Array::from_iter_values(0..words.len() as i32);
        let array: ArrayRef = Arc::new(DictionaryArray::new(keys, expected.clone()));
        let batch = RecordBatch::try_from_iter([("d", array)]).unwrap();
        let reader = reader.get_or_insert_with(|| {
            let schema = generator.schema_to_bytes_with_dictionary_tracker(
                &batch.schema(),
                &mut tracker,
                &options,
            );
            Dictionaries::new(&schema_from_message(&schema.ipc_message).unwrap()).unwrap()
        });
        let mut context = IpcWriteContext::default();
        let (dictionaries, rows) = generator
            .encode(&batch, &mut tracker, &options, &mut context)
            .unwrap();
        for data in dictionaries {
            let header: Bytes = data.ipc_message.into();
            assert_eq!(
                arrow_ipc::root_as_message(&header)
                    .unwrap()
                    .header_as_dictionary_batch()
                    .unwrap()
                    .isDelta(),
                words.len() == 3
            );
            reader.add(&header, data.arrow_data.into()).unwrap();
        }
        let read = reader
            .read(rows.ipc_message.into(), rows.arrow_data.into())
            .unwrap();
        assert_eq!(read.column(0), &expected);
    }
}

#[test]
fn a_bomb_is_not_written_out() {
    let large = vec![b'x'; 1 << 20];
    let values = Arc::new(BinaryArray::from_vec(vec![&large]));
    let (mut reader, dictionaries, (header, body)) = one(values, vec![0; 513]);
    for (header, body) in dictionaries {
        reader.add(&header, body).unwrap();
    }
    let error = reader.read(header, body).unwrap_err();
    assert!(
        matches!(error, Error::InflatedTotal { length, .. } if length > 513 << 20),
        "{error}"
    );
}

#[test]
fn nested_values_and_unknown_dictionaries_are_refused() {
    let item = Arc::new(Field::new("item", DataType::Int8, true));
    let nested = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::List(item)));
    let schema = Arc::new(Schema::new(vec![Field::new("tags", nested, true)]));
    let error = Dictionaries::new(&schema).unwrap_err();
    assert!(
        matches!(&error, Error::UnsupportedType { column, .. } if column == "tags"),
        "{error}"
    );

    let (_, dictionaries, _) = one(Arc::new(Int64Array::from(vec![5])), vec![0]);
    let other = Arc::new(Schema::new(vec![Field::new("d", DataType::Int64, true)]));
    let (header, body) = dictionaries[0].clone();
    let error = Dictionaries::new(&other)
        .unwrap()
        .add(&header, body)
        .unwrap_err();
    assert!(matches!(error, Error::UnknownDictionary { .. }), "{error}");
}
