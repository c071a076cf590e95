//! Random record batches of every stored type, for the property tests.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::Float16Type;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use half::f16;
use longbow_storage::Batch;
use proptest::prelude::*;

/// Kinds of columns that [`column`] makes.
pub const KINDS: usize = 30;

/// SplitMix64 (Steele, Lea, Flood 2014): enough randomness for test data.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A random batch of `rows` rows with a column of each kind in `kinds`.
pub fn record_batch(kinds: &[usize], rows: usize, seed: u64) -> RecordBatch {
    let mut random = Random(seed);
    let columns: Vec<ArrayRef> = kinds
        .iter()
        .map(|kind| column(*kind, rows, &mut random))
        .collect();
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(i, array)| Field::new(format!("c{i}"), array.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).unwrap()
}

/// Kinds, rows and a seed for [`record_batch`].
pub fn shape() -> impl Strategy<Value = (Vec<usize>, usize, u64)> {
    let kinds = prop::collection::vec(0..KINDS, 0..5);
    (
        kinds,
        prop_oneof![Just(0_usize), 1..5_usize, 1..200_usize],
        any::<u64>(),
    )
}

/// Encodes as a client may: buffers padded to `alignment`, perhaps compressed.
pub fn encode(
    batch: &RecordBatch,
    alignment: usize,
    compression: Option<CompressionType>,
) -> (Bytes, Bytes) {
    let options = IpcWriteOptions::try_new(alignment, false, arrow_ipc::MetadataVersion::V5)
        .unwrap()
        .try_with_compression(compression)
        .unwrap();
    let (_, encoded) = IpcDataGenerator::default()
        .encode(
            batch,
            &mut DictionaryTracker::new(true),
            &options,
            &mut IpcWriteContext::default(),
        )
        .unwrap();
    (encoded.ipc_message.into(), encoded.arrow_data.into())
}

/// `bytes` at an address that is `skew` more than a multiple of 64.
pub fn at_skew(bytes: &[u8], skew: usize) -> Bytes {
    let mut memory = vec![0_u8; bytes.len() + 128];
    let start = memory.as_ptr().addr().next_multiple_of(64) - memory.as_ptr().addr() + skew;
    memory[start..start + bytes.len()].copy_from_slice(bytes);
    let end = start + bytes.len();
    Bytes::from(memory).slice(start..end)
}

/// Id (`i64`), vector (`f32 x dim`) and text: what a usual dataset has. Ids count from `first`.
pub fn usual(first: i64, rows: usize, dim: usize) -> Batch {
    let ids = Int64Array::from_iter_values(first..first + rows as i64);
    let values = Float32Array::from_iter_values((0..rows * dim).map(|i| i as f32 + first as f32));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vectors = FixedSizeListArray::new(item, dim as i32, Arc::new(values), None);
    let text =
        StringArray::from_iter_values((0..rows as i64).map(|i| format!("row {}", first + i)));
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(ids)),
        ("vector", Arc::new(vectors)),
        ("text", Arc::new(text)),
    ];
    Batch::from_record_batch(
        &RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        )
        .unwrap(),
    )
    .unwrap()
}

fn nulls(rows: usize, random: &mut Random) -> Option<NullBuffer> {
    match random.below(3) {
        0 => None,
        1 => Some(NullBuffer::new_valid(rows)),
        _ => Some((0..rows).map(|_| random.below(3) > 0).collect()),
    }
}

fn words(rows: usize, random: &mut Random) -> Vec<Option<String>> {
    let validity = nulls(rows, random);
    (0..rows)
        .map(|i| {
            let valid = validity.as_ref().is_none_or(|nulls| nulls.is_valid(i));
            valid.then(|| {
                "äß∂ long enough for a view"[..].repeat(random.below(2))
                    + &random.next().to_string()[..random.below(3)]
            })
        })
        .collect()
}

macro_rules! primitive {
    ($array:ty, $native:ty, $rows:expr, $random:expr) => {{
        let validity = nulls($rows, $random);
        let values: ScalarBuffer<$native> = (0..$rows).map(|_| $random.next() as $native).collect();
        Arc::new(<$array>::new(values, validity)) as ArrayRef
    }};
}

fn fixed_list(values: ArrayRef, dim: i32, rows: usize, random: &mut Random) -> ArrayRef {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    let validity = nulls(rows, random);
    Arc::new(FixedSizeListArray::try_new_with_length(item, dim, values, validity, rows).unwrap())
}

fn lengths(rows: usize, random: &mut Random) -> OffsetBuffer<i32> {
    OffsetBuffer::from_lengths((0..rows).map(|_| random.below(4)))
}

/// A random column.
pub fn column(kind: usize, rows: usize, random: &mut Random) -> ArrayRef {
    match kind {
        0 => primitive!(Int8Array, i8, rows, random),
        1 => primitive!(Int16Array, i16, rows, random),
        2 => primitive!(Int32Array, i32, rows, random),
        3 => primitive!(Int64Array, i64, rows, random),
        4 => primitive!(UInt8Array, u8, rows, random),
        5 => primitive!(UInt16Array, u16, rows, random),
        6 => primitive!(UInt32Array, u32, rows, random),
        7 => primitive!(UInt64Array, u64, rows, random),
        8 => primitive!(Float32Array, f32, rows, random),
        9 => primitive!(Float64Array, f64, rows, random),
        10 => Arc::new(PrimitiveArray::<Float16Type>::from_iter_values(
            (0..rows).map(|_| f16::from_bits(random.next() as u16 & 0x3FFF)),
        )),
        11 => Arc::new(BooleanArray::from_iter((0..rows).map(|_| {
            let draw = random.below(3);
            (draw > 0).then_some(draw == 1)
        }))),
        12 => Arc::new(StringArray::from(words(rows, random))),
        13 => Arc::new(LargeStringArray::from(words(rows, random))),
        14 => Arc::new(StringViewArray::from_iter(words(rows, random))),
        15 => Arc::new(BinaryArray::from_iter(words(rows, random))),
        16 => Arc::new(LargeBinaryArray::from_iter(words(rows, random))),
        17 => Arc::new(BinaryViewArray::from_iter(words(rows, random))),
        18 => Arc::new(
            TimestampMicrosecondArray::from_iter_values((0..rows as i64).map(|i| i * 1000))
                .with_timezone("Europe/Paris"),
        ),
        19 => Arc::new(
            Decimal128Array::from_iter_values((0..rows).map(|_| i128::from(random.next())))
                .with_precision_and_scale(38, 2)
                .unwrap(),
        ),
        20 => Arc::new(
            Decimal256Array::from_iter_values((0..rows).map(|i| i256::from_i128(i as i128)))
                .with_precision_and_scale(76, 2)
                .unwrap(),
        ),
        21 => new_null_array(&DataType::Null, rows),
        22 => Arc::new(IntervalMonthDayNanoArray::new(
            vec![Default::default(); rows].into(),
            nulls(rows, random),
        )),
        _ => nested(kind, rows, random),
    }
}

fn nested(kind: usize, rows: usize, random: &mut Random) -> ArrayRef {
    match kind {
        23 => {
            let inner = [8, 9, 10, 4, 0][random.below(5)];
            let values = column(inner, rows * 3, random);
            fixed_list(values, 3, rows, random)
        }
        24 => {
            let offsets = lengths(rows, random);
            let inner = random.below(KINDS - 1);
            let values = column(inner, offsets[rows] as usize, random);
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            Arc::new(ListArray::new(item, offsets, values, nulls(rows, random)))
        }
        25 => {
            let offsets = OffsetBuffer::<i64>::from_lengths((0..rows).map(|_| random.below(3)));
            let values = column(12, offsets[rows] as usize, random);
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            Arc::new(LargeListArray::new(
                item,
                offsets,
                values,
                nulls(rows, random),
            ))
        }
        26 => {
            let kinds = [random.below(KINDS - 1), random.below(KINDS - 1)];
            let columns = kinds.map(|kind| column(kind, rows, random));
            let fields: Fields = columns
                .iter()
                .enumerate()
                .map(|(i, array)| Field::new(format!("f{i}"), array.data_type().clone(), true))
                .collect();
            Arc::new(StructArray::new(
                fields,
                columns.to_vec(),
                nulls(rows, random),
            ))
        }
        27 => {
            let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
            for row in 0..rows {
                for entry in 0..random.below(3) {
                    map.keys().append_value(format!("k{entry}"));
                    map.values().append_value(row as i32);
                }
                map.append(random.below(4) > 0).unwrap();
            }
            Arc::new(map.finish())
        }
        28 => {
            let bytes: Vec<u8> = (0..rows * 5).map(|_| random.next() as u8).collect();
            Arc::new(FixedSizeBinaryArray::new(
                5,
                bytes.into(),
                nulls(rows, random),
            ))
        }
        _ => {
            let values = column(26, rows * 2, random);
            fixed_list(values, 2, rows, random)
        }
    }
}
