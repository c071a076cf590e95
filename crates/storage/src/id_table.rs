//! The hash tables below [`crate::IdMap`]: integers in place, strings in an arena beside.

use std::hash::BuildHasher;

use hashbrown::hash_table::{Entry, HashTable};

/// Parts of a table; each grows by itself.
const SHARDS: usize = 64;
/// Shares of the hashes: part `i` has `SHARDS + i` of them, so the last has twice as many ids as the first. Tables
/// double; were the parts of one size, all would double within the same few writes.
const SHARES: usize = SHARDS * SHARDS + SHARDS * (SHARDS - 1) / 2;
/// Longest piece of an arena; a longer string gets a piece of its own.
const PIECE: usize = 1 << 20;
/// Ids that are put in order of their parts before they are inserted.
const CHUNK: usize = 1 << 15;
/// Fewer ids than this are inserted as they come.
const SMALL_CHUNK: usize = 1 << 10;

/// The part of each share.
static SHARD_OF: [u8; SHARES] = {
    let mut shard_of = [0; SHARES];
    let (mut shard, mut at, mut left) = (0, 0, SHARDS);
    while at < SHARES {
        if left == 0 {
            shard += 1;
            left = SHARDS + shard;
        }
        shard_of[at] = shard as u8;
        left -= 1;
        at += 1;
    }
    shard_of
};

/// The part of a hash, by bits that the parts themselves use last: they take the low ones for the place and the
/// top seven for the tag.
#[inline]
fn shard(hash: u64) -> usize {
    let middle = (hash >> 32) as usize & 0xFF_FFFF;
    SHARD_OF[(middle * SHARES) >> 24].into()
}

/// Calls `insert` with the hash, key and row of each item. Many items come grouped by part, so that a part's
/// memory is touched while it is in the cache; those of one key stay in order.
pub(crate) fn grouped<K: Copy>(
    mut items: impl Iterator<Item = (K, u64)>,
    hash: impl Fn(K) -> u64,
    mut insert: impl FnMut(u64, K, u64),
) {
    let mut chunk: Vec<(u64, K, u64)> = Vec::new();
    let mut order: Vec<u32> = Vec::new();
    loop {
        chunk.clear();
        chunk.extend(
            items
                .by_ref()
                .take(CHUNK)
                .map(|(key, row)| (hash(key), key, row)),
        );
        if chunk.len() < SMALL_CHUNK {
            chunk
                .iter()
                .for_each(|(hash, key, row)| insert(*hash, *key, *row));
        } else {
            let mut ends = [0_u32; SHARDS + 1];
            for (hash, ..) in &chunk {
                ends[shard(*hash) + 1] += 1;
            }
            for i in 0..SHARDS {
                ends[i + 1] += ends[i];
            }
            order.resize(chunk.len(), 0);
            for (at, (hash, ..)) in chunk.iter().enumerate() {
                let end = &mut ends[shard(*hash)];
                order[*end as usize] = at as u32;
                *end += 1;
            }
            for at in &order {
                let (hash, key, row) = chunk[*at as usize];
                insert(hash, key, row);
            }
        }
        if chunk.len() < CHUNK {
            return;
        }
    }
}

fn shards<T>() -> Vec<HashTable<T>> {
    (0..SHARDS).map(|_| HashTable::new()).collect()
}

fn allocated<T>(shards: &[HashTable<T>]) -> usize {
    let tables: usize = shards.iter().map(HashTable::allocation_size).sum();
    tables + size_of_val(shards)
}

/// Bytes of the tables of so many entries of `T`, if their hashes are spread evenly.
fn estimated<T>(entries: u64) -> u64 {
    let of_shard = |shard: usize| {
        let share = u128::from(entries) * (SHARDS + shard) as u128 / SHARES as u128;
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        // Powers of two, up to seven eighths full.
        let buckets = match share {
            0 => return 0,
            1..=14 => (share + 2).next_power_of_two().max(4),
            share => (share.saturating_mul(8) / 7).next_power_of_two(),
        };
        buckets.saturating_mul(size_of::<T>() as u64 + 1)
    };
    (0..SHARDS).map(of_shard).fold(0, u64::saturating_add)
}

/// Rows by the bits of integer ids.
#[derive(Debug)]
pub(crate) struct IntTable {
    shards: Vec<HashTable<(u64, u64)>>,
}

impl IntTable {
    pub fn new() -> Self {
        IntTable { shards: shards() }
    }

    pub fn memory_bytes(&self) -> usize {
        allocated(&self.shards)
    }

    pub fn estimated(entries: u64) -> u64 {
        estimated::<(u64, u64)>(entries)
    }

    pub fn get(&self, hash: u64, bits: u64) -> Option<u64> {
        let found = self.shards[shard(hash)].find(hash, |(key, _)| *key == bits);
        found.map(|(_, row)| *row)
    }

    #[inline]
    pub fn insert(
        &mut self,
        hasher: &impl BuildHasher,
        hash: u64,
        bits: u64,
        row: u64,
    ) -> Option<u64> {
        let table = &mut self.shards[shard(hash)];
        match table.entry(
            hash,
            |(key, _)| *key == bits,
            |(key, _)| hasher.hash_one(key),
        ) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(&mut entry.get_mut().1, row)),
            Entry::Vacant(entry) => {
                entry.insert((bits, row));
                None
            }
        }
    }

    pub fn remove(&mut self, hash: u64, bits: u64) -> Option<u64> {
        let entry = self.shards[shard(hash)].find_entry(hash, |(key, _)| *key == bits);
        let ((_, row), _) = entry.ok()?.remove();
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

    pub fn estimated(entries: u64, text_bytes: u64) -> u64 {
        let texts = entries.saturating_mul(LENGTH as u64 + text_bytes);
        // The piece that is being filled doubles.
        let last = (texts % PIECE as u64).next_power_of_two();
        let texts = (texts - texts % PIECE as u64).saturating_add(last);
        estimated::<(Place, u64)>(entries).saturating_add(texts)
    }

    pub fn get(&self, hash: u64, text: &str) -> Option<u64> {
        let same = |(place, _): &(Place, u64)| self.arena.get(*place) == text.as_bytes();
        let found = self.shards[shard(hash)].find(hash, same);
        found.map(|(_, row)| *row)
    }

    pub fn insert(
        &mut self,
        hasher: &impl BuildHasher,
        hash: u64,
        text: &str,
        row: u64,
    ) -> Option<u64> {
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

    pub fn remove(&mut self, hash: u64, text: &str) -> Option<u64> {
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
