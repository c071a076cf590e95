//! How the codes of a run are compared with a query.

use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use longbow_kernels::rabitq::{self, Add, Base, Block, SLOTS};
use longbow_kernels::{prefetch, prefetch_all};

use super::{Aim, CodedRun, NONE, stride};
use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::space::Query;
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};

/// Standard errors by which a row's estimate may be off.
pub(super) const SURE: f32 = 4.0;
/// The same where clusters are left out, so that a row may be missed anyway: one in fifty of those at the edge is.
pub(super) const SURE_OF_SOME: f32 = 2.0;
/// Standard error of `<P q, s>` in units of the part of the query that lies across the row's way: the length of what the signs have
/// across it, for a long vector of normal elements `sqrt(1 - 2 / pi)` of the root of the dimension.
const ACROSS: f32 = 0.61;
/// Vectors that are asked for before they are compared: those that are compared for sure, and others.
const AHEAD: (usize, usize) = (16, 4);
/// Bytes of a cluster that are asked for before it is read: where those lead, the processor goes on.
const BEGIN: usize = 1024;
/// Sums of squares above may be none.
pub(super) const HUGE: f32 = 1e37;

/// Which rows may be found: from the first on, those that are wanted.
type Rows<'a> = (u64, &'a dyn Fn(u64) -> bool);

/// A search of a run.
struct Scan<'a> {
    run: &'a CodedRun,
    aim: &'a Aim<'a>,
    rows: Rows<'a>,
    originals: &'a dyn VectorSource,
}

/// What is read of a cluster.
struct Part {
    /// Of the centroid.
    distance: f32,
    /// Those that have rows from the first on.
    blocks: Range<usize>,
    /// How many rows there are from the first on.
    rows: usize,
}

/// The blocks of some clusters, each with the distance of the centroid.
fn blocks(clusters: &[Part]) -> impl Iterator<Item = (f32, usize)> {
    let blocks = |part: &Part| {
        let distance = part.distance;
        part.blocks.clone().map(move |block| (distance, block))
    };
    clusters.iter().flat_map(blocks)
}

/// From which estimate on a row is too far, and by how much of its factor an estimate may be too large.
#[derive(Clone, Copy)]
struct Limit {
    most: f32,
    slack: f32,
}

impl Limit {
    /// Nothing is too far.
    const NONE: Limit = Limit {
        most: f32::INFINITY,
        slack: 0.0,
    };
}

impl CodedRun {
    /// Offers to `top` those of the rows of some clusters, the nearest, from a first row on, that are wanted and may be nearer
    /// than what it holds, by their exact distances; the more it holds already, the fewer are compared. Tells from how many rows they
    /// were.
    ///
    /// # Panics
    /// If the query was turned for another frame.
    pub fn scan(
        &self,
        aim: &Aim<'_>,
        clusters: usize,
        rows: (u64, &dyn Fn(u64) -> bool),
        originals: &dyn VectorSource,
        top: &mut TopK,
        stats: &mut SearchStats,
    ) -> usize {
        let scan = self.begin(aim, rows, originals);
        let mut order = self.order(aim, clusters);
        order.truncate(clusters);
        order.sort_unstable();
        scan.offer(&scan.parts(&order), self.sure(order.len()), top, stats)
    }

    /// Standard errors that are reckoned with where so many clusters are read.
    fn sure(&self, clusters: usize) -> f32 {
        match clusters < self.clusters() {
            true => SURE_OF_SOME,
            false => SURE,
        }
    }

    /// Those of the rows that are wanted which may be among the `k` nearest of some clusters, the nearest, by their estimates:
    /// for who compares them by better codes. At least `k`, unless there are not so many; those of all clusters
    /// then. And from how many rows they are.
    ///
    /// The vectors of the `k` nearest by their estimates are compared, to know which others may come before them: rows that are much
    /// alike are off together, so that the least of many estimates lies below all distances.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    pub fn nearest(
        &self,
        query: &Query,
        (k, clusters): (usize, usize),
        wanted: &dyn Fn(u64) -> bool,
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> (Vec<u64>, usize) {
        let few = (k, clusters, self.sure(clusters));
        self.nearest_so_sure(query, few, wanted, originals, stats)
    }

    /// The same, of which one that is off by more than so many standard errors may be missed.
    pub(super) fn nearest_so_sure(
        &self,
        query: &Query,
        (k, clusters, mut sure): (usize, usize, f32),
        wanted: &dyn Fn(u64) -> bool,
        originals: &dyn VectorSource,
        stats: &mut SearchStats,
    ) -> (Vec<u64>, usize) {
        let aim = self.frame().aim(query);
        let scan = self.begin(&aim, (0, wanted), originals);
        let mut order = self.order(&aim, clusters);
        let mut read = clusters.min(order.len());
        loop {
            order[..read].sort_unstable();
            let parts = scan.parts(&order[..read]);
            let (estimates, nearest) = scan.estimates(&parts, k, stats);
            if nearest.len() < k && read < order.len() {
                (read, sure) = (order.len(), SURE);
                continue;
            }
            let mut top = TopK::new(k);
            scan.compare(&nearest, AHEAD.0, &mut top, stats);
            let limit = match top.bound() < f32::INFINITY {
                true => scan.limit(&top, sure),
                false => Limit::NONE,
            };
            let mut open = Vec::new();
            scan.among(&parts, &estimates, limit, &mut open);
            let mut places: Vec<u32> = nearest.iter().chain(&open).map(|of| of.node()).collect();
            places.sort_unstable();
            places.dedup();
            places.retain(|place| scan.is_wanted(*place));
            let rows = places.iter().map(|place| self.rows[*place as usize]);
            return (rows.collect(), parts.iter().map(|part| part.rows).sum());
        }
    }

    fn begin<'a>(
        &'a self,
        aim: &'a Aim<'a>,
        rows: Rows<'a>,
        originals: &'a dyn VectorSource,
    ) -> Scan<'a> {
        assert!(aim.is_of(self), "the query was turned for other codes");
        Scan {
            run: self,
            aim,
            rows,
            originals,
        }
    }

    /// Of each cluster, the how many-th nearest it is to a query.
    pub(super) fn ranks(&self, query: &Query) -> Vec<u32> {
        let aim = self.frame().aim(query);
        let mut order = self.order(&aim, self.clusters());
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (cluster, rank) in order.iter().zip(0..) {
            ranks[cluster.node() as usize] = rank;
        }
        ranks
    }

    /// All clusters by the distances of their centroids, the nearest so many first.
    fn order(&self, aim: &Aim<'_>, nearest: usize) -> Vec<Candidate> {
        let far = |cluster: usize| {
            // SAFETY: centroids have codes of the encoder's dimension.
            let distance = unsafe { self.encoder.distance(&aim.encoded, self.centroid(cluster)) };
            let distance = if distance.is_nan() {
                f32::INFINITY
            } else {
                distance
            };
            Candidate::new(distance, cluster as u32)
        };
        let mut order: Vec<Candidate> = (0..self.clusters()).map(far).collect();
        if nearest < order.len() {
            order.select_nth_unstable(nearest);
        }
        order
    }
}

impl Scan<'_> {
    /// Offers the rows of some clusters, nearest first, of which one that is off by more than so many standard errors may be missed.
    fn offer(
        &self,
        clusters: &[Part],
        sure: f32,
        top: &mut TopK,
        stats: &mut SearchStats,
    ) -> usize {
        let (mut compared, mut open) = (Vec::new(), Vec::new());
        if top.bound() < f32::INFINITY {
            self.below(clusters, self.limit(top, sure), &mut open);
            stats.bytes_touched += self.bytes(clusters);
        } else {
            let (estimates, nearest) = self.estimates(clusters, top.room(), stats);
            self.compare(&nearest, AHEAD.0, top, stats);
            compared.extend(nearest.iter().map(|of| of.node()));
            compared.sort_unstable();
            self.among(clusters, &estimates, self.limit(top, sure), &mut open);
        }
        open.retain(|of| self.is_wanted(of.node()) && compared.binary_search(&of.node()).is_err());
        open.sort_unstable();
        self.compare(&open, AHEAD.1, top, stats);
        clusters.iter().map(|part| part.rows).sum()
    }

    /// What is read of some clusters, the nearest of which are asked for.
    fn parts(&self, clusters: &[Candidate]) -> Vec<Part> {
        let part = |(place, of): (usize, &Candidate)| {
            let cluster = &self.run.clusters[of.node() as usize];
            let mut blocks = self.run.blocks(of.node());
            let mut rows = cluster.rows as usize;
            if self.rows.0 > self.run.range.start {
                let all = &self.run.rows[blocks.start * SLOTS..][..rows];
                let below = all.partition_point(|row| *row < self.rows.0);
                blocks.start += below / SLOTS;
                rows -= below;
                blocks.start = if rows == 0 { blocks.end } else { blocks.start };
            }
            if place < AHEAD.0 {
                self.ask(blocks.start);
            }
            Part {
                distance: of.distance(),
                blocks,
                rows,
            }
        };
        clusters.iter().enumerate().map(part).collect()
    }

    /// Asks for the beginning of what is read of a cluster.
    fn ask(&self, block: usize) {
        let begin = block * stride(self.run.encoder.dim());
        if let Some(bytes) = self.run.lines.bytes().get(begin..) {
            prefetch(bytes.as_ptr(), bytes.len().min(BEGIN));
        }
    }

    /// Bytes of their codes.
    fn bytes(&self, clusters: &[Part]) -> u64 {
        let blocks: usize = clusters.iter().map(|part| part.blocks.len()).sum();
        (blocks * stride(self.run.encoder.dim())) as u64
    }

    /// Estimates of all slots of some clusters, block by block; and the nearest by those, which are wanted, nearest first.
    fn estimates(
        &self,
        clusters: &[Part],
        nearest: usize,
        stats: &mut SearchStats,
    ) -> (Vec<f32>, Vec<Candidate>) {
        stats.bytes_touched += self.bytes(clusters);
        let mut values = Vec::with_capacity(blocks(clusters).count() * SLOTS);
        let mut heap = BinaryHeap::with_capacity(nearest.min(1024) + 1);
        let mut estimates = [0f32; SLOTS];
        let no_slack = |most| Limit { most, slack: 0.0 };
        let mut most = f32::INFINITY;
        for (distance, block) in blocks(clusters) {
            let mut below = self.estimate((distance, block), no_slack(most), &mut estimates);
            values.extend_from_slice(&estimates);
            while below != 0 {
                let slot = below.trailing_zeros() as usize;
                below &= below - 1;
                let place = block * SLOTS + slot;
                // What cannot be estimated says nothing of others.
                let is_nearer = f32::NEG_INFINITY < estimates[slot] && estimates[slot] < most;
                if is_nearer && self.is_wanted(place as u32) {
                    heap.push(Candidate::new(estimates[slot], place as u32));
                    if heap.len() > nearest {
                        heap.pop();
                    }
                    if heap.len() == nearest {
                        most = heap.peek().map_or(most, |of| of.distance());
                    }
                }
            }
        }
        (values, heap.into_sorted_vec())
    }

    /// Adds the places of some clusters that may be nearer than a limit, by estimates of all.
    fn among(&self, clusters: &[Part], estimates: &[f32], limit: Limit, open: &mut Vec<Candidate>) {
        let surely = limit.most + limit.slack * self.run.factor;
        for ((distance, block), estimates) in blocks(clusters).zip(estimates.chunks_exact(SLOTS)) {
            let is_sure = self.is_sure(distance, limit);
            // Without a branch, so that many are compared at a time.
            let is_far = |(slot, estimate): (u32, &f32)| u32::from(*estimate > surely) << slot;
            let far = (0..)
                .zip(estimates)
                .map(is_far)
                .fold(0, |all, one| all | one);
            let mut near = if is_sure { !far } else { u32::MAX };
            while near != 0 {
                let slot = near.trailing_zeros() as usize;
                near &= near - 1;
                let factor = self.terms(block)[4 * SLOTS + 2 * slot..].first_chunk();
                let factor = factor.map_or(0, |upper| u16::from_le_bytes(*upper));
                let factor = f32::from_bits(u32::from(factor) << 16);
                let lower = estimates[slot] + limit.slack * factor;
                if !(lower > limit.most && is_sure) {
                    push(open, lower, block * SLOTS + slot);
                }
            }
        }
    }

    /// The same without such estimates.
    fn below(&self, clusters: &[Part], limit: Limit, open: &mut Vec<Candidate>) {
        let mut lower = [0f32; SLOTS];
        for part in clusters {
            let is_sure = self.is_sure(part.distance, limit);
            for block in part.blocks.clone() {
                let below = self.estimate((part.distance, block), limit, &mut lower);
                let mut below = if is_sure { below } else { u32::MAX };
                while below != 0 {
                    let slot = below.trailing_zeros() as usize;
                    below &= below - 1;
                    push(open, lower[slot], block * SLOTS + slot);
                }
            }
        }
    }

    /// Whether estimates are numbers.
    fn is_sure(&self, distance: f32, limit: Limit) -> bool {
        self.aim.encoded.norm < HUGE && distance < HUGE && limit.most < HUGE
    }

    /// Estimates of the slots of a block, lowered by the slack, and which of them are not above the limit.
    fn estimate(
        &self,
        (distance, block): (f32, usize),
        limit: Limit,
        out: &mut [f32; SLOTS],
    ) -> u32 {
        let encoder = &self.run.encoder;
        let stride = stride(encoder.dim());
        let codes = &self.run.lines.bytes()[block * stride..][..stride];
        let terms = self.terms(block);
        let ways = Block {
            codes: codes.as_ptr(),
            add: Add::Whole(terms.as_ptr().cast()),
            factor: terms[4 * SLOTS..].as_ptr().cast(),
        };
        let base = Base {
            distance,
            slack: limit.slack,
        };
        // SAFETY: a block has ways of the encoder's dimension, which is that of the table, and begins at a line.
        unsafe {
            let most = limit.most.next_up();
            encoder
                .rabitq
                .estimate(&self.aim.lut, ways, base, most, out)
        }
    }

    /// The terms of a block.
    fn terms(&self, block: usize) -> &[u8] {
        let dim = self.run.encoder.dim();
        let block = &self.run.lines.bytes()[block * stride(dim)..][..stride(dim)];
        &block[rabitq::code_bytes(dim)..]
    }

    fn is_wanted(&self, place: u32) -> bool {
        let row = self.run.rows[place as usize];
        row != NONE && row >= self.rows.0 && (self.rows.1)(row)
    }

    /// Compares rows whose lower estimates ascend, as long as they may be nearer than what `top` holds. So many are asked for
    /// ahead.
    fn compare(&self, open: &[Candidate], ahead: usize, top: &mut TopK, stats: &mut SearchStats) {
        let vector = |of: &Candidate| {
            let row = self.run.rows[of.node() as usize];
            Some((row, self.originals.vector(row)?))
        };
        let mut coming = open.iter().map(vector);
        let mut asked = VecDeque::with_capacity(ahead + 1);
        for of in open {
            if of.distance() > self.most(top) {
                break;
            }
            while asked.len() <= ahead
                && let Some(next) = coming.next()
            {
                if let Some((_, vector)) = next {
                    prefetch_all(vector.as_ptr(), vector.len());
                }
                asked.push_back(next);
            }
            if let Some((row, vector)) = asked.pop_front().flatten() {
                stats.distance_computations += 1;
                stats.bytes_touched += vector.len() as u64;
                let distance = self.aim.query.distance(vector);
                top.push(Neighbor { row, distance });
            }
        }
    }

    /// The largest lower estimate of a row that may come before the farthest of `top`.
    fn most(&self, top: &TopK) -> f32 {
        let (encoder, radius) = (&self.run.encoder, self.run.radius);
        encoder.farthest(&self.aim.encoded, radius, top.bound())
    }

    /// What such a row is estimated by.
    fn limit(&self, top: &TopK, sure: f32) -> Limit {
        let distance = self.aim.encoded.squared(top.bound()).sqrt() + self.run.radius;
        Limit {
            most: self.most(top),
            slack: self.slack(distance, sure),
        }
    }

    /// By how much of its factor the estimate of a row at a distance is off, in so many standard errors.
    fn slack(&self, distance: f32, errors: f32) -> f32 {
        let aim = self.aim;
        errors * (ACROSS * distance + aim.rounding) + aim.rounded * distance
    }
}

fn push(open: &mut Vec<Candidate>, lower: f32, place: usize) {
    let lower = if lower.is_nan() {
        f32::NEG_INFINITY
    } else {
        lower
    };
    open.push(Candidate::new(lower, place as u32));
}
