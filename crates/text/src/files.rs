//! The files of a tantivy index, in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, FileHandle, OwnedBytes, TerminatingWrite, WatchCallback, WatchHandle,
};

/// Files by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    all: Arc<Mutex<BTreeMap<PathBuf, OwnedBytes>>>,
}

impl Files {
    pub fn insert(&self, path: &Path, bytes: OwnedBytes) {
        self.lock().insert(path.to_owned(), bytes);
    }

    /// All files, by name.
    pub fn all(&self) -> Vec<(PathBuf, OwnedBytes)> {
        let files = self.lock();
        let pairs = files
            .iter()
            .map(|(path, bytes)| (path.clone(), bytes.clone()));
        pairs.collect()
    }

    /// Their length together.
    pub fn bytes(&self) -> usize {
        self.lock().values().map(|bytes| bytes.len()).sum()
    }

    fn find(&self, path: &Path) -> Result<OwnedBytes, OpenReadError> {
        let found = self.lock().get(path).cloned();
        found.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, OwnedBytes>> {
        // A map of whole files is in order whoever panicked.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.find(path)?))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let removed = self.lock().remove(path);
        removed
            .map(drop)
            .ok_or_else(|| DeleteError::FileDoesNotExist(path.to_owned()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.lock().contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<tantivy::directory::WritePtr, OpenWriteError> {
        Ok(io::BufWriter::new(Box::new(Writing {
            files: self.clone(),
            path: path.to_owned(),
            bytes: Vec::new(),
        })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Ok(self.find(path)?.to_vec())
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.insert(path, OwnedBytes::new(data.to_vec()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// Nobody is told: an index here is written once, before it is read.
    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// A file that is being written.
struct Writing {
    files: Files,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Writing {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.shrink_to_fit();
        self.files.insert(&self.path, OwnedBytes::new(bytes));
        Ok(())
    }
}
