//! The table of entry points, chosen once for the processor.

use std::fmt;
use std::sync::LazyLock;

use crate::{Isa, Scalar};

type One<T> = unsafe fn(*const f32, *const u8, usize) -> T;
type Rows<T> = unsafe fn(&[f32], *const u8, &mut [T]);
type Gather<T> = unsafe fn(&[f32], &[&[u8]], &mut [T]);

/// The three forms of one operation.
pub(crate) struct Forms<T: 'static> {
    pub(crate) one: One<T>,
    pub(crate) rows: Rows<T>,
    pub(crate) gather: Gather<T>,
}

/// All operations on one element type.
pub(crate) struct Ops {
    pub(crate) l2: Forms<f32>,
    pub(crate) dot: Forms<f32>,
    pub(crate) dot_norm: Forms<(f32, f32)>,
    pub(crate) widen: unsafe fn(*const u8, &mut [f32]),
}

/// The kernels of one instruction set.
///
/// All methods panic if lengths disagree: that is a fault of the caller, never of data.
pub struct Kernels {
    pub(crate) isa: Isa,
    pub(crate) ops: [Ops; 4],
    pub(crate) within_f32: unsafe fn(&[u8], f32) -> bool,
    pub(crate) finite_f16: unsafe fn(&[u8]) -> bool,
}

/// Defines `KERNELS` of an instruction set: entry points compiled with its target features.
macro_rules! entry_points {
    ($isa:ident, $lanes:ty $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn one<E: crate::lanes::Element, O: crate::lanes::Op<$lanes>>(
            query: *const f32,
            row: *const u8,
            dim: usize,
        ) -> O::Out
        where
            $lanes: Load<E>,
        {
            // SAFETY: the caller vouches for lengths and instruction set; so below.
            unsafe { crate::lanes::fold::<$lanes, E, O>(query, row, dim) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn rows<E: crate::lanes::Element, O: crate::lanes::Op<$lanes>>(
            query: &[f32],
            rows: *const u8,
            out: &mut [O::Out],
        ) where
            $lanes: Load<E>,
        {
            // SAFETY: as in `one`.
            unsafe { crate::lanes::fold_rows::<$lanes, E, O>(query, rows, out) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn gather<E: crate::lanes::Element, O: crate::lanes::Op<$lanes>>(
            query: &[f32],
            rows: &[&[u8]],
            out: &mut [O::Out],
        ) where
            $lanes: Load<E>,
        {
            // SAFETY: as in `one`.
            unsafe { crate::lanes::fold_gather::<$lanes, E, O>(query, rows, out) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn widen<E: crate::lanes::Element>(row: *const u8, out: &mut [f32])
        where
            $lanes: Load<E>,
        {
            // SAFETY: as in `one`.
            unsafe { crate::lanes::widen::<$lanes, E>(row, out) }
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn within_f32(bytes: &[u8], most: f32) -> bool {
            crate::finite::within_f32(bytes, most)
        }

        $(#[target_feature(enable = $features)])?
        unsafe fn finite_f16(bytes: &[u8]) -> bool {
            crate::finite::finite_f16(bytes)
        }

        const fn forms<E: crate::lanes::Element, O: crate::lanes::Op<$lanes>>() -> crate::table::Forms<O::Out>
        where
            $lanes: Load<E>,
        {
            crate::table::Forms { one: one::<E, O>, rows: rows::<E, O>, gather: gather::<E, O> }
        }

        const fn ops<E: crate::lanes::Element>() -> crate::table::Ops
        where
            $lanes: Load<E>,
        {
            crate::table::Ops {
                l2: forms::<E, crate::ops::L2>(),
                dot: forms::<E, crate::ops::Dot>(),
                dot_norm: forms::<E, crate::ops::DotNorm>(),
                widen: widen::<E>,
            }
        }

        pub(crate) static KERNELS: crate::Kernels = crate::Kernels {
            isa: crate::Isa::$isa,
            ops: [ops::<F32>(), ops::<F16>(), ops::<I8>(), ops::<U8>()],
            within_f32,
            finite_f16,
        };
    };
}
pub(crate) use entry_points;

impl Kernels {
    /// The widest kernels that this processor runs. The choice is made on the first call.
    #[must_use]
    pub fn get() -> &'static Kernels {
        static CHOSEN: LazyLock<&'static Kernels> = LazyLock::new(|| {
            Isa::ALL
                .into_iter()
                .find_map(Kernels::for_isa)
                .unwrap_or(&crate::portable::KERNELS)
        });
        *CHOSEN
    }

    /// The kernels of one instruction set, or `None` if this processor cannot run them.
    #[must_use]
    pub fn for_isa(isa: Isa) -> Option<&'static Kernels> {
        if !isa.is_available() {
            return None;
        }
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Some(&crate::avx512::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Some(&crate::avx2::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => Some(&crate::sse2::KERNELS),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => Some(&crate::neon::KERNELS),
            Isa::Scalar => Some(&crate::portable::KERNELS),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512 | Isa::Avx2 | Isa::Sse2 => None,
            #[cfg(not(target_arch = "aarch64"))]
            Isa::Neon => None,
        }
    }

    /// The instruction set.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    #[inline(always)]
    fn ops(&self, scalar: Scalar) -> &Ops {
        &self.ops[scalar as usize]
    }

    /// Sum of squared differences of `query` (`dim` floats) and `stored` (`dim * scalar.size()` bytes).
    #[inline]
    #[must_use]
    pub fn l2_squared(&self, scalar: Scalar, query: &[f32], stored: &[u8]) -> f32 {
        one(scalar, &self.ops(scalar).l2, query, stored)
    }

    /// Inner product of `query` (`dim` floats) and `stored` (`dim * scalar.size()` bytes).
    #[inline]
    #[must_use]
    pub fn dot(&self, scalar: Scalar, query: &[f32], stored: &[u8]) -> f32 {
        one(scalar, &self.ops(scalar).dot, query, stored)
    }

    /// Inner product, and sum of squares of `stored`, in one pass.
    #[inline]
    #[must_use]
    pub fn dot_and_norm(&self, scalar: Scalar, query: &[f32], stored: &[u8]) -> (f32, f32) {
        one(scalar, &self.ops(scalar).dot_norm, query, stored)
    }

    /// [`Kernels::l2_squared`] of `out.len()` rows that lie one after the other in `rows`.
    #[inline]
    pub fn l2_squared_rows(&self, scalar: Scalar, query: &[f32], rows: &[u8], out: &mut [f32]) {
        contiguous(scalar, &self.ops(scalar).l2, query, rows, out);
    }

    /// [`Kernels::dot`] of `out.len()` rows that lie one after the other in `rows`.
    #[inline]
    pub fn dot_rows(&self, scalar: Scalar, query: &[f32], rows: &[u8], out: &mut [f32]) {
        contiguous(scalar, &self.ops(scalar).dot, query, rows, out);
    }

    /// [`Kernels::dot_and_norm`] of `out.len()` rows that lie one after the other in `rows`.
    #[inline]
    pub fn dot_and_norm_rows(
        &self,
        scalar: Scalar,
        query: &[f32],
        rows: &[u8],
        out: &mut [(f32, f32)],
    ) {
        contiguous(scalar, &self.ops(scalar).dot_norm, query, rows, out);
    }

    /// [`Kernels::l2_squared`] of rows anywhere in memory, prefetched ahead; `out` is as long as `rows`.
    #[inline]
    pub fn l2_squared_gather(
        &self,
        scalar: Scalar,
        query: &[f32],
        rows: &[&[u8]],
        out: &mut [f32],
    ) {
        scattered(scalar, &self.ops(scalar).l2, query, rows, out);
    }

    /// [`Kernels::dot`] of rows anywhere in memory, prefetched ahead; `out` is as long as `rows`.
    #[inline]
    pub fn dot_gather(&self, scalar: Scalar, query: &[f32], rows: &[&[u8]], out: &mut [f32]) {
        scattered(scalar, &self.ops(scalar).dot, query, rows, out);
    }

    /// [`Kernels::dot_and_norm`] of rows anywhere in memory, prefetched ahead; `out` is as long as `rows`.
    #[inline]
    pub fn dot_and_norm_gather(
        &self,
        scalar: Scalar,
        query: &[f32],
        rows: &[&[u8]],
        out: &mut [(f32, f32)],
    ) {
        scattered(scalar, &self.ops(scalar).dot_norm, query, rows, out);
    }

    /// Widens `stored` (`out.len() * scalar.size()` bytes) to floats. Exact for every element type.
    pub fn decode(&self, scalar: Scalar, stored: &[u8], out: &mut [f32]) {
        assert_eq!(
            stored.len(),
            out.len() * scalar.size(),
            "bytes of a vector of {} {scalar}",
            out.len()
        );
        // SAFETY: the length was checked, and the table was handed out only if the processor has the set.
        unsafe { (self.ops(scalar).widen)(stored.as_ptr(), out) }
    }

    /// Whether no element is infinite or NaN. `bytes` is a whole number of elements; integers always are finite.
    #[must_use]
    pub fn all_finite(&self, scalar: Scalar, bytes: &[u8]) -> bool {
        self.all_within(scalar, bytes, f32::MAX)
    }

    /// Whether no element is NaN, or farther from zero than `most`. That is at least what a `float16` can be, so of such and of
    /// integers no finite one is.
    #[must_use]
    pub fn all_within(&self, scalar: Scalar, bytes: &[u8], most: f32) -> bool {
        assert!(
            (65_504.0..=f32::MAX).contains(&most),
            "{most} is no limit of elements"
        );
        assert_eq!(
            bytes.len() % scalar.size(),
            0,
            "{} bytes are no whole number of {scalar}",
            bytes.len()
        );
        // SAFETY: the table was handed out only if the processor has the set.
        unsafe {
            match scalar {
                Scalar::F32 => (self.within_f32)(bytes, most),
                Scalar::F16 => (self.finite_f16)(bytes),
                Scalar::I8 | Scalar::U8 => true,
            }
        }
    }
}

#[inline(always)]
fn one<T>(scalar: Scalar, forms: &Forms<T>, query: &[f32], stored: &[u8]) -> T {
    assert_eq!(
        stored.len(),
        query.len() * scalar.size(),
        "bytes of a vector of {} {scalar}",
        query.len()
    );
    // SAFETY: the length was checked, and the table was handed out only if the processor has the set.
    unsafe { (forms.one)(query.as_ptr(), stored.as_ptr(), query.len()) }
}

#[inline(always)]
fn contiguous<T>(scalar: Scalar, forms: &Forms<T>, query: &[f32], rows: &[u8], out: &mut [T]) {
    let expected = (query.len() * scalar.size()).checked_mul(out.len());
    assert_eq!(
        Some(rows.len()),
        expected,
        "bytes of {} vectors of {} {scalar}",
        out.len(),
        query.len()
    );
    // SAFETY: the length was checked, and the table was handed out only if the processor has the set.
    unsafe { (forms.rows)(query, rows.as_ptr(), out) }
}

#[inline(always)]
fn scattered<T>(scalar: Scalar, forms: &Forms<T>, query: &[f32], rows: &[&[u8]], out: &mut [T]) {
    assert_eq!(rows.len(), out.len(), "one result a row");
    let bytes = query.len() * scalar.size();
    assert!(
        rows.iter().all(|row| row.len() == bytes),
        "every row has {bytes} bytes ({} {scalar})",
        query.len()
    );
    // SAFETY: the lengths were checked, and the table was handed out only if the processor has the set.
    unsafe { (forms.gather)(query, rows, out) }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels")
            .field("isa", &self.isa)
            .finish_non_exhaustive()
    }
}
