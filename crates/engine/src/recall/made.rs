//! Queries made from the rows, for as long as nobody has asked real ones.

use longbow_index::{Query, SearchStats};
use longbow_kernels::Kernels;

use super::curve::Origin;
use super::middle::Middle;
use crate::column_index::ColumnIndex;
use crate::dataset::Dataset;
use crate::dice::Dice;
use crate::error::Result;
use crate::graph::Wanted;
use crate::sample::sample;
use crate::schema::VectorColumn;
use crate::vectors::Vectors;

/// Rows that are looked at.
const ROWS: u64 = 1_000;
/// Queries like the rows.
const ORDINARY: usize = 128;
/// Queries of each kind that is unlike them.
const FAR: usize = 48;
/// Neighbours of a row that one like it is made from.
const NEAR: usize = 30;
/// Effort with which they are looked for.
const EF: usize = 64;
/// Least and greatest part of the way to the mean that a query is moved.
const MOVED: (f32, f32) = (0.3, 0.9);
/// How many times farther from a row than its neighbour queries with noise are.
const NOISE: f32 = 3.0;

/// Mean, deviation, least and greatest of each element.
struct Shape {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    least: Vec<f32>,
    greatest: Vec<f32>,
}

/// What is made from some of the rows.
pub(crate) struct Made {
    /// With where they are from.
    pub queries: Vec<(Origin, Vec<f32>)>,
    /// That of the rows.
    pub middle: Middle,
}

/// Makes the same for the same rows; no queries if there are none. Each walk for it sees the index as it is then: dead rows wait for it alone.
pub(crate) fn made(dataset: &Dataset, index: &ColumnIndex) -> Result<Made> {
    let view = dataset.view();
    let column = view.schema.vector(&dataset.name, Some(&index.column))?;
    let rows: Vec<(u64, Vec<f32>)> = sample(&view, column, ROWS)?
        .into_iter()
        .map(|(row, bytes)| (row, decode(column, &bytes)))
        .collect();
    let middle = Middle::of(column.space.metric, rows.iter().map(|(_, row)| &row[..]));
    let shape = Shape::of(&rows, column.space.dim);
    let mut dice = Dice::new(rows.len() as u64);
    let (mut queries, mut steps) = (Vec::new(), Vec::new());
    let stride = rows.len().div_ceil(ORDINARY).max(1);
    for (row, vector) in rows.iter().step_by(stride) {
        let near = neighbors(*row, vector, dataset, index)?;
        let Some(nearest) = near.first() else {
            continue;
        };
        let step: Vec<f32> = vector.iter().zip(nearest).map(|(a, b)| a - b).collect();
        steps.push(length(&step));
        queries.push((Origin::Ordinary, another(&near, &mut dice)));
    }
    if steps.is_empty() {
        return Ok(Made { queries, middle });
    }
    let half = steps.len() / 2;
    let typical = *steps.select_nth_unstable_by(half, f32::total_cmp).1;
    let ordinary = queries.len();
    for at in 0..FAR {
        let row = &rows[at * rows.len() / FAR].1;
        // A row itself, moved, would still be its own neighbour, to which the edges of its others lead.
        let like_row = queries[at * ordinary / FAR].1.clone();
        for far in shape.far((&like_row, row), typical, &mut dice) {
            queries.push((Origin::Far, far));
        }
    }
    Ok(Made { queries, middle })
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

    /// One query of each kind that is unlike the rows, from near to far: one like a row moved towards the mean, one with noise at the
    /// scale of its neighbours, one with noise at the scale of all rows, noise of the rows' mean and deviation, noise in
    /// their range.
    fn far(
        &self,
        (like_row, row): (&[f32], &[f32]),
        typical: f32,
        dice: &mut Dice,
    ) -> [Vec<f32>; 5] {
        let way = MOVED.0 + (MOVED.1 - MOVED.0) * dice.uniform();
        let toward = |(x, mean): (&f32, &f32)| x + way * (mean - x);
        let moved = like_row.iter().zip(&self.mean).map(toward).collect();
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
        [moved, near, wide, alike, range]
    }
}

/// One more vector where these are: normal, with their mean and their covariance (the smoothed bootstrap, of Efron). Rows
/// themselves would be found too easily, for their edges lead to their neighbours.
fn another(near: &[Vec<f32>], dice: &mut Dice) -> Vec<f32> {
    let n = near.len() as f32;
    let weights: Vec<f32> = near.iter().map(|_| dice.normal() / n.sqrt()).collect();
    let element = |at: usize| {
        let mean = near.iter().map(|one| one[at]).sum::<f32>() / n;
        let parts = near
            .iter()
            .zip(&weights)
            .map(|(one, w)| w * (one[at] - mean));
        mean + parts.sum::<f32>()
    };
    (0..near[0].len()).map(element).collect()
}

/// The vectors of the rows nearest to a row, as a walk finds them.
fn neighbors(
    row: u64,
    vector: &[f32],
    dataset: &Dataset,
    index: &ColumnIndex,
) -> Result<Vec<Vec<f32>>> {
    let (reached, view) = (index.reached(), dataset.view());
    let column = view.schema.vector(&dataset.name, Some(&index.column))?;
    let visible = |at: u64| at < reached.watermark && at != row && view.is_visible(at);
    let query = [Query::new(column.space, vector)?];
    let mut stats = [SearchStats::default()];
    let wanted = Wanted::visible(&visible);
    let at = (&*view, column);
    let found = reached
        .graph
        .search(&query, (NEAR, EF), wanted, at, &mut stats)?;
    let mut near = Vec::with_capacity(NEAR);
    for neighbor in found.iter().flatten() {
        let Some((batch, at)) = view.locate(neighbor.row) else {
            continue;
        };
        let vectors = Vectors::of(batch, column)?;
        let bytes = vectors.as_ref().and_then(|vectors| vectors.row(at));
        near.extend(bytes.map(|bytes| decode(column, bytes)));
    }
    Ok(near)
}

fn decode(column: &VectorColumn, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; column.space.dim];
    Kernels::get().decode(column.space.scalar, bytes, &mut values);
    values
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}
