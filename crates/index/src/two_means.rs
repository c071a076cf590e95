//! Two clusters of some vectors.

use longbow_kernels::{Kernels, Scalar};

/// Rounds, of which the last few move little.
const ROUNDS: usize = 8;
/// The smaller cluster has one vector in so many at least.
const SMALLEST: usize = 4;

/// Which vectors are in the second cluster, and the means of both.
#[derive(Debug)]
pub(crate) struct Halves {
    pub(crate) second: Vec<bool>,
    pub(crate) means: [Vec<f32>; 2],
}

/// Parts vectors of `dim` elements, at least four, one after the other in `floats`, into two clusters that are not too
/// unlike in size; none if all are equal. Lloyd's rounds from two vectors far apart.
pub(crate) fn two_means(floats: &[f32], dim: usize) -> Option<Halves> {
    let kernels = Kernels::get();
    let count = floats.len() / dim;
    let vector = |at: usize| &floats[at * dim..][..dim];
    let bytes: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut products = vec![0f32; count];
    let farthest = |from: &[f32], out: &mut [f32]| {
        kernels.l2_squared_rows(Scalar::F32, from, &bytes, out);
        let (at, most) = out.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        (*most > 0.0).then_some(at)
    };
    let one = farthest(vector(0), &mut products)?;
    let other = farthest(vector(one), &mut products)?;
    let mut means = [vector(one).to_vec(), vector(other).to_vec()];
    let mut second = vec![false; count];
    let mut order: Vec<usize> = (0..count).collect();
    for _ in 0..ROUNDS {
        // |x - a|² - |x - b|² grows with <x, b - a>, and is zero half way.
        let [a, b] = &means;
        let way: Vec<f32> = b.iter().zip(a).map(|(b, a)| b - a).collect();
        kernels.dot_rows(Scalar::F32, &way, &bytes, &mut products);
        let middle = way
            .iter()
            .zip(a.iter().zip(b))
            .map(|(way, (a, b))| way * 0.5 * (a + b))
            .sum::<f32>();
        order.sort_unstable_by(|x, y| products[*x].total_cmp(&products[*y]).then(x.cmp(y)));
        let natural = order.partition_point(|at| products[*at] < middle);
        let least = count.div_ceil(SMALLEST);
        let first = natural.clamp(least, count - least);
        let mut changed = false;
        for (place, at) in order.iter().enumerate() {
            changed |= std::mem::replace(&mut second[*at], place >= first) != (place >= first);
        }
        means = [
            mean(floats, dim, &second, false),
            mean(floats, dim, &second, true),
        ];
        if !changed {
            break;
        }
    }
    Some(Halves { second, means })
}

/// The mean of the vectors that are in the second cluster, or of those that are not.
fn mean(floats: &[f32], dim: usize, second: &[bool], which: bool) -> Vec<f32> {
    let mut sum = vec![0f32; dim];
    let mut count = 0u32;
    for (vector, _) in floats
        .chunks_exact(dim)
        .zip(second)
        .filter(|(_, second)| **second == which)
    {
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
        count += 1;
    }
    let share = 1.0 / count.max(1) as f32;
    sum.iter_mut().for_each(|sum| *sum *= share);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_heaps_are_told_apart() {
        let heap = |centre: f32| (0..20).flat_map(move |i| [centre + (i % 5) as f32, i as f32]);
        let floats: Vec<f32> = heap(0.0).chain(heap(1_000.0)).collect();
        let halves = two_means(&floats, 2).expect("they differ");
        let first = halves.second[0];
        assert!(halves.second[..20].iter().all(|second| *second == first));
        assert!(halves.second[20..].iter().all(|second| *second != first));
        let mut means = halves.means;
        means.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(means, [[2.0, 9.5], [1_002.0, 9.5]]);
    }

    #[test]
    fn equals_are_not_parted_and_few_that_differ_do_not_stand_alone() {
        assert!(two_means(&[3.0; 40], 2).is_none());
        let mut floats = vec![0.0; 40];
        floats[39] = 1.0;
        let halves = two_means(&floats, 1).expect("one differs");
        let second = halves.second.iter().filter(|second| **second).count();
        assert!((10..=30).contains(&second), "{second} of 40");
    }
}
