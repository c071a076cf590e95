//! Rows around centres that move.

use crate::dice::Dice;

/// Deviation of rows from their centre; centres deviate by 1 from the middle.
const NOISE: f32 = 0.5;
/// Numbers of queries begin here, so that none is a row.
const QUERIES: u64 = 1 << 48;

/// A mixture of Gaussians. Each row is drawn by its number alone, so that none need be kept in memory.
#[derive(Debug)]
pub struct Mixture {
    dim: usize,
    seed: u64,
    centres: Vec<f32>,
    /// Where each centre moves while the moment goes from 0 to 1.
    paths: Vec<f32>,
}

impl Mixture {
    /// Draws the centres and their paths.
    pub fn new(dim: usize, centres: usize, seed: u64) -> Mixture {
        let draw = |nth| {
            let mut elements = Vec::new();
            normals(&mut Dice::nth(seed, nth), dim * centres, |x| {
                elements.push(x);
            });
            elements
        };
        Mixture {
            dim,
            seed,
            centres: draw(u64::MAX),
            paths: draw(u64::MAX - 1),
        }
    }

    /// Appends the vector of a row as it is drawn at a moment.
    pub fn fill(&self, row: u64, moment: f32, out: &mut Vec<f32>) {
        let mut dice = Dice::nth(self.seed, row);
        let first = dice.below(self.centres.len() / self.dim) * self.dim;
        let mut at = first;
        normals(&mut dice, self.dim, |x| {
            out.push(self.centres[at] + moment * self.paths[at] + NOISE * x);
            at += 1;
        });
    }

    /// So many queries of a moment, from the one of this number on.
    pub fn queries(&self, first: usize, count: usize, moment: f32) -> Vec<Vec<f32>> {
        let query = |at: usize| {
            let mut query = Vec::with_capacity(self.dim);
            self.fill(QUERIES + at as u64, moment, &mut query);
            query
        };
        (first..first + count).map(query).collect()
    }
}

/// Draws so many normal numbers.
fn normals(dice: &mut Dice, count: usize, mut take: impl FnMut(f32)) {
    for at in (0..count).step_by(2) {
        let (one, other) = dice.normals();
        take(one);
        if at + 1 < count {
            take(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &[f32], b: &[f32]) -> f32 {
        let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f32>().sqrt()
    }

    fn row(mixture: &Mixture, row: u64, moment: f32) -> Vec<f32> {
        let mut vector = Vec::new();
        mixture.fill(row, moment, &mut vector);
        vector
    }

    #[test]
    fn rows_lie_around_centres_that_move() {
        let (dim, centres) = (33, 4);
        let mixture = Mixture::new(dim, centres, 7);
        for number in 0..100 {
            let vector = row(&mixture, number, 0.0);
            assert_eq!(vector.len(), dim);
            let near = mixture.centres.chunks(dim);
            let near = near.filter(|centre| distance(centre, &vector) < 5.0);
            assert_eq!(near.count(), 1, "{number}");
            // About the square root of the dimension.
            let moved = distance(&vector, &row(&mixture, number, 1.0));
            assert!((3.0..9.0).contains(&moved), "{moved}");
        }
        assert_eq!(row(&mixture, 5, 0.5), row(&mixture, 5, 0.5));
        assert_ne!(row(&mixture, 5, 0.5), row(&mixture, 6, 0.5));
        assert_eq!(mixture.queries(3, 2, 0.0)[1], mixture.queries(4, 1, 0.0)[0]);
    }
}
