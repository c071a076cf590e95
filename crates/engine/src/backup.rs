//! Backups: a copy of everything in a folder of its own, made while the node goes on.
//!
//! A backup is a data folder like any other, with a log that begins where it ends: who starts a node on it, or on a copy of it,
//! has restored it. It is made of a checkpoint, of which nothing changes or goes until all is copied, since there is no other meanwhile.
//! So the log grows by what is written in that time, and files stay that a checkpoint would remove.
//!
//! Of each dataset it holds one moment between the begin of the backup and its end: all that was acknowledged before, and of
//! what came meanwhile the first part. The moments of several datasets differ. It is *not* a way to follow a node: each backup
//! copies everything.
//!
//! Files are written below a name that nobody takes for a backup, and synced; then all are read again, and their checksums
//! compared; only then the folder gets its name. So a backup that is there is whole, whatever ended the process or the machine. Whoever
//! writes holds the lock of the folder: others that make a backup of the same name leave it alone.

use std::io::IoSlice;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longbow_disk::{Disk, RealDisk};
use longbow_log::Log;
use longbow_storage::{DatasetManifest, Manifest};

use crate::checkpoint::{self, MANIFEST, covered, files_of};
use crate::engine::{Engine, lock_folder};
use crate::error::{Class, Error, Result};
use crate::folder::Folder;
use crate::seal::folder;
use crate::shared::Shared;
use crate::verify::{FileDamage, FileKind, Verification};

/// Bytes that are copied at once.
const PIECE: usize = 4 << 20;
/// What the name of a folder ends in that is no backup yet, or never will be.
const PARTIAL: &str = ".partial";
/// Most characters of a name.
const MAX_NAME: usize = 128;
/// Bytes that stay free on the disk of a backup: it may be that of the node, which writes meanwhile.
const RESERVE: u64 = 256 << 20;
/// Entries between the last that a backup may hold of the log and the first of its own. What follows the log of the node has not come so far,
/// and is told so by that of the backup, where it would else go on as if they were one.
const GAP: u64 = 1 << 32;

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Its folder.
    pub path: PathBuf,
    /// Every write that was acknowledged at this offset of the log or before is in it.
    pub offset: u64,
    /// Datasets in it.
    pub datasets: usize,
    /// Living rows in it.
    pub rows: u64,
    /// Files in it.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant is its documentation"
)]
pub enum BackupError {
    #[error(
        "'{name}' is no name for a backup; use 1 to {MAX_NAME} letters of ASCII, digits, '-', '_' and '.', a letter or digit first, and not '{PARTIAL}' at the end"
    )]
    BadName { name: String },
    #[error("{path} exists already; give the backup another name, or move away what is there")]
    Exists { path: PathBuf },
    #[error("another backup is under way ({holder}); try again when it has ended")]
    UnderWay { holder: String },
    #[error(
        "{path} is within the data folder; let `backup_path` name a folder beside it, or on another disk"
    )]
    Within { path: PathBuf },
    #[error(
        "the backup cannot be written: {0}; see that `backup_path` names a folder that the node may write to"
    )]
    Refused(BackupCause),
    #[error(
        "no space for a backup at {path}: it takes {needed} bytes, {RESERVE} are to stay free, and {free} are; free some, or let `backup_path` name a folder on another disk"
    )]
    NoRoom {
        path: PathBuf,
        free: u64,
        needed: u64,
    },
    #[error(
        "no space for a backup: {0}; free some, or let `backup_path` name a folder on another disk"
    )]
    NoSpace(BackupCause),
    #[error(
        "no backup was made, for the copy of {file} is not whole: {cause}; run `longbow verify` on the data folder while no node has it open"
    )]
    Damaged { file: PathBuf, cause: Box<Error> },
    #[error(
        "{path} is no data folder: its name ends in '{PARTIAL}', so it is a backup that never was whole, and goes with the next of its name; use a whole one, and give the folder another name only if it never was of a backup"
    )]
    Unfinished { path: PathBuf },
}

impl BackupError {
    /// Its code and its class.
    pub(crate) fn meaning(&self) -> (&'static str, Class) {
        match self {
            BackupError::BadName { .. } => ("bad_backup_name", Class::InvalidArgument),
            BackupError::Exists { .. } => ("backup_exists", Class::FailedPrecondition),
            BackupError::UnderWay { .. } => ("backup_under_way", Class::Unavailable),
            BackupError::Unfinished { .. } => ("backup_unfinished", Class::FailedPrecondition),
            BackupError::Refused(_) | BackupError::Within { .. } => {
                ("backup_refused", Class::FailedPrecondition)
            }
            BackupError::NoRoom { .. } | BackupError::NoSpace(_) => {
                ("disk_space", Class::ResourceExhausted)
            }
            BackupError::Damaged { .. } => ("data_damaged", Class::Internal),
        }
    }
}

/// What went wrong on the disk of the backup.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[expect(missing_docs, reason = "the kinds of errors are their names")]
pub enum BackupCause {
    Disk(#[from] longbow_disk::Error),
    Log(#[from] longbow_log::Error),
    Storage(#[from] longbow_storage::Error),
}

impl BackupCause {
    fn is_no_space(&self) -> bool {
        match self {
            BackupCause::Disk(disk) | BackupCause::Storage(longbow_storage::Error::Disk(disk)) => {
                disk.is_no_space()
            }
            BackupCause::Log(log) => log.is_no_space(),
            BackupCause::Storage(_) => false,
        }
    }
}

fn refused(cause: impl Into<BackupCause>) -> Error {
    let cause = cause.into();
    let error = match cause.is_no_space() {
        true => BackupError::NoSpace(cause),
        false => BackupError::Refused(cause),
    };
    error.into()
}

impl Engine {
    /// Copies all datasets into a new folder of that name in [`Options::backup_path`](crate::Options::backup_path), on
    /// the disk of this machine. Reads and writes go on meanwhile; there are no checkpoints but the first. Blocks until the copy was
    /// synced and read again, or the engine is closed.
    ///
    /// # Errors
    /// If the name is none or taken, there is not enough space, a disk fails, or a file is damaged: then nothing is left of it.
    pub fn backup(&self, name: &str) -> Result<Backup> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let path = &self.options().backup_path;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        if resolved(&path).starts_with(resolved(&self.options().path)) {
            return Err(BackupError::Within { path }.into());
        }
        self.backup_to(&disk, &path, name)
    }

    /// [`Engine::backup`] into a folder of any disk.
    ///
    /// # Errors
    /// As [`Engine::backup`].
    pub fn backup_to(&self, disk: &Arc<dyn Disk>, dir: &Path, name: &str) -> Result<Backup> {
        check_name(name)?;
        let shared = self.shared();
        let Some(_alone) = shared.backing_up.try_lock() else {
            let holder = "of this node".to_owned();
            return Err(BackupError::UnderWay { holder }.into());
        };
        let path = dir.join(name);
        if disk.exists(&path).map_err(refused)? {
            return Err(BackupError::Exists { path }.into());
        }
        let partial = dir.join(format!("{name}{PARTIAL}"));
        let copy = Copy {
            shared,
            disk,
            folder: begin(disk, &partial)?,
            path,
        };
        let made = copy.make();
        let path = copy.path.display();
        match &made {
            Ok(made) => {
                tracing::info!(%path, made.rows, made.bytes, made.offset, "a backup was made");
            }
            Err(error) => {
                tracing::warn!(%path, %error, "no backup was made");
                // What cannot be removed is none of a backup: its name says so.
                let _ = disk.remove_dir_all(copy.folder.path());
            }
        }
        made
    }
}

/// Where a folder is, or will be once it is made: links and `..` lead elsewhere than they look.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut resolved = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => _ = resolved.pop(),
            part => resolved.push(part),
        }
        if let Ok(there) = resolved.canonicalize() {
            resolved = there;
        }
    }
    resolved
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if begins && name.len() <= MAX_NAME && name.bytes().all(is_plain) && !name.ends_with(PARTIAL) {
        return Ok(());
    }
    let name = name.to_owned();
    Err(BackupError::BadName { name }.into())
}

/// Refuses what may be an unfinished backup as a data folder: who restored it would miss rows, or all of them, and not be told.
pub(crate) fn check_finished(path: &Path) -> Result<()> {
    let path = resolved(path);
    let name = path.file_name().map(|name| name.as_encoded_bytes());
    if name.is_none_or(|name| !name.ends_with(PARTIAL.as_bytes())) {
        return Ok(());
    }
    Err(BackupError::Unfinished { path }.into())
}

/// Takes hold of an empty folder: what is in one of that name was left by a process that ended.
fn begin(disk: &Arc<dyn Disk>, partial: &Path) -> Result<Folder> {
    disk.create_dir_all(partial).map_err(refused)?;
    let lock = lock_folder(disk.as_ref(), partial, "longbow backup");
    let lock = lock.map_err(|error| match error {
        Error::Locked { holder } => BackupError::UnderWay { holder }.into(),
        Error::Disk(error) => refused(error),
        other => other,
    })?;
    let empty = || {
        for name in ["datasets", "log"] {
            let dir = partial.join(name);
            if disk.exists(&dir)? {
                disk.remove_dir_all(&dir)?;
            }
        }
        let manifest = partial.join(MANIFEST);
        match disk.exists(&manifest)? {
            true => disk.remove(&manifest),
            false => Ok(()),
        }
    };
    empty().map_err(|error: longbow_disk::Error| refused(error))?;
    Ok(Folder::held(Arc::clone(disk), partial, lock))
}

/// A backup under way.
struct Copy<'a> {
    shared: &'a Shared,
    disk: &'a Arc<dyn Disk>,
    /// Where it is until it is whole, held until it has its name,
    folder: Folder,
    /// and then.
    path: PathBuf,
}

impl Copy<'_> {
    fn make(&self) -> Result<Backup> {
        let manifest = self.copy_all()?;
        let offset = covered(&manifest);
        let datasets = manifest.datasets.len();
        self.end(manifest)?;
        let found = self.verified()?;
        self.name().map_err(refused)?;
        let entries = |kind: FileKind| found.tallies[kind as usize].entries;
        Ok(Backup {
            path: self.path.clone(),
            offset,
            datasets,
            rows: entries(FileKind::Rows) - entries(FileKind::Tombstones),
            files: found.tallies.iter().map(|tally| tally.files).sum(),
            bytes: found.tallies.iter().map(|tally| tally.bytes).sum(),
        })
    }

    /// Makes a checkpoint, and copies its files.
    fn copy_all(&self) -> Result<Manifest> {
        let turn = self.shared.checkpoints.lock();
        let manifest = checkpoint::make(self.shared, &turn)?;
        let of = |dataset: &DatasetManifest| {
            let from = folder(self.shared, dataset.number);
            let to = self.folder.dataset_dir(dataset.number);
            let files = files_of(dataset).into_iter();
            files
                .map(|file| (from.join(file), to.join(file)))
                .collect::<Vec<_>>()
        };
        let files: Vec<_> = manifest.datasets.iter().flat_map(of).collect();
        self.check_space(files.iter().map(|(from, _)| from.as_path()))?;
        for dataset in &manifest.datasets {
            let dir = self.folder.dataset_dir(dataset.number);
            self.disk.create_dir_all(&dir).map_err(refused)?;
        }
        let mut piece = vec![0; PIECE];
        for (from, to) in &files {
            self.copy(from, to, &mut piece)?;
        }
        Ok(manifest)
    }

    fn check_space<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Result<()> {
        let mut needed = 0;
        for file in files {
            needed += self.shared.disk.open(file)?.len()?;
        }
        let path = self.folder.path();
        let free = self.disk.free_space(path).map_err(refused)?;
        if free >= needed + RESERVE {
            return Ok(());
        }
        let path = path.to_path_buf();
        Err(BackupError::NoRoom { path, free, needed }.into())
    }

    /// Copies and syncs a file, by pieces of that size.
    fn copy(&self, from: &Path, to: &Path, piece: &mut [u8]) -> Result<()> {
        let source = self.shared.disk.open(from)?;
        let copied = self.disk.create(to).map_err(refused)?;
        let mut at = 0;
        loop {
            self.go_on()?;
            let read = source.read_at(at, piece)?;
            if read == 0 {
                return copied.sync_data().map_err(refused);
            }
            let written = copied.append_vectored(&[IoSlice::new(&piece[..read])]);
            written.map_err(refused)?;
            at += read as u64;
        }
    }

    /// Who closes the engine does not wait for a backup.
    fn go_on(&self) -> Result<()> {
        match self.shared.stopping.load(Ordering::Acquire) {
            true => Err(Error::Stopped("it is shutting down".into())),
            false => Ok(()),
        }
    }

    /// Makes the names of all files durable, and writes an empty log and the manifest.
    fn end(&self, mut manifest: Manifest) -> Result<()> {
        let applied = manifest.datasets.iter().map(|dataset| dataset.applied);
        // The log goes on behind the last entry that any dataset holds: what it will hold is never taken for done.
        let last = applied.fold(manifest.catalog_index, u64::max) + GAP;
        manifest.catalog_index = last;
        for dataset in &mut manifest.datasets {
            dataset.applied = last;
            let dir = self.folder.dataset_dir(dataset.number);
            self.disk.sync_dir(&dir).map_err(refused)?;
        }
        let options = longbow_log::Options {
            prepared_segments: 0,
            ..longbow_log::Options::new(self.folder.log_dir())
        };
        let opened = Log::open(Arc::clone(self.disk), options, last, &mut |_| Ok(()));
        let (log, _) = opened.map_err(refused)?;
        log.close().map_err(refused)?;
        let path = self.folder.path().join(MANIFEST);
        manifest.write(self.disk.as_ref(), &path).map_err(refused)
    }

    /// Reads all again.
    fn verified(&self) -> Result<Verification> {
        let mut found = self.folder.verify(&mut |_| self.go_on())?;
        let Some(FileDamage { file, error, .. }) = found.damages.pop() else {
            return Ok(found);
        };
        Err(match error {
            Error::Disk(error) => refused(error),
            Error::Storage(error @ longbow_storage::Error::Disk(_)) => refused(error),
            // It was written a moment ago, and is no copy.
            Error::Log(error) => refused(error),
            error => {
                let cause = Box::new(error);
                BackupError::Damaged { file, cause }.into()
            }
        })
    }

    /// Gives it its name, for good.
    fn name(&self) -> longbow_disk::Result<()> {
        self.disk.rename(self.folder.path(), &self.path)?;
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let named = self.disk.sync_dir(dir);
        if named.is_err() {
            let _ = self.disk.rename(&self.path, self.folder.path());
        }
        named
    }
}
