use longbow_kernels::Metric;

use crate::checkpoint::Reader;
use crate::encode::unit;
use crate::error::Result;
use crate::space::Space;
use crate::sphere::Sphere;

/// How many times as far from the middle as half of all a vector is that the mean is made without: one such of a thousand may
/// move a mean so far that codes, which are relative to it, no longer tell the others apart.
const FAR: f64 = 10.0;
/// One in so many may be left out: more are no strays, and codes are to tell them apart, too.
const FEW: usize = 32;
/// Vectors that tell the middle: of that many, half are not far, and to sort all would take ten milliseconds of a put.
const SOME: usize = 32;

/// What codes are relative to.
pub(crate) struct Centre {
    pub(crate) elements: Vec<f32>,
    /// For the inner product.
    pub(crate) sphere: Option<Sphere>,
}

impl Centre {
    /// The mean of some stored vectors, as an index sees them, without a few that are far from most; zeros if there are none.
    pub(crate) fn of<'a>(space: Space, vectors: impl Iterator<Item = &'a [u8]>) -> Self {
        let decode = |vector| {
            let mut floats = Vec::new();
            unit(space, vector, &mut floats);
            floats
        };
        let mut vectors: Vec<Vec<f32>> = vectors.map(decode).collect();
        let sphere = (space.metric == Metric::Dot).then(|| Sphere::around(&vectors));
        if let Some(sphere) = &sphere {
            vectors.iter_mut().for_each(|vector| sphere.put(vector));
        }
        let dim = space.moved_dim();
        leave_out_far(&mut vectors, dim);
        let mut sum = vec![0f64; dim];
        for vector in &vectors {
            sum.iter_mut()
                .zip(vector)
                .for_each(|(sum, x)| *sum += f64::from(*x));
        }
        let count = vectors.len().max(1) as f64;
        Centre {
            elements: sum.iter().map(|sum| (sum / count) as f32).collect(),
            sphere,
        }
    }

    /// Reads what [`crate::encode::Encoder::save_centre`] wrote.
    pub(crate) fn load(space: Space, reader: &mut Reader<'_>) -> Result<Self> {
        let elements = reader.floats("centre", space.moved_dim())?;
        let sphere = (space.metric == Metric::Dot).then(|| Sphere::load(reader));
        Ok(Centre {
            elements,
            sphere: sphere.transpose()?,
        })
    }

    /// Whether it is what stands for none.
    pub(crate) fn is_zero(&self) -> bool {
        self.elements.iter().all(|x| *x == 0.0)
    }
}

/// Leaves out the vectors that are far from the middle of all, element by element, which a few cannot move.
fn leave_out_far(vectors: &mut Vec<Vec<f32>>, dim: usize) {
    let step = vectors.len().div_ceil(SOME).max(1);
    let some: Vec<&Vec<f32>> = vectors.iter().step_by(step).collect();
    if some.len() < 2 {
        return;
    }
    let middle_of = |at: usize| {
        let mut elements: Vec<f32> = some.iter().map(|vector| vector[at]).collect();
        let half = elements.len() / 2;
        *elements.select_nth_unstable_by(half, f32::total_cmp).1
    };
    let middle: Vec<f32> = (0..dim).map(middle_of).collect();
    let away = |vector: &Vec<f32>| {
        let ways = vector.iter().zip(&middle);
        let squared = ways.map(|(x, middle)| (f64::from(*x) - f64::from(*middle)).powi(2));
        squared.sum::<f64>()
    };
    let mut all: Vec<f64> = vectors.iter().map(away).collect();
    let half = all.len() / 2;
    let typical = *all.select_nth_unstable_by(half, f64::total_cmp).1;
    let is_far = |away: f64| away > FAR * FAR * typical;
    let far = all.iter().filter(|away| is_far(**away)).count();
    // With none but equals around the middle, nothing says how far is far.
    if typical > 0.0 && (1..=vectors.len() / FEW).contains(&far) {
        vectors.retain(|vector| !is_far(away(vector)));
    }
}

#[cfg(test)]
mod tests {
    use longbow_kernels::Scalar;

    use super::*;
    use crate::mix::drawn;

    fn centre(metric: Metric, vectors: &[[f32; 3]]) -> Vec<f32> {
        let space = Space {
            scalar: Scalar::F32,
            metric,
            dim: 3,
        };
        let bytes = |vector: &[f32; 3]| vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        let bytes: Vec<Vec<u8>> = vectors.iter().map(bytes).collect();
        Centre::of(space, bytes.iter().map(Vec::as_slice)).elements
    }

    #[test]
    fn the_centre_is_the_mean_of_what_is_not_far() {
        let mut next = drawn(1);
        let mut vectors: Vec<[f32; 3]> = (0..100).map(|_| [next(), next(), next()]).collect();
        let mean = centre(Metric::Euclidean, &vectors);
        for (at, x) in mean.iter().enumerate() {
            let sum: f64 = vectors.iter().map(|vector| f64::from(vector[at])).sum();
            assert_eq!(*x, (sum / 100.0) as f32);
        }
        // The smaller of two heaps is no far one.
        let (mut heaps, mut sum) = (vectors.clone(), 0.0);
        for (at, vector) in heaps.iter_mut().enumerate() {
            vector[0] += if at < 40 { 1_000.0 } else { 0.0 };
            sum += f64::from(vector[0]);
        }
        assert_eq!(centre(Metric::Euclidean, &heaps)[0], (sum / 100.0) as f32);
        // Whatever few are there as well.
        for far in [30.0, 1e6, f32::MAX] {
            vectors.push([far, -far, far]);
            assert_eq!(centre(Metric::Euclidean, &vectors), mean, "{far}");
        }
    }

    #[test]
    fn equal_vectors_none_and_one_have_a_centre() {
        assert_eq!(centre(Metric::Euclidean, &[]), [0.0; 3]);
        assert_eq!(
            centre(Metric::Euclidean, &[[1.0, 2.0, 3.0]]),
            [1.0, 2.0, 3.0]
        );
        assert_eq!(centre(Metric::Euclidean, &[[2.0; 3]; 9]), [2.0; 3]);
        assert_eq!(centre(Metric::Cosine, &[[0.0; 3]; 2]), [0.0; 3]);
        // Most are equal: of the others none is left out.
        let mut vectors = [[0.0; 3]; 4];
        vectors[0] = [4.0; 3];
        assert_eq!(centre(Metric::Euclidean, &vectors), [1.0; 3]);
    }
}
