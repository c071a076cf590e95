//! What can go wrong with a benchmark.

use std::path::PathBuf;

/// A benchmark that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log refused something.
    #[error("{0}")]
    Log(#[from] longbow_log::Error),
    /// The disk refused something.
    #[error("{0}")]
    Disk(#[from] longbow_disk::Error),
    /// The disk has too little space.
    #[error(
        "{} has {free} bytes of free space and the benchmark needs {needed}; free some, name another --dir, or lower --segment-size",
        folder.display()
    )]
    Space {
        /// The folder.
        folder: PathBuf,
        /// Bytes there are.
        free: u64,
        /// Bytes it takes.
        needed: u64,
    },
    /// A log did not hold what was written.
    #[error("the log was written with {written} entries and read with {seen}")]
    Recovered {
        /// Entries that were handed out.
        seen: u64,
        /// Entries that were acknowledged.
        written: u64,
    },
    /// The system gave no thread.
    #[error("cannot start thread {number} of the callers: {cause}; lower --callers")]
    Thread {
        /// Which one, from 1.
        number: u64,
        /// The system's reason.
        cause: std::io::Error,
    },
}
