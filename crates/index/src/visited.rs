/// Which nodes a walk has met. A stamp is a byte, so that stamps of many nodes stay in the cache; they are wiped once
/// in 255 walks, or in half as many of those that also pass nodes over.
#[derive(Default)]
pub(crate) struct Visited {
    stamps: Vec<u8>,
    now: u8,
}

impl Visited {
    /// Forgets all nodes, and makes room for nodes below `nodes`.
    pub(crate) fn clear(&mut self, nodes: usize) {
        if self.stamps.len() < nodes {
            // Some room beyond, since an index that grows would else copy its stamps at every insert.
            self.stamps.resize(nodes + nodes / 4 + 64, 0);
        }
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.stamps.fill(0);
            self.now = 1;
        }
    }

    /// As [`Visited::clear`], for a walk that also passes nodes over.
    pub(crate) fn clear_both(&mut self, nodes: usize) {
        self.clear(nodes);
        if self.now == u8::MAX {
            self.clear(nodes);
        }
        // The stamp before this one is of nodes that are passed over.
        self.now += 1;
    }

    /// Passes a node over: it may still be met. After [`Visited::clear_both`] only.
    #[inline(always)]
    pub(crate) fn pass_over(&mut self, node: u32) {
        if let Some(stamp) = self.stamps.get_mut(node as usize) {
            *stamp = self.now - 1;
        }
    }

    /// Whether the node was passed over and not met since.
    #[inline(always)]
    pub(crate) fn was_passed_over(&self, node: u32) -> bool {
        self.stamps.get(node as usize) == Some(&(self.now - 1))
    }

    /// Whether this is the first meeting. Nodes beyond the room were added since the walk began; they count as met.
    #[inline(always)]
    pub(crate) fn meet(&mut self, node: u32) -> bool {
        match self.stamps.get_mut(node as usize) {
            Some(stamp) if *stamp != self.now => {
                *stamp = self.now;
                true
            }
            _ => false,
        }
    }

    /// Whether the node was neither met nor passed over. After [`Visited::clear_both`] only.
    #[inline(always)]
    pub(crate) fn is_new(&self, node: u32) -> bool {
        self.stamps
            .get(node as usize)
            .is_some_and(|stamp| self.now.wrapping_sub(*stamp) > 1)
    }

    /// Passes a node over that was neither met nor passed over; false if it was. After [`Visited::clear_both`] only.
    #[inline(always)]
    pub(crate) fn notice(&mut self, node: u32) -> bool {
        match self.stamps.get_mut(node as usize) {
            Some(stamp) if self.now.wrapping_sub(*stamp) > 1 => {
                *stamp = self.now - 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the node was met.
    #[inline(always)]
    pub(crate) fn has_met(&self, node: u32) -> bool {
        self.stamps
            .get(node as usize)
            .is_none_or(|stamp| *stamp == self.now)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.stamps.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_survive_the_wrap_of_their_clock() {
        let mut visited = Visited::default();
        for walk in 0..600 {
            visited.clear(10);
            let node = walk % 10;
            assert!(visited.meet(node), "first meeting in walk {walk}");
            assert!(!visited.meet(node), "second meeting in walk {walk}");
            assert!(visited.meet((node + 1) % 10), "other node in walk {walk}");
        }
        assert!(!visited.meet(1_000_000), "beyond the room");
    }

    #[test]
    fn a_node_that_is_passed_over_may_still_be_met() {
        let mut visited = Visited::default();
        for walk in 0..600u32 {
            visited.clear_both(10);
            let (node, other) = (walk % 10, (walk + 1) % 10);
            assert!(!visited.was_passed_over(node), "before, in walk {walk}");
            visited.pass_over(node);
            assert!(visited.was_passed_over(node) && !visited.has_met(node));
            assert!(visited.meet(node), "first meeting in walk {walk}");
            assert!(!visited.was_passed_over(node) && visited.has_met(node));
            assert!(!visited.was_passed_over(other) && !visited.has_met(other));
            visited.pass_over(other);
            if walk % 3 == 0 {
                // A walk that passes nothing over knows nothing of it.
                visited.clear(10);
                assert!((0..10).all(|node| visited.meet(node)));
            }
        }
        visited.pass_over(1_000_000);
        assert!(!visited.was_passed_over(1_000_000), "beyond the room");
    }

    #[test]
    fn a_node_is_noticed_once() {
        let mut visited = Visited::default();
        for walk in 0..600u32 {
            visited.clear_both(10);
            let (node, other) = (walk % 10, (walk + 1) % 10);
            assert!(visited.notice(node), "first, in walk {walk}");
            assert!(!visited.notice(node), "again, in walk {walk}");
            assert!(visited.was_passed_over(node) && visited.meet(node));
            assert!(!visited.notice(node), "met, in walk {walk}");
            assert!(visited.meet(other) && !visited.notice(other));
        }
        assert!(!visited.notice(1_000_000), "beyond the room");
    }

    #[test]
    fn a_node_is_met_from_its_meeting_to_the_end_of_the_walk() {
        let mut visited = Visited::default();
        for walk in 0..600u32 {
            visited.clear(10);
            let node = walk % 10;
            assert!(!visited.has_met(node), "before, in walk {walk}");
            visited.meet(node);
            assert!(visited.has_met(node), "after, in walk {walk}");
            assert!(!visited.has_met((node + 1) % 10), "other, in walk {walk}");
        }
        assert!(visited.has_met(1_000_000), "beyond the room");
    }
}
