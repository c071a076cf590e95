//! How runs are made.

use std::sync::Arc;

use longbow_kernels::rabitq::{self, DIM_STEP, SLOTS};

use super::scan::HUGE;
use super::{Cluster, CodedRun, Frame, NONE, stride};
use crate::centre::Centre;
use crate::encode::{Encoded, Encoder};
use crate::error::Result;
use crate::lines::{Lines, put_signs};
use crate::space::Space;
use crate::two_means::two_means;
use crate::vector8::Vector8;

/// Rows from which the mean is taken.
const SAMPLE: usize = 256;
/// Rows from which centroids are taken.
const CLUSTERED: usize = 4_096;
/// Rounds in which each of those goes to the nearest centroid, before all rows do.
const ROUNDS: usize = 1;
/// Rows of a cluster for each root of the rows, and the fewest and the most: so a search compares the query with about as many
/// centroids as blocks.
const ROWS_A_ROOT: f64 = 1.5;
const CLUSTER: (f64, f64) = (64.0, 512.0);

impl Frame {
    /// For codes of vectors like these, and a seed of the rotation.
    ///
    /// # Errors
    /// If the dimension is out of range.
    pub fn around(space: Space, seed: u64, vectors: &[(u64, &[u8])]) -> Result<Self> {
        space.check_dim(crate::origin::MAX_DIM)?;
        let step = vectors.len().div_ceil(SAMPLE).max(1);
        let sample = vectors.iter().step_by(step).map(|(_, vector)| *vector);
        let centre = Centre::of(space, sample);
        Ok(Frame(Arc::new(Encoder::new(space, seed, Some(centre)))))
    }
}

impl CodedRun {
    /// Codes of rows and their vectors, which are in order of the rows, in one cluster. `between` is called after each few of
    /// them.
    #[must_use]
    pub fn new(frame: &Frame, vectors: &[(u64, &[u8])], between: &dyn Fn()) -> Self {
        let mut run = Self::empty(frame, vectors);
        run.centroids = vec![0; run.encoder.dim()];
        let all = (0..vectors.len()).collect();
        run.fill(vectors, &[all], (&[0.0], None), between);
        run
    }

    /// The same in clusters, of which many searches read a few.
    #[must_use]
    pub fn clustered(frame: &Frame, vectors: &[(u64, &[u8])], between: &dyn Fn()) -> Self {
        let encoder = &frame.0;
        let mut begin = Codes::of_halves(encoder, vectors, between);
        let parts = begin.settled(encoder, vectors, None, between);
        let means = Codes::means(encoder, &parts);
        Self::of_parts(frame, vectors, (parts, means), None, between)
    }

    /// The same in half the time, in clusters less even, of which searches read some more. A row's centroid is the nearest to it.
    /// A byte for each element is taken meanwhile.
    #[must_use]
    pub fn clustered_in_haste(frame: &Frame, vectors: &[(u64, &[u8])], between: &dyn Fn()) -> Self {
        let encoder = &frame.0;
        let mut begin = Codes::of_some(encoder, vectors);
        let mut kept = Codes::default();
        let parts = begin.settled(encoder, vectors, Some(&mut kept), between);
        // Not their means, for which others would be the nearest than those that they are in.
        let nearest = begin.without_empty(encoder.dim(), &parts);
        Self::of_parts(frame, vectors, (parts, nearest), Some(&kept), between)
    }

    /// In clusters of these parts, of which empty ones have no centroid; by codes that were kept, if they were.
    fn of_parts(
        frame: &Frame,
        vectors: &[(u64, &[u8])],
        (parts, centroids): (Vec<Group>, Codes),
        kept: Option<&Codes>,
        between: &dyn Fn(),
    ) -> Self {
        let mut run = Self::empty(frame, vectors);
        run.centroids = centroids.codes;
        let groups = parts.into_iter().map(|(group, _)| group);
        let groups: Vec<_> = groups.filter(|group| !group.is_empty()).collect();
        run.fill(vectors, &groups, (&centroids.scales, kept), between);
        run
    }

    /// A run without rows.
    fn empty(frame: &Frame, vectors: &[(u64, &[u8])]) -> Self {
        debug_assert!(vectors.is_sorted_by(|a, b| a.0 < b.0), "rows ascend");
        let end = vectors.last().map_or(0, |(row, _)| row + 1);
        CodedRun {
            encoder: Arc::clone(&frame.0),
            clusters: Vec::new(),
            centroids: Vec::new(),
            rows: Vec::new(),
            len: vectors.len(),
            range: vectors.first().map_or(end, |(row, _)| *row)..end,
            radius: 0.0,
            factor: 0.0,
            lines: Lines::zero(0),
            recall: Default::default(),
        }
    }

    /// Takes the vectors of each cluster, whose centroids have codes by now; those of the vectors are made, unless they were kept.
    fn fill(
        &mut self,
        vectors: &[(u64, &[u8])],
        groups: &[Vec<usize>],
        (scales, kept): (&[f32], Option<&Codes>),
        between: &dyn Fn(),
    ) {
        let dim = self.encoder.dim();
        let blocks: usize = groups.iter().map(|group| group.len().div_ceil(SLOTS)).sum();
        self.lines = Lines::zero(blocks * stride(dim));
        self.rows = vec![NONE; blocks * SLOTS];
        let mut codes = self.lines.bytes_mut().chunks_exact_mut(stride(dim));
        let mut encode = Encode::new(&self.encoder);
        let mut first = 0;
        for (at, group) in groups.iter().enumerate() {
            let from = Vector8::new(&self.centroids[at * dim..][..dim], scales[at]);
            let end = first + group.len().div_ceil(SLOTS);
            self.clusters.push(Cluster {
                blocks: first as u32..end as u32,
                rows: group.len() as u32,
                scale: from.scale,
                norm: from.norm,
                sum: from.sum,
            });
            let rows = self.rows[first * SLOTS..end * SLOTS].chunks_exact_mut(SLOTS);
            for ((some, rows), block) in group.chunks(SLOTS).zip(rows).zip(&mut codes) {
                for (slot, row) in rows.iter_mut().enumerate() {
                    let at = some.get(slot).copied();
                    *row = at.map_or(NONE, |at| vectors[at].0);
                    let to = at.map(|at| match kept {
                        Some(kept) => kept.of(dim, at),
                        None => encode.code(vectors[at].1),
                    });
                    encode.one(from, to, (block, slot));
                }
                between();
            }
            first = end;
        }
        self.radius = 0.5 * encode.scale * (dim as f32).sqrt();
        self.factor = encode.factor;
    }
}

/// Encodes vectors into blocks.
struct Encode<'a> {
    encoder: &'a Encoder,
    encoded: Encoded,
    bits: Vec<u16>,
    /// The largest of all so far.
    scale: f32,
    factor: f32,
}

impl<'a> Encode<'a> {
    fn new(encoder: &'a Encoder) -> Self {
        Encode {
            encoder,
            encoded: Encoded::default(),
            bits: vec![0; encoder.dim() / DIM_STEP],
            scale: 0.0,
            factor: 0.0,
        }
    }

    /// The eight-bit code of a vector, until the next one is made.
    fn code(&mut self, vector: &[u8]) -> Vector8 {
        self.encoder.code(vector, &mut self.encoded);
        self.encoded.vector()
    }

    /// A vector into a slot; without one, nothing is ever near there.
    fn one(&mut self, from: Vector8, to: Option<Vector8>, (block, slot): (&mut [u8], usize)) {
        let (codes, terms) = block.split_at_mut(rabitq::code_bytes(self.encoder.dim()));
        let (mut add, mut factor) = (f32::INFINITY, 0.0);
        if let Some(to) = to {
            self.scale = self.scale.max(to.scale);
            // SAFETY: both codes have the dimension of the encoder, for which there are signs.
            (add, factor) = unsafe { self.encoder.way_to(from, to, &mut self.bits) };
            self.factor = self.factor.max(factor.abs());
            // What cannot be estimated is compared always.
            add = if add < HUGE { add } else { f32::NEG_INFINITY };
            put_signs(codes, slot, &self.bits);
        }
        let upper_half = (factor.to_bits() >> 16) as u16;
        terms[4 * slot..][..4].copy_from_slice(&add.to_le_bytes());
        terms[4 * SLOTS + 2 * slot..][..2].copy_from_slice(&upper_half.to_le_bytes());
    }
}

/// Which vectors are nearest to a centroid, and their sum.
type Group = (Vec<usize>, Vec<f32>);

/// Vectors as eight-bit codes: the centroids of clusters, or those of a run.
#[derive(Default)]
struct Codes {
    codes: Vec<u8>,
    scales: Vec<f32>,
}

impl Codes {
    fn push(&mut self, encoder: &Encoder, centroid: &[f32], code: &mut Encoded) {
        encoder.rotated(centroid, code);
        self.keep(code);
    }

    fn keep(&mut self, code: &Encoded) {
        self.codes.extend_from_slice(code.code());
        self.scales.push(code.scale());
    }

    fn of(&self, dim: usize, at: usize) -> Vector8 {
        Vector8::new(&self.codes[at * dim..][..dim], self.scales[at])
    }

    /// Of some of the vectors, by halving clusters until they are small.
    fn of_halves(encoder: &Encoder, vectors: &[(u64, &[u8])], between: &dyn Fn()) -> Self {
        let dim = encoder.dim();
        let step = vectors.len().div_ceil(CLUSTERED).max(1);
        let (mut floats, mut code) = (Vec::new(), Encoded::default());
        for (_, vector) in vectors.iter().step_by(step) {
            encoder.code(vector, &mut code);
            floats.extend_from_slice(&code.floats);
        }
        let most = rows_of_cluster(vectors.len()) / step as f64;
        let (mut parts, mut centroids) = (vec![floats], Codes::default());
        while let Some(floats) = parts.pop() {
            between();
            let count = floats.len() / dim;
            let halves = (count as f64 > most && count >= 4).then(|| two_means(&floats, dim));
            let Some(halves) = halves.flatten() else {
                let mut sum = vec![0f32; dim];
                floats
                    .chunks_exact(dim)
                    .for_each(|vector| add(&mut sum, vector));
                centroids.push(encoder, &mean(&sum, count), &mut code);
                continue;
            };
            let mut two = [Vec::new(), Vec::new()];
            for (vector, second) in floats.chunks_exact(dim).zip(&halves.second) {
                two[usize::from(*second)].extend_from_slice(vector);
            }
            parts.extend(two);
        }
        centroids
    }

    /// Some of the vectors.
    fn of_some(encoder: &Encoder, vectors: &[(u64, &[u8])]) -> Self {
        let most = rows_of_cluster(vectors.len());
        let mut code = Encoded::default();
        let mut centroids = Codes::default();
        for (_, vector) in vectors.iter().step_by(most as usize) {
            encoder.code(vector, &mut code);
            centroids.keep(&code);
        }
        centroids
    }

    /// Moves them to the means of what is nearest to them, and parts all vectors then, whose codes may be kept.
    fn settled(
        &mut self,
        encoder: &Encoder,
        vectors: &[(u64, &[u8])],
        kept: Option<&mut Codes>,
        between: &dyn Fn(),
    ) -> Vec<Group> {
        let step = vectors.len().div_ceil(CLUSTERED).max(1);
        for _ in 0..ROUNDS {
            let parts = self.part(encoder, (vectors, step), None, between);
            *self = Codes::means(encoder, &parts);
        }
        self.part(encoder, (vectors, 1), kept, between)
    }

    /// Parts every so many-th of the vectors by the nearest centroid: which they are, and their sums.
    fn part(
        &self,
        encoder: &Encoder,
        (vectors, step): (&[(u64, &[u8])], usize),
        mut kept: Option<&mut Codes>,
        between: &dyn Fn(),
    ) -> Vec<Group> {
        let dim = encoder.dim();
        let codes = self.codes.chunks_exact(dim).zip(&self.scales);
        let centroids: Vec<_> = codes
            .map(|(code, scale)| Vector8::new(code, *scale))
            .collect();
        let mut parts = vec![(Vec::new(), vec![0f32; dim]); centroids.len()];
        let mut code = Encoded::default();
        for (count, (at, (_, vector))) in vectors.iter().enumerate().step_by(step).enumerate() {
            encoder.stored(vector, &mut code);
            if let Some(kept) = &mut kept {
                kept.keep(&code);
            }
            // As a query would be compared with them: so one that is like the row finds its cluster, however near others are.
            // SAFETY: centroids have codes of the encoder's dimension.
            let far = |centroid: &Vector8| unsafe { encoder.distance(&code, *centroid) };
            let nearest = centroids.iter().map(far).enumerate();
            let nearest = nearest.min_by(|(_, a), (_, b)| a.total_cmp(b));
            let (part, sum) = &mut parts[nearest.map_or(0, |(cluster, _)| cluster)];
            part.push(at);
            add(sum, &code.floats);
            if count.is_multiple_of(SLOTS) {
                between();
            }
        }
        parts
    }

    /// The means of parts that are not empty.
    fn means(encoder: &Encoder, parts: &[Group]) -> Self {
        let mut means = Codes::default();
        let mut code = Encoded::default();
        for (part, sum) in parts.iter().filter(|(part, _)| !part.is_empty()) {
            means.push(encoder, &mean(sum, part.len()), &mut code);
        }
        means
    }

    /// Those that some vectors are nearest to.
    fn without_empty(&self, dim: usize, parts: &[Group]) -> Self {
        let mut some = Codes::default();
        let all = self.codes.chunks_exact(dim).zip(&self.scales).zip(parts);
        for ((code, scale), _) in all.filter(|(_, (group, _))| !group.is_empty()) {
            some.codes.extend_from_slice(code);
            some.scales.push(*scale);
        }
        some
    }
}

/// Rows that a cluster is to have, of so many.
fn rows_of_cluster(rows: usize) -> f64 {
    (ROWS_A_ROOT * (rows as f64).sqrt()).clamp(CLUSTER.0, CLUSTER.1)
}

fn add(sum: &mut [f32], vector: &[f32]) {
    sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
}

/// The mean of so many vectors of this sum; zeros if there is none.
fn mean(sum: &[f32], count: usize) -> Vec<f32> {
    let share = 1.0 / count.max(1) as f32;
    sum.iter().map(|sum| sum * share).collect()
}
