//! The file of blocks, and which of its slots are free.

use std::fmt;
use std::io;

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

    /// Makes durable what was written.
    ///
    /// # Errors
    /// What the file says; what is durable then is unknown.
    fn sync(&self) -> io::Result<()>;
}

/// The last checkpoint that holds names the slot.
const HOLDS: u8 = 1;
/// The checkpoint that is being made names the slot.
const COMES: u8 = 2;

/// Gives out slots of a file. A slot that a checkpoint names is not given out again before another checkpoint holds:
/// what the checkpoint means stays what it was.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) file: Box<dyn BlockFile>,
    /// Bytes of a slot.
    pub(super) stride: usize,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// Whether a checkpoint was made that does not hold yet.
    coming: bool,
    /// Of each slot that was ever given out, which checkpoints name it.
    named: Vec<u8>,
    /// Free, and named by no checkpoint.
    free: Vec<u32>,
    /// Free for the index, but named by a checkpoint.
    held: Vec<u32>,
}

impl Store {
    pub(super) fn new(file: Box<dyn BlockFile>, stride: usize) -> Self {
        Store {
            file,
            stride,
            slots: Mutex::default(),
        }
    }

    /// A store of which a checkpoint that holds names these slots, in ascending order and each once.
    pub(super) fn with(file: Box<dyn BlockFile>, stride: usize, named: &[u32]) -> Self {
        let store = Store::new(file, stride);
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

    /// Where a slot begins in the file.
    pub(super) fn offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.stride as u64
    }

    /// Writes bytes of one slot's length into a slot that is free, and says which. Whoever writes holds the lock of the
    /// writer: the file grows slot by slot. The lock of the slots is not held meanwhile, as searches take it when they
    /// are the last to have a block.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<u32> {
        assert_eq!(bytes.len(), self.stride, "bytes of a slot");
        let (reused, end) = {
            let mut slots = self.slots.lock();
            (slots.free.pop(), slots.named.len())
        };
        let slot = match reused {
            Some(slot) => slot,
            None => u32::try_from(end).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?,
        };
        let written = self.file.write(self.offset(slot), bytes);
        let mut slots = self.slots.lock();
        match (written, reused) {
            (Ok(()), None) => slots.named.push(0),
            (Ok(()), Some(_)) => {}
            (Err(error), reused) => {
                slots.free.extend(reused);
                return Err(error);
            }
        }
        Ok(slot)
    }

    /// Takes a slot back.
    pub(super) fn release(&self, slot: u32) {
        let mut slots = self.slots.lock();
        match slots.named[slot as usize] {
            0 => slots.free.push(slot),
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
    /// be asked for.
    pub(super) fn hold(&self) {
        let mut slots = self.slots.lock();
        if !std::mem::take(&mut slots.coming) {
            return;
        }
        for by in &mut slots.named {
            *by = if *by & COMES == 0 { 0 } else { HOLDS };
        }
        let Slots {
            named, free, held, ..
        } = &mut *slots;
        held.retain(|slot| {
            let kept = named[*slot as usize] != 0;
            if !kept {
                free.push(*slot);
            }
            kept
        });
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let slots = self.slots.lock();
        slots.named.capacity() + 4 * (slots.free.capacity() + slots.held.capacity())
    }

    /// Bytes of the file, and those of them in no use.
    pub(super) fn file_bytes(&self) -> (u64, u64) {
        let slots = self.slots.lock();
        let stride = self.stride as u64;
        (
            slots.named.len() as u64 * stride,
            slots.free.len() as u64 * stride,
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

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

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn slots_that_a_checkpoint_names_wait_for_the_next_one() {
        let store = Store::new(Box::new(NoFile::default()), 64);
        let write = || store.write(&[0; 64]).expect("no file fails");
        assert_eq!([write(), write(), write()], [0, 1, 2]);
        store.release(1);
        assert_eq!(write(), 1, "no checkpoint named it");
        store.name([0, 1].into_iter());
        store.hold();
        store.release(0);
        store.release(2);
        assert_eq!([write(), write()], [2, 3], "slot 0 is named");
        // The next one is made and does not hold yet.
        store.name([1, 2].into_iter());
        store.release(1);
        assert_eq!(write(), 4);
        store.hold();
        assert_eq!([write(), write()], [0, 5], "slot 1 is named still");
        assert_eq!(store.file_bytes(), (6 * 64, 0));
    }

    #[test]
    fn slots_between_those_of_a_checkpoint_are_free() {
        let store = Store::with(Box::new(NoFile::default()), 64, &[1, 4]);
        let mut given: Vec<u32> = (0..4)
            .map(|_| store.write(&[0; 64]).expect("no file fails"))
            .collect();
        given.sort_unstable();
        assert_eq!(given, [0, 2, 3, 5]);
    }
}
