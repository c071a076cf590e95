//! How far from the middle of the rows a query lies.
//!
//! Useful to tell queries apart whose walks go alike: one between the rows, which lies nearer to their mean than they do, has
//! neighbours at about the distance of an ordinary one's, but they lie in all directions and no walk comes by most of them.

use longbow_kernels::Metric;

/// The mean of the rows, or of their directions where the metric does not go by distance.
#[derive(Debug, Default)]
pub(crate) struct Middle {
    of_directions: bool,
    mean: Vec<f32>,
}

impl Middle {
    /// Of these rows, all of one length.
    pub fn of<'a>(metric: Metric, rows: impl ExactSizeIterator<Item = &'a [f32]>) -> Self {
        let mut middle = Middle {
            of_directions: metric != Metric::Euclidean,
            mean: Vec::new(),
        };
        let count = rows.len() as f32;
        for row in rows {
            middle.mean.resize(row.len(), 0.0);
            let part = middle.scale(row) / count;
            for (sum, x) in middle.mean.iter_mut().zip(row) {
                *sum += part * x;
            }
        }
        middle
    }

    /// The logarithm of a query's distance from it; the same for all if there were no rows.
    pub fn away(&self, query: &[f32]) -> f32 {
        let scale = self.scale(query);
        let pairs = self.mean.iter().zip(query);
        let squared: f32 = pairs.map(|(m, x)| (scale * x - m).powi(2)).sum();
        0.5 * squared.clamp(f32::MIN_POSITIVE, f32::MAX).ln()
    }

    fn scale(&self, vector: &[f32]) -> f32 {
        if !self.of_directions {
            return 1.0;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 { 1.0 / length } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middle(metric: Metric, rows: &[[f32; 2]]) -> Middle {
        Middle::of(metric, rows.iter().map(|row| &row[..]))
    }

    #[test]
    fn what_lies_between_the_rows_is_nearer_than_they_are() {
        let rows = [[1.0, 3.0], [5.0, 3.0], [3.0, 5.0], [3.0, 1.0]];
        let middle = middle(Metric::Euclidean, &rows);
        assert!((middle.away(&[5.0, 3.0]) - 2f32.ln()).abs() < 1e-6);
        assert!((middle.away(&[4.0, 3.0]) - 0.0).abs() < 1e-6);
        assert!(middle.away(&[3.0, 3.0]) < -10.0);
    }

    #[test]
    fn lengths_do_not_matter_where_directions_are_compared() {
        for metric in [Metric::Cosine, Metric::Dot] {
            let middle = middle(metric, &[[3.0, 0.0], [0.0, 0.5]]);
            let away = |query: [f32; 2]| middle.away(&query);
            assert!((away([1.0, 0.0]) - away([20.0, 0.0])).abs() < 1e-6);
            assert!(away([1.0, 1.0]) < away([1.0, 0.0]) - 0.5);
            assert!(away([-1.0, -1.0]) > away([1.0, 0.0]));
        }
    }

    #[test]
    fn it_is_finite_whatever_there_is() {
        for metric in [Metric::Euclidean, Metric::Cosine, Metric::Dot] {
            for rows in [&[][..], &[[0.0, 0.0]], &[[1e30, -1e30]]] {
                let middle = middle(metric, rows);
                for query in [[0.0, 0.0], [1e-30, 0.0], [1e30, 1e30], [-3e38, 3e38]] {
                    let away = middle.away(&query);
                    assert!(away.is_finite(), "{metric:?} {rows:?} {query:?}");
                }
            }
        }
    }
}
