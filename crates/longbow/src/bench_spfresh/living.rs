//! Which rows of a stream are alive, and when each was drawn.

use std::ops::Range;

use crate::dice::Dice;

/// The rows that are alive. Ids are counted up and never used again.
#[derive(Debug, Default)]
pub struct Living {
    ids: Vec<i64>,
    alive: Vec<bool>,
    /// The first id of each moment, ascending.
    moments: Vec<(i64, f32)>,
}

impl Living {
    /// Takes new rows in, drawn at this moment; their ids.
    pub fn add(&mut self, rows: usize, moment: f32) -> Range<i64> {
        let first = self.alive.len() as i64;
        let new = first..first + rows as i64;
        self.moments.push((first, moment));
        self.ids.extend(new.clone());
        self.alive.resize(self.alive.len() + rows, true);
        new
    }

    /// Has rows die, chosen by chance: no more than there are.
    pub fn take(&mut self, rows: usize, dice: &mut Dice) -> Vec<i64> {
        let rows = rows.min(self.ids.len());
        let mut take = || {
            let id = self.ids.swap_remove(dice.below(self.ids.len()));
            self.alive[id as usize] = false;
            id
        };
        (0..rows).map(|_| take()).collect()
    }

    /// The ids of all, in no order.
    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Whether a row is alive.
    pub fn holds(&self, id: i64) -> bool {
        let at = usize::try_from(id).ok();
        at.and_then(|at| self.alive.get(at)).is_some_and(|one| *one)
    }

    /// When a row was drawn.
    pub fn moment(&self, id: i64) -> f32 {
        let after = self.moments.partition_point(|(first, _)| *first <= id);
        let last = after.checked_sub(1).and_then(|at| self.moments.get(at));
        last.map_or(0.0, |(_, moment)| *moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_and_go_once() {
        let (mut living, mut dice) = (Living::default(), Dice::new(1));
        assert_eq!(living.add(10, 0.0), 0..10);
        let gone = living.take(4, &mut dice);
        assert_eq!(living.add(3, 0.5), 10..13);
        assert_eq!(gone.len(), 4);
        assert!(gone.iter().all(|id| !living.holds(*id)));
        let mut all: Vec<i64> = living.ids().iter().chain(&gone).copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..13).collect::<Vec<i64>>());
        assert!(living.ids().iter().all(|id| living.holds(*id)));
        assert!(!living.holds(13) && !living.holds(-1));
        assert_eq!((living.moment(9), living.moment(10)), (0.0, 0.5));
        assert_eq!(living.take(99, &mut dice).len(), 9);
        assert!(living.ids().is_empty());
    }
}
