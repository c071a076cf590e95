//! Between which values those of the rows that pass a filter are.

use arrow_array::ArrayRef;

/// Values from one to another, both included; in the order of [`arrow_ord::sort`], by which floats have a total order.
#[derive(Debug, Clone)]
pub struct ValueRange {
    /// An array with the least value alone; none if there is no least.
    pub least: Option<ArrayRef>,
    /// An array with the greatest value alone; none if there is no greatest.
    pub greatest: Option<ArrayRef>,
}

/// The ranges in one of which a column's value must be.
#[derive(Debug, Clone)]
pub struct ColumnRanges {
    /// Position among the columns that the predicate reads.
    pub column: usize,
    /// In any order; they may overlap. With none, no row passes.
    pub ranges: Vec<ValueRange>,
}
