//! Queries made from the rows, for as long as nobody has asked real ones.

use longbow_index::{Query, SearchStats};
use longbow_kernels::Kernels;

use super::curve::Origin;
use crate::column_index::Reached;
use crate::dice::Dice;
use crate::error::Result;
use crate::graph::sample;
use crate::schema::VectorColumn;
use crate::vectors::Vectors;
use crate::view::View;

/// Rows that are looked at.
const ROWS: u64 = 1_000;
/// Queries like the rows.
const ORDINARY: usize = 128;
/// Queries of each kind that is unlike them.
const FAR: usize = 48;
/// Effort with which the neighbour of a row is looked for.
const EF: usize = 32;
/// How many times farther from a row than its neighbour queries with noise are.
const NOISE: f32 = 3.0;

/// Mean, deviation, least and greatest of each element.
struct Shape {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    least: Vec<f32>,
    greatest: Vec<f32>,
}

/// Queries with where they are from; the same for the same rows. None if there are no rows.
pub(crate) fn made(
    reached: &Reached,
    view: &View,
    column: &VectorColumn,
) -> Result<Vec<(Origin, Vec<f32>)>> {
    let rows: Vec<(u64, Vec<f32>)> = sample(view, column, ROWS)?
        .into_iter()
        .map(|(row, bytes)| (row, decode(column, &bytes)))
        .collect();
    let shape = Shape::of(&rows, column.space.dim);
    let mut dice = Dice::new(rows.len() as u64);
    let (mut queries, mut steps) = (Vec::new(), Vec::new());
    let stride = rows.len().div_ceil(ORDINARY).max(1);
    for (row, vector) in rows.iter().step_by(stride) {
        let Some(neighbor) = neighbor(*row, vector, reached, (view, column))? else {
            continue;
        };
        // Away from the neighbour by half to all of the distance: as far from the rows as they are from each other, and
        // in a direction in which they lie. The row itself would be found too easily, its edges lead to its neighbours.
        let far = 0.5 + 0.5 * dice.uniform();
        let step: Vec<f32> = vector.iter().zip(&neighbor).map(|(a, b)| a - b).collect();
        let beyond = vector.iter().zip(&step).map(|(a, s)| a + far * s);
        queries.push((Origin::Ordinary, beyond.collect()));
        steps.push(length(&step));
    }
    if steps.is_empty() {
        return Ok(queries);
    }
    let middle = steps.len() / 2;
    let typical = *steps.select_nth_unstable_by(middle, f32::total_cmp).1;
    for at in 0..FAR {
        let row = &rows[at * rows.len() / FAR].1;
        for far in shape.far(row, typical, &mut dice) {
            queries.push((Origin::Far, far));
        }
    }
    Ok(queries)
}

impl Shape {
    fn of(rows: &[(u64, Vec<f32>)], dim: usize) -> Self {
        let n = rows.len().max(1) as f32;
        let mut shape = Shape {
            mean: vec![0.0; dim],
            deviation: vec![0.0; dim],
            least: vec![f32::INFINITY; dim],
            greatest: vec![f32::NEG_INFINITY; dim],
        };
        for (_, row) in rows {
            for (at, x) in row.iter().enumerate() {
                shape.mean[at] += x / n;
                shape.least[at] = shape.least[at].min(*x);
                shape.greatest[at] = shape.greatest[at].max(*x);
            }
        }
        for (_, row) in rows {
            for (at, x) in row.iter().enumerate() {
                shape.deviation[at] += (x - shape.mean[at]).powi(2) / n;
            }
        }
        shape.deviation.iter_mut().for_each(|x| *x = x.sqrt());
        shape
    }

    /// One query of each kind that is unlike the rows, from near to far: a row with noise at the scale of its neighbours,
    /// one with noise at the scale of all rows, noise of the rows' mean and deviation, noise in their range.
    fn far(&self, row: &[f32], typical: f32, dice: &mut Dice) -> [Vec<f32>; 4] {
        let noise: Vec<f32> = row.iter().map(|_| dice.normal()).collect();
        let scale = NOISE * typical / length(&noise).max(f32::MIN_POSITIVE);
        let near = row.iter().zip(&noise).map(|(x, z)| x + scale * z).collect();
        let mut spread = |from: &[f32]| -> Vec<f32> {
            let with_noise = |(x, d): (&f32, &f32)| x + d * dice.normal();
            from.iter().zip(&self.deviation).map(with_noise).collect()
        };
        let (wide, alike) = (spread(row), spread(&self.mean));
        let within = |(a, b): (&f32, &f32)| a + (b - a) * dice.uniform();
        let range = self.least.iter().zip(&self.greatest).map(within).collect();
        [near, wide, alike, range]
    }
}

/// The vector of the row nearest to a row, as a walk finds it.
fn neighbor(
    row: u64,
    vector: &[f32],
    reached: &Reached,
    (view, column): (&View, &VectorColumn),
) -> Result<Option<Vec<f32>>> {
    let visible = |at: u64| at < reached.watermark && at != row && view.is_visible(at);
    let query = [Query::new(column.space, vector)?];
    let mut stats = [SearchStats::default()];
    let at = (view, column);
    let found = reached
        .graph
        .search(&query, (1, EF), &visible, at, &mut stats)?;
    let nearest = found.first().and_then(|found| found.first());
    let Some((batch, at)) = nearest.and_then(|nearest| view.locate(nearest.row)) else {
        return Ok(None);
    };
    let vectors = Vectors::of(batch, column)?;
    let bytes = vectors.as_ref().and_then(|vectors| vectors.row(at));
    Ok(bytes.map(|bytes| decode(column, bytes)))
}

fn decode(column: &VectorColumn, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; column.space.dim];
    Kernels::get().decode(column.space.scalar, bytes, &mut values);
    values
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}
