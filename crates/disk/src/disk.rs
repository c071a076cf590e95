//! The seam between the database and the file system.

use crate::{Error, File, Lock, Operation, Result};
use bytes::Bytes;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// Files and folders. Paths are used as given, absolute or relative to the process's working folder; `..` is not used.
///
/// Each method says what survives *kill -9* (the process ends) and *power loss* (the machine ends).
pub trait Disk: Send + Sync + Debug {
    /// Creates a folder and the missing ones above it. Survives power loss when it returns. An existing folder is fine.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// The names, sorted, of the files and folders directly in `dir`. A name that is not UTF-8 appears with
    /// replacement characters; the database writes no such names.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Creates a file for appending; an existing one loses its contents. The folder must exist. The new name survives
    /// power loss after [`sync_dir`](Disk::sync_dir).
    fn create(&self, path: &Path) -> Result<Box<dyn File>>;

    /// Opens an existing file for reading and appending at its end. A handle remembers where the end is, so only one
    /// handle of a file may append or truncate at a time; any number may read.
    fn open(&self, path: &Path) -> Result<Box<dyn File>>;

    /// The whole file as bytes that are read from the disk when they are first touched and can be dropped from memory
    /// by the system at any time.
    ///
    /// Only for files that are immutable from now on: whoever truncates a mapped file ends every process that touches
    /// the bytes beyond its new end. Removing or renaming it is harmless; the map stays.
    fn map(&self, path: &Path) -> Result<Bytes>;

    /// Reads a whole file that is at most `limit` bytes long; a longer one is [`Error::TooLong`].
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = file.len()?;
        if len > limit {
            let path = path.to_path_buf();
            return Err(Error::TooLong { path, len, limit });
        }
        let len = usize::try_from(len).map_err(|_| {
            Error::new(
                Operation::Read,
                path,
                io::Error::from(io::ErrorKind::FileTooLarge),
            )
        })?;
        let mut bytes = vec![0; len];
        let found = file.read_at(0, &mut bytes)?;
        bytes.truncate(found);
        Ok(bytes)
    }

    /// Replaces the contents of `path` by `bytes`, or creates it. Whatever happens, `path` holds either the old or the
    /// new contents, whole; when this returns the new contents survive power loss. The file `<path>.tmp` is used on the
    /// way and may be left behind by a crash; the next call replaces it.
    fn write_atomic(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut name = path.as_os_str().to_os_string();
        name.push(".tmp");
        let temporary = PathBuf::from(name);
        let file = self.create(&temporary)?;
        file.append_vectored(&[IoSlice::new(bytes)])?;
        file.sync_data()?;
        drop(file);
        self.rename(&temporary, path)?;
        self.sync_dir(folder_of(path))
    }

    /// Renames a file or folder; an existing file at `to` is replaced. Readers see the old or the new state, never
    /// neither. Survives power loss after `sync_dir` on the folders of both names.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file. Open handles and maps of it stay usable. After power loss it may be back unless `sync_dir` was
    /// called on its folder.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes a folder and everything in it. After power loss any part of it may be back unless `sync_dir` was called
    /// on the folder above it.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes durable which names are in the folder: files and folders created in, renamed into or out of, and removed
    /// from it. It does not sync their contents.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Whether a file or folder of that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Bytes that this process may still write on the disk that holds `path`, which must exist.
    fn free_space(&self, path: &Path) -> Result<u64>;

    /// Takes the lock file at `path` for this process, creating it, and writes the process id and `note` (one line) into
    /// it for others to read. [`Error::Held`] names the holder if it is taken. Released when the returned value is
    /// dropped or the process ends.
    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>>;
}

/// The folder in which `path` has its name: `.` for a bare name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}
