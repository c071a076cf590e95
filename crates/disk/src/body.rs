//! The contents of one file of a disk in memory, and what of them a power loss would leave.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What survives or not on its own, in bytes.
const SECTOR: u64 = 512;

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

/// Told a file and how many unsynced bytes it has, answers how many of them survive.
pub(crate) type Keep<'a> = dyn FnMut(&Path, u64) -> u64 + 'a;

/// Told a file and the number of a sector with unsynced bytes, answers whether that survives.
pub(crate) type KeepSector<'a> = dyn FnMut(&Path, u64) -> bool + 'a;

/// Which unsynced bytes survive a power loss.
pub(crate) enum Leave<'a, 'b> {
    /// The first that were written.
    First(&'a mut Keep<'b>),
    /// Any sectors.
    Sectors(&'a mut KeepSector<'b>),
}

/// A change that was not synced, with what it takes to undo it.
#[derive(Debug)]
enum Change {
    /// `len` bytes were written at `offset`; the first of them over `old`, the others beyond the end.
    Write {
        offset: usize,
        len: usize,
        old: Vec<u8>,
    },
    /// These bytes were cut off the end.
    Cut(Vec<u8>),
}

/// One file.
#[derive(Debug)]
pub(crate) struct Body {
    content: Content,
    /// In the order in which they happened.
    unsynced: Vec<Change>,
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
            unsynced: Vec::new(),
            space: space.clone(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.content.bytes().len() as u64
    }

    /// Writes as much of `part` at `offset`, which is at most the length, as fits, and says how much that was.
    pub(crate) fn write(&mut self, offset: u64, part: &[u8]) -> usize {
        // Within the length of a vector, as the caller checked.
        let offset = offset as usize;
        let content = self.content.open();
        let over = part.len().min(content.len() - offset);
        let granted = over + self.space.take((part.len() - over) as u64) as usize;
        let old = content[offset..offset + over].to_vec();
        content[offset..offset + over].copy_from_slice(&part[..over]);
        content.extend_from_slice(&part[over..granted]);
        self.unsynced.push(Change::Write {
            offset,
            len: granted,
            old,
        });
        granted
    }

    pub(crate) fn sync(&mut self) {
        self.unsynced.clear();
    }

    /// Cuts to `len`, which is at most the length.
    pub(crate) fn truncate(&mut self, len: usize) {
        let content = self.content.open();
        self.space.give_back((content.len() - len) as u64);
        self.unsynced.push(Change::Cut(content.split_off(len)));
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

    /// What a power loss leaves of it.
    pub(crate) fn survivor(
        &self,
        path: &Path,
        space: &Arc<Space>,
        leave: &mut Leave<'_, '_>,
    ) -> Body {
        let (mut left, redo) = self.undone();
        // A cut that is not synced may be undone, and then so is what was written behind it.
        let cut = self.unsynced.iter().any(|c| matches!(c, Change::Cut(_)));
        match leave {
            _ if cut || redo.is_empty() => {}
            Leave::First(keep) => {
                let unsynced = redo.iter().map(|(_, new)| new.len() as u64).sum();
                let mut kept = keep(path, unsynced).min(unsynced) as usize;
                for (offset, new) in redo {
                    let now = kept.min(new.len());
                    overwrite(&mut left, offset, &new[..now]);
                    kept -= now;
                }
            }
            Leave::Sectors(keep) => self.scatter(path, &mut left, &redo, keep),
        }
        space.used.fetch_add(left.len() as u64, Ordering::Relaxed);
        Body {
            content: Content::Open(left),
            unsynced: Vec::new(),
            space: space.clone(),
        }
    }

    /// The synced contents, and the unsynced writes that lead from them to the present ones.
    fn undone(&self) -> (Vec<u8>, Vec<(usize, Vec<u8>)>) {
        let mut left = self.content.bytes().to_vec();
        let mut redo = Vec::new();
        for change in self.unsynced.iter().rev() {
            match change {
                Change::Cut(bytes) => left.extend_from_slice(bytes),
                Change::Write { offset, len, old } => {
                    redo.push((*offset, left[*offset..offset + len].to_vec()));
                    left[*offset..offset + old.len()].copy_from_slice(old);
                    if *len > old.len() {
                        left.truncate(offset + old.len());
                    }
                }
            }
        }
        redo.reverse();
        (left, redo)
    }

    /// Brings the sectors that survive to their present state.
    fn scatter(
        &self,
        path: &Path,
        left: &mut Vec<u8>,
        redo: &[(usize, Vec<u8>)],
        keep: &mut KeepSector<'_>,
    ) {
        let now = self.content.bytes();
        let mut sectors = BTreeMap::new();
        for (offset, new) in redo.iter().filter(|(_, new)| !new.is_empty()) {
            let last = (offset + new.len() - 1) as u64 / SECTOR;
            for sector in *offset as u64 / SECTOR..=last {
                sectors.entry(sector).or_insert_with(|| keep(path, sector));
            }
        }
        for (sector, _) in sectors.into_iter().filter(|(_, kept)| *kept) {
            let start = (sector * SECTOR) as usize;
            let end = now.len().min(start + SECTOR as usize);
            overwrite(left, start, &now[start..end]);
        }
    }
}

/// Writes `bytes` at `offset`; a gap before it becomes zeros.
fn overwrite(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}
