//! What an instruction set must offer, and the loops written once over it.
//!
//! The methods are `inline(always)` and carry no target feature themselves: they are compiled as part of the
//! entry points of an instruction set, which do.

use crate::prefetch::prefetch;

/// An element type of stored vectors.
pub(crate) trait Element {
    /// Bytes of one element.
    const SIZE: usize;
}

/// [`crate::Scalar::F32`]
pub(crate) enum F32 {}
/// [`crate::Scalar::F16`]
pub(crate) enum F16 {}
/// [`crate::Scalar::I8`]
pub(crate) enum I8 {}
/// [`crate::Scalar::U8`]
pub(crate) enum U8 {}

impl Element for F32 {
    const SIZE: usize = 4;
}
impl Element for F16 {
    const SIZE: usize = 2;
}
impl Element for I8 {
    const SIZE: usize = 1;
}
impl Element for U8 {
    const SIZE: usize = 1;
}

/// Most lanes that any instruction set has.
pub(crate) const MAX_LANES: usize = 16;

/// A register of `f32` lanes.
///
/// # Safety
/// Every method needs a processor that has the instruction set.
pub(crate) trait Lanes: Copy {
    /// Number of lanes, at most [`MAX_LANES`].
    const COUNT: usize;
    /// All lanes zero.
    unsafe fn zero() -> Self;
    /// Lane by lane `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane `self - other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// Lane by lane `self * other + sum`, fused where the processor can.
    unsafe fn mul_add(self, other: Self, sum: Self) -> Self;
    /// Sum of all lanes.
    unsafe fn total(self) -> f32;
    /// Writes `COUNT` floats.
    unsafe fn store(self, to: *mut f32);
}

/// Loads stored elements into a register, widened to `f32`.
pub(crate) trait Load<E: Element>: Lanes {
    /// Reads `COUNT` elements at any alignment.
    unsafe fn load(at: *const u8) -> Self;

    /// Reads the first `count < COUNT` elements and no byte more; the other lanes are zero.
    #[inline(always)]
    unsafe fn load_part(at: *const u8, count: usize) -> Self {
        let mut whole = [0u8; MAX_LANES * 4];
        // SAFETY: the caller vouches for `count` readable elements, and `count * SIZE <= MAX_LANES * 4`.
        unsafe {
            std::ptr::copy_nonoverlapping(at, whole.as_mut_ptr(), count * E::SIZE);
            Self::load(whole.as_ptr())
        }
    }
}

/// A sum over the elements of two vectors.
///
/// # Safety
/// As [`Lanes`].
pub(crate) trait Op<V: Lanes> {
    /// Partial sums.
    type State: Copy;
    /// What the sum comes to.
    type Out;
    unsafe fn zero() -> Self::State;
    unsafe fn step(state: Self::State, query: V, stored: V) -> Self::State;
    unsafe fn join(a: Self::State, b: Self::State) -> Self::State;
    unsafe fn finish(state: Self::State) -> Self::Out;
}

/// One row. Four independent sums hide the latency of the additions; the tail is masked.
///
/// # Safety
/// `query` has `dim` floats, `row` has `dim * E::SIZE` bytes; the processor has the instruction set.
#[inline(always)]
pub(crate) unsafe fn fold<V, E, O>(query: *const f32, row: *const u8, dim: usize) -> O::Out
where
    E: Element,
    V: Load<E> + Load<F32>,
    O: Op<V>,
{
    let lanes = V::COUNT;
    // SAFETY: every access is at `i < dim` and covers at most `dim - i` elements.
    unsafe {
        let at = |i: usize| {
            let q = <V as Load<F32>>::load(query.add(i).cast());
            (q, <V as Load<E>>::load(row.add(i * E::SIZE)))
        };
        let mut sums = [O::zero(); 4];
        let mut i = 0;
        for _ in 0..dim / (4 * lanes) {
            for (j, sum) in sums.iter_mut().enumerate() {
                let (q, v) = at(i + j * lanes);
                *sum = O::step(*sum, q, v);
            }
            i += 4 * lanes;
        }
        let left = dim % (4 * lanes) / lanes;
        for (j, sum) in sums.iter_mut().take(3).enumerate() {
            if j < left {
                let (q, v) = at(i);
                *sum = O::step(*sum, q, v);
                i += lanes;
            }
        }
        if i < dim {
            let q = <V as Load<F32>>::load_part(query.add(i).cast(), dim - i);
            let v = <V as Load<E>>::load_part(row.add(i * E::SIZE), dim - i);
            sums[3] = O::step(sums[3], q, v);
        }
        O::finish(O::join(
            O::join(sums[0], sums[1]),
            O::join(sums[2], sums[3]),
        ))
    }
}

/// Rows that lie one after the other.
///
/// # Safety
/// As [`fold`] for each of `out.len()` rows.
#[inline(always)]
pub(crate) unsafe fn fold_rows<V, E, O>(query: &[f32], rows: *const u8, out: &mut [O::Out])
where
    E: Element,
    V: Load<E> + Load<F32>,
    O: Op<V>,
{
    let dim = query.len();
    for (i, value) in out.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `out.len()` rows of `dim * E::SIZE` bytes.
        *value = unsafe { fold::<V, E, O>(query.as_ptr(), rows.add(i * dim * E::SIZE), dim) };
    }
}

/// Rows ahead of the one that is scored whose lines are asked for. Four keep a core's line buffers busy with
/// rows of 512 bytes; more evict each other.
const AHEAD: usize = 4;

/// Rows anywhere in memory, each prefetched while earlier ones are scored.
///
/// # Safety
/// As [`fold`] for each of `rows`; `out` is as long as `rows`.
#[inline(always)]
pub(crate) unsafe fn fold_gather<V, E, O>(query: &[f32], rows: &[&[u8]], out: &mut [O::Out])
where
    E: Element,
    V: Load<E> + Load<F32>,
    O: Op<V>,
{
    for row in rows.iter().take(AHEAD) {
        prefetch(row.as_ptr(), row.len());
    }
    for (i, (row, value)) in rows.iter().zip(out.iter_mut()).enumerate() {
        if let Some(later) = rows.get(i + AHEAD) {
            prefetch(later.as_ptr(), later.len());
        }
        // SAFETY: the caller vouches for the length of each row.
        *value = unsafe { fold::<V, E, O>(query.as_ptr(), row.as_ptr(), query.len()) };
    }
}

/// Widens stored elements to `f32`.
///
/// # Safety
/// `row` has `out.len() * E::SIZE` bytes; the processor has the instruction set.
#[inline(always)]
pub(crate) unsafe fn widen<V, E>(row: *const u8, out: &mut [f32])
where
    E: Element,
    V: Load<E>,
{
    let (lanes, dim) = (V::COUNT, out.len());
    let mut i = 0;
    // SAFETY: every access is at `i < dim` and covers at most `dim - i` elements; the part buffer has room
    // for the widest register.
    unsafe {
        while dim - i >= lanes {
            V::load(row.add(i * E::SIZE)).store(out.as_mut_ptr().add(i));
            i += lanes;
        }
        if i < dim {
            let mut part = [0f32; MAX_LANES];
            V::load_part(row.add(i * E::SIZE), dim - i).store(part.as_mut_ptr());
            out[i..].copy_from_slice(&part[..dim - i]);
        }
    }
}
