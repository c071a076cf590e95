//! Some tens of thousands of rows in the order of a column.
//!
//! Useful for: finding the few rows whose value is in a narrow range, without a look at the others. Not useful for: a range
//! that holds many of them (to compare all, in the order in which they lie, is faster then), or telling whether a value is
//! *surely* in the range: it names some that are not.
//!
//! ```text
//! places   u16 of each row whose value is no null, by value: 2 bytes a row
//! fences   the value of every 8th of them: a binary search here tells in which eights the range begins and ends
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_ord::ord::make_comparator;
use arrow_ord::sort::{SortOptions, sort_to_indices};
use arrow_schema::ArrowError;
use arrow_select::take::take;

use super::ranges::ValueRange;

/// Rows of a block at most: a place in it has two bytes.
pub(super) const BLOCK_ROWS: usize = 1 << 16;
/// Rows of which the first one's value is kept. Of twice as many at most, those at both ends of a range are named in vain.
const ZONE: usize = 8;

const ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// The rows of a block by their values of a column.
#[derive(Debug)]
pub(super) struct SortedBlock {
    places: Box<[u16]>,
    fences: ArrayRef,
}

impl SortedBlock {
    /// Sorts the rows by `values`, of which there are at most [`BLOCK_ROWS`].
    ///
    /// # Errors
    /// If values of this type have no order.
    pub fn new(values: &ArrayRef) -> Result<Self, ArrowError> {
        assert!(values.len() <= BLOCK_ROWS, "{} rows", values.len());
        let order = sort_to_indices(values, Some(ORDER), None)?;
        let known = &order.values()[..values.len() - values.logical_null_count()];
        let fences = UInt32Array::from_iter_values(known.iter().copied().step_by(ZONE));
        Ok(SortedBlock {
            fences: take(values, &fences, None)?,
            places: known.iter().map(|place| *place as u16).collect(),
        })
    }

    /// Adds the places of rows among which are all whose value is in one of the ranges: each once, in no order.
    ///
    /// # Errors
    /// If the ranges are of another type than the values.
    pub fn find(&self, ranges: &[ValueRange], places: &mut Vec<u16>) -> Result<(), ArrowError> {
        let mut found = Vec::with_capacity(ranges.len());
        for range in ranges {
            found.push(self.within(range)?);
        }
        found.sort_unstable_by_key(|range| range.start);
        let mut end = 0;
        for range in found {
            let start = range.start.max(end);
            if start < range.end {
                places.extend_from_slice(&self.places[start..range.end]);
                end = range.end;
            }
        }
        Ok(())
    }

    /// Where in the order those of a range are.
    fn within(&self, range: &ValueRange) -> Result<Range<usize>, ArrowError> {
        let below = |value: &ArrayRef, greatest: Ordering| -> Result<usize, ArrowError> {
            let compare = make_comparator(&self.fences, value, ORDER)?;
            Ok(partition_point(self.fences.len(), |at| {
                compare(at, 0) <= greatest
            }))
        };
        let start = match &range.least {
            // The values after the last fence that is less may be less, or not.
            Some(least) => below(least, Ordering::Less)?.saturating_sub(1) * ZONE,
            None => 0,
        };
        let end = match &range.greatest {
            Some(greatest) => below(greatest, Ordering::Equal)? * ZONE,
            None => self.places.len(),
        };
        Ok(start..end.min(self.places.len()))
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.places) + self.fences.get_array_memory_size()
    }
}

/// How many of the first `len` numbers have the property, which all before one have that has it.
fn partition_point(len: usize, has: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        if has(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int32Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    /// All whose value is in one of the ranges are found, each once, and of others no more than two zones for each end.
    fn check(values: &ArrayRef, ranges: &[ValueRange]) {
        let compare = |value: &ArrayRef| make_comparator(values, value, ORDER).expect("one type");
        let is_in = |row: usize| {
            ranges.iter().any(|range| {
                let low = range.least.as_ref().map(|least| compare(least)(row, 0));
                let high = range.greatest.as_ref().map(|most| compare(most)(row, 0));
                low.is_none_or(Ordering::is_ge) && high.is_none_or(Ordering::is_le)
            })
        };
        let expected: Vec<u16> = (0..values.len())
            .filter(|row| values.is_valid(*row) && is_in(*row))
            .map(|row| row as u16)
            .collect();
        let block = SortedBlock::new(values).expect("an order");
        let mut found = Vec::new();
        block.find(ranges, &mut found).expect("one type");
        let vain = found.len() - expected.len();
        assert!(vain <= 2 * ZONE * ranges.len(), "{vain} in vain");
        found.sort_unstable();
        assert!(found.is_sorted_by(|one, next| one < next), "one twice");
        assert!(expected.iter().all(|row| found.binary_search(row).is_ok()));
    }

    fn ranges<T>(all: Vec<(Option<T>, Option<T>)>, array: fn(T) -> ArrayRef) -> Vec<ValueRange> {
        let range = |(least, greatest): (Option<T>, Option<T>)| ValueRange {
            least: least.map(array),
            greatest: greatest.map(array),
        };
        all.into_iter().map(range).collect()
    }

    fn floats() -> impl Strategy<Value = f64> {
        let odd = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        prop_oneof![-5.0f64..5.0, proptest::sample::select(odd.to_vec())]
    }

    proptest! {
        #[test]
        fn numbers_are_found(
            values in proptest::collection::vec(proptest::option::of(-20i32..20), 0..300),
            asked in proptest::collection::vec(proptest::option::of(-22i32..22), 8),
        ) {
            let values: ArrayRef = Arc::new(Int32Array::from(values));
            let asked = asked.chunks(2).map(|pair| (pair[0], pair[1])).collect();
            check(&values, &ranges(asked, |value| Arc::new(Int32Array::from(vec![value]))));
        }

        #[test]
        fn floats_are_found(
            values in proptest::collection::vec(proptest::option::of(floats()), 0..300),
            least in proptest::option::of(floats()),
            greatest in proptest::option::of(floats()),
        ) {
            let values: ArrayRef = Arc::new(Float64Array::from(values));
            let array = |value| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
            check(&values, &ranges(vec![(least, greatest)], array));
        }

        #[test]
        fn texts_are_found(
            values in proptest::collection::vec(proptest::option::of("[a-c]{0,3}"), 0..300),
            asked in proptest::collection::vec("[a-d]{0,3}", 1..4),
        ) {
            let values: ArrayRef = Arc::new(StringArray::from(values));
            let asked = asked.into_iter().map(|text| (Some(text.clone()), Some(text)));
            let array = |text: String| Arc::new(StringArray::from(vec![text])) as ArrayRef;
            check(&values, &ranges(asked.collect(), array));
        }
    }

    #[test]
    fn a_full_block_is_sorted() {
        let values = (0..BLOCK_ROWS as i32).map(|row| row.wrapping_mul(0x9E37_79B1_u32 as i32));
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(values));
        let array = |value| Arc::new(Int32Array::from(vec![value])) as ArrayRef;
        check(&values, &ranges(vec![(Some(0), Some(1 << 16))], array));
        check(&values, &ranges(vec![(None, None)], array));
    }
}
