//! What was written into a slot stays there as long as anyone may ask for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Plain};

use shuttle::thread;

use super::file::Mapped;
use crate::interleave::explore;
use crate::spfresh::places::Places;
use crate::spfresh::store::Store;
use crate::sync::{ArcSwap, Mutex};

const PLACES: Places = Places {
    first: 64,
    second: 64,
};
const BYTES: usize = 128;
const WRITES: u8 = 12;
/// How often a checkpoint is looked at before it holds: what is to last until it does takes long.
const LOOKS: usize = 4;

/// A store, and a directory of two blocks of which each writer makes another.
struct World {
    store: Arc<Store>,
    directory: ArcSwap<[Option<Arc<Block>>; 2]>,
    writer: Mutex<()>,
    /// What is in the slots that are in use.
    used: Arc<Plain<BTreeMap<u32, u8>>>,
    /// What was in the slots that a checkpoint names: the one that holds, and the one that is made.
    named: Plain<[BTreeMap<u32, u8>; 2]>,
}

/// Gives its slot back when the last one drops it.
struct Block {
    slot: u32,
    byte: u8,
    store: Arc<Store>,
    used: Arc<Plain<BTreeMap<u32, u8>>>,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.used.lock().expect("no panic").remove(&self.slot);
        self.store.release(self.slot);
    }
}

impl World {
    fn new() -> Self {
        let file = Box::new(Mapped::new(PLACES));
        World {
            store: Arc::new(Store::new(file, PLACES)),
            directory: ArcSwap::from_pointee([const { None }; 2]),
            writer: Mutex::new(()),
            used: Arc::default(),
            named: Plain::default(),
        }
    }

    fn write(&self, place: usize) {
        for write in 0..WRITES {
            let byte = WRITES * place as u8 + write;
            let slot = self.store.write(&[byte; BYTES]).expect("no file fails");
            let used = self.used.lock().expect("no panic").insert(slot, byte);
            assert_eq!(used, None, "slot {slot} is in use");
            for named in &*self.named.lock().expect("no panic") {
                assert!(!named.contains_key(&slot), "a checkpoint names {slot}");
            }
            let block = Block {
                slot,
                byte,
                store: Arc::clone(&self.store),
                used: Arc::clone(&self.used),
            };
            let _writer = self.writer.lock();
            let mut directory = (*self.directory.load_full()).clone();
            directory[place] = Some(Arc::new(block));
            self.directory.store(Arc::new(directory));
        }
    }

    fn search(&self) {
        for _ in 0..WRITES / 2 {
            let directory = self.directory.load_full();
            for block in directory.iter().cycle().take(8).flatten() {
                self.check(block.slot, block.byte, "a search has it");
            }
        }
    }

    fn checkpoint(&self) {
        for _ in 0..3 {
            {
                let _writer = self.writer.lock();
                let directory = self.directory.load_full();
                let blocks = directory.iter().flatten();
                let coming: BTreeMap<u32, u8> =
                    blocks.map(|block| (block.slot, block.byte)).collect();
                self.named.lock().expect("no panic")[1] = coming.clone();
                self.store.name(coming.into_keys());
            }
            (0..LOOKS).for_each(|_| self.check_named());
            let mut named = self.named.lock().expect("no panic");
            named[0] = named[1].clone();
            drop(named);
            self.store.hold().expect("no file fails");
            self.check_named();
        }
    }

    fn check_named(&self) {
        let named = self.named.lock().expect("no panic").clone();
        for (slot, byte) in named.into_iter().flatten() {
            self.check(slot, byte, "a checkpoint names it");
        }
    }

    fn check(&self, slot: u32, byte: u8, why: &str) {
        let expected = &[byte; 64][..];
        let parts = self.store.bytes(slot);
        assert_eq!(parts, Some((expected, expected)), "slot {slot}: {why}");
    }
}

#[test]
fn no_slot_is_written_over_while_a_search_or_a_checkpoint_has_it() {
    explore(1, || {
        let world = World::new();
        thread::scope(|scope| {
            scope.spawn(|| world.write(0));
            scope.spawn(|| world.write(1));
            scope.spawn(|| world.search());
            scope.spawn(|| world.checkpoint());
        });
        world.check_named();
        let (all, _) = world.store.file_bytes();
        let slots = all / BYTES as u64;
        assert!(
            slots < 2 * u64::from(WRITES),
            "{slots} slots: none is reused"
        );
    });
}
