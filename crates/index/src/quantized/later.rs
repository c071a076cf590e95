//! Neighbours that a walk compares later, or never.
//!
//! While a walk comes nearer to its query, nearly all neighbours of the nodes that it follows are nearer than what it holds, and
//! soon too far. To compare one by its code costs as many cache lines as the code has. So of each node the few nearest by
//! estimate are compared at once; and others when the walk would else follow a node
//! that is farther than they may be, as in a best-first search that is lazy. Most are too far by then. `longbow bench ann` tells how many are
//! compared.
//!
//! Good for some dozens that mostly are dropped: nothing is sorted before it is needed. Not for a queue from which all are taken. Levels
//! above the one that is searched, walks without estimates, and those along what passes a filter do without.

use super::walk::{Admit, Walk};
use crate::candidate::Candidate;
use crate::visited::Visited;

/// So many may be left when more are: all are looked through again and again. Walks that hold hundreds would leave thousands.
const MANY: usize = 128;
/// A walk's neighbours come sorted only where they are more than this.
const _: () = assert!(super::block::FEWEST_FIRST > super::walk::FEW);

/// Neighbours that were estimated, and not compared yet.
pub(super) struct Later {
    all: Vec<Candidate>,
    /// Nothing in it is nearer.
    nearest: f32,
}

impl Default for Later {
    fn default() -> Self {
        Later {
            all: Vec::new(),
            nearest: f32::INFINITY,
        }
    }
}

impl Later {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.nearest = f32::INFINITY;
    }

    /// Whether no more should be added: then they are compared at once.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= MANY
    }

    /// Adds candidates, which come sorted, up to the first that is not below the limit.
    #[inline(always)]
    pub(super) fn add(&mut self, sorted: &[Candidate], limit: f32) {
        debug_assert!(sorted.is_sorted(), "as they come from a node");
        if let Some(first) = sorted.first()
            && first.distance() < limit
        {
            self.nearest = self.nearest.min(first.distance());
            let below = sorted.iter().take_while(|other| other.distance() < limit);
            self.all.extend(below);
        }
    }

    /// Moves those that are nearer than `near` to `fresh`, unless they were met meanwhile, and forgets those that are not below the
    /// limit.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        (near, limit): (f32, f32),
        visited: &Visited,
        fresh: &mut Vec<Candidate>,
    ) {
        let near = near.min(limit);
        // Asked before each node that is followed, and mostly in vain.
        if self.nearest < near {
            self.sift((near, limit), visited, fresh);
        }
    }

    fn sift(&mut self, (near, limit): (f32, f32), visited: &Visited, fresh: &mut Vec<Candidate>) {
        self.nearest = f32::INFINITY;
        let mut at = 0;
        while let Some(candidate) = self.all.get(at) {
            let distance = candidate.distance();
            if distance < near {
                let candidate = self.all.swap_remove(at);
                if !visited.has_met(candidate.node()) {
                    fresh.push(candidate);
                }
            } else if distance < limit {
                self.nearest = self.nearest.min(distance);
                at += 1;
            } else {
                self.all.swap_remove(at);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<Candidate>()
    }
}

impl<A: Admit> Walk<'_, A> {
    /// Asks for the codes of neighbours that were left for later, and may be nearer than what is followed next; false if there are none.
    #[inline(always)]
    pub(super) fn take_up(&mut self) -> bool {
        let room = &mut *self.scratch;
        room.fresh.clear();
        let within = (room.front.next_distance(), room.front.limit());
        room.later.take(within, &room.visited, &mut room.fresh);
        if room.fresh.is_empty() {
            return false;
        }
        room.fresh.sort_unstable();
        self.ask();
        !self.asked.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODES: u32 = 64;

    /// What is done to a list: candidates are added below a limit, or taken.
    #[derive(Debug, Clone)]
    enum Step {
        Add(Vec<(u8, u32)>, u8),
        Take(u8, u8),
        Meet(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let candidates = prop::collection::vec((any::<u8>(), 0..NODES), 0..12);
        prop_oneof![
            (candidates, any::<u8>()).prop_map(|(all, limit)| Step::Add(all, limit)),
            (any::<u8>(), any::<u8>()).prop_map(|(near, limit)| Step::Take(near, limit)),
            (0..NODES).prop_map(Step::Meet),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_list_that_is_filtered(steps in prop::collection::vec(step(), 1..40)) {
            let (mut later, mut visited) = (Later::default(), Visited::default());
            visited.clear(NODES as usize);
            let mut list: Vec<Candidate> = Vec::new();
            for step in steps {
                match step {
                    Step::Add(all, limit) => {
                        let new = |(distance, node): &(u8, u32)| Candidate::new(f32::from(*distance), *node);
                        let mut all: Vec<Candidate> = all.iter().map(new).collect();
                        all.sort_unstable();
                        later.add(&all, f32::from(limit));
                        list.extend(all.iter().filter(|one| one.distance() < f32::from(limit)));
                    }
                    Step::Take(near, limit) => {
                        let (near, limit) = (f32::from(near), f32::from(limit));
                        let mut fresh = Vec::new();
                        later.take((near, limit), &visited, &mut fresh);
                        let mut expected: Vec<Candidate> = list
                            .iter()
                            .filter(|one| one.distance() < near.min(limit) && !visited.has_met(one.node()))
                            .copied()
                            .collect();
                        list.retain(|one| one.distance() >= near.min(limit));
                        fresh.sort_unstable();
                        expected.sort_unstable();
                        prop_assert_eq!(fresh, expected);
                        // Those that a limit forgets are not below a later one, which is never looser in a walk.
                        list.retain(|one| one.distance() < limit || later.all.contains(one));
                    }
                    Step::Meet(node) => drop(visited.meet(node)),
                }
            }
        }
    }

    #[test]
    fn what_is_not_below_the_limit_is_forgotten() {
        let mut later = Later::default();
        let all: Vec<Candidate> = (0..9u16)
            .map(|at| Candidate::new(f32::from(at), at.into()))
            .collect();
        later.add(&all, 7.0);
        assert_eq!((later.all.len(), later.nearest), (7, 0.0));
        let (mut visited, mut fresh) = (Visited::default(), Vec::new());
        visited.clear(9);
        later.take((2.0, 5.0), &visited, &mut fresh);
        assert_eq!((fresh.len(), later.all.len(), later.nearest), (2, 3, 2.0));
        later.clear();
        assert!(later.all.is_empty() && later.nearest == f32::INFINITY);
    }
}
