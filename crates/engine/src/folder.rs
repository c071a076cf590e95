//! A data folder that no node runs on: held, so that it can be looked over, read and repaired.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longbow_disk::{Disk, Lock};

use crate::checkpoint::MANIFEST;
use crate::engine::lock_folder;
use crate::error::{Error, Result};

/// A data folder, held like a node holds its own: no node can be started on it meanwhile. Opening it reads nothing but
/// the names in it, so that a damaged one opens too.
#[derive(Debug)]
pub struct Folder {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) path: PathBuf,
    _lock: Box<dyn Lock>,
}

impl Folder {
    /// Takes hold of a folder. `purpose` is told to whoever finds it taken.
    ///
    /// # Errors
    /// [`Error::NotADataFolder`], or [`Error::Locked`] if a node runs on it; nothing was changed then.
    pub fn open(disk: Arc<dyn Disk>, path: &Path, purpose: &str) -> Result<Folder> {
        let mut found = false;
        for name in [MANIFEST, "log", "datasets"] {
            found |= disk.exists(&path.join(name))?;
        }
        if !found {
            let path = path.display().to_string();
            return Err(Error::NotADataFolder { path });
        }
        let lock = lock_folder(disk.as_ref(), path, purpose)?;
        Ok(Folder::held(disk, path, lock))
    }

    /// A folder whose lock is held already.
    pub(crate) fn held(disk: Arc<dyn Disk>, path: &Path, lock: Box<dyn Lock>) -> Folder {
        Folder {
            disk,
            path: path.to_path_buf(),
            _lock: lock,
        }
    }

    /// [`Folder::open`] on the disk of this machine.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn open_real(path: &Path, purpose: &str) -> Result<Folder> {
        Folder::open(Arc::new(longbow_disk::RealDisk), path, purpose)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(crate) fn dataset_dir(&self, number: u64) -> PathBuf {
        self.path.join("datasets").join(number.to_string())
    }
}
