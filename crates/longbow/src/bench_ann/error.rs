//! What can go wrong with a benchmark of an index.

use std::path::PathBuf;

/// A benchmark that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused something.
    #[error("{0}")]
    Disk(#[from] longbow_disk::Error),
    /// The index refused something.
    #[error("{0}")]
    Index(#[from] longbow_index::Error),
    /// A file's name does not tell its format.
    #[error(
        "{}: name a file that ends in .npy, .fvecs, .ivecs (truth alone), .parquet or idx3-ubyte",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not what its name says, or that this command has no use for.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Files that do not go together.
    #[error("{0}")]
    Mismatch(String),
    /// The report could not be written as JSON.
    #[error("cannot write the report: {0}")]
    Json(#[from] serde_json::Error),
    /// Standard input or output failed.
    #[error("cannot go on answering requests: {0}")]
    Serve(#[from] std::io::Error),
    /// A thread ended in a panic.
    #[error("a thread of the benchmark ended too early")]
    Thread,
}
