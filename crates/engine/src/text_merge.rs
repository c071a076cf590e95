//! Which pieces of a text index are made one, and which are written anew without their dead.
//!
//! Pieces are of tiers, each of four times the rows of the one below. As soon as four of a tier stand beside each other, with none
//! but smaller ones between them, they are merged with these: so a row is merged once a tier, and a search meets few pieces.

use std::sync::Arc;

use longbow_text::{Alive, Piece};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::text_index::{Held, TextIndex, died};

/// Pieces of a tier that are merged.
const NEIGHBOURS: usize = 4;
/// Rows of a piece of the lowest tier.
const LOWEST: usize = 64;
/// Most rows of a merged piece: more would keep a thread for minutes.
const MOST_ROWS: usize = 8 << 20;
/// Dead rows at which pieces are looked over.
const FEWEST_DEAD: u64 = 64;
/// The share of its rows that is dead in a piece that is written anew: one in so many.
const DEAD_SHARE: usize = 5;

impl TextIndex {
    /// Merges pieces, or takes dead rows out of one; false if there is nothing to do now.
    ///
    /// # Errors
    /// If tantivy refuses; what was there stays.
    pub fn tend(&self, dataset: &Dataset) -> Result<bool> {
        match self.merging.try_lock() {
            Some(mut looked) => self.tend_once(dataset, &mut looked),
            None => Ok(false),
        }
    }

    /// Does all that there is to do, whoever else is at it.
    ///
    /// # Errors
    /// As [`TextIndex::tend`].
    pub fn tend_all(&self, dataset: &Dataset) -> Result<()> {
        let mut looked = self.merging.lock();
        while self.tend_once(dataset, &mut looked)? {}
        Ok(())
    }

    /// `looked` is how many rows had died when pieces were last looked over.
    fn tend_once(&self, dataset: &Dataset, looked: &mut u64) -> Result<bool> {
        let pieces = self.pieces();
        let sizes: Vec<usize> = pieces.list.iter().map(|held| held.piece.len()).collect();
        // What has died by now is dead for every reader who finds the merged piece.
        let view = dataset.view();
        if let Some(range) = neighbours(&sizes) {
            self.merge(&pieces.list[range], |held| held.alive(&view))?;
            return Ok(true);
        }
        let died = died(&view);
        if died < *looked + FEWEST_DEAD {
            return Ok(false);
        }
        for held in &pieces.list {
            let (all, living) = (held.piece.len(), held.alive(&view).documents);
            let dead = all - living;
            if living == 0 || dead as u64 >= FEWEST_DEAD && dead * DEAD_SHARE >= all {
                self.merge(std::slice::from_ref(held), |held| held.alive(&view))?;
                return Ok(true);
            }
        }
        *looked = died;
        Ok(false)
    }

    fn merge(&self, old: &[Arc<Held>], alive: impl Fn(&Held) -> Arc<Alive>) -> Result<()> {
        let living: Vec<Arc<Alive>> = old.iter().map(|held| alive(held)).collect();
        let pairs = old.iter().zip(&living);
        let pairs: Vec<(&Piece, &Alive)> = pairs
            .map(|(held, alive)| (&held.piece, alive.as_ref()))
            .collect();
        self.replace(old, Piece::merge(&pairs)?);
        Ok(())
    }
}

/// The tier of a piece.
fn tier(rows: usize) -> u32 {
    (rows / LOWEST).checked_ilog(NEIGHBOURS).unwrap_or(0)
}

/// Neighbours that are to be merged: of the lowest tier of which there are enough.
fn neighbours(sizes: &[usize]) -> Option<std::ops::Range<usize>> {
    for highest in 0..=tier(MOST_ROWS) {
        let (mut begin, mut rows, mut count) = (0, 0, 0);
        for (at, size) in sizes.iter().enumerate() {
            if tier(*size) > highest || rows + size > MOST_ROWS {
                (begin, rows, count) = (at + 1, 0, 0);
                continue;
            }
            rows += size;
            count += usize::from(tier(*size) == highest);
            if count == NEIGHBOURS {
                return Some(begin..at + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_a_tier_become_one_of_the_next() {
        assert_eq!(neighbours(&[16_384; 3]), None);
        assert_eq!(neighbours(&[16_384; 4]), Some(0..4));
        assert_eq!(neighbours(&[100_000, 16_384, 9, 9, 9]), None);
        assert_eq!(neighbours(&[100_000, 16_384, 9, 9, 9, 9]), Some(2..6));
        let with_smaller = [100_000, 5_000, 9, 5_000, 5_000, 9, 5_000, 9];
        assert_eq!(neighbours(&with_smaller), Some(1..7));
    }

    #[test]
    fn however_many_come_few_pieces_are_left_and_rows_move_seldom() {
        let (mut sizes, mut moved) = (Vec::new(), 0);
        for rows in std::iter::repeat_n(100, 20_000) {
            sizes.push(rows);
            while let Some(range) = neighbours(&sizes) {
                let rows: usize = sizes[range.clone()].iter().sum();
                moved += rows;
                sizes.splice(range, [rows]);
            }
        }
        assert_eq!(sizes.iter().sum::<usize>(), 2_000_000);
        assert!(sizes.len() < 25, "{}", sizes.len());
        assert!(moved < 8 * 2_000_000, "{moved}");
    }
}
