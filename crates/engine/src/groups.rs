//! Hits by the value of a column.

use arrow_row::{RowConverter, SortField};
use arrow_schema::Field;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::gather::Located;
use crate::hit::Hit;
use crate::view::View;

/// A wish for groups: `k` counts groups, and each has up to `size` hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping {
    /// The column whose values are the groups; null is one.
    pub column: String,
    /// Most hits of a group.
    pub size: usize,
}

/// The hits by groups, these in the order of their best hits, with the best `size` of each.
///
/// # Errors
/// If a batch cannot be read.
pub(crate) fn group(
    hits: &[Hit],
    view: &View,
    field: &Field,
    size: usize,
) -> Result<Vec<Vec<Hit>>> {
    let values = Located::new(view, hits.iter().map(|hit| hit.row)).column(field)?;
    let converter = RowConverter::new(vec![SortField::new(field.data_type().clone())])?;
    let values = converter.convert_columns(&[values])?;
    let mut groups: Vec<Vec<Hit>> = Vec::new();
    let mut places: FxHashMap<&[u8], usize> = FxHashMap::default();
    let keys: Vec<_> = values.iter().collect();
    for (hit, key) in hits.iter().zip(&keys) {
        let place = *places.entry(key.as_ref()).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if groups[place].len() < size {
            groups[place].push(*hit);
        }
    }
    Ok(groups)
}
