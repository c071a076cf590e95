//! Searches by example: the vectors of rows in place of a vector of the caller's.

use longbow_kernels::{Kernels, Metric};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::id::Id;
use crate::schema::VectorColumn;
use crate::vectors::Vectors;
use crate::view::View;

/// Most rows that a search may be given as examples.
pub const MAX_EXAMPLES: usize = 1_000;

/// Rows that the answer is to be like, and rows that it is to be unlike. They are not in it themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Examples {
    /// To be like; at least one.
    pub like: Vec<Id>,
    /// To be unlike.
    pub unlike: Vec<Id>,
}

impl Examples {
    /// Checks what does not depend on the dataset.
    ///
    /// # Errors
    /// If there is none to be like, or there are too many.
    pub(crate) fn check(&self) -> Result<()> {
        let count = self.like.len() + self.unlike.len();
        if self.like.is_empty() {
            return Err(Error::BadValue {
                field: "ids",
                got: "[]".into(),
                expected: "at least one id of a row to be like",
            });
        }
        if count > MAX_EXAMPLES {
            return Err(Error::BadValue {
                field: "ids",
                got: format!("{count} examples"),
                expected: "at most 1000 with negative_ids",
            });
        }
        Ok(())
    }

    /// The vector to search for, and the rows to leave out. With `p` the mean of the vectors to be like and `n` that of those
    /// to be unlike it is `p`, or `2p - n`: as far beyond `p` as `n` is before it. With cosine, each counts by its
    /// direction.
    ///
    /// # Errors
    /// If an id is unknown, or its row has no vector.
    pub(crate) fn resolve(
        &self,
        dataset: &Dataset,
        view: &View,
        column: &VectorColumn,
    ) -> Result<(Vec<f32>, Vec<u64>)> {
        let mut rows = Vec::with_capacity(self.like.len() + self.unlike.len());
        let mut mean = |ids: &[Id]| -> Result<Vec<f32>> {
            let mut sum = vec![0.0f32; column.space.dim];
            for id in ids {
                let (row, vector) = vector(id, dataset, view, column)?;
                let square = |x: &f32| f64::from(*x) * f64::from(*x);
                let length = vector.iter().map(square).sum::<f64>().sqrt();
                let by_direction = column.space.metric == Metric::Cosine && length > 0.0;
                let scale = if by_direction { 1.0 / length } else { 1.0 };
                for (sum, x) in sum.iter_mut().zip(&vector) {
                    *sum += (f64::from(*x) * scale / ids.len() as f64) as f32;
                }
                rows.push(row);
            }
            Ok(sum)
        };
        let mut target = mean(&self.like)?;
        if !self.unlike.is_empty() {
            let away = mean(&self.unlike)?;
            for (x, away) in target.iter_mut().zip(away) {
                *x = 2.0 * *x - away;
            }
        }
        Ok((target, rows))
    }
}

/// The row of an id in a view, and its vector as float32.
///
/// # Errors
/// If the id is unknown, or its row has no vector.
pub(crate) fn vector(
    id: &Id,
    dataset: &Dataset,
    view: &View,
    column: &VectorColumn,
) -> Result<(u64, Vec<f32>)> {
    let unknown = || id.unknown_in(&dataset.name, &view.schema.arrow);
    let row = dataset.find(id).ok_or_else(unknown)?;
    // The view is older than the id map; a row that came in between is as good as unknown to this call.
    let (batch, at) = view.locate(row).ok_or_else(unknown)?;
    let bytes = Vectors::one(batch, at, column)?.ok_or_else(|| Error::NoVectorOf {
        id: id.to_string(),
        column: column.name.clone(),
    })?;
    let mut values = vec![0.0; column.space.dim];
    Kernels::get().decode(column.space.scalar, &bytes, &mut values);
    Ok((row, values))
}
