use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use crate::spfresh::BlockFile;
use crate::spfresh::places::Places;
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
    places: Places,
    versions: Box<[OnceLock<Aligned>]>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    versions: usize,
    /// The version of each part of a slot: the first one and the second one in turn.
    parts: Vec<usize>,
    /// What was in the file at its last sync.
    synced: Contents,
}

/// The bytes of each part of a slot.
pub(super) type Contents = Vec<Vec<u8>>;

/// Bytes that begin at a cache line, somewhere in those that were allocated.
#[derive(Debug)]
struct Aligned {
    all: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Aligned {
    fn of(bytes: &[u8]) -> Self {
        let mut all = vec![0; bytes.len() + ALIGN];
        let begin = all.as_ptr().align_offset(ALIGN);
        all[begin..][..bytes.len()].copy_from_slice(bytes);
        let len = bytes.len();
        Aligned { all, begin, len }
    }

    fn bytes(&self) -> &[u8] {
        &self.all[self.begin..][..self.len]
    }
}

impl Mapped {
    pub(super) fn new(places: Places) -> Self {
        Mapped(Arc::new(Inner {
            places,
            versions: (0..VERSIONS).map(|_| OnceLock::new()).collect(),
            now: Mutex::default(),
        }))
    }

    /// A file that holds this.
    pub(super) fn with(places: Places, contents: &Contents) -> Self {
        let file = Mapped::new(places);
        for (part, bytes) in contents.iter().enumerate() {
            file.0.put(part, bytes);
        }
        file
    }

    pub(super) fn contents(&self) -> Contents {
        let parts = self.0.now.lock().expect("no panic").parts.clone();
        let bytes = |version: usize| self.0.version(version).to_vec();
        parts.into_iter().map(bytes).collect()
    }

    pub(super) fn synced(&self) -> Contents {
        self.0.now.lock().expect("no panic").synced.clone()
    }
}

impl Inner {
    fn put(&self, part: usize, bytes: &[u8]) {
        let mut now = self.now.lock().expect("no panic");
        let version = now.versions;
        now.versions += 1;
        let new = self.versions[version].set(Aligned::of(bytes));
        new.expect("each version is made once");
        match now.parts.get_mut(part) {
            Some(known) => *known = version,
            None => {
                assert_eq!(part, now.parts.len(), "a write behind the end");
                now.parts.push(version);
            }
        }
    }

    fn version(&self, version: usize) -> &[u8] {
        let aligned = self.versions[version].get();
        aligned.expect("it was made").bytes()
    }

    /// The part of a slot that is at an offset, and has so many bytes.
    fn part(&self, offset: u64, len: usize) -> usize {
        let Places { first, second } = self.places;
        let (slot, within) = (
            offset as usize / (first + second),
            offset as usize % (first + second),
        );
        if within == 0 && len == first {
            return 2 * slot;
        }
        assert_eq!((within, len), (first, second), "a part of a slot");
        2 * slot + 1
    }
}

impl BlockFile for Mapped {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let part = self.0.part(offset, bytes.len());
        point();
        self.0.put(part, &vec![TORN; bytes.len()]);
        point();
        self.0.put(part, bytes);
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
        let parts = self.0.now.lock().expect("no panic").parts.len();
        let Places { first, .. } = self.0.places;
        Ok((parts / 2 * self.0.places.both() + parts % 2 * first) as u64)
    }

    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let part = self.0.part(offset, len);
        point();
        let version = *self.0.now.lock().expect("no panic").parts.get(part)?;
        Some(self.0.version(version))
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        point();
        let parts = 2 * (len as usize / self.0.places.both());
        self.0.now.lock().expect("no panic").parts.truncate(parts);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        point();
        let contents = self.contents();
        self.0.now.lock().expect("no panic").synced = contents;
        Ok(())
    }
}
