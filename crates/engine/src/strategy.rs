//! The ways of a search.

/// How a query was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// All rows were scanned.
    Exact,
    /// The rows that pass the filter were scanned.
    ExactFiltered,
    /// Of the rows that pass the filter those were scanned, by codes of their own, that are in the clusters nearest to the
    /// query.
    ClustersFiltered,
    /// The graph was walked.
    Graph,
    /// The graph was walked, and rows not yet in it were scanned.
    GraphAndTail,
    /// Those rows of the graph that live were compared by their codes, since they are few; and rows not yet in it were scanned.
    Codes,
    /// The graph was walked, returning only rows that pass the filter.
    GraphFiltered,
    /// The graph gave fewer than there are, or left what it would miss, so all rows that pass were scanned.
    GraphThenExact,
    /// The same, and those were scanned, by codes of their own, that are in the clusters nearest to the query.
    GraphThenClusters,
}

impl Strategy {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Exact => "exact",
            Strategy::ExactFiltered => "exact_filtered",
            Strategy::ClustersFiltered => "clusters_filtered",
            Strategy::Graph => "graph",
            Strategy::GraphAndTail => "graph_and_tail",
            Strategy::Codes => "codes",
            Strategy::GraphFiltered => "graph_filtered",
            Strategy::GraphThenExact => "graph_then_exact",
            Strategy::GraphThenClusters => "graph_then_clusters",
        }
    }
}
