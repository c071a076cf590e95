use std::sync::Arc;

use longbow_kernels::prefetch_all;
use longbow_kernels::rabitq::{Base, Lut, SLOTS};

use super::SpFresh;
use super::centroids::Asked;
use super::directory::Directory;
use super::near::{Found, Near};
use super::posting::Posting;
use crate::checkpoint::VectorSource;
use crate::encode::Encoded;
use crate::pool::Room;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};
use crate::vector_index::IsOver;
use longbow_kernels::Metric;

/// Standard errors by which an estimate is lowered, so that few are passed over that are near enough. With one, all postings
/// of uniform noise give 0.999 of the neighbours (`longbow bench spfresh`, effort 512); with half of one they give 0.984.
const SLACK: f32 = 1.0;
/// Errors of a squared distance to an eight-bit code, in units of its scale times the distance, that are reckoned with:
/// as in the graph.
const ERRORS: f32 = 2.0;
/// Vectors that are kept beyond those that are asked for, until the exact distances are known.
const SPARE: usize = 12;

/// Room for one search.
#[derive(Default)]
pub(super) struct Scratch {
    query: Encoded,
    lut: Lut,
    near: Near,
    /// Whether no vector is passed over by its estimate.
    exact: bool,
}

impl Room for Scratch {
    fn bytes(&self) -> usize {
        self.query.bytes() + self.lut.bytes() + self.near.bytes()
    }
}

impl SpFresh {
    /// The `k` visible rows nearest to a query, nearest first, with exact distances, as far as they are in the `probes`
    /// postings nearest to it; in more, if fewer than `k` were found in these; for `usize::MAX`, exactly. Fewer than `k` are returned only if there
    /// are not more, or if `is_over` says that the search is to end with what it has.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    #[must_use]
    pub fn search(
        &self,
        query: &Query,
        (k, probes): (usize, usize),
        (visible, is_over): (&(dyn Fn(u64) -> bool + Sync), Option<IsOver<'_>>),
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        assert_eq!(query.space(), self.space, "the space of the query");
        if !self.is_prepared() || k == 0 {
            return Vec::new();
        }
        let reads = self.store.file.reads();
        let directory = self.directory.load_full();
        let mut scratch = self.pool.take();
        self.encoder().query(query.floats(), &mut scratch.query);
        self.encoder().lut(&scratch.query, &mut scratch.lut);
        // A row may be in several postings, and some will turn out farther than their codes say.
        scratch
            .near
            .clear(k.saturating_add(k / 2).saturating_add(SPARE));
        let rows = (visible, is_over);
        let (mut probes, mut sure) = (probes.max(1), probes == usize::MAX);
        let found = loop {
            // Then none is passed over, whatever its code says.
            scratch.exact = sure && probes >= directory.len();
            let cut = if scratch.exact {
                self.read(directory.iter(), rows, &mut scratch, stats)
            } else {
                let near = self.nearest_to(&directory, &scratch, probes, stats);
                let postings = near.iter().filter_map(|(id, _)| directory.get(*id));
                if self.cold.is() {
                    self.ask_for(postings.clone());
                }
                self.read(postings, rows, &mut scratch, stats)
            };
            let ends = scratch.exact || cut;
            if scratch.near.sorted().len() >= k || ends {
                let found = self.rerank(query, k, originals, &mut scratch, stats);
                if found.len() == k || ends {
                    break found;
                }
            }
            // Some are read again; that is simpler than to tell them apart, and rare.
            probes = probes.saturating_mul(4);
            sure = true;
        };
        self.pool.give(scratch);
        self.cold.learn(self.store.file.reads() > reads);
        found
    }

    fn nearest_to(
        &self,
        directory: &Directory,
        scratch: &Scratch,
        count: usize,
        stats: &mut SearchStats,
    ) -> Vec<(u64, f32)> {
        let asked = Asked {
            encoder: self.encoder(),
            query: &scratch.query,
            lut: &scratch.lut,
        };
        let centroids = &directory.centroids;
        centroids.nearest(asked, (&self.layout, count), stats)
    }

    /// Has all blocks of some postings be read, side by side.
    fn ask_for<'a>(&self, postings: impl Iterator<Item = &'a Arc<Posting>>) {
        for block in postings.flat_map(|posting| &posting.blocks) {
            self.store.file.will_need(block.read(&self.layout).bytes());
        }
    }

    /// Compares the vectors of some postings, and says whether it ended early.
    fn read<'a>(
        &self,
        postings: impl Iterator<Item = &'a Arc<Posting>>,
        (visible, is_over): (&(dyn Fn(u64) -> bool + Sync), Option<IsOver<'_>>),
        scratch: &mut Scratch,
        stats: &mut SearchStats,
    ) -> bool {
        let mut postings = postings.peekable();
        while let Some(posting) = postings.next() {
            let next = postings.peek().and_then(|next| next.blocks.first());
            if let Some(next) = next {
                let first = next.read(&self.layout).first_part();
                prefetch_all(first.as_ptr(), first.len());
            }
            stats.nodes_popped += 1;
            self.read_posting(posting, visible, scratch, stats);
            if is_over.is_some_and(|is_over| is_over()) {
                return true;
            }
        }
        false
    }

    fn read_posting(
        &self,
        posting: &Posting,
        visible: &(dyn Fn(u64) -> bool + Sync),
        scratch: &mut Scratch,
        stats: &mut SearchStats,
    ) {
        let Scratch {
            query,
            lut,
            near,
            exact,
        } = scratch;
        let encoder = self.encoder();
        // SAFETY: the code of a centroid has the dimension of the encoder.
        let distance = unsafe { encoder.distance(query, posting.centroid.vector()) };
        let base = Base {
            distance,
            slack: SLACK * distance.sqrt(),
        };
        let mut estimates = [0f32; SLOTS];
        for (at, block) in posting.blocks.iter().enumerate() {
            if let Some(next) = posting.blocks.get(at + 1) {
                let first = next.read(&self.layout).first_part();
                prefetch_all(first.as_ptr(), first.len());
            }
            let limit = if *exact { f32::INFINITY } else { near.bound() };
            let read = block.read(&self.layout);
            stats.bytes_touched += read.first_part().len() as u64;
            // SAFETY: a block has ways of the layout's dimension, which is that of the table, and is aligned.
            let below = unsafe {
                encoder
                    .rabitq
                    .estimate(lut, read.ways(), base, limit, &mut estimates)
            };
            let below = if *exact { u32::MAX } else { below };
            let mut below = below & (u32::MAX >> (SLOTS - block.len()));
            while below != 0 {
                let slot = below.trailing_zeros() as usize;
                below &= below - 1;
                // The bound may have come nearer since.
                if estimates[slot] > limit || !visible(read.row(slot)) {
                    continue;
                }
                let member = read.member(slot);
                // SAFETY: the code of a member has the dimension of the encoder.
                let distance = unsafe { encoder.distance(query, member.vector()) };
                stats.distance_computations += 1;
                stats.bytes_touched += member.code.len() as u64;
                near.push(Found {
                    distance,
                    row: member.row,
                    scale: member.scale,
                });
            }
        }
    }

    /// The nearest `k` of what was found, which is sorted, by exact distance. A row is compared as long as the error of
    /// its eight-bit code leaves it a chance.
    fn rerank(
        &self,
        query: &Query,
        k: usize,
        originals: &dyn VectorSource,
        scratch: &mut Scratch,
        stats: &mut SearchStats,
    ) -> Vec<Neighbor> {
        let mut top = TopK::new(k);
        if self.cold.is() {
            let near = scratch.near.sorted().iter();
            near.filter_map(|found| originals.vector(found.row))
                .for_each(|vector| self.store.file.will_need(vector));
        }
        for found in scratch.near.sorted() {
            if top.len() == k {
                let across = found.scale * found.scale * self.layout.dim as f32 / 12.0;
                let error = across + ERRORS * found.scale * found.distance.sqrt();
                let bound = match self.space.metric {
                    Metric::Cosine => 2.0 * top.bound(),
                    _ => top.bound(),
                };
                if found.distance - error > bound {
                    break;
                }
            }
            if let Some(vector) = originals.vector(found.row) {
                stats.distance_computations += 1;
                stats.bytes_touched += vector.len() as u64;
                top.push(Neighbor {
                    row: found.row,
                    distance: query.distance(vector),
                });
            }
        }
        top.into_sorted()
    }
}
