//! A disk for a process that dies, and one whose failed syncs forget.

use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use longbow_disk::{Disk, Error, File, Lock, Operation, Result};

/// Passes so many calls on, and fails all that follow without doing anything: what its process did up to a moment,
/// and no more. Clones share the count.
#[derive(Debug, Clone)]
pub struct Mortal {
    inner: Arc<dyn Disk>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    left: AtomicU64,
    /// The sync of a file that fails, counted from 1; 0 for none.
    bad_sync: AtomicU64,
    /// Files whose bytes are gone although later syncs of them succeed, as an operating system does that drops what
    /// it could not write.
    forgotten: Mutex<HashSet<PathBuf>>,
}

impl Mortal {
    /// A disk that dies after so many calls.
    pub fn new(inner: Arc<dyn Disk>, calls: u64) -> Mortal {
        let state = State {
            left: AtomicU64::new(calls),
            bad_sync: AtomicU64::new(0),
            forgotten: Mutex::default(),
        };
        Mortal {
            inner,
            state: Arc::new(state),
        }
    }

    /// Fails the sync of a file that comes after `before` others. Of that file nothing more becomes durable, whatever
    /// later syncs say.
    pub fn fail_sync(&self, before: u64) {
        self.state.bad_sync.store(before + 1, Ordering::Relaxed);
    }

    fn call(&self, operation: Operation, path: &Path) -> Result<()> {
        let left = self
            .state
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        left.map(drop)
            .map_err(|_| error(operation, path, "the process is dead"))
    }

    fn forgotten(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.state.forgotten.lock().expect("nobody panics here")
    }

    fn wrap(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(MortalFile {
            path: path.to_path_buf(),
            inner,
            disk: self.clone(),
        })
    }
}

fn error(operation: Operation, path: &Path, why: &str) -> Error {
    Error::Io {
        operation,
        path: path.to_path_buf(),
        source: io::Error::other(why.to_owned()),
    }
}

#[derive(Debug)]
struct MortalFile {
    path: PathBuf,
    inner: Box<dyn File>,
    disk: Mortal,
}

impl File for MortalFile {
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        self.disk.call(Operation::Write, &self.path)?;
        self.inner.append_vectored(parts)
    }

    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        self.disk.call(Operation::Write, &self.path)?;
        self.inner.write_at(offset, parts)
    }

    fn sync_data(&self) -> Result<()> {
        self.disk.call(Operation::Sync, &self.path)?;
        let mut forgotten = self.disk.forgotten();
        let bad_sync = &self.disk.state.bad_sync;
        let left = bad_sync.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        if left == Ok(1) {
            forgotten.insert(self.path.clone());
            return Err(error(Operation::Sync, &self.path, "input/output error"));
        }
        if forgotten.contains(&self.path) {
            return Ok(());
        }
        self.inner.sync_data()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.disk.call(Operation::Truncate, &self.path)?;
        self.inner.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        self.disk.call(Operation::Stat, &self.path)?;
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.disk.call(Operation::Read, &self.path)?;
        self.inner.read_at(offset, buf)
    }
}

impl Disk for Mortal {
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Operation::CreateDir, path)?;
        self.inner.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.call(Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        self.call(Operation::Create, path)?;
        // What is written now was never part of a failed sync.
        self.forgotten().remove(path);
        Ok(self.wrap(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.call(Operation::Open, path)?;
        Ok(self.wrap(path, self.inner.open(path)?))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        self.call(Operation::Map, path)?;
        self.inner.map(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call(Operation::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call(Operation::Remove, path)?;
        self.inner.remove(path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Operation::RemoveDir, path)?;
        self.inner.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.call(Operation::SyncDir, path)?;
        self.inner.sync_dir(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.call(Operation::Stat, path)?;
        self.inner.exists(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.call(Operation::FreeSpace, path)?;
        self.inner.free_space(path)
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>> {
        self.call(Operation::Lock, path)?;
        self.inner.lock(path, note)
    }
}
