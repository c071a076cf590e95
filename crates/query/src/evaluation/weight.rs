//! Bytes of values: of those rows that an array shows, not of the buffers behind it.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray, OffsetSizeTrait};
use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::Literal;

/// Bytes of an array; of one that refers to values by keys, at most what it would take without.
pub(super) fn of(array: &ArrayRef) -> u64 {
    match array.data_type() {
        DataType::Null => 0,
        DataType::Boolean => array.len() as u64 / 8,
        DataType::Utf8 => span(array.as_string::<i32>().value_offsets()).1,
        DataType::LargeUtf8 => span(array.as_string::<i64>().value_offsets()).1,
        DataType::Binary => span(array.as_binary::<i32>().value_offsets()).1,
        DataType::LargeBinary => span(array.as_binary::<i64>().value_offsets()).1,
        DataType::Utf8View => of_views(array.as_string_view()),
        DataType::BinaryView => of_views(array.as_binary_view()),
        DataType::FixedSizeBinary(length) => *length as u64 * array.len() as u64,
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            of_part(list.values(), span(list.value_offsets()).0)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            of_part(list.values(), span(list.value_offsets()).0)
        }
        DataType::FixedSizeList(..) => of(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = array.as_map();
            let range = span(map.value_offsets()).0;
            map.entries()
                .columns()
                .iter()
                .map(|column| of_part(column, range.clone()))
                .sum()
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(of).sum(),
        DataType::Dictionary(..) => {
            of_longest(array.as_any_dictionary().values()) * array.len() as u64
        }
        other => match other.primitive_width() {
            Some(width) => (width * array.len()) as u64,
            None => array.get_array_memory_size() as u64,
        },
    }
}

/// Bytes of a value.
pub(super) fn of_value(value: &ColumnarValue) -> u64 {
    match value {
        ColumnarValue::Array(array) => of(array),
        ColumnarValue::Scalar(scalar) => of_scalar(scalar),
    }
}

/// Bytes of a constant.
pub(super) fn of_literal(literal: &Literal) -> u64 {
    of_scalar(literal.value())
}

fn of_scalar(scalar: &ScalarValue) -> u64 {
    scalar.size() as u64
}

/// From where to where offsets go, and how far that is.
fn span<O: OffsetSizeTrait>(offsets: &[O]) -> (Range<usize>, u64) {
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    let range = at(offsets.first())..at(offsets.last());
    let length = range.len() as u64;
    (range, length)
}

fn of_part(values: &ArrayRef, range: Range<usize>) -> u64 {
    of(&values.slice(range.start, range.len()))
}

/// The length of a view stands in its lowest 32 bits.
fn of_views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> u64 {
    array
        .views()
        .iter()
        .map(|view| u64::from(*view as u32))
        .sum()
}

/// Bytes of the longest of values.
pub(super) fn of_longest(values: &ArrayRef) -> u64 {
    fn widest<O: OffsetSizeTrait>(offsets: &[O]) -> u64 {
        let widths = offsets
            .windows(2)
            .map(|ends| ends[1].as_usize() - ends[0].as_usize());
        widths.max().unwrap_or(0) as u64
    }
    match values.data_type() {
        DataType::Utf8 => widest(values.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => widest(values.as_string::<i64>().value_offsets()),
        _ => (0..values.len())
            .map(|at| of(&values.slice(at, 1)))
            .max()
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        BinaryArray, DictionaryArray, FixedSizeListArray, Int64Array, ListArray, StringArray,
        StringViewArray, StructArray,
    };
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn a_slice_weighs_what_it_shows() {
        let texts = || StringArray::from(vec!["a", "bb", "", "dddd", "eeeee"]);
        let numbers = || (0..5).map(|n| Some(vec![Some(n); n as usize]));
        let field = Arc::new(Field::new("text", DataType::Utf8, true));
        let pair: Vec<(Arc<Field>, ArrayRef)> = vec![(field, Arc::new(texts()))];
        let long = "a text that does not fit into a view";
        let cases: [(ArrayRef, u64); 8] = [
            (Arc::new(Int64Array::from_iter_values(0..5)), 24),
            (Arc::new(texts()), 6),
            (
                Arc::new(BinaryArray::from_iter_values(texts().iter().flatten())),
                6,
            ),
            (
                Arc::new(StringViewArray::from(vec!["x", "yy", long, "", "zzzz"])),
                2 + long.len() as u64,
            ),
            (
                Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(numbers())),
                4 * (1 + 2 + 3),
            ),
            (
                Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
                    (0..5).map(|_| Some(vec![Some(1); 2])),
                    2,
                )),
                24,
            ),
            (Arc::new(StructArray::from(pair)), 6),
            // As if each were the longest.
            (
                Arc::new(
                    ["a", "bb", "a", "ccc", "a"]
                        .into_iter()
                        .collect::<DictionaryArray<Int32Type>>(),
                ),
                9,
            ),
        ];
        for (array, expected) in cases {
            let some = array.slice(1, 3);
            assert_eq!(of(&some), expected, "{:?}", some.data_type());
            assert_eq!(of(&array.slice(2, 0)), 0, "{:?}", some.data_type());
        }
    }
}
