//! How far the vectors of a posting are from its centroid, at most, and how near a query can be to them, at best.
//!
//! Both are bounds that hold whatever the vectors are, so that an exact search may pass over what is beyond them. With
//! `q` the rotated query, `x` a rotated vector, `x'` what its eight-bit code stands for and `c'` that of the centroid,
//!
//! ```text
//! |q - x| >= |q - x'| - |x' - x|                                          of a vector
//! |q - x| >= |q - c'| - radius      radius = max (|c' - x'| + |x' - x|)   of all in a posting
//! |q - x| >= ||q| - |x||                                                  likewise
//! ```
//!
//! Rounding to eight bits moves each element by half a step at most, so `|x' - x| <= scale / 2 * sqrt(dim)`. All else is
//! what sums of floats lose, reckoned as if each operation erred by as much as it can, to the same side. Where a sum has
//! no finite value, nothing is known, and the bound is one that passes nothing over. For cosine all vectors have length 1
//! here; one that was longer than a float can be has no cosine as far as can be reckoned, and may come out at any.
//!
//! The triangle inequality for passing over groups of vectors is that of Fukunaga and Narendra (1975), "A branch and bound
//! algorithm for computing k-nearest neighbors".

use longbow_kernels::Metric;

use super::block::Member;
use super::posting::{Centroid, Posting};
use crate::encode::{Encoded, Encoder};
use crate::space::Space;
use crate::vector8::Vector8;

/// Twice the most by which an operation on floats errs, relative to its result.
const EPSILON: f64 = f32::EPSILON as f64;
/// What the sum of some terms errs by, relative to them.
const SUM: f64 = 16.0 * EPSILON;
/// What moving a vector to the origin and rotating it errs by, relative to its length: some hundred additions one after
/// the other, at the highest dimension there is.
const TURN: f64 = 64.0 * EPSILON;
/// Of an element, in steps of its code: half a step, and what the step itself errs by.
const HALF: f64 = 0.5001;
/// Squares below lose digits, or are zero.
const TINY: f64 = 1e-30;
/// Squares above may have no finite sum.
const HUGE: f32 = 1e37;
/// Steps of the largest element to which a query is rounded, at least.
const STEPS: f64 = 65_000.0;

/// How far a code is from the rotated vector that it stands for, at most.
fn error_of(scale: f32, dim: usize) -> f64 {
    HALF * f64::from(scale) * (dim as f64).sqrt()
}

/// Bounds of what a posting holds. They grow with each vector that comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reach {
    /// Largest distance of a vector to the code of the centroid.
    radius: f32,
    /// The shortest vector's length, and the longest one's.
    least: f32,
    most: f32,
    /// Sum of the squared distances of the vectors to the code of the centroid, and how many they are.
    squares: f64,
    rows: u32,
}

impl Default for Reach {
    /// That of nothing.
    fn default() -> Self {
        Reach {
            radius: f32::NEG_INFINITY,
            least: f32::INFINITY,
            most: 0.0,
            squares: 0.0,
            rows: 0,
        }
    }
}

impl Reach {
    /// That of the vectors around a centroid of which it is the own one.
    pub(super) fn of<'a>(
        encoder: &Encoder,
        centroid: &Centroid,
        members: impl Iterator<Item = Member<'a>>,
    ) -> Self {
        let mut reach = Reach::default();
        let own = members.filter(|member| member.own);
        own.for_each(|member| reach.grow(encoder, centroid.vector(), member.vector()));
        reach
    }

    /// Takes a vector in.
    pub(super) fn grow(&mut self, encoder: &Encoder, centroid: Vector8, vector: Vector8) {
        self.rows += 1;
        let norms = centroid.norm + vector.norm;
        if norms.is_nan() || norms >= HUGE {
            *self = Reach {
                radius: f32::INFINITY,
                least: 0.0,
                most: f32::INFINITY,
                ..*self
            };
            return;
        }
        // SAFETY: codes of the centroid and of members have the dimension of the encoder.
        let between = unsafe { encoder.between(centroid, vector) };
        self.squares += f64::from(between.max(0.0));
        let error = error_of(vector.scale, encoder.dim());
        let radius = (f64::from(between) + SUM * f64::from(norms) + TINY).sqrt() + error;
        let norm = f64::from(vector.norm);
        let least = (norm * (1.0 - SUM) - TINY).max(0.0).sqrt() - error;
        let most = (norm * (1.0 + SUM) + TINY).sqrt() + error;
        // As floats, to the safe side.
        self.radius = self.radius.max((radius * (1.0 + EPSILON)) as f32);
        self.least = self.least.min((least * (1.0 - EPSILON)) as f32).max(0.0);
        self.most = self.most.max((most * (1.0 + EPSILON)) as f32);
    }

    /// Whether all vectors are nearer to the centroid than this, squared.
    pub(super) fn are_within(&self, squared: f32) -> bool {
        self.radius * self.radius < squared
    }

    /// The sum of the squared distances of the vectors to the centroid, and how many they are.
    pub(super) fn squares(&self) -> (f64, u64) {
        (self.squares, u64::from(self.rows))
    }
}

/// A query, to be compared with bounds.
pub(super) struct Asking<'a> {
    encoder: &'a Encoder,
    query: &'a Encoded,
    space: Space,
    /// Squared length.
    norm: f64,
    /// How far the query is from what it is rounded to, at most.
    rounded: f64,
    /// Whether anything can be reckoned at all.
    sure: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(encoder: &'a Encoder, query: &'a Encoded, space: Space) -> Self {
        let floats = || query.floats.iter().map(|x| f64::from(*x));
        let norm: f64 = floats().map(|x| x * x).sum();
        let largest = floats().fold(0.0, |most: f64, x| most.max(x.abs()));
        Asking {
            encoder,
            query,
            space,
            norm,
            rounded: largest / STEPS * (encoder.dim() as f64).sqrt(),
            sure: norm < f64::from(HUGE) && largest > TINY,
        }
    }

    /// The least distance to what a code stands for.
    fn to_code(&self, vector: Vector8) -> f64 {
        // SAFETY: codes of the centroid and of members have the dimension of the encoder.
        let product = unsafe { self.encoder.product(self.query, vector) };
        let norm = f64::from(vector.norm);
        let squared = self.norm + norm - 2.0 * f64::from(vector.scale) * f64::from(product);
        let error = 2.0 * self.rounded * norm.sqrt() + SUM * (self.norm + norm) + TINY;
        let least = squared - error;
        // Where it has no finite value, nothing is known.
        if self.sure && least.is_finite() {
            least.max(0.0).sqrt()
        } else {
            0.0
        }
    }

    /// The least distance to a vector that is in a posting.
    pub(super) fn to_vector(&self, vector: Vector8) -> f64 {
        let error = error_of(vector.scale, self.encoder.dim());
        let lengths = self.norm.sqrt() + f64::from(vector.norm).sqrt() + error;
        self.bound(self.to_code(vector) - error, lengths)
    }

    /// The least distance to all vectors of a posting whose own it is, and that to its centroid.
    pub(super) fn to_posting(&self, posting: &Posting) -> (f64, f64) {
        let Reach {
            radius,
            least,
            most,
            ..
        } = posting.reach;
        let (length, centroid) = (self.norm.sqrt(), self.to_code(posting.centroid.vector()));
        let [radius, least, most] = [radius, least, most].map(f64::from);
        let bound = (centroid - radius).max(length - most).max(least - length);
        (self.bound(bound, length + most), centroid)
    }

    /// A distance of rotated vectors as one of the vectors themselves, whose lengths have this sum.
    fn bound(&self, distance: f64, lengths: f64) -> f64 {
        let bound = distance - TURN * lengths;
        // Not `max` alone: what is no number is no bound.
        if self.sure && bound > 0.0 { bound } else { 0.0 }
    }

    /// Whether what is at least so far is behind all that have an exact distance, as it is compared, of `limit`.
    pub(super) fn is_beyond(&self, bound: f64, limit: f32) -> bool {
        let terms = self.space.dim as f64 + 16.0;
        let squared = bound * bound;
        match self.space.metric {
            // Products are no distances: nothing is passed over.
            Metric::Dot => false,
            // Twice 1 - cos is the squared distance of vectors of length 1.
            Metric::Cosine => squared - 4.0 * terms * EPSILON > 2.0 * f64::from(limit),
            Metric::Euclidean => {
                let lost = terms * f64::from(f32::MIN_POSITIVE);
                squared * (1.0 - terms * EPSILON) - lost > f64::from(limit)
            }
        }
    }
}
