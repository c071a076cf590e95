use longbow_kernels::rabitq::GROUP;

/// Bytes of a cache line, at which what kernels read begins.
pub(crate) const ALIGN: usize = 64;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGN]);

/// Bytes that begin at a cache line.
#[derive(Debug, Clone)]
pub(crate) struct Lines(Vec<Line>);

impl Lines {
    /// So many bytes, a multiple of a line.
    pub(crate) fn zero(bytes: usize) -> Self {
        debug_assert_eq!(bytes % ALIGN, 0, "{bytes} bytes are whole lines");
        Lines(vec![Line([0; ALIGN]); bytes / ALIGN])
    }

    /// A copy of a first part.
    pub(crate) fn of_first(first: &[u8]) -> Self {
        let mut lines = Lines::zero(first.len());
        lines.bytes_mut().copy_from_slice(first);
        lines
    }

    /// Both parts of a block.
    pub(crate) fn of((first, second): (&[u8], &[u8])) -> Self {
        let mut lines = Lines::zero(first.len() + second.len());
        let (of_first, of_second) = lines.bytes_mut().split_at_mut(first.len());
        of_first.copy_from_slice(first);
        of_second.copy_from_slice(second);
        lines
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a line is so many bytes without padding, each initialised.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * ALIGN) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are a line.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * ALIGN) }
    }
}

/// Writes the signs of one of the vectors whose one-bit codes lie side by side: see `longbow_kernels::rabitq`.
pub(crate) fn put_signs(codes: &mut [u8], slot: usize, bits: &[u16]) {
    let (byte, shift) = (slot % 16, slot / 16 * 4);
    let nibbles = bits
        .iter()
        .flat_map(|word| (0..16 / GROUP).map(move |group| (word >> (group * GROUP) & 15) as u8));
    for (codes, nibble) in codes.chunks_exact_mut(16).zip(nibbles) {
        codes[byte] = codes[byte] & !(15 << shift) | nibble << shift;
    }
}
