//! Functions that make much of little, held to a limit.
//!
//! `repeat(word, 1000000000)` is a short request, and without a limit it takes the memory of the whole node: what
//! functions make of rows is counted nowhere. So these are wrapped: before each is called, the bytes are reckoned that it
//! would make beyond what it is given, and too many are refused. What is reckoned is an upper bound, which the values of
//! real rows don't come near. What each may do is in `tests/slt/greedy.slt`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};

use crate::allowance::{self, TooMuch};

/// Bytes that one call may make of a batch of rows, if no less may be made.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes that one call may make of constants: these are copied with the plan that they stand in, and met by every row.
const MOST_CONSTANT_BYTES: u64 = 64 << 10;

/// How much a function makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Makes {
    /// The first argument, as often as the second says.
    Repeated,
    /// As many characters as the second says.
    Padded,
    /// The third, wherever the second is in the first.
    Replaced,
    /// The third, wherever the pattern matches.
    Substituted,
    /// All of them, one after the other.
    Joined,
    /// As many elements as the second says.
    Resized,
    /// The steps from the first to the second.
    Steps,
    /// The second, between the elements of the first.
    Separated,
}

const FUNCTIONS: [(&str, Makes); 12] = [
    ("repeat", Makes::Repeated),
    ("array_repeat", Makes::Repeated),
    ("lpad", Makes::Padded),
    ("rpad", Makes::Padded),
    ("replace", Makes::Replaced),
    ("regexp_replace", Makes::Substituted),
    ("concat", Makes::Joined),
    ("concat_ws", Makes::Joined),
    ("array_resize", Makes::Resized),
    ("range", Makes::Steps),
    ("generate_series", Makes::Steps),
    ("array_to_string", Makes::Separated),
];

/// Puts the limits in, once the functions are there.
pub(crate) fn limited(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    for function in builder.scalar_functions().iter_mut().flatten() {
        let known = FUNCTIONS.iter().find(|(name, _)| *name == function.name());
        if let Some((_, makes)) = known {
            let inner = Arc::clone(function);
            let makes = *makes;
            *function = Arc::new(ScalarUDF::new_from_impl(Greedy { inner, makes }));
        }
    }
    builder
}

/// A function that is asked what it would make before it is called.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Greedy {
    inner: Arc<ScalarUDF>,
    makes: Makes,
}

impl Greedy {
    /// An upper bound of the bytes that a call makes beyond what it is given.
    fn bytes(&self, call: &ScalarFunctionArgs) -> Result<u64> {
        let given = |at: usize| Numbers::of(call.args.get(at), lengths);
        let said = |at: usize| Numbers::of(call.args.get(at), counts);
        let rows = 0..call.number_rows.max(1);
        let all = |each: &dyn Fn(usize) -> u64| rows.clone().map(each).fold(0, u64::saturating_add);
        Ok(match self.makes {
            Makes::Repeated => {
                let (value, times) = (given(0)?, said(1)?);
                all(&|row| value.at(row).saturating_mul(times.at(row)))
            }
            // A character is of four bytes at most.
            Makes::Padded => {
                let characters = said(1)?;
                all(&|row| characters.at(row).saturating_mul(4))
            }
            Makes::Replaced => {
                let (text, from, to) = (given(0)?, given(1)?, given(2)?);
                all(&|row| {
                    let (from, to) = (from.at(row), to.at(row));
                    let found = text.at(row) / from.max(1) + 1;
                    found.saturating_mul(to.saturating_sub(from))
                })
            }
            // A short one between any two bytes makes a text three times as long, not more.
            Makes::Substituted => {
                let (text, to) = (given(0)?, given(2)?);
                all(&|row| (text.at(row) + 1).saturating_mul(to.at(row).saturating_sub(2)))
            }
            Makes::Joined => {
                let parts = (0..call.args.len()).map(given);
                let parts = parts.collect::<Result<Vec<_>>>()?;
                all(&|row| {
                    let parts = parts.iter().map(|part| part.at(row));
                    let longest = parts.clone().max().unwrap_or(0);
                    parts.fold(0, u64::saturating_add) - longest
                })
            }
            Makes::Resized => {
                let elements = said(1)?;
                all(&|row| elements.at(row).saturating_mul(8))
            }
            Makes::Steps => steps(&call.args, rows)?.saturating_mul(8),
            // A number is some twelve bytes longer as a text.
            Makes::Separated => {
                let (elements, separator) = (given(0)?, given(1)?);
                all(&|row| elements.at(row).saturating_mul(separator.at(row) + 12))
            }
        })
    }
}

impl ScalarUDFImpl for Greedy {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, mut call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut arguments = call.args.iter();
        let constant = arguments.all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let most = match constant {
            true => MOST_CONSTANT_BYTES.saturating_mul(call.number_rows.max(1) as u64),
            false => MOST_BYTES,
        };
        let most = most.min(MOST_BYTES).min(allowance::left());
        let bytes = self.bytes(&call)?;
        if bytes > most {
            let error = TooMuch {
                what: self.name().to_owned(),
                bytes,
                rows: call.number_rows,
                most,
            };
            return Err(error.into());
        }
        if self.makes == Makes::Padded
            && let Some(length) = call.args.get_mut(1)
        {
            raise_to_zero(length);
        }
        self.inner.invoke_with_args(call)
    }
}

/// Makes lengths below 0, which mean the same, 0: DataFusion makes room for the sum of lengths as if none were negative, and
/// panics where that is more than there can be.
fn raise_to_zero(value: &mut ColumnarValue) {
    match value {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(length))) => *length = 0.max(*length),
        ColumnarValue::Array(array) => {
            if let Some(lengths) = array.as_primitive_opt::<Int64Type>() {
                let raised: Int64Array = lengths.unary(|length| 0.max(length));
                *array = Arc::new(raised);
            }
        }
        ColumnarValue::Scalar(_) => {}
    }
}

/// A number for each row.
enum Numbers {
    Same(u64),
    Each(Vec<u64>),
}

impl Numbers {
    fn of(value: Option<&ColumnarValue>, read: fn(&ArrayRef) -> Result<Vec<u64>>) -> Result<Self> {
        Ok(match value {
            None => Numbers::Same(0),
            Some(ColumnarValue::Array(array)) => Numbers::Each(read(array)?),
            Some(ColumnarValue::Scalar(scalar)) => {
                let read = read(&scalar.to_array()?)?;
                Numbers::Same(read.first().copied().unwrap_or(0))
            }
        })
    }

    fn at(&self, row: usize) -> u64 {
        match self {
            Numbers::Same(number) => *number,
            Numbers::Each(numbers) => numbers.get(row).copied().unwrap_or(0),
        }
    }
}

/// The bytes of texts, the elements of lists, and eight for all else.
fn lengths(array: &ArrayRef) -> Result<Vec<u64>> {
    let texts = |array: &ArrayRef| {
        let texts = arrow_cast::cast(array, &DataType::LargeUtf8)?;
        let ends = texts.as_string::<i64>().value_offsets().windows(2);
        Ok(ends.map(|ends| (ends[1] - ends[0]) as u64).collect())
    };
    Ok(match array.data_type() {
        DataType::Utf8 => {
            let ends = array.as_string::<i32>().value_offsets().windows(2);
            ends.map(|ends| (ends[1] - ends[0]) as u64).collect()
        }
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            return texts(array);
        }
        DataType::List(_) => {
            let ends = array.as_list::<i32>().value_offsets().windows(2);
            ends.map(|ends| (ends[1] - ends[0]) as u64).collect()
        }
        DataType::LargeList(_) => {
            let ends = array.as_list::<i64>().value_offsets().windows(2);
            ends.map(|ends| (ends[1] - ends[0]) as u64).collect()
        }
        DataType::FixedSizeList(_, length) => vec![*length as u64; array.len()],
        _ => vec![8; array.len()],
    })
}

/// Numbers as they are; none below 0.
fn counts(array: &ArrayRef) -> Result<Vec<u64>> {
    let numbers = arrow_cast::cast(array, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>().iter();
    Ok(numbers
        .map(|number| u64::try_from(number.unwrap_or(0)).unwrap_or(0))
        .collect())
}

/// How many steps there are in all rows, of `(end)`, `(begin, end)` or `(begin, end, step)`.
fn steps(arguments: &[ColumnarValue], rows: std::ops::Range<usize>) -> Result<u64> {
    let read = |argument: &ColumnarValue| -> Result<ArrayRef> {
        let array = argument.to_array(1)?;
        let times = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let array = match array.data_type() {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                arrow_cast::cast(&array, &times)?
            }
            _ => array,
        };
        Ok(match array.data_type() {
            DataType::Interval(_) => array,
            _ => arrow_cast::cast(&array, &DataType::Int64)?,
        })
    };
    let read = arguments.iter().map(read).collect::<Result<Vec<_>>>()?;
    let at = |at: usize, row: usize| -> i128 {
        let Some(array) = read.get(at) else {
            return 1;
        };
        let row = if array.len() == 1 { 0 } else { row };
        if array.is_null(row) {
            return 0;
        }
        match array.as_primitive_opt::<IntervalMonthDayNanoType>() {
            Some(intervals) => {
                let step = intervals.value(row);
                let days = i128::from(step.months) * 28 + i128::from(step.days);
                days * 86_400_000_000_000 + i128::from(step.nanoseconds)
            }
            None => i128::from(array.as_primitive::<Int64Type>().value(row)),
        }
    };
    let of_row = |row: usize| {
        let (begin, end) = match read.len() {
            1 => (0, at(0, row)),
            _ => (at(0, row), at(1, row)),
        };
        let step = at(2, row);
        let forward = (end - begin).signum() == step.signum() && step != 0;
        let steps = if forward { (end - begin) / step + 1 } else { 0 };
        u64::try_from(steps).unwrap_or(u64::MAX)
    };
    Ok(rows.map(of_row).fold(0, u64::saturating_add))
}
