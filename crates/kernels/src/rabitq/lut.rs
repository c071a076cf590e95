use super::line::Line;
use super::{DIM_STEP, GROUP, Rabitq};

/// What a query contributes to each possible group of signs, as bytes: the sum of the bytes looked up, times `scale`,
/// plus `offset`, is `<P q, s>` up to `scale / 2` a group. A query whose absolute values sum to no finite `f32`, and
/// one below 1e-36, count as zero.
#[derive(Clone, Default)]
pub struct Lut {
    /// 16 bytes a group of four dimensions.
    lines: Vec<Line>,
    groups: usize,
    pub(crate) scale: f32,
    pub(crate) offset: f32,
}

impl Lut {
    /// Fills the table for a rotated query, whose length is a multiple of [`DIM_STEP`].
    pub fn fill(&mut self, kernels: &Rabitq, rotated: &[f32]) {
        assert_eq!(rotated.len() % DIM_STEP, 0, "{} dimensions", rotated.len());
        self.groups = rotated.len() / GROUP;
        self.lines.resize(rotated.len() / DIM_STEP, Line::ZERO);
        let bytes = Line::bytes_mut(&mut self.lines);
        (self.scale, self.offset) = kernels.fill_lut(rotated, bytes);
    }

    /// Groups of four dimensions.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// What one unit of a sum of looked up bytes stands for: the rounding of a group is at most half of it.
    #[must_use]
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Bytes that are allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }

    /// The 16 entries of each group; the first begins at a cache line.
    pub(crate) fn tables(&self) -> &[[u8; 16]] {
        Line::bytes(&self.lines).as_chunks().0
    }
}
