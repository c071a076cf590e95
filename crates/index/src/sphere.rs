//! Inner products as distances.
//!
//! The nearest by inner product is no nearest by any distance: a vector may be nearer to another than to itself. But with one
//! element more, that puts all vectors at the same distance from the origin, and is zero for queries, the order by
//! distance is that by product:
//!
//! ```text
//! x' = (x / r, sqrt(1 - |x|^2 / r^2))      |x'| = 1
//! q' = (q / |q|, 0)                        |q' - x'|^2 = 2 - 2 <q, x> / (|q| r)
//! ```
//!
//! (Bachrach et al. 2014, "Speeding up the Xbox recommender system using a Euclidean transformation for inner-product
//! spaces"; Neyshabur and Srebro 2015, "On symmetric and asymmetric LSHs for inner product search".) A query's length does
//! not change the order either, so each gets length 1, and distances of queries are like those of vectors.
//!
//! The radius is chosen once, by a sample. A vector that is longer than it lies outside of the sphere, and seems farther than
//! it is: a walk may miss it, a scan of codes does not.

use crate::checkpoint::{Reader, Sink};
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU32, Ordering};

/// Lengths that differ by no more are equal: of vectors that were scaled to one length, in 16 bits an element, too.
const EQUAL: f64 = 1.02;
/// Where lengths differ, the radius in units of the longest of the sample. The larger, the fewer vectors will be outside,
/// and the less do distances differ.
const ROOM: f64 = 1.2;

/// A sphere on which vectors are put.
#[derive(Debug)]
pub(crate) struct Sphere {
    radius: f32,
    /// Length of the longest vector outside, as bits, or more; the radius if there is none. Infinite if that is beyond floats.
    longest: AtomicU32,
}

impl Sphere {
    /// Around some vectors.
    pub(crate) fn around(vectors: &[Vec<f32>]) -> Self {
        let lengths = vectors.iter().map(|vector| squared_length(vector).sqrt());
        let (least, most) = lengths.fold((f64::INFINITY, 0.0f64), |(least, most), length| {
            (least.min(length), most.max(length))
        });
        let room = if most <= EQUAL * least { 1.0 } else { ROOM };
        let radius = (room * most).min(f64::from(f32::MAX)) as f32;
        Self::of(if radius > 0.0 { radius } else { 1.0 }, 0.0)
    }

    /// The same one.
    pub(crate) fn like_it(&self) -> Self {
        let longest = f32::from_bits(self.longest.load(Ordering::Relaxed));
        Self::of(self.radius, longest)
    }

    fn of(radius: f32, longest: f32) -> Self {
        Sphere {
            radius,
            longest: AtomicU32::new(longest.max(radius).to_bits()),
        }
    }

    /// Puts a vector on the sphere: adds its last element. Takes note of one that is longer than the radius.
    pub(crate) fn put(&self, vector: &mut Vec<f32>) {
        let squared = squared_length(vector);
        let inverse = 1.0 / f64::from(self.radius);
        scale(vector, inverse);
        vector.push((1.0 - squared * inverse * inverse).max(0.0).sqrt() as f32);
        let length = squared.sqrt() as f32;
        // Rounded up, so that none is longer.
        let bits = length.next_up().to_bits();
        if length > self.radius && bits > self.longest.load(Ordering::Relaxed) {
            self.longest.fetch_max(bits, Ordering::Relaxed);
        }
    }

    /// Gives a query length 1, adds its last element, and returns how a distance of the metric, the negative product, becomes
    /// a squared distance that no vector with that product exceeds: `offset + slope * distance`.
    pub(crate) fn aim(&self, query: &mut Vec<f32>) -> (f64, f64) {
        let radius = f64::from(self.radius);
        let longest = f64::from(f32::from_bits(self.longest.load(Ordering::Relaxed))) / radius;
        let squared = squared_length(query);
        let (length, inverse) = if squared > 0.0 {
            (1.0, 1.0 / squared.sqrt())
        } else {
            (0.0, 0.0)
        };
        scale(query, inverse);
        query.push(0.0);
        (length + longest * longest, 2.0 * inverse / radius)
    }

    /// Writes the radius and the length of the longest vector, f32.
    pub(crate) fn save(&self, sink: &mut Sink<'_>) -> Result<()> {
        sink.put(&self.radius.to_le_bytes())?;
        sink.put(&self.longest.load(Ordering::Relaxed).to_le_bytes())
    }

    /// Reads what [`Sphere::save`] wrote.
    pub(crate) fn load(reader: &mut Reader<'_>) -> Result<Self> {
        let at = reader.at as u64;
        let (radius, longest) = (reader.f32()?, reader.f32()?);
        if radius > 0.0 && radius.is_finite() && longest >= radius {
            return Ok(Self::of(radius, longest));
        }
        Err(Error::Inconsistent {
            at,
            field: "radius, or longest vector",
            got: u64::from(radius.to_bits()),
            limit: u64::from(longest.to_bits()),
        })
    }
}

fn scale(vector: &mut [f32], by: f64) {
    vector
        .iter_mut()
        .for_each(|x| *x = (f64::from(*x) * by) as f32);
}

/// Summed in `f64`, where squares of `f32` neither overflow nor underflow.
fn squared_length(vector: &[f32]) -> f64 {
    vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
        let difference: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        squared_length(&difference)
    }

    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        let vector = proptest::collection::vec(-10f32..10.0, 5);
        proptest::collection::vec(vector, 2..20)
    }

    proptest! {
        #[test]
        fn the_order_by_distance_is_that_by_product(vectors in vectors()) {
            let (query, vectors) = vectors.split_first().expect("there are some");
            let sphere = Sphere::around(vectors);
            let mut aimed = query.clone();
            let (offset, slope) = sphere.aim(&mut aimed);
            for vector in vectors {
                let mut put = vector.clone();
                sphere.put(&mut put);
                let product: f32 = query.iter().zip(vector).map(|(a, b)| a * b).sum();
                let said = offset - slope * f64::from(product);
                let squared = squared_distance(&aimed, &put);
                prop_assert!((squared - said).abs() <= 1e-4, "{squared} {said}");
            }
        }
    }

    #[test]
    fn vectors_of_one_length_need_no_room_and_others_get_some() {
        let radius = |vectors: &[f32]| {
            let vectors: Vec<Vec<f32>> = vectors.iter().map(|x| vec![*x]).collect();
            Sphere::around(&vectors).radius
        };
        assert_eq!(radius(&[1.0, -1.0, 1.01]), 1.01);
        assert_eq!(radius(&[1.0, 2.5]), 3.0);
        assert_eq!((radius(&[]), radius(&[0.0, 0.0])), (1.0, 1.0));
        assert_eq!(radius(&[1.0, f32::MAX]), f32::MAX);
    }

    #[test]
    fn what_is_outside_is_no_farther_than_is_said() {
        let sphere = Sphere::around(&[vec![1.0, 0.0], vec![0.0, 1.0]]);
        let vector = [3.0, 4.0];
        let mut put = vector.to_vec();
        sphere.put(&mut put);
        assert_eq!(put, [3.0, 4.0, 0.0]);
        let mut query = vec![6.0, 8.0];
        let (offset, slope) = sphere.aim(&mut query);
        let squared = squared_distance(&query, &put);
        assert!((squared - 16.0).abs() < 1e-5 && offset - slope * 50.0 >= squared);
    }

    #[test]
    fn what_was_saved_is_read_again_and_what_makes_no_sense_is_refused() {
        let sphere = Sphere::around(&[vec![1.0, 0.0], vec![0.0, 3.0]]);
        // Longer than a float can say.
        sphere.put(&mut vec![f32::MAX, f32::MAX]);
        let mut saved = Vec::new();
        let mut sink = Sink::new(&mut saved);
        sphere.save(&mut sink).expect("memory");
        sink.finish(0).expect("memory");
        let read = |input: &[u8]| Sphere::load(&mut Reader { input, at: 0 });
        let again = read(&saved).expect("as it was saved");
        assert_eq!(again.radius, sphere.radius);
        let (offset, slope) = again.aim(&mut vec![1.0, 1.0]);
        assert!(offset.is_infinite() && slope > 0.0);
        for (radius, longest) in [
            (0.0, 1.0),
            (-1.0, 1.0),
            (2.0, 1.0),
            (f32::NAN, 1.0),
            (1.0, f32::NAN),
        ] {
            let bytes = [radius, longest].map(f32::to_le_bytes).concat();
            assert!(read(&bytes).is_err(), "{radius} {longest}");
        }
        assert!(read(&saved[..7]).is_err());
    }
}
