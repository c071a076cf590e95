//! The vectors of a graph's nodes, in their native type.
//!
//! ```text
//! 0            row_bytes      +4                 stride = a multiple of 64
//! +---------------+------------+-------------------+
//! |    vector     | 1 / length |  never read       |
//! +---------------+------------+-------------------+
//!                  cosine only
//! ```

use longbow_kernels::{Kernels, Metric, Scalar, prefetch};

use crate::chunks::{ALIGN, Chunks};
use crate::space::{Space, cosine_distance, or_last};

/// Vectors scored by one call of a kernel.
const GATHER: usize = 32;

/// What stored vectors are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) floats: &'a [f32],
    /// For cosine, 1 / length of `floats`.
    pub(crate) inverse: f32,
    pub(crate) metric: Metric,
}

/// Whether inner products of a vector of this inverse length with any other neither overflow nor vanish, but for the very longest.
fn is_moderate(inverse: f32) -> bool {
    (1e-4..=1e4).contains(&inverse)
}

impl<'a> Probe<'a> {
    /// A vector and 1 / its length, or 1 where that is no matter. It is scaled if it is so long or short that its products with
    /// others might not be told.
    pub(crate) fn new(floats: &'a mut [f32], inverse: f32, metric: Metric) -> Self {
        let scale = match is_moderate(inverse) || inverse == 0.0 {
            true => 1.0,
            false => inverse,
        };
        if scale != 1.0 {
            floats.iter_mut().for_each(|x| *x *= scale);
        }
        Probe {
            floats,
            inverse: inverse / scale,
            metric,
        }
    }
}

/// The vectors, by node.
pub(crate) struct Vectors {
    space: Space,
    kernels: &'static Kernels,
    chunks: Chunks,
}

impl Vectors {
    pub(crate) fn new(space: Space) -> Self {
        let factor = if space.metric == Metric::Cosine {
            size_of::<f32>()
        } else {
            0
        };
        let stride = (space.row_bytes() + factor).next_multiple_of(ALIGN);
        Vectors {
            space,
            kernels: Kernels::get(),
            chunks: Chunks::new(stride),
        }
    }

    pub(crate) fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    pub(crate) fn limit(&self) -> u32 {
        self.chunks.limit()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// Writes the vector of a node, and 1 / its length where the metric is cosine.
    ///
    /// # Safety
    /// Nobody else reads or writes this node's vector until the call has returned.
    pub(crate) unsafe fn write(&self, node: u32, vector: &[u8], inverse: f32) {
        assert_eq!(vector.len(), self.space.row_bytes(), "bytes of a vector");
        self.chunks.reserve(node);
        let to = self.chunks.at(node);
        // SAFETY: the stride has room for the vector and, for cosine, the factor; the caller vouches that the
        // node is not shared.
        unsafe {
            to.copy_from_nonoverlapping(std::ptr::NonNull::from(vector).cast(), vector.len());
            if self.space.metric == Metric::Cosine {
                to.add(vector.len()).cast::<f32>().write_unaligned(inverse);
            }
        }
    }

    /// The stored bytes.
    ///
    /// # Safety
    /// The node was written, and the write happened before.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, node: u32) -> &[u8] {
        // SAFETY: `row_bytes` bytes were written, and are not written again.
        unsafe { std::slice::from_raw_parts(self.chunks.at(node).as_ptr(), self.space.row_bytes()) }
    }

    /// Asks for the cache lines of a node's vector.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: u32) {
        prefetch(self.chunks.at(node).as_ptr(), self.space.row_bytes());
    }

    /// # Safety
    /// As [`Vectors::get`].
    #[inline(always)]
    unsafe fn inverse(&self, node: u32) -> f32 {
        if self.space.metric != Metric::Cosine {
            return 1.0;
        }
        // SAFETY: the factor was written after the vector.
        unsafe {
            self.chunks
                .at(node)
                .add(self.space.row_bytes())
                .cast::<f32>()
                .read_unaligned()
        }
    }

    /// The vector of a node as a probe: itself where it is stored as floats, else widened into `room`.
    ///
    /// # Safety
    /// As [`Vectors::get`].
    #[inline(always)]
    pub(crate) unsafe fn probe<'a>(
        &'a self,
        node: u32,
        metric: Metric,
        room: &'a mut Vec<f32>,
    ) -> Probe<'a> {
        // SAFETY: the caller vouches for the node.
        let (bytes, inverse) = unsafe { (self.get(node), self.inverse(node)) };
        if self.space.scalar == Scalar::F32 && is_moderate(inverse) {
            // SAFETY: items are aligned to cache lines, and every bit pattern is some float.
            let floats =
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<f32>(), self.space.dim) };
            return Probe {
                floats,
                inverse,
                metric,
            };
        }
        room.resize(self.space.dim, 0.0);
        self.kernels.decode(self.space.scalar, bytes, room);
        Probe::new(room, inverse, metric)
    }

    /// Distance of a probe to one node.
    ///
    /// # Safety
    /// As [`Vectors::get`].
    #[inline(always)]
    pub(crate) unsafe fn distance(&self, probe: Probe<'_>, node: u32) -> f32 {
        let scalar = self.space.scalar;
        // SAFETY: the caller vouches for the node.
        let (bytes, inverse) = unsafe { (self.get(node), self.inverse(node)) };
        match probe.metric {
            Metric::Euclidean => or_last(self.kernels.l2_squared(scalar, probe.floats, bytes)),
            Metric::Dot => or_last(-self.kernels.dot(scalar, probe.floats, bytes)),
            Metric::Cosine => cosine_distance(
                self.kernels.dot(scalar, probe.floats, bytes),
                probe.inverse * inverse,
            ),
        }
    }

    /// Distances of a probe to nodes, into `out`, one a node.
    ///
    /// # Safety
    /// As [`Vectors::get`] for each of `nodes`.
    #[inline]
    pub(crate) unsafe fn distances(&self, probe: Probe<'_>, nodes: &[u32], out: &mut Vec<f32>) {
        let scalar = self.space.scalar;
        out.resize(nodes.len(), 0.0);
        for (nodes, out) in nodes.chunks(GATHER).zip(out.chunks_mut(GATHER)) {
            let mut rows: [&[u8]; GATHER] = [&[]; GATHER];
            for (row, node) in rows.iter_mut().zip(nodes) {
                // SAFETY: the caller vouches for the node.
                *row = unsafe { self.get(*node) };
            }
            let rows = &rows[..nodes.len()];
            match probe.metric {
                Metric::Euclidean => {
                    self.kernels
                        .l2_squared_gather(scalar, probe.floats, rows, out);
                    out.iter_mut().for_each(|x| *x = or_last(*x));
                }
                Metric::Dot => {
                    self.kernels.dot_gather(scalar, probe.floats, rows, out);
                    out.iter_mut().for_each(|x| *x = or_last(-*x));
                }
                Metric::Cosine => {
                    self.kernels.dot_gather(scalar, probe.floats, rows, out);
                    for (x, node) in out.iter_mut().zip(nodes) {
                        // SAFETY: the caller vouches for the node.
                        *x = cosine_distance(*x, probe.inverse * unsafe { self.inverse(*node) });
                    }
                }
            }
        }
    }
}
