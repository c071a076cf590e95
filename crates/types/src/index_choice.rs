//! The values of the option `vector_index`.

/// The kind of index that a vector column has where its field does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexChoice {
    /// None: all rows are scanned.
    Flat,
    /// A graph in memory.
    Hnsw,
    /// Postings in a file, where they can be.
    Spfresh,
    /// One of these by the number of rows and the memory limit.
    Auto,
}
