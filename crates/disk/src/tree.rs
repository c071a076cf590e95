//! The folders and files of a disk in memory, each knowing what of it was synced.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks, whatever a panicking test did to the mutex before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The size of a disk in memory and how much of it is taken, in bytes.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) capacity: u64,
    pub(crate) used: AtomicU64,
}

impl Space {
    /// How much of `wanted` still fits; that much is taken.
    fn take(&self, wanted: u64) -> u64 {
        let mut granted = 0;
        let update = |used: u64| {
            granted = wanted.min(self.capacity.saturating_sub(used));
            Some(used + granted)
        };
        // `update` never answers None, so this cannot fail.
        let _ = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        granted
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Contents that are either being written, or were mapped and are shared.
#[derive(Debug)]
enum Content {
    Open(Vec<u8>),
    Shared(Bytes),
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::Open(bytes) => bytes,
            Content::Shared(bytes) => bytes,
        }
    }

    /// The contents for writing: copied only if a map of them is still held by someone.
    fn open(&mut self) -> &mut Vec<u8> {
        if let Content::Shared(bytes) = self {
            *self = Content::Open(Vec::from(mem::take(bytes)));
        }
        match self {
            Content::Open(bytes) => bytes,
            Content::Shared(_) => unreachable!("made open above"),
        }
    }

    fn share(&mut self) -> Bytes {
        if let Content::Open(bytes) = self {
            *self = Content::Shared(Bytes::from(mem::take(bytes)));
        }
        match self {
            Content::Shared(bytes) => bytes.clone(),
            Content::Open(_) => unreachable!("made shared above"),
        }
    }
}

/// One file. Its durable contents are the first `synced` bytes followed by `cut`: bytes that were synced and then
/// truncated away, where the truncation has not been synced yet.
#[derive(Debug)]
pub(crate) struct Body {
    content: Content,
    synced: usize,
    cut: Vec<u8>,
    space: Arc<Space>,
}

impl Drop for Body {
    fn drop(&mut self) {
        self.space.give_back(self.len());
    }
}

impl Body {
    pub(crate) fn new(space: &Arc<Space>) -> Body {
        Body {
            content: Content::Open(Vec::new()),
            synced: 0,
            cut: Vec::new(),
            space: space.clone(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.content.bytes().len() as u64
    }

    /// Appends as much of `part` as fits and says how much that was.
    pub(crate) fn append(&mut self, part: &[u8]) -> usize {
        let granted = self.space.take(part.len() as u64) as usize;
        self.content.open().extend_from_slice(&part[..granted]);
        granted
    }

    pub(crate) fn sync(&mut self) {
        self.synced = self.content.bytes().len();
        self.cut.clear();
    }

    /// Cuts to `len`, which is at most the length.
    pub(crate) fn truncate(&mut self, len: usize) {
        let content = self.content.open();
        self.space.give_back((content.len() - len) as u64);
        if len < self.synced {
            let mut cut = content[len..self.synced].to_vec();
            cut.append(&mut self.cut);
            self.cut = cut;
            self.synced = len;
        }
        content.truncate(len);
    }

    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> usize {
        let bytes = self.content.bytes();
        let start = usize::try_from(offset).map_or(bytes.len(), |o| o.min(bytes.len()));
        let found = buf.len().min(bytes.len() - start);
        buf[..found].copy_from_slice(&bytes[start..start + found]);
        found
    }

    pub(crate) fn share(&mut self) -> Bytes {
        self.content.share()
    }

    /// What a power loss leaves of it, where `keep` decides how many of the unsynced bytes happen to survive.
    fn survivor(&self, path: &Path, space: &Arc<Space>, keep: &mut Keep<'_>) -> Body {
        let bytes = self.content.bytes();
        let mut left = bytes[..self.synced].to_vec();
        left.extend_from_slice(&self.cut);
        let unsynced = bytes.len() - self.synced;
        if self.cut.is_empty() && unsynced > 0 {
            let kept = keep(path, unsynced as u64).min(unsynced as u64) as usize;
            left.extend_from_slice(&bytes[self.synced..self.synced + kept]);
        }
        space.used.fetch_add(left.len() as u64, Ordering::Relaxed);
        Body {
            synced: left.len(),
            content: Content::Open(left),
            cut: Vec::new(),
            space: space.clone(),
        }
    }
}

/// Told a file and how many unsynced bytes it has, answers how many of them survive.
pub(crate) type Keep<'a> = dyn FnMut(&Path, u64) -> u64 + 'a;

/// What a name in a folder stands for.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    File(Arc<Mutex<Body>>),
    Folder(Arc<Mutex<Folder>>),
}

/// The names in a folder: those that programs see, and those that a power loss would leave.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub(crate) live: BTreeMap<String, Node>,
    pub(crate) durable: BTreeMap<String, Node>,
}

impl Folder {
    pub(crate) fn sync(&mut self) {
        self.durable = self.live.clone();
    }

    /// What a power loss leaves of this folder, which lies at `path`.
    pub(crate) fn survivor(&self, path: &Path, space: &Arc<Space>, keep: &mut Keep<'_>) -> Folder {
        let mut live = BTreeMap::new();
        for (name, node) in &self.durable {
            let path = path.join(name);
            let left = match node {
                Node::File(body) => Node::File(Arc::new(Mutex::new(
                    lock(body).survivor(&path, space, keep),
                ))),
                Node::Folder(folder) => Node::Folder(Arc::new(Mutex::new(
                    lock(folder).survivor(&path, space, keep),
                ))),
            };
            live.insert(name.clone(), left);
        }
        let durable = live.clone();
        Folder { live, durable }
    }
}

/// The names on the way to `path` from the root. A relative path starts at the root too.
pub(crate) fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
        }
    }
    Ok(names)
}

/// The node at `path`, seen from `root`.
pub(crate) fn find(root: &Arc<Mutex<Folder>>, path: &Path) -> io::Result<Node> {
    let mut node = Node::Folder(root.clone());
    for name in names(path)? {
        let Node::Folder(folder) = node else {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        };
        let next = lock(&folder).live.get(&name).cloned();
        node = next.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    }
    Ok(node)
}

/// The folder at `path`.
pub(crate) fn find_folder(
    root: &Arc<Mutex<Folder>>,
    path: &Path,
) -> io::Result<Arc<Mutex<Folder>>> {
    match find(root, path)? {
        Node::Folder(folder) => Ok(folder),
        Node::File(_) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
    }
}

/// The folder that holds the last name of `path`, and that name.
pub(crate) fn find_place(
    root: &Arc<Mutex<Folder>>,
    path: &Path,
) -> io::Result<(Arc<Mutex<Folder>>, String)> {
    let mut names = names(path)?;
    let name = names
        .pop()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let folder = find_folder(root, &names.iter().collect::<PathBuf>())?;
    Ok((folder, name))
}
