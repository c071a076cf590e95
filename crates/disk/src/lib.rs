//! Files, folders and syncs behind one [`Disk`] trait.
//!
//! This is the only crate of the workspace that touches `std::fs`. Everything above it is handed an
//! `Arc<dyn Disk>`, so the same code runs on the real disk, in memory, and on a disk that fails or forgets on demand.
//!
//! It is *not* a file-system abstraction for its own sake: there is no seek and no permission handling.
//! A file is created, appended to or written over, synced, perhaps truncated, and read; that is all that a log and
//! immutable segments need, and it keeps the question "what survives a crash?" answerable.
//!
//! Two kinds of crash are told apart throughout:
//!
//! * **kill -9**: the process ends, the operating system lives. Everything handed to the system survives.
//! * **power loss**: only what was synced survives. File contents need [`File::sync_data`], and the name of a new,
//!   renamed or removed file needs [`Disk::sync_dir`] on its folder.
//!
//! Invariants:
//!
//! * Every error names the operation, the path and the system's reason ([`Error`]).
//! * A failed call never succeeded in part silently: a short write is an error, and what it left behind lies at the
//!   end of the file, where [`File::truncate`] can cut it.
//! * Nothing here retries a failed sync: after one, the unsynced bytes may be gone although a second sync succeeds.
//!
//! Implementations: [`RealDisk`], [`MemoryDisk`] (knows what was synced, and can [crash](MemoryDisk::crash)), and
//! [`FaultyDisk`] (wraps either and fails the calls it is told to fail).
//!
//! ```
//! use longbow_disk::{Disk, MemoryDisk};
//! use std::{io::IoSlice, path::Path};
//!
//! let disk = MemoryDisk::new();
//! disk.create_dir_all(Path::new("data"))?;
//! let file = disk.create(Path::new("data/rows"))?;
//! file.append_vectored(&[IoSlice::new(b"safe")])?;
//! file.sync_data()?;
//! disk.sync_dir(Path::new("data"))?;
//! file.append_vectored(&[IoSlice::new(b", not safe")])?;
//!
//! let after = disk.crash();
//! assert_eq!(after.read(Path::new("data/rows"), 100)?, b"safe");
//! # Ok::<(), longbow_disk::Error>(())
//! ```
#![deny(unsafe_code)]

mod advice;
mod body;
mod disk;
mod error;
mod faulty;
mod file;
mod lock;
mod memory;
mod read_once;
mod real;
mod tree;

pub use advice::{read_by_pages, reads, will_need};
pub use disk::Disk;
pub use error::{Error, Operation, Result};
pub use faulty::{Fault, FaultyDisk};
pub use file::File;
pub use lock::Lock;
pub use memory::MemoryDisk;
pub use read_once::ReadOnce;
pub use real::RealDisk;
