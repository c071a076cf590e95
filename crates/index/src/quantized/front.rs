use crate::candidate::Candidate;

/// The nearest candidates of a walk, sorted in one array, each with marks for whether it was visited, and does not count.
///
/// Good for the few hundred that a search holds: an insert moves some cache lines, which costs less than a heap's
/// jumps. Not for many thousands.
pub(super) struct Front {
    /// Ascending. The lowest bits are the marks, above them the node, above that the distance.
    keys: Vec<u64>,
    capacity: usize,
    /// Nothing so far or farther is taken.
    bound: f32,
    /// All before it were visited.
    next: usize,
    /// What the last push drove out that counts; 0 if nothing.
    driven_out: u64,
    /// And what not, the farthest first: nearer than that.
    dropped: Vec<u64>,
    /// Those of its candidates that do not count.
    uncounted: usize,
}

const VISITED: u64 = 1;
const UNCOUNTED: u64 = 2;
const MARKS: u32 = 2;
/// Most nodes that a candidate can tell apart.
pub(super) const NODES: u32 = 1 << (u32::BITS - MARKS);

impl Default for Front {
    fn default() -> Self {
        Front {
            keys: Vec::new(),
            capacity: 1,
            bound: f32::INFINITY,
            next: 0,
            driven_out: 0,
            dropped: Vec::new(),
            uncounted: 0,
        }
    }
}

impl Front {
    pub(super) fn clear(&mut self, capacity: usize) {
        self.keys.clear();
        self.capacity = capacity.max(1);
        self.bound = f32::INFINITY;
        self.next = 0;
        self.driven_out = 0;
        self.dropped.clear();
        self.uncounted = 0;
    }

    /// Holds nothing any more, and then as many as before.
    pub(super) fn restart(&mut self) {
        self.clear(self.capacity - self.uncounted);
    }

    /// Does not count a candidate that was the last to be taken: what it drove out comes back, and one more is held for as long as it is
    /// not the farthest itself.
    pub(super) fn discount(&mut self, candidate: Candidate) {
        self.capacity = self.capacity.saturating_add(1 + self.dropped.len());
        self.uncounted += 1 + self.dropped.len();
        while let Some(key) = self.dropped.pop() {
            self.keys.push(key);
        }
        if self.driven_out != 0 {
            self.keys.push(std::mem::take(&mut self.driven_out));
        }
        let key = key(candidate.distance(), candidate.node());
        let at = self.keys.partition_point(|other| *other < key);
        debug_assert_eq!(self.keys[at], key, "it was the last to be taken");
        self.keys[at] |= UNCOUNTED;
    }

    /// Holds so many more from now on.
    pub(super) fn widen(&mut self, more: usize) {
        self.capacity = self.capacity.saturating_add(more);
    }

    /// Holds nothing that is as far or farther from now on, but those at just that distance that it holds.
    pub(super) fn tighten(&mut self, bound: f32) {
        let stay = self.keys.partition_point(|key| distance(*key) <= bound);
        let beyond = self.keys.drain(stay..);
        let uncounted = beyond.filter(|key| key & UNCOUNTED != 0).count();
        self.uncounted -= uncounted;
        self.capacity -= uncounted;
        self.bound = self.bound.min(bound);
        self.next = self.next.min(stay);
        self.driven_out = 0;
        self.dropped.clear();
    }

    /// Takes and visits nothing from now on that is farther. What it holds beyond stays where it is: to take it out would cost
    /// more than to pass it by.
    #[inline(always)]
    pub(super) fn pass_by(&mut self, beyond: f32) {
        self.bound = self.bound.min(beyond);
    }

    /// The `nth` nearest that counts, from 1.
    #[inline(always)]
    pub(super) fn nth(&self, nth: usize) -> Option<Candidate> {
        let key = match self.uncounted {
            0 => self.keys.get(nth - 1),
            _ => self.nth_counted(nth),
        };
        key.map(|key| Candidate::new(distance(*key), node(*key)))
    }

    /// Counts those that do not count without a branch for each, many at a time: a walk asks whenever it has compared some.
    fn nth_counted(&self, nth: usize) -> Option<&u64> {
        let uncounted = self.keys.get(..nth)?.iter().map(|key| key & UNCOUNTED);
        // Each of them is made up for by one behind.
        let mut missing = uncounted.sum::<u64>() / UNCOUNTED;
        let mut last = nth - 1;
        while missing > 0 {
            last += 1;
            missing -= u64::from(self.keys.get(last)? & UNCOUNTED == 0);
        }
        self.keys.get(last)
    }

    /// The distance that a candidate must be below to be taken.
    #[inline(always)]
    pub(super) fn limit(&self) -> f32 {
        match self.keys.last() {
            Some(last) if self.keys.len() >= self.capacity => distance(*last).min(self.bound),
            _ => self.bound,
        }
    }

    /// Takes a candidate if it is near enough, and returns its place.
    #[inline(always)]
    pub(super) fn push(&mut self, distance: f32, node: u32) -> Option<usize> {
        // Without a bound what is infinitely far is taken.
        if distance >= self.bound && self.bound < f32::INFINITY {
            return None;
        }
        let key = key(distance, node);
        self.driven_out = 0;
        self.dropped.clear();
        if self.keys.len() >= self.capacity {
            if self.keys.last().is_some_and(|last| key >= *last) {
                return None;
            }
            self.driven_out = self.keys.pop().unwrap_or(0);
        }
        let at = self.keys.partition_point(|other| *other < key);
        self.keys.insert(at, key);
        self.next = self.next.min(at);
        if self.uncounted > 0 {
            self.drop_uncounted();
        }
        Some(at)
    }

    /// Drops the farthest for as long as they do not count and the front is full.
    fn drop_uncounted(&mut self) {
        while self.keys.len() >= self.capacity
            && let Some(last) = self.keys.pop_if(|last| *last & UNCOUNTED != 0)
        {
            self.dropped.push(last);
            self.uncounted -= 1;
            self.capacity -= 1;
        }
        self.next = self.next.min(self.keys.len());
    }

    /// The nearest.
    pub(super) fn first(&self) -> Option<Candidate> {
        let first = self.keys.first();
        first.map(|key| Candidate::new(distance(*key), node(*key)))
    }

    /// How far the nearest is.
    pub(super) fn nearest(&self) -> Option<f32> {
        self.keys.first().map(|key| distance(*key))
    }

    /// How many are nearer than that.
    pub(super) fn nearer(&self, than: f32) -> usize {
        self.keys.partition_point(|key| distance(*key) < than)
    }

    /// Marks the nearest that was not visited, and returns it with its distance and its place.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(u32, f32, usize)> {
        let found = self.find(self.next)?;
        self.keys[found] |= VISITED;
        self.next = found + 1;
        let key = self.keys[found];
        Some((node(key), distance(key), found))
    }

    /// The nearest that was not visited.
    #[inline(always)]
    pub(super) fn peek(&self) -> Option<u32> {
        self.find(self.next).map(|at| node(self.keys[at]))
    }

    /// How far that is; infinitely, if there is none.
    #[inline(always)]
    pub(super) fn next_distance(&self) -> f32 {
        let next = self.find(self.next);
        next.map_or(f32::INFINITY, |at| distance(self.keys[at]))
    }

    #[inline(always)]
    fn find(&self, from: usize) -> Option<usize> {
        let rest = self.keys.get(from..)?;
        let at = from + rest.iter().position(|key| key & VISITED == 0)?;
        (distance(self.keys[at]) <= self.bound).then_some(at)
    }

    pub(super) fn bytes(&self) -> usize {
        (self.keys.capacity() + self.dropped.capacity()) * size_of::<u64>()
    }
}

#[inline(always)]
fn key(distance: f32, node: u32) -> u64 {
    let candidate = Candidate::new(distance, 0);
    candidate.bits() | u64::from(node) << MARKS
}

#[inline(always)]
fn node(key: u64) -> u32 {
    (key >> MARKS) as u32 & (NODES - 1)
}

#[inline(always)]
fn distance(key: u64) -> f32 {
    Candidate::from_bits(key).distance()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(f32),
        /// One that does not count.
        Pass(f32),
        Pop,
        Widen,
        Tighten(f32),
        PassBy(f32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let distance = prop_oneof![
            (0u8..20).prop_map(f32::from),
            0f32..10.0,
            Just(f32::INFINITY)
        ];
        let step = prop_oneof![
            10 => distance.clone().prop_map(Step::Push),
            3 => distance.prop_map(Step::Pass),
            6 => Just(Step::Pop),
            2 => Just(Step::Widen),
            1 => (0u8..20).prop_map(|far| Step::Tighten(f32::from(far))),
            1 => (0u8..20).prop_map(|far| Step::PassBy(f32::from(far))),
        ];
        prop::collection::vec(step, 0..200)
    }

    /// What a front is: a sorted list of distance, node and marks: whether it was visited, and whether it counts. It ends with the last
    /// of as many as count.
    struct Model {
        list: Vec<(f32, u32, bool, bool)>,
        capacity: usize,
        bound: f32,
    }

    impl Model {
        fn push(&mut self, distance: f32, node: u32, counts: bool) -> Option<usize> {
            if distance >= self.bound && self.bound < f32::INFINITY {
                return None;
            }
            self.list.push((distance, node, false, counts));
            self.list
                .sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            self.list.truncate(self.end().unwrap_or(self.list.len()));
            self.list.iter().position(|entry| entry.1 == node)
        }

        /// Where it ends, if so many count.
        fn end(&self) -> Option<usize> {
            let counted = self.list.iter().enumerate().filter(|(_, entry)| entry.3);
            counted.map(|(at, _)| at + 1).nth(self.capacity - 1)
        }

        fn limit(&self) -> f32 {
            match self.end() {
                Some(end) => self.list[end - 1].0.min(self.bound),
                None => self.bound,
            }
        }

        fn peek(&self) -> Option<usize> {
            let at = self.list.iter().position(|entry| !entry.2)?;
            (self.list[at].0 <= self.bound).then_some(at)
        }

        fn nth(&self, nth: usize) -> Option<u32> {
            let mut counted = self.list.iter().filter(|entry| entry.3);
            counted.nth(nth - 1).map(|entry| entry.1)
        }
    }

    fn run(front: &mut Front, capacity: usize, steps: &[Step]) -> Result<(), TestCaseError> {
        front.clear(capacity);
        let capacity = capacity.max(1);
        let mut model = Model {
            list: Vec::new(),
            capacity,
            bound: f32::INFINITY,
        };
        for (node, step) in steps.iter().enumerate() {
            // Nodes neither in order nor small.
            let node = (node as u32).wrapping_mul(0x9E37_79B1) % NODES;
            match step {
                Step::Push(distance) => {
                    let expected = model.push(*distance, node, true);
                    prop_assert_eq!(front.push(*distance, node), expected);
                }
                Step::Pass(distance) => {
                    let place = front.push(*distance, node);
                    if place.is_some() {
                        front.discount(Candidate::new(*distance, node));
                    }
                    prop_assert_eq!(place, model.push(*distance, node, false));
                }
                Step::Pop => {
                    let expected = model.peek().map(|at| {
                        model.list[at].2 = true;
                        (model.list[at].1, model.list[at].0, at)
                    });
                    prop_assert_eq!(front.pop(), expected);
                }
                Step::Widen => {
                    front.widen(1);
                    model.capacity += 1;
                }
                Step::PassBy(farthest) => {
                    front.pass_by(*farthest);
                    model.bound = model.bound.min(*farthest);
                }
                Step::Tighten(farthest) => {
                    front.tighten(*farthest);
                    model.list.retain(|entry| entry.0 <= *farthest);
                    model.bound = model.bound.min(*farthest);
                }
            }
            let first = model.list.first().map(|entry| entry.0);
            prop_assert_eq!(front.nearest(), first);
            let nearer = model.list.iter().filter(|entry| entry.0 < 7.0).count();
            prop_assert_eq!(front.nearer(7.0), nearer);
            for nth in [1, 2, 5, 20] {
                prop_assert_eq!(front.nth(nth).map(Candidate::node), model.nth(nth));
            }
            prop_assert_eq!(front.limit(), model.limit());
            prop_assert_eq!(front.peek(), model.peek().map(|at| model.list[at].1));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
        #[test]
        fn a_front_is_a_sorted_list(capacity in 0usize..30, first in steps(), second in steps()) {
            let mut front = Front::default();
            run(&mut front, capacity, &first)?;
            // Nothing of a walk is left for the next.
            run(&mut front, capacity / 2, &second)?;
        }
    }

    #[test]
    fn a_front_of_any_capacity_is_widened() {
        let mut front = Front::default();
        front.clear(usize::MAX);
        front.widen(1);
        assert_eq!(front.push(1.0, 7), Some(0));
        assert_eq!(
            (front.limit(), front.pop()),
            (f32::INFINITY, Some((7, 1.0, 0)))
        );
    }

    #[test]
    fn the_largest_node_keeps_its_number() {
        let mut front = Front::default();
        front.clear(2);
        let node = NODES - 1;
        front.push(-0.0, node);
        front.push(f32::INFINITY, node - 1);
        assert_eq!(front.pop(), Some((node, -0.0, 0)));
        assert_eq!(front.pop(), Some((node - 1, f32::INFINITY, 1)));
        assert_eq!(front.pop(), None);
    }
}
