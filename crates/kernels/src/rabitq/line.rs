/// Bytes that begin at a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line([u8; 64]);

impl Line {
    pub(crate) const ZERO: Line = Line([0; 64]);
    const BYTES: usize = Self::ZERO.0.len();

    pub(crate) fn bytes(lines: &[Line]) -> &[u8] {
        // SAFETY: a line is its bytes, without padding.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), Self::BYTES * lines.len()) }
    }

    pub(crate) fn bytes_mut(lines: &mut [Line]) -> &mut [u8] {
        // SAFETY: a line is its bytes, without padding, and any bytes are lines.
        unsafe {
            std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), Self::BYTES * lines.len())
        }
    }
}
