//! What can go wrong with a benchmark of the engine.

use std::path::PathBuf;

/// A benchmark that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused something.
    #[error("{0}")]
    Disk(#[from] longbow_disk::Error),
    /// The engine refused something.
    #[error("{0}")]
    Engine(#[from] longbow_engine::Error),
    /// Rows that make no batch.
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A file that this command has no use for.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, where, and what to do.
        reason: String,
    },
    /// Sizes that do not go together.
    #[error("{0}")]
    Mismatch(String),
    /// The engine broke a promise, so that figures would be worth nothing.
    #[error("{0}; the figures would be worth nothing")]
    Promise(&'static str),
    /// The index took too long.
    #[error("the index still lacks {missing} rows after {seconds} s; ask for fewer")]
    Slow {
        /// Rows that it has not taken.
        missing: u64,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A thread ended in a panic.
    #[error("a thread of the benchmark ended too early")]
    Thread,
}
