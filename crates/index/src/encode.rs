use longbow_kernels::rabitq::{Lut, Planes, Rabitq, Rotation};
use longbow_kernels::{Kernels, Metric, Scalar};

use crate::space::{Space, inverse_norm};
use crate::vector8::Vector8;

/// Turns vectors into what the graph compares: moved so that the data's centre is the origin, and rotated; for cosine
/// scaled to length 1 before, since then squared distances are twice those of cosine.
pub(crate) struct Encoder {
    space: Space,
    rotation: Rotation,
    centre: Vec<f32>,
    centre_norm: f32,
    pub(crate) kernels: &'static Kernels,
    pub(crate) rabitq: &'static Rabitq,
}

/// A vector of the graph's own, with the room that its making takes.
#[derive(Default)]
pub(crate) struct Encoded {
    /// Rotated.
    pub(crate) floats: Vec<f32>,
    /// Squared length of the rotated vector.
    pub(crate) norm: f32,
    /// The same, as the kernels compare it with eight-bit codes.
    planes: Planes,
    /// Its eight-bit code, if it was asked for.
    code: Vec<u8>,
    scale: f32,
}

impl Encoder {
    /// `centre` has `space.dim` elements.
    pub(crate) fn new(space: Space, seed: u64, centre: Vec<f32>) -> Self {
        assert_eq!(centre.len(), space.dim, "elements of the centre");
        let rotation = Rotation::new(space.dim, seed);
        Encoder {
            space,
            rotation,
            centre_norm: centre.iter().map(|x| x * x).sum::<f32>().sqrt(),
            centre,
            kernels: Kernels::get(),
            rabitq: Rabitq::get(),
        }
    }

    /// Elements of a rotated vector.
    pub(crate) fn dim(&self) -> usize {
        self.rotation.dim()
    }

    /// The mean of some stored vectors, as the graph sees them; zeros if there are none.
    pub(crate) fn mean<'a>(space: Space, vectors: impl Iterator<Item = &'a [u8]>) -> Vec<f32> {
        let mut sum = vec![0f64; space.dim];
        let mut floats = Vec::new();
        let mut count = 0u32;
        for vector in vectors {
            unit(space, vector, &mut floats);
            sum.iter_mut()
                .zip(&floats)
                .for_each(|(sum, x)| *sum += f64::from(*x));
            count += 1;
        }
        let mean = sum.iter().map(|sum| sum / f64::from(count.max(1)));
        mean.map(|mean| mean as f32).collect()
    }

    pub(crate) fn centre(&self) -> &[f32] {
        &self.centre
    }

    /// Encodes a stored vector of `space.row_bytes()` bytes.
    pub(crate) fn stored(&self, vector: &[u8], out: &mut Encoded) {
        unit(self.space, vector, &mut out.floats);
        self.turn(out);
        self.round(out);
    }

    /// Encodes a vector that is rotated already.
    pub(crate) fn rotated(&self, floats: &[f32], out: &mut Encoded) {
        assert_eq!(floats.len(), self.dim(), "elements of a rotated vector");
        out.floats.clear();
        out.floats.extend_from_slice(floats);
        self.finish(out);
        self.round(out);
    }

    /// Encodes a prepared query, without the eight-bit code.
    pub(crate) fn query(&self, floats: &[f32], out: &mut Encoded) {
        out.floats.clear();
        out.floats.extend_from_slice(floats);
        self.turn(out);
    }

    /// Makes a query of an eight-bit code.
    ///
    /// # Safety
    /// The code has `dim()` readable bytes.
    pub(crate) unsafe fn decoded(&self, vector: Vector8, out: &mut Encoded) {
        // SAFETY: the caller vouches for the bytes.
        let code = unsafe { std::slice::from_raw_parts(vector.code, self.dim()) };
        out.floats.clear();
        out.floats
            .extend(code.iter().map(|x| f32::from(*x) * vector.scale));
        self.finish(out);
    }

    /// Length of the centre.
    pub(crate) fn centre_norm(&self) -> f32 {
        self.centre_norm
    }

    fn turn(&self, out: &mut Encoded) {
        for (x, centre) in out.floats.iter_mut().zip(&self.centre) {
            *x -= centre;
        }
        out.floats.resize(self.dim(), 0.0);
        self.rotation.apply(self.rabitq, &mut out.floats);
        self.finish(out);
    }

    fn finish(&self, out: &mut Encoded) {
        out.planes.fill(&out.floats);
        out.norm = self
            .kernels
            .dot(Scalar::F32, &out.floats, bytes_of(&out.floats));
    }

    /// Rounds the rotated vector to eight bits an element, the largest to 127.
    fn round(&self, out: &mut Encoded) {
        let largest = out.floats.iter().fold(0f32, |most, x| most.max(x.abs()));
        let inverse = 127.0 / largest;
        let (scale, inverse) = if inverse.is_finite() {
            (largest / 127.0, inverse)
        } else {
            (0.0, 0.0)
        };
        out.code.clear();
        out.code
            .extend(out.floats.iter().map(|x| (x * inverse).round() as i8 as u8));
        out.scale = scale;
    }

    /// Squared distance of a rotated query and an eight-bit code.
    ///
    /// # Safety
    /// The code has `dim()` readable bytes.
    #[inline(always)]
    pub(crate) unsafe fn distance(&self, query: &Encoded, vector: Vector8) -> f32 {
        // SAFETY: the caller vouches for the bytes.
        let dot = unsafe { self.rabitq.dot_query(&query.planes, vector.code) };
        (query.norm + vector.norm - 2.0 * vector.scale * dot).max(0.0)
    }

    /// Inner product of a rotated query, rounded to 16 bits, and the elements of an eight-bit code, without its scale.
    ///
    /// # Safety
    /// The code has `dim()` readable bytes.
    #[inline(always)]
    pub(crate) unsafe fn product(&self, query: &Encoded, vector: Vector8) -> f32 {
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.rabitq.dot_query(&query.planes, vector.code) }
    }

    /// Squared distance of two eight-bit codes.
    ///
    /// # Safety
    /// The codes have `dim()` readable bytes.
    #[inline(always)]
    pub(crate) unsafe fn between(&self, a: Vector8, b: Vector8) -> f32 {
        // SAFETY: the caller vouches for the bytes.
        let dot = unsafe { self.rabitq.dot_i8(a.code, b.code, self.dim(), b.sum) };
        (a.norm + b.norm - 2.0 * a.scale * b.scale * dot as f32).max(0.0)
    }

    /// The one-bit code of the way from one vector to another, and the two terms `add` and `factor` by which it is
    /// estimated: see [`longbow_kernels::rabitq`].
    ///
    /// # Safety
    /// The codes have `dim()` readable bytes; `bits` has a word for 16 of them.
    pub(crate) unsafe fn way(&self, from: Vector8, to: Vector8, bits: &mut [u16]) -> (f32, f32) {
        // SAFETY: the caller vouches for the bytes.
        let residual = unsafe {
            self.rabitq
                .residual((from.code, from.scale), (to.code, to.scale), bits)
        };
        let t = residual.norm / residual.total;
        let t = if t.is_finite() { t } else { 0.0 };
        // The factor as it will be read, so that rounding it does not move the estimate.
        let factor = f32::from_bits((-2.0 * t).to_bits() & 0xFFFF_0000);
        (residual.norm - factor * residual.origin, factor)
    }

    /// The table of a query for the estimator.
    pub(crate) fn lut(&self, query: &Encoded, lut: &mut Lut) {
        lut.fill(self.rabitq, &query.floats);
    }
}

impl Encoded {
    /// The bytes of the eight-bit code.
    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// The eight-bit code of a stored vector.
    pub(crate) fn vector(&self) -> Vector8 {
        Vector8::new(&self.code, self.scale)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.floats.capacity() * size_of::<f32>() + self.planes.bytes() + self.code.capacity()
    }
}

/// The floats of a stored vector, for cosine scaled to length 1.
fn unit(space: Space, vector: &[u8], out: &mut Vec<f32>) {
    let Space {
        scalar,
        dim,
        metric,
    } = space;
    let kernels = Kernels::get();
    out.clear();
    out.resize(dim, 0.0);
    kernels.decode(scalar, vector, out);
    if metric == Metric::Cosine {
        let norm = kernels.dot(scalar, out, vector);
        let inverse = inverse_norm(kernels, scalar, norm, vector);
        out.iter_mut().for_each(|x| *x *= inverse);
    }
}

/// The bytes of floats, as the kernels read them.
fn bytes_of(floats: &[f32]) -> &[u8] {
    // SAFETY: a float has four bytes, of which each is initialised.
    unsafe { std::slice::from_raw_parts(floats.as_ptr().cast(), size_of_val(floats)) }
}
