//! The sums that the kernels form.

use crate::lanes::{Lanes, Op};

/// Sum of squared differences.
pub(crate) enum L2 {}
/// Sum of products.
pub(crate) enum Dot {}
/// Sum of products, and sum of squares of the stored vector.
pub(crate) enum DotNorm {}

impl<V: Lanes> Op<V> for L2 {
    type State = V;
    type Out = f32;

    #[inline(always)]
    unsafe fn zero() -> V {
        // SAFETY: the caller vouches for the instruction set; so below.
        unsafe { V::zero() }
    }

    #[inline(always)]
    unsafe fn step(state: V, query: V, stored: V) -> V {
        // SAFETY: as in `zero`.
        unsafe {
            let difference = query.sub(stored);
            difference.mul_add(difference, state)
        }
    }

    #[inline(always)]
    unsafe fn join(a: V, b: V) -> V {
        // SAFETY: as in `zero`.
        unsafe { a.add(b) }
    }

    #[inline(always)]
    unsafe fn finish(state: V) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { state.total() }
    }
}

impl<V: Lanes> Op<V> for Dot {
    type State = V;
    type Out = f32;

    #[inline(always)]
    unsafe fn zero() -> V {
        // SAFETY: the caller vouches for the instruction set; so below.
        unsafe { V::zero() }
    }

    #[inline(always)]
    unsafe fn step(state: V, query: V, stored: V) -> V {
        // SAFETY: as in `zero`.
        unsafe { query.mul_add(stored, state) }
    }

    #[inline(always)]
    unsafe fn join(a: V, b: V) -> V {
        // SAFETY: as in `zero`.
        unsafe { a.add(b) }
    }

    #[inline(always)]
    unsafe fn finish(state: V) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { state.total() }
    }
}

impl<V: Lanes> Op<V> for DotNorm {
    type State = (V, V);
    type Out = (f32, f32);

    #[inline(always)]
    unsafe fn zero() -> (V, V) {
        // SAFETY: the caller vouches for the instruction set; so below.
        unsafe { (V::zero(), V::zero()) }
    }

    #[inline(always)]
    unsafe fn step(state: (V, V), query: V, stored: V) -> (V, V) {
        // SAFETY: as in `zero`.
        unsafe {
            (
                query.mul_add(stored, state.0),
                stored.mul_add(stored, state.1),
            )
        }
    }

    #[inline(always)]
    unsafe fn join(a: (V, V), b: (V, V)) -> (V, V) {
        // SAFETY: as in `zero`.
        unsafe { (a.0.add(b.0), a.1.add(b.1)) }
    }

    #[inline(always)]
    unsafe fn finish(state: (V, V)) -> (f32, f32) {
        // SAFETY: as in `zero`.
        unsafe { (state.0.total(), state.1.total()) }
    }
}
