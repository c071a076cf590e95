//! The data of the recipe: noise that cannot be clustered, and updates of which a fifth drift.

use std::collections::HashMap;

use super::rows::Rows;
use crate::dice::Dice;

/// The share of the updates that drift.
const DRIFTING: f32 = 0.2;
/// How much larger the second half of their elements is.
const DRIFT: f32 = 2.5;

/// Rows, what becomes of them, and what is searched for then.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The rows that an index is built of.
    pub base: Rows,
    /// Rows that replace them, in order; one id may come more than once.
    pub updates: Rows,
    /// What is searched for.
    pub queries: Vec<Vec<f32>>,
}

/// How much of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Elements of a vector.
    pub dim: usize,
    /// Rows of the base.
    pub base: usize,
    /// Updates.
    pub updates: usize,
    /// Queries.
    pub queries: usize,
}

impl Recipe {
    /// Elements from -1 to 1; in every fifth update on average the second half is 2.5 times as large.
    pub fn made(sizes: Sizes, seed: u64) -> Recipe {
        let Sizes { dim, base, .. } = sizes;
        let mut dice = Dice::new(seed);
        let vector = |dice: &mut Dice| -> Vec<f32> { (0..dim).map(|_| dice.uniform()).collect() };
        let mut recipe = Recipe {
            base: Rows::new(dim),
            updates: Rows::new(dim),
            queries: Vec::with_capacity(sizes.queries),
        };
        for id in 0..base {
            recipe.base.push(id as i64, &vector(&mut dice));
        }
        for _ in 0..sizes.updates {
            let id = dice.below(base) as i64;
            let mut changed = vector(&mut dice);
            if dice.chance(DRIFTING) {
                changed[dim / 2..].iter_mut().for_each(|x| *x *= DRIFT);
            }
            recipe.updates.push(id, &changed);
        }
        let queries = (0..sizes.queries).map(|_| vector(&mut dice));
        recipe.queries.extend(queries);
        recipe
    }

    /// How much there is of everything.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            dim: self.base.dim,
            base: self.base.len(),
            updates: self.updates.len(),
            queries: self.queries.len(),
        }
    }

    /// The vector of each id once all updates are in: of several updates of an id the last counts.
    pub fn outcome(&self) -> HashMap<i64, &[f32]> {
        fn each(rows: &Rows) -> impl Iterator<Item = (i64, &[f32])> {
            (0..rows.len()).map(|at| (rows.ids[at], rows.vector(at)))
        }
        each(&self.base).chain(each(&self.updates)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        dim: 16,
        base: 500,
        updates: 1_000,
        queries: 7,
    };

    #[test]
    fn a_fifth_of_the_updates_drift() {
        let recipe = Recipe::made(SIZES, 404);
        assert_eq!(recipe.sizes(), SIZES);
        assert!(recipe.base.elements.iter().all(|x| (-1.0..1.0).contains(x)));
        let drifts = |at: &usize| {
            let vector = recipe.updates.vector(*at);
            assert!(vector[..8].iter().all(|x| x.abs() <= 1.0));
            vector[8..].iter().any(|x| x.abs() > 1.0)
        };
        let drifting = (0..1_000).filter(drifts).count();
        assert!((150..250).contains(&drifting), "{drifting}");
        assert_eq!(Recipe::made(SIZES, 404), recipe);
        assert_ne!(Recipe::made(SIZES, 405), recipe);
    }

    #[test]
    fn the_last_update_of_an_id_counts() {
        let mut recipe = Recipe::made(Sizes { dim: 1, ..SIZES }, 1);
        recipe.updates = Rows::new(1);
        for (id, x) in [(3, 7.0), (500, 8.0), (3, 9.0)] {
            recipe.updates.push(id, &[x]);
        }
        let outcome = recipe.outcome();
        assert_eq!(outcome.len(), 501);
        assert_eq!((outcome[&3], outcome[&500]), (&[9.0][..], &[8.0][..]));
        assert_eq!(outcome[&4], recipe.base.vector(4));
    }
}
