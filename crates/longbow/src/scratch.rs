//! A folder to measure in.

use std::path::{Path, PathBuf};

use longbow_disk::{Disk, RealDisk};

/// A folder of this process alone, which is removed with everything in it.
#[derive(Debug)]
pub struct Scratch {
    /// Where it is.
    pub path: PathBuf,
}

impl Scratch {
    /// Makes it in `dir`, which is created if it is missing.
    pub fn create(dir: &Path) -> longbow_disk::Result<Scratch> {
        let path = dir.join(format!("longbow-bench-{}", std::process::id()));
        RealDisk.create_dir_all(&path)?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = RealDisk.remove_dir_all(&self.path) {
            eprintln!("longbow: {error}; remove the folder by hand");
        }
    }
}
