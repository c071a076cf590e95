use longbow_index::{Neighbor, Space};

/// A row that a query found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    pub row: u64,
    /// Smaller is better: the order of an answer, ties by the smaller row.
    pub key: f32,
    /// Higher is better: what the reply says.
    pub score: f32,
    /// In the metric's own measure; none if the row was not compared with the vector.
    pub distance: Option<f32>,
}

impl Hit {
    /// A row that was found by its vector.
    pub fn near(neighbor: Neighbor, space: Space) -> Self {
        let (distance, score) = space.to_distance_and_score(neighbor.distance);
        Hit {
            row: neighbor.row,
            key: neighbor.distance,
            score,
            distance: Some(distance),
        }
    }

    /// Best first.
    pub fn order(&self, other: &Hit) -> std::cmp::Ordering {
        self.key
            .total_cmp(&other.key)
            .then(self.row.cmp(&other.row))
    }
}
