//! What can go wrong with a log.

use crate::RESERVED_KINDS;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of a log operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller of [`Log::open`](crate::Log::open) may fail with when it is handed a record.
pub type ReplayError = Box<dyn std::error::Error + Send + Sync>;

/// What is wrong with the bytes at some place of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The segment's own header is too short, or is not one.
    SegmentHeader,
    /// No write of a log, however it was torn, begins a file like this: it is another file by the name of a segment, or
    /// damaged.
    Foreign,
    /// The segment's header, or its place among the others, says that it begins at another index.
    SegmentBegins {
        /// The index it begins at.
        found: u64,
    },
    /// The file ends within a frame.
    CutShort,
    /// The frame's header does not match its checksum, or is not one.
    Header,
    /// The payload does not match its checksum.
    Payload,
    /// The frame is sound but has another index.
    Index {
        /// The index it has.
        found: u64,
    },
    /// The bytes that fill the frame up are not zero.
    Padding,
    /// The frame, or the segment, is sound but does not follow what lies before it.
    Chain,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::SegmentHeader => f.write_str("the segment header is broken"),
            Flaw::Foreign => f.write_str("the file is none of a log"),
            Flaw::SegmentBegins { found } => write!(f, "the segment begins at index {found}"),
            Flaw::CutShort => f.write_str("the file ends within a frame"),
            Flaw::Header => f.write_str("the frame header is broken"),
            Flaw::Payload => f.write_str("the payload does not match its checksum"),
            Flaw::Index { found } => write!(f, "the frame there has index {found}"),
            Flaw::Padding => f.write_str("the padding is not zero"),
            Flaw::Chain => f.write_str("it does not continue what lies before it"),
        }
    }
}

/// A log operation that failed. Cheap to clone: one cause may be told to many callers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The disk failed a read, or a step of opening or purging.
    #[error("log: {0}")]
    Disk(Arc<longbow_disk::Error>),
    /// An earlier write or sync failed, so nothing can be appended any more; reads go on. Reopen the log after the disk
    /// was repaired.
    #[error("log: closed for writing since a disk error: {cause}")]
    Poisoned {
        /// The first failure.
        cause: Arc<longbow_disk::Error>,
    },
    /// The disk is full; the entry was not logged. Appends work again once there is space.
    #[error(
        "log: no space, the entry was not written; free some disk space and try again: {cause}"
    )]
    NoSpace {
        /// The failed write.
        cause: Arc<longbow_disk::Error>,
    },
    /// The entry is larger than an entry may be.
    #[error("log: an entry of {len} bytes is over the limit of {limit}; split it")]
    TooLong {
        /// Payload bytes of the entry.
        len: u64,
        /// The most there may be.
        limit: u64,
    },
    /// The entry has a kind that the log keeps for entries of its own.
    #[error(
        "log: kind {kind} is reserved, as all from {} to {} are; use another",
        RESERVED_KINDS.start(), RESERVED_KINDS.end()
    )]
    ReservedKind {
        /// The kind.
        kind: u8,
    },
    /// Several entries were to be handed in together, and there were none.
    #[error("log: no entries were handed in; hand in at least one")]
    Empty,
    /// Too much is waiting to be written already.
    #[error(
        "log: {queued} bytes wait to be written, over the limit of {limit} with this entry; try again later"
    )]
    QueueFull {
        /// Bytes waiting, without this entry.
        queued: u64,
        /// The most there may be.
        limit: u64,
    },
    /// The log was closed.
    #[error("log: closed")]
    Closed,
    /// Bytes that had been safe on disk are broken. Nothing was changed.
    #[error("log: {} is damaged at offset {offset}, where index {expected} should be: {flaw}; \
             restore the file or the whole folder from a backup or a replica, or let `longbow repair` tell \
             what cutting the log there would lose", file.display())]
    Damaged {
        /// The segment file.
        file: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// The index expected there.
        expected: u64,
        /// What is wrong there.
        flaw: Flaw,
    },
    /// A later version of this program wrote the segment.
    #[error("log: {} has format version {found}, this program knows versions up to {known}; use a newer one",
            file.display())]
    Newer {
        /// The segment file.
        file: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// Records between the checkpoint and the first segment are gone.
    #[error(
        "log: the checkpoint ends at index {after} but the log begins at {first}: the records between are missing; restore the files of the log, or the checkpoint, from a backup or a replica"
    )]
    Missing {
        /// The index up to which the caller needs no records.
        after: u64,
        /// The first index of the log.
        first: u64,
    },
    /// The records asked for were purged.
    #[error(
        "log: index {from} was purged, the log begins at {first}; start from a checkpoint or snapshot"
    )]
    Purged {
        /// The index asked for.
        from: u64,
        /// The first index there is.
        first: u64,
    },
    /// Whoever replayed the log failed.
    #[error("log: replay of index {index} failed: {cause}")]
    Replay {
        /// The record it failed on.
        index: u64,
        /// Why.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The system could not start a thread.
    #[error("log: cannot start the {name} thread: {cause}")]
    Thread {
        /// The thread's name.
        name: &'static str,
        /// The system's reason.
        cause: Arc<std::io::Error>,
    },
}

impl From<longbow_disk::Error> for Error {
    fn from(error: longbow_disk::Error) -> Error {
        Error::Disk(Arc::new(error))
    }
}

impl Error {
    /// Whether the cause is a full disk.
    pub fn is_no_space(&self) -> bool {
        match self {
            Error::Disk(cause) | Error::Poisoned { cause } | Error::NoSpace { cause } => {
                cause.is_no_space()
            }
            _ => false,
        }
    }
}
