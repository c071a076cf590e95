//! The names on a disk in memory, and which of them were synced.

use crate::body::{Body, Leave, Space};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks, whatever a panicking test did to the mutex before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    pub(crate) fn survivor(
        &self,
        path: &Path,
        space: &Arc<Space>,
        leave: &mut Leave<'_, '_>,
    ) -> Folder {
        let mut live = BTreeMap::new();
        for (name, node) in &self.durable {
            let path = path.join(name);
            let left = match node {
                Node::File(body) => Node::File(Arc::new(Mutex::new(
                    lock(body).survivor(&path, space, leave),
                ))),
                Node::Folder(folder) => Node::Folder(Arc::new(Mutex::new(
                    lock(folder).survivor(&path, space, leave),
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
