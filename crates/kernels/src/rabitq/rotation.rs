use super::{DIM_STEP, Rabitq};

/// Rounds of sign flips and transforms. Three make the coordinates of any fixed vector as good as Gaussian.
const ROUNDS: usize = 3;

/// Sixteen elements in registers.
///
/// # Safety
/// Every method needs a processor that has the instruction set.
pub(crate) trait Tile: Copy {
    unsafe fn load(from: &[f32; 16]) -> Self;
    unsafe fn store(self, to: &mut [f32; 16]);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The Walsh-Hadamard transform, which adds and subtracts neighbours first.
    unsafe fn transform(self) -> Self;
}

/// A random rotation, in `O(d log d)`: rounds of random signs and of fast Walsh-Hadamard transforms over the first and
/// the last power of two of the dimensions (which overlap unless the dimension is a power of two itself), and of one
/// step that mixes both halves, after Kac. Distances and inner products stay what they are, and every instruction set
/// yields the same bits.
#[derive(Debug, Clone)]
pub struct Rotation {
    dim: usize,
    /// The largest power of two that is not above `dim`.
    power: usize,
    /// `2 * ROUNDS` times `dim`: plus and minus ones, and where a transform follows, its scale with them.
    signs: Vec<f32>,
}

impl Rotation {
    /// A rotation of vectors of `dim` elements, at least 1, padded with zeros to a multiple of [`DIM_STEP`].
    #[must_use]
    pub fn new(dim: usize, seed: u64) -> Self {
        let dim = dim.max(1).next_multiple_of(DIM_STEP);
        let power = 1 << dim.ilog2();
        let scale = 1.0 / (power as f32).sqrt();
        let mut state = seed;
        let signs = (0..2 * ROUNDS * dim).map(|i| {
            let (step, at) = (i / dim % 2, i % dim);
            let transformed = [at < power, at >= dim - power][step];
            let size = if transformed { scale } else { 1.0 };
            if splitmix(&mut state) >> 63 == 0 {
                size
            } else {
                -size
            }
        });
        Rotation {
            dim,
            power,
            signs: signs.collect(),
        }
    }

    /// Elements of a rotated vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rotates `vector`, which has [`Rotation::dim`] elements, in place.
    pub fn apply(&self, kernels: &Rabitq, vector: &mut [f32]) {
        assert_eq!(vector.len(), self.dim, "elements of a padded vector");
        kernels.rotate(self, vector);
    }

    /// The rotation itself, compiled as part of each instruction set's entry point.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub(crate) unsafe fn rotate<T: Tile>(&self, vector: &mut [f32]) {
        let vector = vector.as_chunks_mut().0;
        let (dim, power) = (self.dim / 16, self.power / 16);
        for signs in self.signs.as_chunks().0.chunks_exact(2 * dim) {
            let (first, second) = signs.split_at(dim);
            // SAFETY: the caller vouches for the instruction set.
            unsafe {
                flip::<T>(&mut vector[power..], &first[power..]);
                transform::<T>(&mut vector[..power], &first[..power]);
                if power < dim {
                    let rest = dim - power;
                    flip::<T>(&mut vector[..rest], &second[..rest]);
                    transform::<T>(&mut vector[rest..], &second[rest..]);
                    mix_halves::<T>(vector.as_flattened_mut());
                }
            }
        }
    }
}

/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn flip<T: Tile>(tiles: &mut [[f32; 16]], signs: &[[f32; 16]]) {
    for (tile, signs) in tiles.iter_mut().zip(signs) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { flipped::<T>(tile, signs).store(tile) };
    }
}

/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn flipped<T: Tile>(tile: &[f32; 16], signs: &[f32; 16]) -> T {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { T::load(tile).mul(T::load(signs)) }
}

/// Flips signs and does the Walsh-Hadamard transform of a power of two tiles. As it is bound by loads and stores, it does
/// what is possible at a time: four tiles, and then two of the steps between such quads.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn transform<T: Tile>(tiles: &mut [[f32; 16]], signs: &[[f32; 16]]) {
    let (quads, rest) = tiles.as_chunks_mut::<4>();
    let (quad_signs, rest_signs) = signs.as_chunks::<4>();
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        for (tiles, signs) in quads.iter_mut().zip(quad_signs) {
            let [a, b, c, d] = tiles;
            let turned = quad([
                flipped::<T>(a, &signs[0]).transform(),
                flipped::<T>(b, &signs[1]).transform(),
                flipped::<T>(c, &signs[2]).transform(),
                flipped::<T>(d, &signs[3]).transform(),
            ]);
            store(turned, [a, b, c, d]);
        }
        for (tile, signs) in rest.iter_mut().zip(rest_signs) {
            flipped::<T>(tile, signs).transform().store(tile);
        }
        let mut half = if quads.is_empty() { 1 } else { 4 };
        while 4 * half <= tiles.len() {
            for quad in tiles.chunks_exact_mut(4 * half) {
                quarters::<T>(quad);
            }
            half *= 4;
        }
        if half < tiles.len() {
            let (a, b) = tiles.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                let (sum, difference) = butterfly(T::load(a), T::load(b));
                sum.store(a);
                difference.store(b);
            }
        }
    }
}

/// Two steps over four quarters.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn quarters<T: Tile>(tiles: &mut [[f32; 16]]) {
    let (low, high) = tiles.split_at_mut(tiles.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let turned = quad([T::load(a), T::load(b), T::load(c), T::load(d)]);
            store(turned, [a, b, c, d]);
        }
    }
}

/// Two steps over four tiles.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn quad<T: Tile>([a, b, c, d]: [T; 4]) -> [T; 4] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let ((a, b), (c, d)) = (butterfly(a, b), butterfly(c, d));
        let ((a, c), (b, d)) = (butterfly(a, c), butterfly(b, d));
        [a, b, c, d]
    }
}

/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn store<T: Tile>(from: [T; 4], to: [&mut [f32; 16]; 4]) {
    for (tile, to) in from.into_iter().zip(to) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { tile.store(to) };
    }
}

/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn butterfly<T: Tile>(a: T, b: T) -> (T, T) {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { (a.add(b), a.sub(b)) }
}

/// Turns each pair of an element of the first half and its counterpart in the second by 45 degrees.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn mix_halves<T: Tile>(vector: &mut [f32]) {
    use std::f32::consts::FRAC_1_SQRT_2;
    let (a, b) = vector.split_at_mut(vector.len() / 2);
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks_mut(), b.as_chunks_mut());
    for (a, b) in a.iter_mut().zip(b) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let root = T::load(&[FRAC_1_SQRT_2; 16]);
            let (sum, difference) = butterfly(T::load(a), T::load(b));
            sum.mul(root).store(a);
            difference.mul(root).store(b);
        }
    }
    for (x, y) in a_rest.iter_mut().zip(b_rest) {
        (*x, *y) = ((*x + *y) * FRAC_1_SQRT_2, (*x - *y) * FRAC_1_SQRT_2);
    }
}

/// The generator of Steele, Lea and Flood (2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(dim: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        (0..dim)
            .map(|_| (splitmix(&mut state) >> 40) as f32 / (1 << 23) as f32 - 1.0)
            .collect()
    }

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn lengths_and_angles_stay() {
        for dim in [1, 2, 3, 7, 16, 48, 96, 127, 128, 240, 384, 784, 1536, 4096] {
            let rotation = Rotation::new(dim, 7);
            let padded = |seed| {
                let mut vector = sample(dim, seed);
                vector.resize(rotation.dim(), 0.0);
                vector
            };
            let (a, b) = (padded(1), padded(2));
            let (mut ra, mut rb) = (a.clone(), b.clone());
            rotation.apply(Rabitq::get(), &mut ra);
            rotation.apply(Rabitq::get(), &mut rb);
            let tolerance = 1e-4 * dot(&a, &a).max(dot(&b, &b));
            assert!((dot(&a, &a) - dot(&ra, &ra)).abs() < tolerance, "{dim}");
            assert!((dot(&a, &b) - dot(&ra, &rb)).abs() < tolerance, "{dim}");
        }
    }

    #[test]
    fn a_single_spike_is_spread_over_all_dimensions() {
        for dim in [128, 240, 384, 784] {
            let rotation = Rotation::new(dim, 7);
            for at in [0, dim / 2, dim - 1] {
                let mut spike = vec![0.0; rotation.dim()];
                spike[at] = 1.0;
                rotation.apply(Rabitq::get(), &mut spike);
                let largest = spike.iter().fold(0f32, |m, x| m.max(x.abs()));
                let even = 1.0 / (rotation.dim() as f32).sqrt();
                assert!(largest < 6.0 * even, "{dim}: {largest} of {even}");
            }
        }
    }
}
