use longbow_kernels::rabitq::DIM_STEP;
use longbow_kernels::{Kernels, Metric, Scalar};

use crate::encode::bytes_of;
use crate::error::{Error, Result};

/// What the vectors of an index are and how they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Space {
    /// Element type of stored vectors.
    pub scalar: Scalar,
    /// How nearness is measured.
    pub metric: Metric,
    /// Elements of a vector, at least 1.
    pub dim: usize,
}

/// Length of a vector that is compared by cosine, at most.
const LONGEST: f64 = 1e34;

impl Space {
    /// Bytes of a stored vector.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        self.dim * self.scalar.size()
    }

    /// The largest that an element may be, in stored vectors and queries: of those within it, all distances are finite and told as they are.
    #[must_use]
    pub fn largest_element(&self) -> f32 {
        let (most, dim) = (f64::from(f32::MAX), self.dim as f64);
        match self.metric {
            // The square of the distance of two corners, and as much again for what sums and codes round.
            Metric::Euclidean | Metric::Dot => (most / (8.0 * dim)).sqrt() as f32,
            // Products with vectors of up to ten thousand times length 1; squares of lengths are told in `f64` where they must.
            Metric::Cosine => (LONGEST / dim.sqrt()) as f32,
        }
    }

    /// Elements of a vector as codes see it: see [`crate::sphere`].
    pub(crate) fn moved_dim(&self) -> usize {
        self.dim + usize::from(self.metric == Metric::Dot)
    }

    /// Elements of its code.
    pub(crate) fn code_dim(&self) -> usize {
        self.moved_dim().next_multiple_of(DIM_STEP)
    }

    /// Refuses a dimension of zero, or of more than `max`.
    pub(crate) fn check_dim(&self, max: usize) -> Result<()> {
        let got = self.dim;
        if (1..=max).contains(&got) {
            return Ok(());
        }
        Err(Error::Parameter {
            name: "dim",
            got,
            min: 1,
            max,
        })
    }

    /// Refuses a row's vector of another length.
    pub(crate) fn check(&self, row: u64, vector: &[u8]) -> Result<()> {
        let (expected, got) = (self.row_bytes(), vector.len());
        if expected == got {
            return Ok(());
        }
        Err(Error::VectorBytes { row, expected, got })
    }

    /// Refuses a query for which some distances to vectors of this space might not be finite.
    ///
    /// # Errors
    /// If it has another dimension, or an element that is not finite, or larger than [`Space::largest_element`].
    pub fn check_query(&self, vector: &[f32]) -> Result<()> {
        self.check_within(vector, self.largest_element())
    }

    /// Refuses what has another dimension, or an element that is not finite, or larger than that.
    fn check_within(&self, vector: &[f32], most: f32) -> Result<()> {
        if vector.len() != self.dim {
            return Err(Error::Dimension {
                expected: self.dim,
                got: vector.len(),
            });
        }
        // To look for one takes longer than to tell that there is none.
        if !Kernels::get().all_within(Scalar::F32, bytes_of(vector), most)
            && let Some(at) = vector.iter().position(|x| x.is_nan() || x.abs() > most)
        {
            let value = vector[at];
            return Err(match value.is_finite() {
                true => Error::TooLarge { at, value, most },
                false => Error::NotFinite { at, value },
            });
        }
        Ok(())
    }

    /// Turns a distance as it is inside the crate into the distance and the score that users see: see the table
    /// in the crate's description.
    #[must_use]
    pub fn to_distance_and_score(&self, raw: f32) -> (f32, f32) {
        match self.metric {
            Metric::Euclidean => {
                let distance = raw.sqrt();
                (distance, 1.0 / (1.0 + distance))
            }
            Metric::Cosine => (raw, 1.0 - raw),
            Metric::Dot => (raw, -raw),
        }
    }
}

/// A query that is ready to be compared: checked, and for cosine scaled to length 1.
#[derive(Debug, Clone)]
pub struct Query {
    space: Space,
    floats: Vec<f32>,
}

impl Query {
    /// Prepares a query for vectors of `space`.
    ///
    /// # Errors
    /// If it has another dimension, or an element that is not finite.
    pub fn new(space: Space, vector: &[f32]) -> Result<Self> {
        space.check_within(vector, f32::MAX)?;
        let mut floats = vector.to_vec();
        if space.metric == Metric::Cosine {
            let scale = exact_inverse_norm(&floats);
            floats
                .iter_mut()
                .for_each(|x| *x = (f64::from(*x) * scale) as f32);
        }
        Ok(Query { space, floats })
    }

    /// The space it was prepared for.
    #[must_use]
    pub fn space(&self) -> Space {
        self.space
    }

    /// The prepared vector.
    #[must_use]
    pub fn floats(&self) -> &[f32] {
        &self.floats
    }

    /// Distance to one stored vector of `row_bytes()` bytes.
    #[must_use]
    pub fn distance(&self, stored: &[u8]) -> f32 {
        self.distance_to(self.space.scalar, stored)
    }

    /// The same to its elements in another type that has them as they are: the distance is the same to the last bit.
    pub(crate) fn distance_to(&self, scalar: Scalar, stored: &[u8]) -> f32 {
        let (kernels, query) = (Kernels::get(), &self.floats);
        match self.space.metric {
            Metric::Euclidean => or_last(kernels.l2_squared(scalar, query, stored)),
            Metric::Dot => or_last(-kernels.dot(scalar, query, stored)),
            Metric::Cosine => {
                let (dot, norm) = kernels.dot_and_norm(scalar, query, stored);
                cosine_distance(dot, inverse_norm(kernels, scalar, norm, stored))
            }
        }
    }

    /// Distances to `out.len()` stored vectors that lie one after the other. `pairs` is room to work in.
    pub(crate) fn distances(
        &self,
        kernels: &Kernels,
        rows: &[u8],
        out: &mut [f32],
        pairs: &mut Vec<(f32, f32)>,
    ) {
        let Space { scalar, metric, .. } = self.space;
        match metric {
            Metric::Euclidean => kernels.l2_squared_rows(scalar, &self.floats, rows, out),
            Metric::Dot => kernels.dot_rows(scalar, &self.floats, rows, out),
            Metric::Cosine => {
                pairs.resize(out.len(), (0.0, 0.0));
                kernels.dot_and_norm_rows(scalar, &self.floats, rows, pairs);
            }
        }
        self.finish(
            kernels,
            rows.chunks_exact(self.space.row_bytes()),
            out,
            pairs,
        );
    }

    /// Distances to stored vectors anywhere in memory. `pairs` is room to work in.
    pub(crate) fn distances_to(
        &self,
        kernels: &Kernels,
        rows: &[&[u8]],
        out: &mut [f32],
        pairs: &mut Vec<(f32, f32)>,
    ) {
        let Space { scalar, metric, .. } = self.space;
        match metric {
            Metric::Euclidean => kernels.l2_squared_gather(scalar, &self.floats, rows, out),
            Metric::Dot => kernels.dot_gather(scalar, &self.floats, rows, out),
            Metric::Cosine => {
                pairs.resize(out.len(), (0.0, 0.0));
                kernels.dot_and_norm_gather(scalar, &self.floats, rows, pairs);
            }
        }
        self.finish(kernels, rows.iter().copied(), out, pairs);
    }

    /// Turns what the kernels found, in `out` or for cosine in `pairs`, into distances in `out`.
    fn finish<'a>(
        &self,
        kernels: &Kernels,
        rows: impl Iterator<Item = &'a [u8]>,
        out: &mut [f32],
        pairs: &[(f32, f32)],
    ) {
        match self.space.metric {
            Metric::Euclidean => out.iter_mut().for_each(|x| *x = or_last(*x)),
            Metric::Dot => out.iter_mut().for_each(|x| *x = or_last(-*x)),
            Metric::Cosine => {
                for ((x, (dot, norm)), row) in out.iter_mut().zip(pairs).zip(rows) {
                    *x =
                        cosine_distance(*dot, inverse_norm(kernels, self.space.scalar, *norm, row));
                }
            }
        }
    }
}

/// The number itself, or `+inf` if it is none.
#[inline(always)]
pub(crate) fn or_last(distance: f32) -> f32 {
    if distance.is_nan() {
        f32::INFINITY
    } else {
        distance
    }
}

/// 1 - cos, from the inner product and the inverse of the product of the lengths.
#[inline(always)]
pub(crate) fn cosine_distance(dot: f32, inverse: f32) -> f32 {
    or_last(1.0 - (dot * inverse).clamp(-1.0, 1.0))
}

/// 1 / length of a stored vector whose sum of squares the kernels found to be `norm`; 0 for a zero vector.
#[inline]
pub(crate) fn inverse_norm(kernels: &Kernels, scalar: Scalar, norm: f32, stored: &[u8]) -> f32 {
    // Outside this range the sum may have overflowed or lost digits to underflow.
    if (1e-30..=1e37).contains(&norm) {
        return 1.0 / norm.sqrt();
    }
    let mut floats = vec![0.0; stored.len() / scalar.size()];
    kernels.decode(scalar, stored, &mut floats);
    exact_inverse_norm(&floats).min(f64::from(f32::MAX)) as f32
}

/// 1 / length, summed in `f64`, where squares of `f32` neither overflow nor underflow; 0 for a zero vector.
fn exact_inverse_norm(floats: &[f32]) -> f64 {
    let square = |x: &f32| f64::from(*x) * f64::from(*x);
    let (chunks, rest) = floats.as_chunks::<8>();
    // In several sums, since an addition waits for the one before it.
    let mut sums = [0f64; 8];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += square(x);
        }
    }
    let norm = sums.iter().sum::<f64>() + rest.iter().map(square).sum::<f64>();
    if norm == 0.0 { 0.0 } else { 1.0 / norm.sqrt() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    pub(crate) fn space(metric: Metric, dim: usize) -> Space {
        Space {
            scalar: Scalar::F32,
            metric,
            dim,
        }
    }

    #[test]
    fn distances_and_scores_are_those_of_the_table() -> Result<()> {
        let check = |metric, raw: f32, expected: (f32, f32)| -> Result<()> {
            let space = space(metric, 2);
            let got = Query::new(space, &[3.0, 4.0])?.distance(&bytes(&[6.0, 8.0]));
            assert_eq!(got, raw, "{metric}");
            assert_eq!(space.to_distance_and_score(got), expected, "{metric}");
            Ok(())
        };
        check(Metric::Euclidean, 25.0, (5.0, 1.0 / 6.0))?;
        check(Metric::Dot, -50.0, (-50.0, 50.0))?;
        check(Metric::Cosine, 0.0, (0.0, 1.0))
    }

    #[test]
    fn a_zero_vector_has_cosine_zero() -> Result<()> {
        let space = space(Metric::Cosine, 2);
        assert_eq!(
            Query::new(space, &[3.0, 4.0])?.distance(&bytes(&[0.0, 0.0])),
            1.0
        );
        assert_eq!(
            Query::new(space, &[0.0, 0.0])?.distance(&bytes(&[1.0, 2.0])),
            1.0
        );
        Ok(())
    }

    #[test]
    fn cosine_holds_at_extreme_lengths() -> Result<()> {
        for dim in [2, 8, 19] {
            let space = space(Metric::Cosine, dim);
            let vector = |a: f32, b: f32| [vec![a], vec![0.0; dim - 2], vec![b]].concat();
            let close = |a: f32, b: f32| (a - b).abs() < 1e-5;
            for length in [1e-36f32, 1e-25, 1e-10, 1.0, 1e10, 1e19, 1e37] {
                for other in [1e-36f32, 1e-18, 1.0, 1e30] {
                    let query = Query::new(space, &vector(3.0 * length, 4.0 * length))?;
                    let to = |a, b| query.distance(&bytes(&vector(a * other, b * other)));
                    let (opposite, same, across) = (to(-3.0, -4.0), to(3.0, 4.0), to(4.0, -3.0));
                    assert!(
                        close(opposite, 2.0) && close(same, 0.0) && close(across, 1.0),
                        "{dim} {length} {other}: {opposite} {same} {across}"
                    );
                }
            }
        }
        Ok(())
    }

    #[test]
    fn what_has_no_distance_comes_last() -> Result<()> {
        let query = Query::new(space(Metric::Dot, 2), &[f32::MAX, f32::MAX])?;
        assert_eq!(query.distance(&bytes(&[f32::MAX, f32::MIN])), f32::INFINITY);
        let query = Query::new(space(Metric::Euclidean, 2), &[f32::MAX, f32::MAX])?;
        assert_eq!(query.distance(&bytes(&[f32::MIN, f32::MIN])), f32::INFINITY);
        Ok(())
    }

    #[test]
    fn within_the_largest_element_all_distances_are_finite() -> Result<()> {
        for metric in [Metric::Euclidean, Metric::Dot, Metric::Cosine] {
            for dim in [1, 2, 3, 784, 65_536] {
                let space = space(metric, dim);
                let most = space.largest_element();
                space.check_query(&vec![-most; dim])?;
                let query = Query::new(space, &vec![most; dim])?;
                for other in [most, -most] {
                    let distance = query.distance(&bytes(&vec![other; dim]));
                    assert!(distance.is_finite(), "{metric} {dim}: {distance}");
                    if metric == Metric::Cosine {
                        let expected = if other == most { 0.0 } else { 2.0 };
                        assert!((distance - expected).abs() < 1e-3, "{dim}: {distance}");
                    }
                }
                let signs = |at: usize| if at.is_multiple_of(2) { most } else { -most };
                let mixed: Vec<f32> = (0..dim).map(signs).collect();
                let across = query.distance(&bytes(&mixed));
                assert!(across.is_finite(), "{metric} {dim}: {across}");
                if metric == Metric::Cosine && dim.is_multiple_of(2) {
                    assert!((across - 1.0).abs() < 1e-3, "{dim}: {across}");
                }
                match space.check_query(&vec![-most.next_up(); dim]) {
                    Err(Error::TooLarge {
                        at: 0,
                        value,
                        most: told,
                    }) => assert_eq!((value, told), (-most.next_up(), most)),
                    other => panic!("{metric} {dim}: {other:?}"),
                }
            }
        }
        Ok(())
    }

    #[test]
    fn wrong_queries_are_refused_with_their_fault() {
        let euclidean = space(Metric::Euclidean, 3);
        let short = Query::new(euclidean, &[1.0])
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(short.contains("1 elements, expected 3"), "{short}");
        let nan = Query::new(euclidean, &[1.0, f32::NAN, 0.0])
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(nan.contains("element 1 of the query is NaN"), "{nan}");
        for value in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let mut query = vec![1.0; 2_000];
            query[1_999] = value;
            match Query::new(space(Metric::Cosine, 2_000), &query).map(|_| ()) {
                Err(Error::NotFinite { at, value: told }) => {
                    assert_eq!((at, told.to_bits()), (1_999, value.to_bits()));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
