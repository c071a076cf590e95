//! What can go wrong on a disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of a disk operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of calls a disk answers; errors name them and [`FaultyDisk`](crate::FaultyDisk) counts and fails them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `create_dir_all`
    CreateDir,
    /// `list`
    List,
    /// `create`
    Create,
    /// `open`
    Open,
    /// `map`
    Map,
    /// `read` and `read_at`
    Read,
    /// `append_vectored`
    Write,
    /// `truncate`
    Truncate,
    /// `sync_data`
    Sync,
    /// `sync_dir`
    SyncDir,
    /// `rename`
    Rename,
    /// `remove`
    Remove,
    /// `remove_dir_all`
    RemoveDir,
    /// `exists` and `len`
    Stat,
    /// `free_space`
    FreeSpace,
    /// `lock`
    Lock,
}

impl Operation {
    /// Every kind, in declaration order.
    pub const ALL: [Operation; 16] = [
        Operation::CreateDir,
        Operation::List,
        Operation::Create,
        Operation::Open,
        Operation::Map,
        Operation::Read,
        Operation::Write,
        Operation::Truncate,
        Operation::Sync,
        Operation::SyncDir,
        Operation::Rename,
        Operation::Remove,
        Operation::RemoveDir,
        Operation::Stat,
        Operation::FreeSpace,
        Operation::Lock,
    ];

    fn verb(self) -> &'static str {
        match self {
            Operation::CreateDir => "create folder",
            Operation::List => "list folder",
            Operation::Create => "create file",
            Operation::Open => "open file",
            Operation::Map => "map file",
            Operation::Read => "read from",
            Operation::Write => "write to",
            Operation::Truncate => "truncate",
            Operation::Sync => "sync",
            Operation::SyncDir => "sync folder",
            Operation::Rename => "rename",
            Operation::Remove => "remove file",
            Operation::RemoveDir => "remove folder",
            Operation::Stat => "look at",
            Operation::FreeSpace => "ask for the free space of",
            Operation::Lock => "lock",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}

/// A disk operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused or failed the operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: Operation,
        /// On which path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is longer than the caller is ready to hold in memory.
    #[error("{} is {len} bytes long, more than the {limit} bytes expected there at most", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// The caller's limit in bytes.
        limit: u64,
    },
    /// A file that is no lock has its name.
    #[error("{} is a file of somebody else's, and no lock; move it away, or use another folder", path.display())]
    NoLock {
        /// The file.
        path: PathBuf,
    },
    /// Another process, or another part of this one, holds the lock.
    #[error("{} is in use by {holder}; stop or close that first, or use another folder", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote about itself: its process id and note.
        holder: String,
    },
}

impl Error {
    pub(crate) fn new(operation: Operation, path: &Path, source: io::Error) -> Error {
        Error::Io {
            operation,
            path: path.to_path_buf(),
            source,
        }
    }

    /// Whether the disk, or the user's quota on it, is full.
    pub fn is_no_space(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Error::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    /// Whether the file or folder does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
