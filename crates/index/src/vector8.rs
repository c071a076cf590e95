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

impl Vector8 {
    /// A code of `code.len()` elements with its scale.
    pub(crate) fn new(code: &[u8], scale: f32) -> Self {
        let elements = || code.iter().map(|c| i32::from(*c as i8));
        let squares: i64 = elements().map(|c| i64::from(c * c)).sum();
        Vector8 {
            code: code.as_ptr().cast(),
            scale,
            norm: scale * scale * squares as f32,
            sum: elements().sum(),
        }
    }
}
