//! Reading postings, on one thread or on several.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longbow_kernels::prefetch_all;
use longbow_kernels::rabitq::{Base, SLOTS};

use super::SpFresh;
use super::centroids::Asked;
use super::merge_sorted::merge_sorted;
use super::near::{Found, Near};
use super::posting::Posting;
use super::search::{Scratch, Wanted};
use super::side_by_side::side_by_side;
use crate::stats::SearchStats;

/// Standard errors by which an estimate is lowered, so that few are passed over that are near enough. With one, all postings
/// of uniform noise give 0.999 of the neighbours (`longbow bench spfresh`, effort 512); with half of one they give 0.984.
const SLACK: f32 = 1.0;
/// Bytes of blocks from which on several threads read them: about a millisecond for one, since of most vectors only the
/// estimate is read, and some twenty times of what it takes to begin a thread.
pub(super) const LONG: usize = 16 << 20;

/// What one thread read, or all of them.
#[derive(Debug)]
pub(super) struct Part<T> {
    /// The nearest, in order.
    pub(super) found: Vec<T>,
    pub(super) stats: SearchStats,
    /// Whether it ended early.
    pub(super) cut: bool,
    /// Whether pages had to be read from the disk.
    pub(super) cold: bool,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Part {
            found: Vec::new(),
            stats: SearchStats::default(),
            cut: false,
            cold: false,
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

    /// Has all blocks of some postings be read, side by side.
    pub(super) fn ask_for<'a>(&self, postings: impl Iterator<Item = &'a Arc<Posting>>) {
        for block in postings.flat_map(|posting| &posting.blocks) {
            self.store.file.will_need(block.read(&self.layout).bytes());
        }
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
            part.cut = self.read_all(postings, wanted, asked, near, &mut part.stats);
            part.found = near.sorted().to_vec();
            return part;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut part, mut streams) = (Part::default(), Vec::new());
            let reads = self.store.file.reads();
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
                part.cut = self.read_all(of_shard, wanted, asked, own, &mut part.stats);
                streams.push(own.sorted().to_vec());
            }
            self.pool.give(scratch);
            part.cold = self.store.file.reads() > reads;
            part.found = merge_sorted(&streams, near.most());
            part
        };
        Part::merge(side_by_side(self.threads(bytes, LONG), work), near.most())
    }

    /// Compares the vectors of some postings, and says whether it ended early.
    fn read_all<'a>(
        &self,
        postings: impl Iterator<Item = &'a Arc<Posting>>,
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        near: &mut Near,
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
            self.read_posting(posting, wanted, asked, near, stats);
            if wanted.is_over.is_some_and(|is_over| is_over()) {
                return true;
            }
        }
        false
    }

    fn read_posting(
        &self,
        posting: &Posting,
        wanted: Wanted<'_>,
        asked: Asked<'_>,
        near: &mut Near,
        stats: &mut SearchStats,
    ) {
        let Asked {
            encoder,
            query,
            lut,
        } = asked;
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
            let limit = near.bound();
            let read = block.read(&self.layout);
            stats.bytes_touched += read.first_part().len() as u64;
            // SAFETY: a block has ways of the layout's dimension, which is that of the table, and is aligned.
            let below = unsafe {
                encoder
                    .rabitq
                    .estimate(lut, read.ways(), base, limit, &mut estimates)
            };
            let mut below = below & (u32::MAX >> (SLOTS - block.len()));
            while below != 0 {
                let slot = below.trailing_zeros() as usize;
                below &= below - 1;
                // The bound may have come nearer since.
                if estimates[slot] > limit || !(wanted.visible)(read.row(slot)) {
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
}
