//! Lists of numbers in a column of a Parquet file: vectors, or the row numbers of exact answers.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Int8Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use longbow_kernels::Scalar;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The column that is taken where several could be and none is named.
const USUAL: &str = "vector";

/// Elements of equal rows, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub struct Elements {
    /// Their type.
    pub scalar: Scalar,
    /// Elements of a row.
    pub dim: usize,
    /// All of them, little-endian.
    pub bytes: Vec<u8>,
}

/// The vectors of a file: lists of float32, float16, int8, uint8, or float64, which are narrowed to float32.
pub fn vectors(file: Bytes, column: Option<&str>) -> Result<Elements, String> {
    let mut bytes = Vec::new();
    let (element, dim) = read(file, column, is_vector, |values| {
        append(values, &mut bytes);
        Ok(())
    })?;
    let scalar = match element {
        DataType::Float16 => Scalar::F16,
        DataType::Int8 => Scalar::I8,
        DataType::UInt8 => Scalar::U8,
        _ => Scalar::F32,
    };
    Ok(Elements { scalar, dim, bytes })
}

/// The row numbers of a file: lists of integers.
pub fn numbers(file: Bytes) -> Result<(usize, Vec<i64>), String> {
    let mut all = Vec::new();
    let (_, depth) = read(file, None, is_number, |values| {
        let numbers = arrow_cast::cast(values, &DataType::Int64).map_err(|e| e.to_string())?;
        all.extend_from_slice(numbers.as_primitive::<Int64Type>().values());
        Ok(())
    })?;
    Ok((depth, all))
}

fn is_vector(element: &DataType) -> bool {
    use DataType::{Float16, Float32, Float64, Int8, UInt8};
    matches!(element, Float16 | Float32 | Float64 | Int8 | UInt8)
}

fn is_number(element: &DataType) -> bool {
    use DataType::{Int32, Int64, UInt32, UInt64};
    matches!(element, Int32 | Int64 | UInt32 | UInt64)
}

/// The bytes of numbers, as they will be kept.
fn append(values: &ArrayRef, bytes: &mut Vec<u8>) {
    match values.data_type() {
        DataType::Float16 => {
            bytes.extend_from_slice(values.as_primitive::<Float16Type>().values().inner())
        }
        DataType::Int8 => {
            bytes.extend_from_slice(values.as_primitive::<Int8Type>().values().inner());
        }
        DataType::UInt8 => {
            bytes.extend_from_slice(values.as_primitive::<UInt8Type>().values().inner());
        }
        DataType::Float64 => {
            let wide = values.as_primitive::<arrow_array::types::Float64Type>();
            bytes.extend(wide.values().iter().flat_map(|x| (*x as f32).to_le_bytes()));
        }
        _ => bytes.extend_from_slice(values.as_primitive::<Float32Type>().values().inner()),
    }
}

/// Hands over the elements of a column batch by batch; their type, and how many a row has.
fn read(
    file: Bytes,
    column: Option<&str>,
    is_wanted: fn(&DataType) -> bool,
    mut each: impl FnMut(&ArrayRef) -> Result<(), String>,
) -> Result<(DataType, usize), String> {
    let said = |error: parquet::errors::ParquetError| format!("cannot be read: {error}");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(said)?;
    let (at, element) = choose(builder.schema(), column, is_wanted)?;
    let only = ProjectionMask::roots(builder.parquet_schema(), [at]);
    let batches = builder.with_projection(only).build().map_err(said)?;
    let (mut width, mut rows) = (None, 0);
    for batch in batches {
        let batch = batch.map_err(|error| format!("cannot be read: {error}"))?;
        let lists = batch.column(0);
        let (values, got) =
            flatten(lists, width).map_err(|(row, why)| format!("row {} {why}", rows + row))?;
        width = width.or(Some(got));
        rows += batch.num_rows();
        each(&values)?;
    }
    Ok((element, width.unwrap_or(0)))
}

/// The column that is named, or the only one that can be, or the one of the usual name.
fn choose(
    schema: &Schema,
    column: Option<&str>,
    is_wanted: fn(&DataType) -> bool,
) -> Result<(usize, DataType), String> {
    let able: Vec<_> = schema
        .fields()
        .iter()
        .enumerate()
        .filter_map(|(at, field)| {
            let element = element_of(field.data_type()).filter(|element| is_wanted(element))?;
            Some((at, field.name().as_str(), element.clone()))
        })
        .collect();
    let found = match (column, able.as_slice()) {
        (None, [only]) => Some(only),
        (name, all) => {
            let name = name.unwrap_or(USUAL);
            all.iter().find(|(_, known, _)| *known == name)
        }
    };
    if let Some((at, _, element)) = found {
        return Ok((*at, element.clone()));
    }
    let able: Vec<_> = able.iter().map(|(_, name, _)| *name).collect();
    let name = column.unwrap_or(USUAL);
    Err(match able.is_empty() {
        true => "has no column of lists of the numbers that are expected".to_owned(),
        false => format!(
            "has no such column '{name}'; name one of {} by --column",
            able.join(", ")
        ),
    })
}

fn element_of(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// The elements of lists that all have `width` of them, or as many as the first; else the row that has not.
fn flatten(lists: &ArrayRef, width: Option<usize>) -> Result<(ArrayRef, usize), (usize, String)> {
    if let Some(row) = (0..lists.len()).find(|row| lists.is_null(*row)) {
        return Err((row, "is null".to_owned()));
    }
    let (values, width) = if let Some(fixed) = lists.as_fixed_size_list_opt() {
        let width = usize::try_from(fixed.value_length()).unwrap_or(0);
        let start = fixed.offset() * width;
        (fixed.values().slice(start, fixed.len() * width), width)
    } else if let Some(list) = lists.as_list_opt::<i32>() {
        of_offsets(list.value_offsets(), list.values(), width)?
    } else {
        let list = lists.as_list::<i64>();
        of_offsets(list.value_offsets(), list.values(), width)?
    };
    if let Some(at) = (0..values.len()).find(|at| values.is_null(*at)) {
        return Err((at / width.max(1), "has an element that is null".to_owned()));
    }
    Ok((values, width))
}

fn of_offsets<O: OffsetSizeTrait>(
    offsets: &[O],
    values: &ArrayRef,
    width: Option<usize>,
) -> Result<(ArrayRef, usize), (usize, String)> {
    let lengths = || offsets.windows(2).map(|two| (two[1] - two[0]).as_usize());
    let width = width.or_else(|| lengths().next()).unwrap_or(0);
    if let Some((row, got)) = lengths().enumerate().find(|(_, length)| *length != width) {
        return Err((
            row,
            format!("has {got} elements, and those before it {width}"),
        ));
    }
    let start = offsets.first().map_or(0, |offset| offset.as_usize());
    let rows = offsets.len().saturating_sub(1);
    Ok((values.slice(start, rows * width), width))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Float64Type, Int32Type};
    use arrow_array::{FixedSizeListArray, Int64Array, ListArray, RecordBatch};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    use proptest::prelude::*;

    use super::*;

    fn file(columns: Vec<(&str, ArrayRef)>, compression: Compression) -> Bytes {
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .build();
        let mut file = Vec::new();
        let writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties));
        let mut writer = writer.expect("a schema");
        writer.write(&batch).expect("room");
        writer.close().expect("room");
        file.into()
    }

    fn fixed(rows: &[[f32; 2]]) -> ArrayRef {
        let rows = rows.iter().map(|row| Some(row.map(Some)));
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2))
    }

    fn doubles(rows: &[Option<Vec<Option<f64>>>]) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(
            rows.to_vec(),
        ))
    }

    fn bytes(floats: &[f32]) -> Vec<u8> {
        floats.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    #[test]
    fn lists_of_any_kind_are_vectors_whatever_they_are_compressed_by() {
        let wide = doubles(&[
            Some(vec![Some(1.0), Some(2.0)]),
            Some(vec![Some(3.0), Some(4.0)]),
        ]);
        for lists in [fixed(&[[1.0, 2.0], [3.0, 4.0]]), wide] {
            for compression in [
                Compression::UNCOMPRESSED,
                Compression::SNAPPY,
                Compression::ZSTD(Default::default()),
            ] {
                let ids: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
                let columns = vec![("id", ids), ("emb", Arc::clone(&lists))];
                let read = vectors(file(columns, compression), None).expect("a vector column");
                let expected = Elements {
                    scalar: Scalar::F32,
                    dim: 2,
                    bytes: bytes(&[1.0, 2.0, 3.0, 4.0]),
                };
                assert_eq!(read, expected);
            }
        }
    }

    #[test]
    fn of_several_columns_the_named_one_is_taken_or_the_usual() {
        let two = |names: [&str; 2]| {
            let columns = vec![
                (names[0], fixed(&[[1.0, 2.0]])),
                (names[1], fixed(&[[3.0, 4.0]])),
            ];
            file(columns, Compression::SNAPPY)
        };
        let first = |file, column| vectors(file, column).map(|read| read.bytes[..4].to_vec());
        assert_eq!(first(two(["a", "vector"]), None), Ok(bytes(&[3.0])));
        assert_eq!(first(two(["a", "vector"]), Some("a")), Ok(bytes(&[1.0])));
        let error = first(two(["a", "b"]), None).expect_err("none is usual");
        assert!(
            error.contains("a, b") && error.contains("--column"),
            "{error}"
        );
        assert!(first(two(["a", "b"]), Some("c")).is_err());
    }

    #[test]
    fn row_numbers_are_lists_of_integers() {
        let rows = vec![Some(vec![Some(1), Some(0)]), Some(vec![Some(2), Some(1)])];
        let ids: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
        let file = file(vec![("neighbors", ids)], Compression::SNAPPY);
        assert_eq!(numbers(file.clone()), Ok((2, vec![1, 0, 2, 1])));
        let error = vectors(file, None).expect_err("no vectors");
        assert!(error.contains("no column"), "{error}");
    }

    #[test]
    fn rows_that_are_no_vectors_are_told_by_their_number() {
        let good = || Some(vec![Some(1.0), Some(2.0)]);
        for (bad, words) in [
            (None, "row 1 is null"),
            (Some(vec![Some(1.0)]), "row 1 has 1 elements"),
            (
                Some(vec![Some(1.0), None]),
                "row 1 has an element that is null",
            ),
        ] {
            let lists = doubles(&[good(), bad, good()]);
            let error = vectors(file(vec![("v", lists)], Compression::SNAPPY), None);
            let error = error.expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }

    proptest! {
        #[test]
        fn bytes_that_are_no_file_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(vectors(bytes.into(), None).is_err());
        }
    }
}
