use half::bf16;
use longbow_kernels::rabitq::{Lut, Octets, Planes, Rabitq, Residual, Rotation};
use longbow_kernels::{Kernels, Metric, Scalar};

use crate::centre::Centre;
use crate::checkpoint::Sink;
use crate::error::Result;
use crate::space::{Space, inverse_norm};
use crate::sphere::Sphere;
use crate::vector8::{Here, Rounded, Vector8};

/// Part of the squared lengths that go into a distance by which arithmetic may err.
const ROUNDING: f32 = 2e-5;

/// Turns vectors into what the graph compares: moved so that the data's centre is the origin, and rotated; for cosine
/// scaled to length 1 before, since then squared distances are twice those of cosine, and for the inner product put on a
/// sphere: see [`crate::sphere`].
pub(crate) struct Encoder {
    space: Space,
    rotation: Rotation,
    centre: Vec<f32>,
    centre_norm: f32,
    /// For the inner product.
    sphere: Option<Sphere>,
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
    /// Of a query: a distance of the metric becomes a squared one as `offset + slope * distance`.
    offset: f64,
    slope: f64,
    /// The rotated vector, as the kernels compare it with eight-bit codes.
    planes: Planes,
    /// Its eight-bit code, if it was asked for.
    code: Vec<u8>,
    scale: f32,
    /// That code, ready to be compared with such as are cut, if that was asked for; and what it stands for.
    pub(crate) octets: Octets,
    pub(crate) rounded: Rounded,
}

impl Encoder {
    /// Relative to a centre; zeros if there is none.
    pub(crate) fn new(space: Space, seed: u64, centre: Option<Centre>) -> Self {
        let Centre {
            elements: centre,
            sphere,
        } = centre.unwrap_or_else(|| Centre::of(space, std::iter::empty()));
        assert_eq!(centre.len(), space.moved_dim(), "elements of the centre");
        let rotation = Rotation::new(centre.len(), seed);
        Encoder {
            space,
            rotation,
            centre_norm: centre.iter().map(|x| x * x).sum::<f32>().sqrt(),
            centre,
            sphere,
            kernels: Kernels::get(),
            rabitq: Rabitq::get(),
        }
    }

    /// What codes are relative to.
    pub(crate) fn centre(&self) -> Centre {
        Centre {
            elements: self.centre.clone(),
            sphere: self.sphere.as_ref().map(Sphere::like_it),
        }
    }

    /// Elements of a rotated vector.
    pub(crate) fn dim(&self) -> usize {
        self.rotation.dim()
    }

    /// Writes what codes are relative to: the centre, f32, and for the inner product the sphere.
    pub(crate) fn save_centre(&self, sink: &mut Sink<'_>) -> Result<()> {
        let mut centre = self.centre.iter();
        centre.try_for_each(|x| sink.put(&x.to_le_bytes()))?;
        self.sphere
            .as_ref()
            .map_or(Ok(()), |sphere| sphere.save(sink))
    }

    /// Encodes a stored vector of `space.row_bytes()` bytes.
    pub(crate) fn stored(&self, vector: &[u8], out: &mut Encoded) {
        self.code(vector, out);
        self.finish(out);
    }

    /// The same for who compares nothing with what is rotated: it lacks what only queries have.
    pub(crate) fn code(&self, vector: &[u8], out: &mut Encoded) {
        unit(self.space, vector, &mut out.floats);
        if let Some(sphere) = &self.sphere {
            sphere.put(&mut out.floats);
        }
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
        (out.offset, out.slope) = match (&self.sphere, self.space.metric) {
            (Some(sphere), _) => sphere.aim(&mut out.floats),
            // Of vectors of length 1.
            (None, Metric::Cosine) => (0.0, 2.0),
            (None, _) => (0.0, 1.0),
        };
        self.turn(out);
        self.finish(out);
    }

    /// Makes a query of an eight-bit code, which is its own.
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
        out.code.clear();
        out.code.extend(code.iter().map(|x| *x as u8));
        out.scale = vector.scale;
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// The largest squared distance to a code whose vector may be as near as `bound`, a distance of the metric, if none is
    /// farther than `radius` from its code.
    pub(crate) fn farthest(&self, query: &Encoded, radius: f32, bound: f32) -> f32 {
        let squared = query.squared(bound);
        let off = radius + 1e-6 * self.centre_norm;
        let reach = squared.sqrt() + off;
        reach * reach + ROUNDING * (query.norm + squared + query.offset())
    }

    fn turn(&self, out: &mut Encoded) {
        for (x, centre) in out.floats.iter_mut().zip(&self.centre) {
            *x -= centre;
        }
        out.floats.resize(self.dim(), 0.0);
        self.rotation.apply(self.rabitq, &mut out.floats);
    }

    fn finish(&self, out: &mut Encoded) {
        out.planes.fill(self.rabitq, &out.floats);
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
            .extend(out.floats.iter().map(|x| nearest(x * inverse) as u8));
        out.scale = scale;
    }

    /// Rounds a query to its eight-bit code, and lets codes that are cut be compared with that.
    pub(crate) fn round_query(&self, out: &mut Encoded) {
        self.round(out);
        out.spread();
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
        let (residual, factor) = unsafe { self.residual(from, to, bits) };
        // The factor as it will be read, so that rounding it does not move the estimate.
        let factor = f32::from_bits(factor.to_bits() & 0xFFFF_0000);
        (residual.norm - factor * residual.origin, factor)
    }

    /// The same, such that the estimate is right where the query is the vector that the way goes to, however its factor was
    /// rounded.
    ///
    /// # Safety
    /// As [`Encoder::way`].
    pub(crate) unsafe fn way_to(&self, from: Vector8, to: Vector8, bits: &mut [u16]) -> (f32, f32) {
        // SAFETY: the caller vouches for the bytes.
        let (residual, factor) = unsafe { self.residual(from, to, bits) };
        let factor = bf16::from_f32(factor).to_f32();
        let product = residual.origin + residual.total;
        (-residual.norm - factor * product, factor)
    }

    /// What a way is made of, and its factor.
    ///
    /// # Safety
    /// As [`Encoder::way`].
    unsafe fn residual(&self, from: Vector8, to: Vector8, bits: &mut [u16]) -> (Residual, f32) {
        // SAFETY: the caller vouches for the bytes.
        let residual = unsafe {
            self.rabitq
                .residual((from.code, from.scale), (to.code, to.scale), bits)
        };
        let t = residual.norm / residual.total;
        (residual, if t.is_finite() { -2.0 * t } else { 0.0 })
    }

    /// The table of a query for the estimator.
    pub(crate) fn lut(&self, query: &Encoded, lut: &mut Lut) {
        lut.fill(self.rabitq, &query.floats);
    }
}

impl Encoded {
    /// The squared distance of a query to what has this distance by the metric; for the inner product, no less.
    pub(crate) fn squared(&self, distance: f32) -> f32 {
        let squared = self.offset + self.slope * f64::from(distance);
        if squared.is_nan() {
            return f32::INFINITY;
        }
        squared.max(0.0) as f32
    }

    /// By how much squared distances of a query differ from those by the metric, in which digits may be lost.
    pub(crate) fn offset(&self) -> f32 {
        self.offset as f32
    }

    /// The bytes of the eight-bit code.
    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// The scale of that code.
    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    /// The eight-bit code of a stored vector.
    pub(crate) fn vector(&self) -> Vector8 {
        Vector8::new(&self.code, self.scale)
    }

    /// The same, with what [`Encoded::spread`] made of it.
    pub(crate) fn here(&self) -> Here<'_> {
        Here {
            vector: self.vector(),
            octets: &self.octets,
        }
    }

    /// Lets codes that are cut be compared with the eight-bit code.
    pub(crate) fn spread(&mut self) {
        self.octets.set(self.code.iter().map(|x| *x as i8));
        self.rounded = Vector8::new(self.octets.code(), self.scale).into();
    }

    /// By how much elements were rounded for those codes; 0 if they were not.
    pub(crate) fn own_scale(&self) -> f32 {
        self.rounded.scale
    }

    pub(crate) fn bytes(&self) -> usize {
        self.octets.bytes()
            + self.floats.capacity() * size_of::<f32>()
            + self.planes.bytes()
            + self.code.capacity()
    }
}

/// The floats of a stored vector, for cosine scaled to length 1.
pub(crate) fn unit(space: Space, vector: &[u8], out: &mut Vec<f32>) {
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

/// The nearest whole number of one between -127 and 127, of two the even one; some number of others. Without a call for each, which
/// is what rounding is for processors of old.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    /// Floats from there on are whole numbers, one after the other: their lowest bits count them.
    const WHOLE: f32 = 1.5 * (1 << 23) as f32;
    (x + WHOLE).to_bits() as i8
}

/// The bytes of floats, as the kernels read them.
pub(crate) fn bytes_of(floats: &[f32]) -> &[u8] {
    // SAFETY: a float has four bytes, of which each is initialised.
    unsafe { std::slice::from_raw_parts(floats.as_ptr().cast(), size_of_val(floats)) }
}
