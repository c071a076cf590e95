/// What searches cost; each adds to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Stored vectors that were compared with a query.
    pub distance_computations: u64,
    /// Nodes of a graph whose links were followed.
    pub nodes_popped: u64,
    /// Bytes of nodes and vectors that were read, counted as a [`crate::QuantizedGraph`] does; other indexes do not.
    pub bytes_touched: u64,
}

impl std::ops::AddAssign for SearchStats {
    fn add_assign(&mut self, other: Self) {
        self.distance_computations += other.distance_computations;
        self.nodes_popped += other.nodes_popped;
        self.bytes_touched += other.bytes_touched;
    }
}
