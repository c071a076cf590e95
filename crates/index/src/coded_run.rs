//! One-bit codes of rows that wait for their turn to come into an index.
//!
//! Useful for: comparing a query with thousands of rows that came a moment ago, while their links are still to be made. Codes
//! are a thirtieth of the vectors, and made in a hundredth of the time that links take. Not useful for: few rows, which are
//! read as fast as codes; rows for good, since each search comes by all of them.
//!
//! ```text
//! bytes  of each 32 rows
//!   4 d  one-bit codes of the ways from the mean of all rows: see `longbow_kernels::rabitq`
//!   128  their `add`, f32
//!    64  their `factor`, the upper halves of f32
//! ```
//!
//! d is the dimension, rounded up to 16; for the dot product one is added before.
//!
//! # What is missed
//!
//! As good as nothing. The error of an estimate grows with the part of the way to the query that lies across the way to the row,
//! which is at most the distance between the two. So with the distance `b` of the `k`-th nearest of what was found already, a row
//! can only come before it if its estimate is within the error that a row at the distance `b` would have. [`SURE`] standard errors
//! are reckoned with: a row in thirty thousand of those that come before it is farther off by chance. The error of [RaBitQ](https://arxiv.org/abs/2405.12497)
//! is that of a random rotation, whatever the data.

use std::f32::consts::PI;
use std::fmt;
use std::ops::Range;

use longbow_kernels::prefetch_all;
use longbow_kernels::rabitq::{self, Add, Base, Block, DIM_STEP, Lut, SLOTS};

use crate::candidate::Candidate;
use crate::checkpoint::VectorSource;
use crate::encode::{Centre, Encoded, Encoder};
use crate::error::Result;
use crate::lines::{Lines, put_signs};
use crate::space::{Query, Space};
use crate::stats::SearchStats;
use crate::top_k::{Neighbor, TopK};

/// Standard errors by which a row's estimate may be off.
const SURE: f32 = 4.0;
/// Standard error of `<P q, s>` in units of the part of the query that lies across the row's way: the length of what the signs have
/// across it, for a long vector of normal elements `sqrt(1 - 2 / pi)` of the root of the dimension.
const ACROSS: f32 = 0.61;
/// Rows from which the mean is taken.
const SAMPLE: usize = 256;
/// Vectors that are asked for before they are compared.
const AHEAD: usize = 3;
/// By how much of itself a factor is rounded, at most.
const FACTOR_STEP: f32 = 1.0 / 256.0;
/// Sums of squares above may be none.
const HUGE: f32 = 1e37;

/// The codes of some rows, ascending, that stay as they are.
pub struct CodedRun {
    encoder: Encoder,
    rows: Vec<u64>,
    /// How far an eight-bit code, of which the signs are, can be from its vector.
    radius: f32,
    lines: Lines,
}

/// A query as the codes of a run are compared with it.
struct Aim<'a> {
    query: &'a Query,
    encoded: Encoded,
    lut: Lut,
    /// What rounding the table puts into a product, at most.
    rounding: f32,
    /// What rounding a row's factor puts into one, for each unit of the distance.
    rounded: f32,
}

impl CodedRun {
    /// Codes of rows and their vectors, which are in order of the rows. `between` is called after each few of them.
    ///
    /// # Errors
    /// If the dimension is out of range.
    pub fn new(
        space: Space,
        seed: u64,
        vectors: &[(u64, &[u8])],
        between: &dyn Fn(),
    ) -> Result<Self> {
        space.check_dim(crate::origin::MAX_DIM)?;
        debug_assert!(vectors.is_sorted_by(|a, b| a.0 < b.0), "rows ascend");
        let step = vectors.len().div_ceil(SAMPLE).max(1);
        let sample = vectors.iter().step_by(step).map(|(_, vector)| *vector);
        let encoder = Encoder::new(space, seed, Some(Centre::of(space, sample)));
        let mut run = CodedRun {
            lines: Lines::zero(vectors.len().div_ceil(SLOTS) * stride(encoder.dim())),
            rows: vectors.iter().map(|(row, _)| *row).collect(),
            radius: 0.0,
            encoder,
        };
        run.encode(vectors, between);
        Ok(run)
    }

    fn encode(&mut self, vectors: &[(u64, &[u8])], between: &dyn Fn()) {
        let dim = self.encoder.dim();
        let (mut encoded, mut bits) = (Encoded::default(), vec![0; dim / DIM_STEP]);
        let mut scale = 0f32;
        let blocks = self.lines.bytes_mut().chunks_exact_mut(stride(dim));
        for (block, vectors) in blocks.zip(vectors.chunks(SLOTS)) {
            let (codes, terms) = block.split_at_mut(rabitq::code_bytes(dim));
            for (slot, (_, vector)) in vectors.iter().enumerate() {
                self.encoder.stored(vector, &mut encoded);
                let to = encoded.vector();
                scale = scale.max(to.scale);
                // SAFETY: the code has the dimension of the encoder, for which there are signs.
                let (add, factor) = unsafe { self.encoder.way_here(to, &mut bits) };
                // What cannot be estimated is compared always.
                let add = if add < HUGE { add } else { f32::NEG_INFINITY };
                put_signs(codes, slot, &bits);
                let upper_half = (factor.to_bits() >> 16) as u16;
                terms[4 * slot..][..4].copy_from_slice(&add.to_le_bytes());
                terms[4 * SLOTS + 2 * slot..][..2].copy_from_slice(&upper_half.to_le_bytes());
            }
            between();
        }
        self.radius = 0.5 * scale * (dim as f32).sqrt();
    }

    /// From the first row to behind the last one.
    #[must_use]
    pub fn rows(&self) -> Range<u64> {
        let end = self.rows.last().map_or(0, |last| last + 1);
        self.rows.first().copied().unwrap_or(end)..end
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        // The signs of the rotation, and the mean.
        let floats = 7 * self.encoder.dim() * size_of::<f32>();
        self.lines.bytes().len() + self.rows.capacity() * size_of::<u64>() + floats
    }

    /// Offers to `top` those of the rows from `from` on that are wanted and may be nearer than what it holds, by their exact
    /// distances; the more it holds already, the fewer are compared. Tells from how many rows they were.
    ///
    /// # Panics
    /// If the query was prepared for another space.
    pub fn scan(
        &self,
        query: &Query,
        (from, wanted): (u64, &dyn Fn(u64) -> bool),
        originals: &dyn VectorSource,
        top: &mut TopK,
        stats: &mut SearchStats,
    ) -> usize {
        assert_eq!(
            query.space(),
            self.encoder.space(),
            "the space of the query"
        );
        let from = self.rows.partition_point(|row| *row < from);
        let aim = Aim::new(&self.encoder, query);
        stats.bytes_touched +=
            (self.lines.bytes().len() / self.rows.len().max(1) * (self.rows.len() - from)) as u64;
        let mut open = Vec::new();
        let mut compared = Vec::new();
        if top.bound() == f32::INFINITY {
            self.estimate(&aim, from, (0.0, f32::INFINITY), &mut open);
            compared = self.fill(&aim, (&mut open, wanted), originals, top, stats);
            if top.bound() == f32::INFINITY {
                return self.rows.len() - from;
            }
            compared.sort_unstable();
            open.clear();
        }
        let distance = aim.encoded.squared(top.bound()).sqrt() + self.radius;
        let slack = SURE * (ACROSS * distance + aim.rounding) + aim.rounded * distance;
        self.estimate(&aim, from, (slack, self.limit(&aim, top)), &mut open);
        open.retain(|of| {
            wanted(self.rows[of.node() as usize]) && compared.binary_search(&of.node()).is_err()
        });
        open.sort_unstable();
        for (at, candidate) in open.iter().enumerate() {
            if candidate.distance() > self.limit(&aim, top) {
                break;
            }
            if let Some(soon) = open.get(at + AHEAD)
                && let Some(vector) = originals.vector(self.rows[soon.node() as usize])
            {
                prefetch_all(vector.as_ptr(), vector.len());
            }
            self.compare(&aim, *candidate, originals, top, stats);
        }
        self.rows.len() - from
    }

    /// Compares those that are the nearest by their estimates, until `top` is full; tells which.
    fn fill(
        &self,
        aim: &Aim<'_>,
        (open, wanted): (&mut [Candidate], &dyn Fn(u64) -> bool),
        originals: &dyn VectorSource,
        top: &mut TopK,
        stats: &mut SearchStats,
    ) -> Vec<u32> {
        let mut compared = Vec::new();
        open.sort_unstable();
        for candidate in open.iter() {
            if top.bound() < f32::INFINITY {
                break;
            }
            if wanted(self.rows[candidate.node() as usize]) {
                self.compare(aim, *candidate, originals, top, stats);
                compared.push(candidate.node());
            }
        }
        compared
    }

    fn compare(
        &self,
        aim: &Aim<'_>,
        candidate: Candidate,
        originals: &dyn VectorSource,
        top: &mut TopK,
        stats: &mut SearchStats,
    ) {
        let row = self.rows[candidate.node() as usize];
        if let Some(vector) = originals.vector(row) {
            stats.distance_computations += 1;
            stats.bytes_touched += vector.len() as u64;
            let distance = aim.query.distance(vector);
            top.push(Neighbor { row, distance });
        }
    }

    /// The largest lower estimate of a row that may come before the farthest of `top`.
    fn limit(&self, aim: &Aim<'_>, top: &TopK) -> f32 {
        self.encoder
            .farthest(&aim.encoded, self.radius, top.bound())
    }

    /// Adds the places from `from` on whose estimates, lowered by the slack, are not above a limit; infinite, that is all.
    fn estimate(
        &self,
        aim: &Aim<'_>,
        from: usize,
        (slack, limit): (f32, f32),
        open: &mut Vec<Candidate>,
    ) {
        let dim = self.encoder.dim();
        let distance = aim.encoded.norm;
        let base = Base { distance, slack };
        let is_sure = distance < HUGE && limit < HUGE;
        let mut lower = [0f32; SLOTS];
        let blocks = self.lines.bytes().chunks_exact(stride(dim));
        for (at, block) in blocks.enumerate().skip(from / SLOTS) {
            let (codes, terms) = block.split_at(rabitq::code_bytes(dim));
            let ways = Block {
                codes: codes.as_ptr(),
                add: Add::Whole(terms.as_ptr().cast()),
                factor: terms[4 * SLOTS..].as_ptr().cast(),
            };
            // SAFETY: a block has ways of the encoder's dimension, which is that of the table, and begins at a line.
            let below = unsafe {
                let (rabitq, limit) = (self.encoder.rabitq, limit.next_up());
                rabitq.estimate(&aim.lut, ways, base, limit, &mut lower)
            };
            let mut below = if is_sure { below } else { u32::MAX };
            while below != 0 {
                let slot = below.trailing_zeros() as usize;
                below &= below - 1;
                let place = at * SLOTS + slot;
                if place >= from && place < self.rows.len() {
                    let low = if lower[slot].is_nan() {
                        f32::NEG_INFINITY
                    } else {
                        lower[slot]
                    };
                    open.push(Candidate::new(low, place as u32));
                }
            }
        }
    }
}

impl<'a> Aim<'a> {
    fn new(encoder: &Encoder, query: &'a Query) -> Self {
        let (mut encoded, mut lut) = (Encoded::default(), Lut::default());
        encoder.query(query.floats(), &mut encoded);
        encoder.lut(&encoded, &mut lut);
        let rounding = lut.scale() * (lut.groups() as f32 / 12.0).sqrt();
        // Of a way of length 1, its product with its signs is this: the mean of elements that are as good as normal.
        let rounded = FACTOR_STEP * (encoder.dim() as f32 * 2.0 / PI).sqrt();
        Aim {
            query,
            encoded,
            lut,
            rounding,
            rounded,
        }
    }
}

/// Bytes of 32 rows.
fn stride(dim: usize) -> usize {
    rabitq::code_bytes(dim) + 6 * SLOTS
}

impl fmt::Debug for CodedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodedRun")
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}
