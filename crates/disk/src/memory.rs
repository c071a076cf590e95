//! A disk in memory that can lose power.

use crate::body::{Body, Keep, KeepSector, Leave, Space};
use crate::lock::describe;
use crate::tree::{Folder, Node, find, find_folder, find_place, lock, names};
use crate::{Disk, Error, File, Lock, Operation, Result};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A disk in memory. Clones share the same files, as two processes on one machine would: dropping everything that was
/// opened and going on with a clone is a *kill -9*. [`crash`](MemoryDisk::crash) is a *power loss*.
///
/// Relative and absolute paths start at the same root, and `..` is refused.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    root: Arc<Mutex<Folder>>,
    /// Held while names are looked up and changed together.
    gate: Mutex<()>,
    /// The lock files that are held, and by whom.
    held: Arc<Mutex<BTreeMap<PathBuf, String>>>,
    space: Arc<Space>,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDisk {
    /// An empty disk without a limit on its size.
    pub fn new() -> MemoryDisk {
        MemoryDisk::with_capacity(u64::MAX)
    }

    /// An empty disk that holds `capacity` bytes of contents; beyond it, writes fail as on a full disk.
    pub fn with_capacity(capacity: u64) -> MemoryDisk {
        let used = AtomicU64::new(0);
        let space = Arc::new(Space { capacity, used });
        MemoryDisk::from_root(Folder::default(), space)
    }

    fn from_root(root: Folder, space: Arc<Space>) -> MemoryDisk {
        MemoryDisk {
            state: Arc::new(State {
                root: Arc::new(Mutex::new(root)),
                gate: Mutex::new(()),
                held: Arc::default(),
                space,
            }),
        }
    }

    /// The disk as it is found after a power loss now: every unsynced byte and every unsynced name is forgotten, and no
    /// lock is held. This disk itself goes on unchanged.
    pub fn crash(&self) -> MemoryDisk {
        self.crash_keeping(&mut |_, _| 0)
    }

    /// As [`crash`](MemoryDisk::crash), but the system had already written some unsynced bytes: `keep` is told each
    /// file that has any and how many, and answers how many of them, in the order of their writing, survive.
    pub fn crash_keeping(&self, keep: &mut Keep<'_>) -> MemoryDisk {
        self.crash_leaving(&mut Leave::First(keep))
    }

    /// As [`crash`](MemoryDisk::crash), but the system had already written some unsynced sectors of 512 bytes, in any
    /// order: `keep` is told each file and sector with unsynced bytes, and answers whether it survives. Of bytes beyond
    /// the synced end that did not survive, those before survivors are zeros.
    pub fn crash_scattered(&self, keep: &mut KeepSector<'_>) -> MemoryDisk {
        self.crash_leaving(&mut Leave::Sectors(keep))
    }

    fn crash_leaving(&self, leave: &mut Leave<'_, '_>) -> MemoryDisk {
        let _gate = lock(&self.state.gate);
        let capacity = self.state.space.capacity;
        let used = AtomicU64::new(0);
        let space = Arc::new(Space { capacity, used });
        let root = lock(&self.state.root).survivor(Path::new(""), &space, leave);
        MemoryDisk::from_root(root, space)
    }

    fn file(&self, path: &Path) -> io::Result<Arc<Mutex<Body>>> {
        match find(&self.state.root, path)? {
            Node::File(body) => Ok(body),
            Node::Folder(_) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        }
    }

    fn create_body(&self, path: &Path) -> io::Result<Arc<Mutex<Body>>> {
        let _gate = lock(&self.state.gate);
        let (folder, name) = find_place(&self.state.root, path)?;
        let mut folder = lock(&folder);
        match folder.live.get(&name) {
            Some(Node::Folder(_)) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Some(Node::File(body)) => {
                lock(body).truncate(0);
                Ok(body.clone())
            }
            None => {
                let body = Arc::new(Mutex::new(Body::new(&self.state.space)));
                folder.live.insert(name, Node::File(body.clone()));
                Ok(body)
            }
        }
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        let _gate = lock(&self.state.gate);
        let mut at = self.state.root.clone();
        for name in names(path)? {
            let next = {
                let mut folder = lock(&at);
                match folder.live.get(&name) {
                    Some(Node::Folder(next)) => next.clone(),
                    Some(Node::File(_)) => {
                        return Err(io::Error::from(io::ErrorKind::NotADirectory));
                    }
                    None => {
                        let next = Arc::<Mutex<Folder>>::default();
                        let node = Node::Folder(next.clone());
                        folder.live.insert(name.clone(), node.clone());
                        folder.durable.insert(name, node);
                        next
                    }
                }
            };
            at = next;
        }
        Ok(())
    }

    fn rename_node(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _gate = lock(&self.state.gate);
        let (old_folder, old_name) = find_place(&self.state.root, from)?;
        let (new_folder, new_name) = find_place(&self.state.root, to)?;
        let node = lock(&old_folder).live.get(&old_name).cloned();
        let node = node.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let there = lock(&new_folder).live.get(&new_name).cloned();
        if matches!(there, Some(Node::Folder(_))) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        lock(&old_folder).live.remove(&old_name);
        lock(&new_folder).live.insert(new_name, node);
        Ok(())
    }

    fn remove_node(&self, path: &Path, want_folder: bool) -> io::Result<()> {
        let _gate = lock(&self.state.gate);
        let (folder, name) = find_place(&self.state.root, path)?;
        let mut folder = lock(&folder);
        match (folder.live.get(&name), want_folder) {
            (None, _) => Err(io::Error::from(io::ErrorKind::NotFound)),
            (Some(Node::File(_)), true) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
            (Some(Node::Folder(_)), false) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            _ => {
                folder.live.remove(&name);
                Ok(())
            }
        }
    }
}

/// An open file of a [`MemoryDisk`].
#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    body: Arc<Mutex<Body>>,
}

impl MemoryFile {
    fn boxed(path: &Path, body: Arc<Mutex<Body>>) -> Box<dyn File> {
        let path = path.to_path_buf();
        Box::new(MemoryFile { path, body })
    }

    fn write(&self, body: &mut Body, mut offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        for part in parts {
            let written = body.write(offset, part);
            if written < part.len() {
                let full = io::Error::from(io::ErrorKind::StorageFull);
                return Err(Error::new(Operation::Write, &self.path, full));
            }
            offset += written as u64;
        }
        Ok(())
    }
}

impl File for MemoryFile {
    fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        let mut body = lock(&self.body);
        let start = body.len();
        self.write(&mut body, start, parts)?;
        Ok(start)
    }

    fn write_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let mut body = lock(&self.body);
        if offset > body.len() {
            let beyond = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(Error::new(Operation::Write, &self.path, beyond));
        }
        self.write(&mut body, offset, parts)
    }

    fn sync_data(&self) -> Result<()> {
        lock(&self.body).sync();
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let mut body = lock(&self.body);
        if len > body.len() {
            let beyond = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(Error::new(Operation::Truncate, &self.path, beyond));
        }
        body.truncate(len as usize);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(lock(&self.body).len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        Ok(lock(&self.body).read_at(offset, buf))
    }
}

/// A held lock of a [`MemoryDisk`].
#[derive(Debug)]
struct MemoryLock {
    path: PathBuf,
    held: Arc<Mutex<BTreeMap<PathBuf, String>>>,
}

impl Lock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.path);
    }
}

impl Disk for MemoryDisk {
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.make_folders(path)
            .map_err(|e| Error::new(Operation::CreateDir, path, e))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let folder =
            find_folder(&self.state.root, dir).map_err(|e| Error::new(Operation::List, dir, e))?;
        let names = lock(&folder).live.keys().cloned().collect();
        Ok(names)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        self.create_body(path)
            .map(|body| MemoryFile::boxed(path, body))
            .map_err(|e| Error::new(Operation::Create, path, e))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.file(path)
            .map(|body| MemoryFile::boxed(path, body))
            .map_err(|e| Error::new(Operation::Open, path, e))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        self.file(path)
            .map(|body| lock(&body).share())
            .map_err(|e| Error::new(Operation::Map, path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.rename_node(from, to)
            .map_err(|e| Error::new(Operation::Rename, from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.remove_node(path, false)
            .map_err(|e| Error::new(Operation::Remove, path, e))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.remove_node(path, true)
            .map_err(|e| Error::new(Operation::RemoveDir, path, e))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let folder = find_folder(&self.state.root, path)
            .map_err(|e| Error::new(Operation::SyncDir, path, e))?;
        lock(&folder).sync();
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match find(&self.state.root, path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::new(Operation::Stat, path, e)),
        }
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        find(&self.state.root, path).map_err(|e| Error::new(Operation::FreeSpace, path, e))?;
        let space = &self.state.space;
        Ok(space
            .capacity
            .saturating_sub(space.used.load(Ordering::Relaxed)))
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Box<dyn Lock>> {
        let fail = |e| Error::new(Operation::Lock, path, e);
        let key: PathBuf = names(path).map_err(fail)?.iter().collect();
        find_place(&self.state.root, path).map_err(fail)?;
        let mut held = lock(&self.state.held);
        if let Some(holder) = held.get(&key) {
            return Err(Error::Held {
                path: path.to_path_buf(),
                holder: holder.clone(),
            });
        }
        held.insert(key.clone(), describe(note));
        let held = self.state.held.clone();
        Ok(Box::new(MemoryLock { path: key, held }))
    }
}
