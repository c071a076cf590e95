//! The hash tables below [`crate::IdMap`]: integers in place, strings in an arena beside.

use std::hash::BuildHasher;

use hashbrown::hash_table::{Entry, HashTable};

/// Parts of a table. A power of two; each grows by itself.
const SHARDS: usize = 64;
/// Longest piece of an arena; a longer string gets a piece of its own.
const PIECE: usize = 1 << 20;

/// Parts of a table, chosen by bits of the hash that the parts themselves use last: they take the low ones for
/// the place and the top seven for the tag.
fn shard(hash: u64) -> usize {
    (hash >> 48) as usize % SHARDS
}

fn shards<T>() -> Vec<HashTable<T>> {
    (0..SHARDS).map(|_| HashTable::new()).collect()
}

fn allocated<T>(shards: &[HashTable<T>]) -> usize {
    let tables: usize = shards.iter().map(HashTable::allocation_size).sum();
    tables + size_of_val(shards)
}

/// Integer ids by their bits.
#[derive(Debug)]
pub(crate) struct IntTable {
    shards: Vec<HashTable<(u64, u64)>>,
    len: usize,
}

impl IntTable {
    pub fn new() -> Self {
        IntTable {
            shards: shards(),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory_bytes(&self) -> usize {
        allocated(&self.shards)
    }

    pub fn get(&self, hash: u64, bits: u64) -> Option<u64> {
        let found = self.shards[shard(hash)].find(hash, |(key, _)| *key == bits);
        found.map(|(_, row)| *row)
    }

    #[inline]
    pub fn insert(&mut self, hasher: &impl BuildHasher, bits: u64, row: u64) -> Option<u64> {
        let hash = hasher.hash_one(bits);
        let table = &mut self.shards[shard(hash)];
        match table.entry(
            hash,
            |(key, _)| *key == bits,
            |(key, _)| hasher.hash_one(key),
        ) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(&mut entry.get_mut().1, row)),
            Entry::Vacant(entry) => {
                entry.insert((bits, row));
                self.len += 1;
                None
            }
        }
    }

    pub fn remove(&mut self, hash: u64, bits: u64) -> Option<u64> {
        let entry = self.shards[shard(hash)].find_entry(hash, |(key, _)| *key == bits);
        let ((_, row), _) = entry.ok()?.remove();
        self.len -= 1;
        Some(row)
    }
}

/// String ids.
#[derive(Debug)]
pub(crate) struct TextTable {
    shards: Vec<HashTable<(Place, u64)>>,
    arena: Arena,
    len: usize,
}

impl TextTable {
    pub fn new() -> Self {
        TextTable {
            shards: shards(),
            arena: Arena::default(),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory_bytes(&self) -> usize {
        allocated(&self.shards) + self.arena.memory_bytes()
    }

    pub fn get(&self, hash: u64, text: &str) -> Option<u64> {
        let same = |(place, _): &(Place, u64)| self.arena.get(*place) == text.as_bytes();
        let found = self.shards[shard(hash)].find(hash, same);
        found.map(|(_, row)| *row)
    }

    pub fn insert(&mut self, hasher: &impl BuildHasher, text: &str, row: u64) -> Option<u64> {
        let hash = hasher.hash_one(text.as_bytes());
        let table = &mut self.shards[shard(hash)];
        let arena = &mut self.arena;
        let same = |(place, _): &(Place, u64)| arena.get(*place) == text.as_bytes();
        if let Some((_, held)) = table.find_mut(hash, same) {
            return Some(std::mem::replace(held, row));
        }
        let place = arena.push(text.as_bytes());
        table.insert_unique(hash, (place, row), |(place, _)| {
            hasher.hash_one(arena.get(*place))
        });
        self.len += 1;
        None
    }

    pub fn remove(&mut self, hasher: &impl BuildHasher, text: &str) -> Option<u64> {
        let hash = hasher.hash_one(text.as_bytes());
        let arena = &mut self.arena;
        let same = |(place, _): &(Place, u64)| arena.get(*place) == text.as_bytes();
        let entry = self.shards[shard(hash)].find_entry(hash, same);
        let ((_, row), _) = entry.ok()?.remove();
        self.len -= 1;
        arena.forget(text.len());
        if arena.is_mostly_waste() {
            self.rewrite();
        }
        Some(row)
    }

    /// Copies the strings that are in use into a new arena.
    fn rewrite(&mut self) {
        let mut arena = Arena::default();
        for (place, _) in self.shards.iter_mut().flat_map(HashTable::iter_mut) {
            *place = arena.push(self.arena.get(*place));
        }
        self.arena = arena;
    }
}

/// Where a string is in an arena.
#[derive(Debug, Clone, Copy)]
struct Place {
    piece: u32,
    offset: u32,
}

/// Strings one after the other, each after its length in four bytes.
#[derive(Debug, Default)]
struct Arena {
    pieces: Vec<Vec<u8>>,
    used: usize,
    waste: usize,
}

const LENGTH: usize = 4;

impl Arena {
    fn push(&mut self, text: &[u8]) -> Place {
        let needed = LENGTH + text.len();
        if self
            .pieces
            .last()
            .is_none_or(|piece| piece.len() + needed > PIECE)
        {
            self.pieces.push(Vec::new());
        }
        let piece = self.pieces.len() - 1;
        let bytes = &mut self.pieces[piece];
        let offset = bytes.len();
        // The map refuses strings beyond `MAX_ID_BYTES`, so four bytes hold any length.
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text);
        self.used += needed;
        Place {
            piece: piece as u32,
            offset: offset as u32,
        }
    }

    fn get(&self, place: Place) -> &[u8] {
        let bytes = &self.pieces[place.piece as usize][place.offset as usize..];
        let (length, bytes) = bytes.split_at(LENGTH);
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        &bytes[..length as usize]
    }

    fn forget(&mut self, len: usize) {
        self.used -= LENGTH + len;
        self.waste += LENGTH + len;
    }

    fn is_mostly_waste(&self) -> bool {
        self.waste > self.used + PIECE
    }

    fn memory_bytes(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(Vec::capacity).sum();
        pieces + self.pieces.capacity() * size_of::<Vec<u8>>()
    }
}
