use super::posting::Posting;

/// How far the vectors of some postings are from the centroids of their own, on average. It is kept up to date by sums, which
/// are off where vectors left that were some million times as far as those that stay: nothing that must hold is told by it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread {
    squares: f64,
    rows: u64,
}

impl Spread {
    pub(super) fn add(&mut self, posting: &Posting) {
        let (squares, rows) = posting.reach.squares();
        self.squares += squares;
        self.rows += rows;
    }

    pub(super) fn take(&mut self, posting: &Posting) {
        let (squares, rows) = posting.reach.squares();
        self.squares = (self.squares - squares).max(0.0);
        self.rows -= rows;
    }

    /// Vectors, each in its own posting.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Mean squared distance to the centroids.
    pub(super) fn mean(&self) -> f64 {
        self.squares / self.rows.max(1) as f64
    }
}
