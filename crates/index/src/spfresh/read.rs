//! Reading postings, on one thread or on several.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longbow_kernels::prefetch_all;
use longbow_kernels::rabitq::{Base, SLOTS};

use super::SpFresh;
use super::block::{Block, Copied};
use super::centroids::Asked;
use super::cold::Missed;
use super::merge_sorted::merge_sorted;
use super::near::{Found, Near};
use super::posting::Posting;
use super::search::{Scratch, Wanted};
use super::shortlist::{Likely, Shortlist};
use super::sight::Sight;
use crate::side_by_side::side_by_side;
use crate::stats::SearchStats;
use crate::sync::Loaded;

/// What lies between an estimate and the bounds that it puts to a distance, by the distance of the query from the centroid.
const SLACK: f32 = 1.0;
/// The same by the standard error that rounding the query's table makes. That grows with the query's length, so it is what counts
/// where clusters are tight and far from the origin.
const ROUNDED: f32 = 1.7;
/// Rows beyond those that are wanted, and an eighth of these, whose upper bounds count: the least ones are too low by chance.
const MORE: usize = 3;
/// Codes that are prefetched before they are compared.
const AHEAD: usize = 4;
/// Bytes of blocks from which on several threads read them: about a millisecond for one, since of most vectors only the
/// estimate is read, and some twenty times of what it takes to begin a thread.
pub(super) const LONG: usize = 16 << 20;

/// Errors of a squared distance to an eight-bit code, in units of its scale times the distance, that are reckoned with:
/// as in the graph.
const ERRORS: f32 = 2.0;
const PAGE: usize = 4_096;
/// What a request of a disk costs beside its bytes, in bytes.
const REQUEST: usize = 4 * PAGE;

/// A vector's block, and where it stands in that.
type Place<'a> = (&'a Block, usize);

/// What one thread read, or all of them.
#[derive(Debug)]
pub(super) struct Part<T> {
    /// The nearest, in order.
    pub(super) found: Vec<T>,
    pub(super) stats: SearchStats,
    /// Whether it ended early.
    pub(super) cut: bool,
    /// What had to be read from the disk.
    pub(super) cold: Missed,
    /// What of it is visible.
    pub(super) sight: Sight,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Part {
            found: Vec::new(),
            stats: SearchStats::default(),
            cut: false,
            cold: Missed::default(),
            sight: Sight::default(),
        }
    }
}

impl<T: Ord + Copy> Part<T> {
    /// The nearest `most` of what all threads found.
    pub(super) fn merge(parts: Vec<Part<T>>, most: usize) -> Self {
        let mut all = Part::default();
        let mut streams = Vec::with_capacity(parts.len());
        for part in parts {
            all.stats += part.stats;
            all.cut |= part.cut;
            all.cold |= part.cold;
            all.sight += part.sight;
            streams.push(part.found);
        }
        all.found = merge_sorted(&streams, most);
        all
    }
}

impl SpFresh {
    /// Threads that are worth it to read so many bytes.
    pub(super) fn threads(&self, bytes: usize, long: usize) -> usize {
        if bytes < long {
            return 1;
        }
        self.threads.min(self.shards.len())
    }

    /// The nearest of the vectors of some postings by their codes, as many as `near` was cleared for.
    ///
    /// Which vectors are passed over by their estimates depends on what was found before. So that the number of threads
    /// makes no difference, a long search keeps what it finds in a shard by itself, on one thread too.
    pub(super) fn read(
        &self,
        postings: &[(usize, &Arc<Posting>)],
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        near: &mut Near,
    ) -> Part<Found> {
        let blocks: usize = postings.iter().map(|(_, it)| it.blocks.len()).sum();
        let bytes = blocks * self.layout.bytes;
        if bytes < LONG || self.shards.len() == 1 {
            let mut part = Part::default();
            let postings = postings.iter().map(|(_, posting)| *posting);
            self.read_all(postings, wanted, asked, near, &mut part);
            part.found = near.sorted().to_vec();
            return part;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut part, mut streams) = (Part::default(), Vec::new());
            let mut scratch: Box<Scratch> = self.pool.take();
            let own = &mut scratch.near;
            while !part.cut {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                if shard >= self.shards.len() {
                    break;
                }
                own.clear(near.most());
                let of_shard = postings.iter().filter(|(of, _)| *of == shard);
                let of_shard = of_shard.map(|(_, posting)| *posting);
                self.read_all(of_shard, wanted, asked, own, &mut part);
                streams.push(own.sorted().to_vec());
            }
            self.pool.give(scratch);
            part.found = merge_sorted(&streams, near.most());
            part
        };
        Part::merge(side_by_side(self.threads(bytes, LONG), work), near.most())
    }

    /// Compares the vectors of some postings: all by their estimates, and those by their eight-bit codes that have a
    /// chance then.
    fn read_all<'a>(
        &self,
        postings: impl Iterator<Item = &'a Arc<Posting>>,
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        near: &mut Near,
        part: &mut Part<Found>,
    ) {
        let reads = self.store.file.reads();
        let mut shortlist =
            Shortlist::new(wanted.k.saturating_add(wanted.k / 8).saturating_add(MORE));
        let mut postings = postings.peekable();
        while let Some(posting) = postings.next()
            && !part.cut
        {
            let next = postings.peek().and_then(|next| next.blocks.first());
            next.into_iter().for_each(|next| drop(self.prefetch(next)));
            part.stats.nodes_popped += 1;
            self.estimate(posting, wanted, asked, &mut shortlist, part);
            part.cut = wanted.is_over.is_some_and(|is_over| is_over());
        }
        let likely = shortlist.end();
        let reads_then = self.store.file.reads();
        part.cold.first |= reads_then > reads;
        if self.cold.is() {
            if self.rows_cost_less(&likely, (wanted.k, near.most())) {
                each_row_once(&likely).for_each(|found| near.push(found));
                return;
            }
            likely
                .iter()
                .for_each(|one| self.store.file.will_need(self.vector(one)));
        }
        for (at, one) in likely.iter().enumerate() {
            if let Some(soon) = likely.get(at + AHEAD) {
                let vector = self.vector(soon);
                prefetch_all(vector.as_ptr(), vector.len());
            }
            let (block, slot) = one.place;
            let vector = block.read(&self.layout).coded(slot);
            // SAFETY: the code of a block's vector has the dimension of the encoder.
            let distance = unsafe { asked.encoder.distance(asked.query, vector) };
            near.push(Found {
                distance,
                row: one.row,
                error: self.error(vector.scale, distance),
            });
        }
        part.cold.rest |= self.store.file.reads() > reads_then;
        part.stats.distance_computations += likely.len() as u64;
        part.stats.bytes_touched += (likely.len() * self.layout.dim) as u64;
    }

    /// Prefetches what is estimated next, and gives the copy of it, if it is kept.
    fn prefetch(&self, block: &Block) -> Option<Loaded<Copied>> {
        let copied = block.copied();
        let read = block.read_copied(&self.layout, copied.as_deref());
        let first = read.first_part();
        prefetch_all(first.as_ptr(), first.len());
        copied
    }

    /// Whether it costs less to read rows of the disk by their estimates than to read their eight-bit codes, and then about `k`
    /// rows: of many dimensions most codes are on pages of their own.
    fn rows_cost_less(&self, likely: &[Likely<Place<'_>>], (k, most): (usize, usize)) -> bool {
        let page = |one: &_| self.vector(one).as_ptr().addr() / PAGE;
        let pages = likely.chunk_by(|a, b| page(a) == page(b)).count();
        let row = REQUEST + self.space.row_bytes();
        likely.len() <= most
            && likely.len() * row
                <= (pages * (REQUEST + PAGE)).saturating_add(k.saturating_mul(row))
    }

    /// How far the squared distance to a vector may be from that to its eight-bit code.
    fn error(&self, scale: f32, distance: f32) -> f32 {
        let across = scale * scale * self.layout.dim as f32 / 12.0;
        across + ERRORS * scale * distance.sqrt()
    }

    /// The eight-bit code of a vector and what belongs to it.
    fn vector<'a>(&'a self, likely: &Likely<Place<'a>>) -> &'a [u8] {
        let (block, slot) = likely.place;
        block.read(&self.layout).vector(slot)
    }

    /// Estimates the distances of a posting's vectors.
    fn estimate<'a>(
        &self,
        posting: &'a Posting,
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        shortlist: &mut Shortlist<Place<'a>>,
        part: &mut Part<Found>,
    ) {
        let Asked {
            encoder,
            query,
            lut,
        } = asked;
        let Part { stats, sight, .. } = part;
        sight.read += posting.len() as u64;
        // SAFETY: the code of a centroid has the dimension of the encoder.
        let distance = unsafe { encoder.distance(query, posting.centroid.vector()) };
        let rounding = lut.scale() * (lut.groups() as f32 / 12.0).sqrt();
        let slack = SLACK * distance.sqrt() + ROUNDED * rounding;
        let base = Base { distance, slack };
        let mut lower = [0f32; SLOTS];
        let mut next = posting.blocks.first().and_then(|block| block.copied());
        for (at, block) in posting.blocks.iter().enumerate() {
            let copied = next;
            next = posting
                .blocks
                .get(at + 1)
                .and_then(|next| self.prefetch(next));
            let limit = shortlist.bound();
            let read = block.read_copied(&self.layout, copied.as_deref());
            stats.bytes_touched += read.first_part().len() as u64;
            // SAFETY: a block has ways of the layout's dimension, which is that of the table, and is aligned.
            let below = unsafe {
                encoder
                    .rabitq
                    .estimate(lut, read.ways(), base, limit, &mut lower)
            };
            let mut below = below & (u32::MAX >> (SLOTS - block.len()));
            while below != 0 {
                let slot = below.trailing_zeros() as usize;
                below &= below - 1;
                let row = read.row(slot);
                // The bound may have come nearer since.
                if lower[slot] > shortlist.bound() {
                    continue;
                }
                sight.tested += 1;
                if !(wanted.visible)(row) {
                    continue;
                }
                sight.visible += 1;
                // The factor is negative: what lowers the estimate is the slack times it.
                let upper = lower[slot] - 2.0 * read.factor(slot) * slack;
                shortlist.push((block, slot), row, (lower[slot], upper));
            }
        }
    }
}

/// What is likely, by estimates alone. One that is in several postings has as many estimates.
fn each_row_once(likely: &[Likely<Place<'_>>]) -> impl Iterator<Item = Found> {
    let mut found: Vec<Found> = likely.iter().map(Likely::found).collect();
    found.sort_unstable_by(|a, b| a.row.cmp(&b.row).then(a.cmp(b)));
    found.dedup_by_key(|found| found.row);
    found.into_iter()
}
