use longbow_kernels::rabitq::Octets;

use crate::origin::MAX_DIM;

/// A vector as its eight-bit code: `scale * code` is the rotated vector, nearly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vector8 {
    pub(crate) code: *const i8,
    pub(crate) scale: f32,
    /// Squared length of what the code stands for.
    pub(crate) norm: f32,
    /// Sum of the code's elements.
    pub(crate) sum: i32,
}

/// A code that others are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    pub(crate) vector: Vector8,
    /// The same code, if the others are cut.
    pub(crate) octets: &'a Octets,
}

/// What an eight-bit code stands for, without its elements.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rounded {
    pub(crate) scale: f32,
    /// Squared length, and the length.
    pub(crate) norm: f32,
    pub(crate) length: f32,
    pub(crate) sum: i32,
}

impl From<Vector8> for Rounded {
    fn from(vector: Vector8) -> Self {
        Rounded {
            scale: vector.scale,
            norm: vector.norm,
            length: vector.norm.sqrt(),
            sum: vector.sum,
        }
    }
}

impl Vector8 {
    /// A code of `code.len()` elements with its scale.
    pub(crate) fn new(code: &[u8], scale: f32) -> Self {
        debug_assert!(code.len() <= 2 * MAX_DIM, "sums are within 32 bits");
        // Without a check of each sum, so that many are added at a time.
        let sum_of = |of: fn(i32) -> i32| {
            let elements = code.iter().map(|c| of(i32::from(*c as i8)));
            elements.fold(0, i32::wrapping_add)
        };
        Vector8 {
            code: code.as_ptr().cast(),
            scale,
            norm: scale * scale * sum_of(|c| c.wrapping_mul(c)) as f32,
            sum: sum_of(|c| c),
        }
    }
}
