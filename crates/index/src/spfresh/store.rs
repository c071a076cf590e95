//! The file of blocks, and which of its slots are free.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::block::Copied;
use super::kept::Kept;
use super::places::Places;
use crate::sync::Mutex;

/// Where an index keeps its blocks: a file, or memory, of the caller's.
pub trait BlockFile: Send + Sync + fmt::Debug {
    /// Writes at `offset`, over what was there or at the end. Offsets and lengths are multiples of 64.
    ///
    /// # Errors
    /// What the file says, such as that the disk is full.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `out` from `offset` on, and says how many bytes there were: fewer than asked for only at the end.
    ///
    /// # Errors
    /// What the file says.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Bytes of the file.
    ///
    /// # Errors
    /// What the file says.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// What the file says.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// What was written, without a copy: nothing is written over these bytes while the index has a use for them. `None`
    /// where that cannot be; the index keeps in memory then what it wrote.
    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]>;

    /// Has bytes that lie in this or another mapped file be read soon, without waiting for them.
    fn will_need(&self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// A number that grows whenever this thread has something read from a disk.
    fn reads(&self) -> u64 {
        0
    }

    /// Cuts the file to `len` bytes; what comes later is written from there on.
    ///
    /// # Errors
    /// What the file says; it is as long as it was then.
    fn cut(&self, len: u64) -> io::Result<()>;

    /// Makes durable what was written.
    ///
    /// # Errors
    /// What the file says; what is durable then is unknown.
    fn sync(&self) -> io::Result<()>;
}

/// Blocks move from the end of a file to where there is room, so that it can be cut, once one slot in so many became free.
/// If they moved sooner, many would be written that are soon written anew anyway.
const SLOTS_FOR_ONE_FREE: usize = 8;
/// So few free slots are left alone.
const FEWEST_FREE: usize = if cfg!(shuttle) { 1 } else { 32 };

/// The last checkpoint that holds names the slot.
const HOLDS: u8 = 1;
/// The checkpoint that is being made names the slot.
const COMES: u8 = 2;

/// Gives out slots of a file. A slot that a checkpoint names is not given out again before another checkpoint holds:
/// what the checkpoint means stays what it was.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) file: Box<dyn BlockFile>,
    pub(super) places: Places,
    pub(super) kept: Kept,
    /// Of all blocks of which nothing is kept.
    pub(super) not_copied: Arc<Copied>,
    /// Held by whoever changes the file's length.
    length: Mutex<()>,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// Whether a checkpoint was made that does not hold yet.
    coming: bool,
    /// Of each slot that was ever given out, which checkpoints name it.
    named: Vec<u8>,
    /// Free, and named by no checkpoint. The first ones are given out first, so that the end becomes free.
    free: BTreeSet<u32>,
    /// Free for the index, but named by a checkpoint.
    held: Vec<u32>,
    /// Free slots that blocks were not moved into when all that could be were.
    left: usize,
}

impl Store {
    pub(super) fn new(file: Box<dyn BlockFile>, places: Places) -> Self {
        Store {
            file,
            places,
            kept: Kept::of(places.first),
            not_copied: Arc::default(),
            length: Mutex::default(),
            slots: Mutex::default(),
        }
    }

    /// A store of which a checkpoint that holds names these slots, in ascending order and each once.
    pub(super) fn with(file: Box<dyn BlockFile>, places: Places, named: &[u32]) -> Self {
        let store = Store::new(file, places);
        let mut slots = Slots::default();
        for slot in named {
            let gap = slots.named.len() as u32..*slot;
            slots.free.extend(gap);
            slots.named.resize(*slot as usize, 0);
            slots.named.push(HOLDS);
        }
        *store.slots.lock() = slots;
        store
    }

    /// Both parts of what was written into a slot, without a copy, if the file gives that.
    #[inline(always)]
    pub(super) fn bytes(&self, slot: u32) -> Option<(&[u8], &[u8])> {
        let Places { first, second } = self.places;
        let first = self.file.bytes(self.places.first_of(slot), first)?;
        let second = self.file.bytes(self.places.second_of(slot), second)?;
        Some((first, second))
    }

    fn put(&self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        let (first, second) = bytes.split_at(self.places.first);
        self.file.write(self.places.first_of(slot), first)?;
        self.file.write(self.places.second_of(slot), second)
    }

    /// Writes bytes of one slot's length, both parts one after the other, into the first slot that is free, and says which. Several threads may write. The lock of the
    /// slots is not held meanwhile, as searches take it when they are the last to have a block.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<u32> {
        if let Some(slot) = self.write_before(u32::MAX, bytes)? {
            return Ok(slot);
        }
        let _length = self.length.lock();
        let end = self.slots.lock().named.len();
        let slot = u32::try_from(end).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        if let Some(firsts) = self.places.firsts(slot) {
            // So that there is no write behind the end.
            self.file
                .write(self.places.first_of(slot), &vec![0; firsts])?;
        }
        self.put(slot, bytes)?;
        self.slots.lock().named.push(0);
        Ok(slot)
    }

    /// As [`Store::write`], if there is a free slot before `end`.
    pub(super) fn write_before(&self, end: u32, bytes: &[u8]) -> io::Result<Option<u32>> {
        assert_eq!(bytes.len(), self.places.both(), "bytes of a slot");
        let free = {
            let mut slots = self.slots.lock();
            slots.first_free_before(end)
        };
        let Some(slot) = free else {
            return Ok(None);
        };
        if let Err(error) = self.put(slot, bytes) {
            self.slots.lock().free.insert(slot);
            return Err(error);
        }
        Ok(Some(slot))
    }

    /// Where the file could end, if the blocks behind moved into the free slots before; `None` if that is not worth it.
    pub(super) fn could_end(&self) -> Option<u32> {
        let mut slots = self.slots.lock();
        let (free, all) = (slots.free.len(), slots.named.len());
        slots.left = slots.left.min(free);
        let new = free - slots.left;
        let many = new >= FEWEST_FREE && new * SLOTS_FOR_ONE_FREE >= all;
        many.then(|| (all - free) as u32)
    }

    /// Says that the blocks which could move did, and cuts the file. What is free yet stays so until the next checkpoint
    /// holds, for it lies before slots which the last one names: it is no reason to move any again.
    pub(super) fn end_moving(&self) -> io::Result<()> {
        self.cut()?;
        let mut slots = self.slots.lock();
        slots.left = slots.free.len();
        Ok(())
    }

    /// Whether so many slots are free, or will be once another checkpoint holds, that the file could be shorter.
    pub(super) fn is_sparse(&self) -> bool {
        let slots = self.slots.lock();
        let unused = slots.free.len() + slots.held.len();
        unused >= FEWEST_FREE && unused * SLOTS_FOR_ONE_FREE >= slots.named.len()
    }

    /// Takes a slot back.
    pub(super) fn release(&self, slot: u32) {
        let mut slots = self.slots.lock();
        match slots.named[slot as usize] {
            0 => drop(slots.free.insert(slot)),
            _ => slots.held.push(slot),
        }
    }

    /// Says that a checkpoint is being made that names these slots.
    pub(super) fn name(&self, named: impl Iterator<Item = u32>) {
        let mut slots = self.slots.lock();
        slots.coming = true;
        slots.named.iter_mut().for_each(|by| *by &= HOLDS);
        for slot in named {
            slots.named[slot as usize] |= COMES;
        }
    }

    /// Says that the checkpoint which was made last, if there is one since the last call, holds, and none before it will
    /// be asked for. Cuts the file behind the last slot that is in use.
    pub(super) fn hold(&self) -> io::Result<()> {
        {
            let mut slots = self.slots.lock();
            if !std::mem::take(&mut slots.coming) {
                return Ok(());
            }
            slots.turn();
        }
        self.cut()
    }

    /// Cuts the file behind the last slot that is in use, or that a checkpoint names.
    pub(super) fn cut(&self) -> io::Result<()> {
        let _length = self.length.lock();
        let end = self.places.end(self.slots.lock().end());
        // Nobody else changes the length, and nobody is given a slot behind it. There may be more than what was in use: a
        // node that stopped leaves blocks which no checkpoint came to name. A file that stays longer does no harm.
        if self.file.len()? > end {
            self.file.cut(end)?;
        }
        Ok(())
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let slots = self.slots.lock();
        // A set has some more for its nodes.
        slots.named.capacity() + 6 * slots.free.len() + 4 * slots.held.capacity()
    }

    /// Slots that are in use.
    pub(super) fn used(&self) -> usize {
        let slots = self.slots.lock();
        slots.named.len() - slots.free.len() - slots.held.len()
    }

    /// Bytes of the file, and those of them in no use.
    pub(super) fn file_bytes(&self) -> (u64, u64) {
        let slots = self.slots.lock();
        let free = slots.free.len() * self.places.both();
        (self.places.end(slots.named.len()), free as u64)
    }
}

impl Slots {
    fn first_free_before(&mut self, end: u32) -> Option<u32> {
        self.free.first().filter(|slot| **slot < end)?;
        self.free.pop_first()
    }

    /// The checkpoint that came is the one that holds.
    fn turn(&mut self) {
        for by in &mut self.named {
            *by = if *by & COMES == 0 { 0 } else { HOLDS };
        }
        let Slots {
            named,
            free,
            held,
            left,
            ..
        } = self;
        *left = 0;
        held.retain(|slot| {
            let kept = named[*slot as usize] != 0;
            if !kept {
                free.insert(*slot);
            }
            kept
        });
    }

    /// Forgets free slots at the end, and says how many there are without them.
    fn end(&mut self) -> usize {
        while let Some(last) = self.named.len().checked_sub(1)
            && self.free.remove(&(last as u32))
        {
            self.named.pop();
        }
        self.named.len()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const GOOD: &str = "no file fails";
    /// So that 64 slots have 12 KiB, of which a third is first parts.
    const PLACES: Places = Places {
        first: 64,
        second: 128,
    };
    const BYTES: [u8; 192] = [0; 192];

    /// Keeps how long it would be, and nothing else: what is written stays in memory.
    #[derive(Debug, Default)]
    pub(in crate::spfresh) struct NoFile(AtomicU64);

    impl BlockFile for NoFile {
        fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.0
                .fetch_max(offset + bytes.len() as u64, Ordering::Relaxed);
            Ok(())
        }

        fn read(&self, _offset: u64, _out: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }

        fn len(&self) -> io::Result<u64> {
            Ok(self.0.load(Ordering::Relaxed))
        }

        fn bytes(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
            None
        }

        fn cut(&self, len: u64) -> io::Result<()> {
            self.0.store(len, Ordering::Relaxed);
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn slots_that_a_checkpoint_names_wait_for_the_next_one() {
        let store = Store::new(Box::new(NoFile::default()), PLACES);
        let write = || store.write(&BYTES).expect(GOOD);
        assert_eq!([write(), write(), write()], [0, 1, 2]);
        store.release(1);
        assert_eq!(write(), 1, "no checkpoint named it");
        store.name([0, 1].into_iter());
        store.hold().expect(GOOD);
        store.release(0);
        store.release(2);
        assert_eq!([write(), write()], [2, 3], "slot 0 is named");
        // The next one is made and does not hold yet.
        store.name([1, 2].into_iter());
        store.release(1);
        assert_eq!(write(), 4);
        store.hold().expect(GOOD);
        assert_eq!([write(), write()], [0, 5], "slot 1 is named still");
        assert_eq!(store.file_bytes(), (4_096 + 6 * 128, 0));
    }

    #[test]
    fn slots_between_those_of_a_checkpoint_are_free() {
        let store = Store::with(Box::new(NoFile::default()), PLACES, &[1, 4]);
        let mut given: Vec<u32> = (0..4).map(|_| store.write(&BYTES).expect(GOOD)).collect();
        given.sort_unstable();
        assert_eq!(given, [0, 2, 3, 5]);
    }

    #[test]
    fn the_file_ends_behind_the_last_slot_in_use() {
        let store = Store::new(Box::new(NoFile::default()), PLACES);
        let write = || store.write(&BYTES).expect(GOOD);
        let all: Vec<u32> = (0..100).map(|_| write()).collect();
        store.name(all.iter().copied());
        store.hold().expect(GOOD);
        (10..90).for_each(|slot| store.release(slot));
        assert!(store.is_sparse() && store.could_end().is_none());
        assert_eq!(store.write_before(100, &BYTES).expect(GOOD), None);
        store.name((0..10).chain(90..100));
        store.hold().expect(GOOD);
        // A group of 64, and one of which 36 have a second part.
        let hundred = 12_288 + 4_096 + 36 * 128;
        assert_eq!(store.file_bytes(), (hundred, 80 * 192));
        assert_eq!(store.could_end(), Some(20));
        for _ in 90..100 {
            let slot = store.write_before(20, &BYTES).expect(GOOD);
            assert!(slot.is_some_and(|slot| slot < 20));
        }
        assert_eq!(store.write_before(20, &BYTES).expect(GOOD), None);
        store.end_moving().expect(GOOD);
        assert_eq!(store.could_end(), None, "there is nothing left to move");
        (90..100).for_each(|slot| store.release(slot));
        assert_eq!(
            store.file_bytes(),
            (hundred, 70 * 192),
            "a checkpoint names the last"
        );
        store.name(0..20);
        store.hold().expect(GOOD);
        let twenty = 4_096 + 20 * 128;
        assert_eq!(store.file_bytes(), (twenty, 0));
        assert_eq!(store.file.len().expect(GOOD), twenty);
        assert_eq!([write(), write()], [20, 21]);
    }
}
