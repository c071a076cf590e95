//! Rows on their way into a dataset.

/// Ids with their vectors, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Elements of a vector.
    pub dim: usize,
    /// The ids.
    pub ids: Vec<i64>,
    /// The vectors, one after the other.
    pub elements: Vec<f32>,
}

impl Rows {
    /// None yet, of vectors with so many elements.
    pub fn new(dim: usize) -> Rows {
        Rows {
            dim,
            ..Rows::default()
        }
    }

    /// Adds one.
    pub fn push(&mut self, id: i64, vector: &[f32]) {
        self.ids.push(id);
        self.elements.extend_from_slice(vector);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The vector at a place.
    pub fn vector(&self, at: usize) -> &[f32] {
        &self.elements[at * self.dim..][..self.dim]
    }

    /// Pieces of up to `size` rows: their ids, and their vectors one after the other.
    pub fn pieces(&self, size: usize) -> impl Iterator<Item = (&[i64], &[f32])> {
        let vectors = self.elements.chunks((size * self.dim).max(1));
        self.ids.chunks(size.max(1)).zip(vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_rows_in_order() {
        let mut rows = Rows::new(2);
        for id in 0..5u8 {
            rows.push(i64::from(id), &[f32::from(id), 0.5]);
        }
        assert_eq!((rows.len(), rows.vector(3)), (5, &[3.0, 0.5][..]));
        let pieces: Vec<_> = rows.pieces(2).collect();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1], (&[2, 3][..], &[2.0, 0.5, 3.0, 0.5][..]));
        assert_eq!(pieces[2], (&[4][..], &[4.0, 0.5][..]));
        assert_eq!(Rows::new(2).pieces(2).count(), 0);
    }
}
