//! Links from the neighbours of a node to it.

use longbow_kernels::Metric;

use super::Hnsw;
use super::nodes::{List, NONE};
use super::scratch::Scratch;
use crate::candidate::Candidate;
use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicU32, Ordering};

/// The links that every node has.
pub(super) const GROUND: List = List {
    level: 0,
    by_product: false,
};

/// Nodes that are asked at most to take over links that others gave up.
const HANDS: usize = 16;

/// A node that another shall lead to, for one that did gave it up, and few others lead there.
struct Handed {
    from: u32,
    to: u32,
}

impl Hnsw {
    /// Adds `new` to a list of `node`; if it is full, chooses anew among them all. What that leaves out, and few others lead to,
    /// those lead to that are nearer to it.
    ///
    /// # Safety
    /// Both were written, and have the list's level.
    pub(super) unsafe fn link(&self, node: u32, list: List, new: u32, scratch: &mut Scratch) {
        let mut handed = Vec::new();
        // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
        unsafe {
            let _ = self.offer(node, list, new, (scratch, &mut handed));
            for _ in 0..HANDS {
                let Some(Handed { from, to }) = handed.pop() else {
                    break;
                };
                if let Some(from) = self.offer(from, list, to, (scratch, &mut handed)) {
                    handed.push(Handed { from, to });
                }
            }
            for Handed { from, to } in handed {
                if self.nodes.led_to(to).get() == 0 {
                    self.lead_by(from, to);
                }
            }
        }
    }

    /// Adds `new` to a list of `node`; if it is full, chooses anew among them all, and adds to `handed` what that leaves out,
    /// and few others lead to. Returns the one nearest to `new` of those for which it was left out itself.
    ///
    /// # Safety
    /// As [`Hnsw::link`].
    unsafe fn offer(
        &self,
        node: u32,
        list: List,
        new: u32,
        (scratch, handed): (&mut Scratch, &mut Vec<Handed>),
    ) -> Option<u32> {
        let metric = if list.by_product {
            Metric::Dot
        } else {
            self.build_metric()
        };
        let _change = self.lock(node);
        // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
        unsafe {
            let slots = self.nodes.slots(node, list);
            let is_free = |slot: &&AtomicU32| slot.load(Ordering::Relaxed) == NONE;
            if node == new || self.nodes.list(node, list).any(|link| link == new) {
                return None;
            }
            if let Some(free) = slots.iter().find(is_free) {
                free.store(new, Ordering::Release);
                self.nodes.count(list, &[new]);
                return None;
            }
            let Scratch {
                fresh,
                distances,
                near,
                ..
            } = scratch;
            fresh.clear();
            fresh.extend(self.nodes.list(node, list));
            fresh.push(new);
            let mut room = Vec::new();
            let probe = self.vectors.probe(node, metric, &mut room);
            self.vectors.distances(probe, fresh, distances);
            near.clear();
            near.extend(
                distances
                    .iter()
                    .zip(fresh.iter())
                    .map(|(d, link)| Candidate::new(*d, *link)),
            );
            near.sort_unstable();
            let mut chosen = Vec::with_capacity(slots.len());
            self.select(metric, near, slots.len(), &mut chosen, &mut room);
            self.nodes.set_list(node, list, &chosen);
            if list.level > 0 {
                return None;
            }
            let left_out = fresh.iter().copied().filter(|link| !chosen.contains(link));
            let (before, itself): (Vec<u32>, Vec<u32>) = left_out.partition(|link| *link != new);
            handed.extend(self.give_up(metric, &before, &chosen));
            if itself.is_empty() {
                self.nodes.led_to(new).count();
                return None;
            }
            self.nearest(metric, new, &chosen)
        }
    }

    /// Counts links on the ground no more that were left out for others, and returns those that one of the others should
    /// have now.
    ///
    /// # Safety
    /// All were written.
    unsafe fn give_up(&self, metric: Metric, links: &[u32], others: &[u32]) -> Vec<Handed> {
        let mut handed = Vec::new();
        for to in links {
            // SAFETY: the caller vouches for the nodes.
            unsafe {
                let led_to = self.nodes.led_to(*to);
                if !led_to.let_go() {
                    led_to.uncount();
                    let from = self.nearest(metric, *to, others);
                    handed.extend(from.map(|from| Handed { from, to: *to }));
                }
            }
        }
        handed
    }

    /// The nearest of some nodes to another.
    ///
    /// # Safety
    /// All were written.
    unsafe fn nearest(&self, metric: Metric, to: u32, nodes: &[u32]) -> Option<u32> {
        let mut room = Vec::new();
        // SAFETY: the caller vouches for the nodes.
        unsafe {
            let probe = self.vectors.probe(to, metric, &mut room);
            let away = |node: &u32| Candidate::new(self.vectors.distance(probe, *node), *node);
            let nearest = nodes.iter().map(away).min();
            nearest.map(|nearest| nearest.node())
        }
    }

    /// Leads `node` to `new` on the ground, to which nothing leads, though all its links are worth more: the longest to a node that others
    /// lead to leads by `new` from now on, so that what was reached by it still is; or any, if others lead to none, and then that is led to
    /// likewise.
    ///
    /// # Safety
    /// Both were written.
    pub(super) unsafe fn lead_by(&self, mut node: u32, mut new: u32) {
        for hand in 0..HANDS {
            // SAFETY: the caller vouches for both nodes, and links lead to nodes that were written.
            unsafe {
                let _change = self.lock(node);
                let links = self.by_length(node);
                if node == new || links.iter().any(|(link, _)| *link == new) {
                    return;
                }
                let spared = self.spared(&links);
                let (passed, slot) = spared.unwrap_or(links[0]);
                if spared.is_none() {
                    self.nodes.led_to(passed).uncount();
                }
                self.nodes.slots(node, GROUND)[slot].store(new, Ordering::Release);
                self.nodes.led_to(new).count();
                if spared.is_some() && hand > 0 || passed == NONE {
                    return;
                }
                (node, new) = (new, passed);
            }
        }
    }

    /// Where the links of a node on the ground lead, with their slots: first one that is free, then the longest.
    ///
    /// # Safety
    /// The node was written.
    unsafe fn by_length(&self, node: u32) -> Vec<(u32, usize)> {
        // SAFETY: the caller vouches for the node, and links lead to nodes that were written.
        unsafe {
            let mut room = Vec::new();
            let probe = self.vectors.probe(node, self.build_metric(), &mut room);
            let list = self.nodes.list(node, GROUND).enumerate();
            let away = |link: u32| Candidate::new(self.vectors.distance(probe, link), link);
            let mut links: Vec<_> = list.map(|(slot, link)| (away(link), slot)).collect();
            links.sort_unstable_by(|a, b| b.cmp(a));
            let free =
                (links.len() < self.nodes.slots(node, GROUND).len()).then_some((NONE, links.len()));
            let links = links.iter().map(|(link, slot)| (link.node(), *slot));
            free.into_iter().chain(links).collect()
        }
    }

    /// The first of some links that can go, and is counted no more then.
    ///
    /// # Safety
    /// The nodes were written.
    unsafe fn spared(&self, links: &[(u32, usize)]) -> Option<(u32, usize)> {
        // SAFETY: the caller vouches for the nodes.
        let can_go = |link: u32| link == NONE || unsafe { self.nodes.led_to(link) }.is_spared();
        links.iter().find(|(link, _)| can_go(*link)).copied()
    }

    /// Locks the links of a node.
    fn lock(&self, node: u32) -> MutexGuard<'_, ()> {
        self.stripes[node as usize % self.stripes.len()].lock()
    }
}
