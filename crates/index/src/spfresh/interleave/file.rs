use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use crate::spfresh::BlockFile;
use crate::sync::point;

/// Writes of one execution, at most; each takes two versions.
const VERSIONS: usize = 8_192;
const ALIGN: usize = 64;
/// What a page holds while it is written.
const TORN: u8 = 0xA5;

/// A mapped file of blocks: whoever has a block reads what is in its slot now, and while it is written that is neither what
/// was there nor what comes. Every access may have other threads go before.
#[derive(Debug, Clone)]
pub(super) struct Mapped(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Of a slot, in bytes.
    stride: usize,
    versions: Box<[OnceLock<Aligned>]>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    versions: usize,
    /// The version of each slot.
    slots: Vec<usize>,
    /// What was in the file at its last sync.
    synced: Contents,
}

/// The bytes of each slot.
pub(super) type Contents = Vec<Vec<u8>>;

/// Bytes that begin at a cache line, somewhere in those that were allocated.
#[derive(Debug)]
struct Aligned {
    all: Vec<u8>,
    begin: usize,
}

impl Aligned {
    fn of(bytes: &[u8]) -> Self {
        let mut all = vec![0; bytes.len() + ALIGN];
        let begin = all.as_ptr().align_offset(ALIGN);
        all[begin..][..bytes.len()].copy_from_slice(bytes);
        Aligned { all, begin }
    }

    fn bytes(&self, len: usize) -> &[u8] {
        &self.all[self.begin..][..len]
    }
}

impl Mapped {
    pub(super) fn new(stride: usize) -> Self {
        Mapped(Arc::new(Inner {
            stride,
            versions: (0..VERSIONS).map(|_| OnceLock::new()).collect(),
            now: Mutex::default(),
        }))
    }

    /// A file that holds this.
    pub(super) fn with(stride: usize, contents: &Contents) -> Self {
        let file = Mapped::new(stride);
        for (slot, bytes) in contents.iter().enumerate() {
            file.0.put(slot, bytes);
        }
        file
    }

    pub(super) fn contents(&self) -> Contents {
        let slots = self.0.now.lock().expect("no panic").slots.clone();
        let bytes = |version: usize| self.0.version(version).to_vec();
        slots.into_iter().map(bytes).collect()
    }

    pub(super) fn synced(&self) -> Contents {
        self.0.now.lock().expect("no panic").synced.clone()
    }
}

impl Inner {
    fn put(&self, slot: usize, bytes: &[u8]) {
        let mut now = self.now.lock().expect("no panic");
        let version = now.versions;
        now.versions += 1;
        let new = self.versions[version].set(Aligned::of(bytes));
        new.expect("each version is made once");
        match now.slots.get_mut(slot) {
            Some(known) => *known = version,
            None => {
                assert_eq!(slot, now.slots.len(), "a write behind the end");
                now.slots.push(version);
            }
        }
    }

    fn version(&self, version: usize) -> &[u8] {
        let aligned = self.versions[version].get();
        aligned.expect("it was made").bytes(self.stride)
    }

    fn slot(&self, offset: u64, len: usize) -> usize {
        assert_eq!(len, self.stride, "bytes of a slot");
        assert!(offset.is_multiple_of(len as u64), "begin of a slot");
        (offset / len as u64) as usize
    }
}

impl BlockFile for Mapped {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let slot = self.0.slot(offset, bytes.len());
        point();
        self.0.put(slot, &vec![TORN; bytes.len()]);
        point();
        self.0.put(slot, bytes);
        Ok(())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        match self.bytes(offset, out.len()) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => return Ok(0),
        }
        Ok(out.len())
    }

    fn len(&self) -> io::Result<u64> {
        let slots = self.0.now.lock().expect("no panic").slots.len();
        Ok((slots * self.0.stride) as u64)
    }

    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let slot = self.0.slot(offset, len);
        point();
        let version = *self.0.now.lock().expect("no panic").slots.get(slot)?;
        Some(self.0.version(version))
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        point();
        let slots = len as usize / self.0.stride;
        self.0.now.lock().expect("no panic").slots.truncate(slots);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        point();
        let contents = self.contents();
        self.0.now.lock().expect("no panic").synced = contents;
        Ok(())
    }
}
