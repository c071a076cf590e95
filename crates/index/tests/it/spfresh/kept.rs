use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use longbow_index::{BlockFile, Neighbor, Result, SpFresh, SpFreshParams, Space};

use super::{build_in, search};
use crate::common::{Data, all, floats};

const SPACE: Space = floats(32);
/// Bytes of the first part of a block of this space.
const FIRST: usize = 512 + 4 * 32;
/// What a copy of it counts for.
const COPY: usize = FIRST + 64;

/// A file that shows what was written without a copy, as a mapped one does; what was once shown is never freed.
#[derive(Debug, Clone, Default)]
struct Shown {
    parts: Arc<RwLock<HashMap<u64, &'static [u8]>>>,
    /// Whether first parts are shown full of ones, whatever was written.
    spoilt: Arc<AtomicBool>,
    end: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
}

/// A copy at a cache line that stays for good.
fn leaked(bytes: &[u8]) -> &'static [u8] {
    let room = vec![0u8; bytes.len() + 63].leak();
    let from = room.as_ptr().align_offset(64);
    let place = &mut room[from..from + bytes.len()];
    place.copy_from_slice(bytes);
    place
}

impl BlockFile for Shown {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        self.end.fetch_max(end, Ordering::Relaxed);
        let mut parts = self.parts.write().expect("no writer panics");
        parts.insert(offset, leaked(bytes));
        Ok(())
    }

    fn read(&self, _offset: u64, _out: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.end.load(Ordering::Relaxed))
    }

    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        static ONES: std::sync::LazyLock<&[u8]> =
            std::sync::LazyLock::new(|| leaked(&[255; FIRST]));
        if len == FIRST && self.spoilt.load(Ordering::Relaxed) {
            return Some(&ONES);
        }
        let parts = self.parts.read().expect("no writer panics");
        parts.get(&offset).copied().filter(|part| part.len() == len)
    }

    fn will_need(&self, _bytes: &[u8]) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.end.store(len, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn answers(index: &SpFresh, data: &Data) -> Vec<Vec<Neighbor>> {
    let probes = [8, usize::MAX];
    let searches = data
        .queries
        .iter()
        .flat_map(|query| probes.map(|n| (query, n)));
    searches
        .map(|(query, probes)| search(index, data, query, (10, probes), &all))
        .collect()
}

#[test]
fn searches_read_first_parts_from_where_they_are_kept() -> Result<()> {
    let data = Data::clustered(SPACE, 3_000, 30, 5)?;
    let file = Shown::default();
    let index = build_in(&file, &data, SpFreshParams::default(), 0..3_000)?;
    let expected = answers(&index, &data);
    let before = index.memory_bytes();
    let keep = |bytes: usize| {
        index.keep(bytes);
        index.kept_bytes()
    };
    assert_eq!((keep(0), keep(COPY - 1)), (0, 0));
    assert_eq!((keep(5 * COPY + 1), keep(COPY)), (5 * COPY, 6 * COPY));
    let kept = keep(usize::MAX / 2);
    assert!(
        kept > 3_000 / 32 * COPY && kept.is_multiple_of(COPY),
        "{kept}"
    );
    assert_eq!(keep(COPY), kept, "there is no more");
    assert_eq!(index.memory_bytes(), before, "counted by itself");

    file.spoilt.store(true, Ordering::Relaxed);
    assert_eq!(answers(&index, &data), expected);
    // One that had to be read from the disk: others ask for what is not kept.
    let read = |_: u64| {
        file.reads.fetch_add(1, Ordering::Relaxed);
        true
    };
    search(&index, &data, &data.queries[0], (10, 8), &read);
    let asked = file.asked.load(Ordering::Relaxed);
    search(&index, &data, &data.queries[0], (10, 8), &all);
    assert_eq!(file.asked.load(Ordering::Relaxed), asked, "all is kept");
    file.spoilt.store(false, Ordering::Relaxed);

    assert_eq!(index.let_go(kept - 3 * COPY), kept - 3 * COPY);
    assert_eq!(index.kept_bytes(), 3 * COPY);
    search(&index, &data, &data.queries[0], (10, 8), &read);
    search(&index, &data, &data.queries[0], (10, 8), &all);
    assert!(file.asked.load(Ordering::Relaxed) >= asked + 5);
    assert_eq!(
        (index.let_go(usize::MAX), index.kept_bytes()),
        (3 * COPY, 0)
    );
    assert_eq!(index.let_go(1), 0);
    assert_eq!(index.memory_bytes(), before);
    assert_eq!(answers(&index, &data), expected);
    Ok(())
}

#[test]
fn what_is_kept_follows_blocks_and_stays_within_its_limit() -> Result<()> {
    let data = Data::clustered(SPACE, 6_000, 30, 6)?;
    let file = Shown::default();
    let index = build_in(&file, &data, SpFreshParams::default(), 0..1_000)?;
    index.keep(usize::MAX / 2);
    let few = index.kept_bytes();
    (1_000..3_000).try_for_each(|row| index.insert(row, data.vector(row)))?;
    let still = index.kept_bytes();
    assert!(
        (few - COPY..=few).contains(&still),
        "others took the place of those that went"
    );
    index.keep(usize::MAX / 2);
    assert!(index.kept_bytes() > 2 * few);
    index.let_go(index.kept_bytes() / 2);
    let limit = index.kept_bytes();
    assert!(limit > few);
    for row in 3_000..6_000 {
        index.insert(row, data.vector(row))?;
        assert!(index.kept_bytes() <= limit);
        if row % 500 == 0 {
            index.sweep(&|row| row < 2_000, 0, usize::MAX)?;
        }
    }
    index.keep(10 * COPY);
    index.sweep(&|_| true, 0, usize::MAX)?;
    assert!(index.is_empty());
    assert_eq!(
        index.kept_bytes(),
        0,
        "blocks that go take their copies with them"
    );
    Ok(())
}

#[test]
fn searches_find_the_same_while_copies_come_and_go() -> Result<()> {
    let data = Data::clustered(SPACE, 3_000, 30, 7)?;
    let index = build_in(&Shown::default(), &data, SpFreshParams::default(), 0..3_000)?;
    let expected = answers(&index, &data);
    let keeper = |bytes: usize, stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            index.keep(bytes);
            index.let_go(bytes / 2);
            index.keep(bytes / 3);
            index.let_go(bytes);
        }
    };
    let stop = AtomicBool::new(false);
    let same = std::thread::scope(|scope| {
        for copies in [20, 70] {
            let (keeper, stop) = (&keeper, &stop);
            scope.spawn(move || keeper(copies * COPY, stop));
        }
        let same = (0..20).all(|_| answers(&index, &data) == expected);
        stop.store(true, Ordering::Relaxed);
        same
    });
    assert!(same);
    let kept = index.kept_bytes();
    assert_eq!((index.let_go(kept), index.kept_bytes()), (kept, 0));
    Ok(())
}
