//! The nearest of all, whatever it takes, and what need not be read for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::SpFresh;
use super::centroids::Asked;
use super::cold::Missed;
use super::directory::Directory;
use super::posting::Posting;
use super::reach::Asking;
use super::read::Part;
use super::search::Wanted;
use crate::side_by_side::side_by_side;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};

/// Bytes of blocks from which on several threads read them: about a millisecond for one.
const LONG: usize = 4 << 20;
/// Postings that are asked for before they are read, where pages are not in memory.
const AHEAD: usize = 8;

/// A posting, and the least distances to its vectors and to its centroid.
struct Bounded<'a> {
    posting: &'a Arc<Posting>,
    bound: f64,
    centroid: f64,
}

/// A search as all its threads see it.
struct Exact<'a> {
    wanted: Wanted<'a>,
    asking: Asking<'a>,
    /// In order of their bounds.
    postings: Vec<Bounded<'a>>,
    next: AtomicUsize,
    /// The least distance, as bits, that `k` rows are known to be within. Distances that have bounds are not negative, and
    /// their bits in order.
    limit: AtomicU32,
}

impl Exact<'_> {
    fn limit(&self) -> f32 {
        f32::from_bits(self.limit.load(Ordering::Relaxed))
    }
}

impl SpFresh {
    /// The `k` visible rows nearest to a query, exactly.
    ///
    /// Postings of all shards are read in order of the least distance that a vector of theirs can have, until that is
    /// larger than the exact distance of the `k`-th that was found: so no shard is read of which no posting can add
    /// anything. A vector is compared exactly if its code leaves it a chance, by the largest error of codes. Each row is
    /// looked at in its own posting only.
    pub(super) fn exact(
        &self,
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        directories: &[Arc<Directory>],
        stats: &mut SearchStats,
    ) -> Part<Neighbor> {
        let asking = Asking::new(asked.encoder, asked.query, self.space);
        let postings = directories.iter().flat_map(|directory| directory.iter());
        let mut postings: Vec<Bounded<'_>> = postings
            .map(|posting| {
                let (bound, centroid) = asking.to_posting(posting);
                Bounded {
                    posting,
                    bound,
                    centroid,
                }
            })
            .collect();
        stats.distance_computations += postings.len() as u64;
        postings.sort_unstable_by(|a, b| {
            let by_bound = a.bound.total_cmp(&b.bound);
            by_bound.then(a.centroid.total_cmp(&b.centroid))
        });
        let blocks: usize = postings.iter().map(|it| it.posting.blocks.len()).sum();
        let exact = Exact {
            wanted,
            asking,
            postings,
            next: AtomicUsize::new(0),
            limit: AtomicU32::new(f32::INFINITY.to_bits()),
        };
        let threads = self.threads(blocks * self.layout.bytes, LONG);
        let parts = side_by_side(threads, || self.part_of_exact(&exact));
        let part = Part::merge(parts, wanted.k);
        *stats += part.stats;
        if self.cold_first.is() || self.cold.is() {
            // What else is read of them.
            for found in &part.found {
                wanted.originals.will_need(found.row);
            }
        }
        part
    }

    /// Reads posting after posting, beside other threads that do the same.
    fn part_of_exact(&self, exact: &Exact<'_>) -> Part<Neighbor> {
        let reads = self.store.file.reads();
        let mut part = Part::default();
        let (mut top, mut near) = (TopK::new(exact.wanted.k), Vec::new());
        while !part.cut {
            let at = exact.next.fetch_add(1, Ordering::Relaxed);
            let Some(Bounded { posting, bound, .. }) = exact.postings.get(at) else {
                break;
            };
            if self.params.exact_shard_prune && exact.asking.is_beyond(*bound, exact.limit()) {
                break;
            }
            part.stats.nodes_popped += 1;
            let is_cold = self.cold_first.is() || self.cold.is();
            if is_cold {
                self.ask_for_those_after(exact, at);
            }
            self.candidates(exact, posting, &mut near, &mut part.stats);
            if is_cold {
                let vectors = near
                    .iter()
                    .filter_map(|(_, row)| exact.wanted.originals.vector(*row));
                vectors.for_each(|vector| self.store.file.will_need(vector));
            }
            compare(exact, &near, &mut top, &mut part.stats);
            part.cut = exact.wanted.is_over.is_some_and(|is_over| is_over());
        }
        part.found = top.into_sorted();
        let missed = self.store.file.reads() > reads;
        part.cold = Missed {
            first: missed,
            rest: missed,
        };
        part
    }

    /// Has the blocks of postings that come soon be read side by side.
    fn ask_for_those_after(&self, exact: &Exact<'_>, at: usize) {
        // The first ones all at once, then one for each that is read.
        let from = if at == 0 { 0 } else { at + AHEAD };
        let soon = exact.postings.iter().take(at + AHEAD + 1).skip(from);
        let soon = || soon.clone().map(|it| it.posting);
        self.ask_for_firsts(soon());
        self.ask_for_seconds(soon());
    }

    /// The rows of a posting whose codes leave them a chance, with the least distances that they can have, in order.
    fn candidates(
        &self,
        exact: &Exact<'_>,
        posting: &Posting,
        near: &mut Vec<(f64, u64)>,
        stats: &mut SearchStats,
    ) {
        near.clear();
        let limit = exact.limit();
        for block in &posting.blocks {
            let copied = block.copied();
            let read = block.read_copied(&self.layout, copied.as_deref());
            for slot in 0..block.len() {
                if !(exact.wanted.visible)(read.row(slot)) || !read.own(slot) {
                    continue;
                }
                let member = read.member(slot);
                let bound = exact.asking.to_vector(member.vector());
                stats.distance_computations += 1;
                stats.bytes_touched += member.code.len() as u64;
                if !exact.asking.is_beyond(bound, limit) {
                    near.push((bound, member.row));
                }
            }
        }
        near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }
}

/// Compares candidates exactly, as long as one can still be among the nearest.
fn compare(exact: &Exact<'_>, near: &[(f64, u64)], top: &mut TopK, stats: &mut SearchStats) {
    let Wanted {
        query, originals, ..
    } = exact.wanted;
    for (bound, row) in near {
        if exact.asking.is_beyond(*bound, exact.limit()) {
            break;
        }
        let Some(vector) = originals.vector(*row) else {
            continue;
        };
        stats.distance_computations += 1;
        stats.bytes_touched += vector.len() as u64;
        top.push(Neighbor {
            row: *row,
            distance: query.distance(vector),
        });
        exact
            .limit
            .fetch_min(top.bound().to_bits(), Ordering::Relaxed);
    }
}
