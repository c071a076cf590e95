use std::io;

/// What can go wrong in an index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A query of another length than the indexed vectors.
    #[error(
        "query has {got} elements, expected {expected}: send a vector of the dataset's dimension"
    )]
    Dimension {
        /// Elements of the indexed vectors.
        expected: usize,
        /// Elements of the query.
        got: usize,
    },
    /// A query with an infinite or NaN element.
    #[error("element {at} of the query is {value}: send finite numbers only")]
    NotFinite {
        /// Position of the first such element.
        at: usize,
        /// The element.
        value: f32,
    },
    /// A query with an element that is too large for its distances.
    #[error(
        "element {at} of the query is {value}: of vectors with elements beyond {most:e} the distances overflow, scale all down"
    )]
    TooLarge {
        /// Position of the first such element.
        at: usize,
        /// The element.
        value: f32,
        /// The largest.
        most: f32,
    },
    /// A vector of another length than the index holds.
    #[error(
        "vector of row {row} has {got} bytes, expected {expected}: the row belongs to another column or schema"
    )]
    VectorBytes {
        /// The row that came with the vector.
        row: u64,
        /// Bytes of a vector of this index.
        expected: usize,
        /// Bytes that came.
        got: usize,
    },
    /// No room for another vector.
    #[error("index holds {limit} vectors and can hold no more: split the dataset into more shards")]
    Full {
        /// Most vectors that an index of this dimension holds.
        limit: u64,
    },
    /// A parameter out of range.
    #[error("{name} is {got}, expected {min} to {max}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        got: usize,
        /// Smallest value allowed.
        min: usize,
        /// Largest value allowed.
        max: usize,
    },
    /// What needs the graph to stand still was asked for while inserts run.
    #[error("inserts are running: pause them meanwhile")]
    Busy,
    /// The bytes are no checkpoint of an index.
    #[error(
        "checkpoint begins with {got:02x?}, expected {expected:02x?}: this is another kind of file"
    )]
    Magic {
        /// First bytes of a checkpoint.
        expected: [u8; 8],
        /// First bytes found.
        got: [u8; 8],
    },
    /// A checkpoint of a version that this program does not know.
    #[error(
        "checkpoint has version {got}, this program reads up to {known}: use a newer program, or rebuild"
    )]
    Version {
        /// Newest version known.
        known: u32,
        /// Version found.
        got: u32,
    },
    /// Fewer bytes than the checkpoint must have.
    #[error(
        "checkpoint ends at byte {have}, expected at least {need}: it is torn, rebuild the index"
    )]
    Truncated {
        /// Bytes that must be there.
        need: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// Damaged bytes.
    #[error(
        "checkpoint has checksum {got:08x}, expected {expected:08x}: it is damaged, rebuild the index"
    )]
    Checksum {
        /// Checksum that is written in the checkpoint.
        expected: u32,
        /// Checksum of the bytes.
        got: u32,
    },
    /// A damaged block of postings.
    #[error(
        "block at byte {at} has checksum {got:08x}, expected {expected:08x}: it is damaged, and its posting is to be made again from its rows"
    )]
    Block {
        /// Offset in the file of blocks.
        at: u64,
        /// Checksum that is written in the block.
        expected: u32,
        /// Checksum of its bytes.
        got: u32,
    },
    /// A field that contradicts others although the checksum is right.
    #[error(
        "checkpoint is inconsistent at byte {at}: {field} is {got}, limit {limit}: rebuild the index"
    )]
    Inconsistent {
        /// Offset in the checkpoint.
        at: u64,
        /// What was read.
        field: &'static str,
        /// Its value.
        got: u64,
        /// The bound that it breaks.
        limit: u64,
    },
    /// A checkpoint of an index with other parameters.
    #[error("checkpoint was made with {field} {got}, this index has {expected}: rebuild the index")]
    Mismatch {
        /// The parameter that differs.
        field: &'static str,
        /// Value of this index.
        expected: String,
        /// Value in the checkpoint.
        got: String,
    },
    /// So many rows of the checkpoint are gone that what is left of the graph would answer badly.
    #[error("{missing} of the {total} rows of the checkpoint no longer exist: rebuild the index")]
    Rebuild {
        /// Rows without a vector.
        missing: u64,
        /// Rows of the checkpoint.
        total: u64,
    },
    /// The writer failed.
    #[error("checkpoint could not be written: {0}")]
    Io(#[from] io::Error),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
