//! Which row versions are dead, and since when.
//!
//! Useful for: asking millions of times a second "does this reader still see that row", without a lock and
//! without copying a bitmap at each write. Not useful for: storage (checkpoints keep a roaring bitmap).
//!
//! Each row has one word: the log index of the write that replaced or deleted it, 0 while it lives. A reader
//! holds the index up to which it sees writes, so a row replaced later is still there for it: a search that runs
//! beside an upsert finds the old version or the new one, never neither. Words come in chunks of 4,096 rows that
//! exist only where something died (1.6 % of a 128-dimensional float32 row at worst).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const CHUNK_BITS: u32 = 12;
const CHUNK_ROWS: usize = 1 << CHUNK_BITS;

type Chunk = [AtomicU64; CHUNK_ROWS];

/// The dead rows as one reader or the writer holds them; cloning is one reference count.
#[derive(Debug, Clone, Default)]
pub struct DeadRows {
    chunks: Arc<Vec<Option<Arc<Chunk>>>>,
}

impl DeadRows {
    /// Marks `row` dead since log index `at` (not 0). Readers that hold an older clone see it too if the chunk
    /// existed, but their own index hides it from them.
    pub fn mark(&mut self, row: u64, at: u64) {
        debug_assert!(at > 0, "log indices start at 1");
        let (chunk, slot) = split(row);
        if self.chunks.get(chunk).is_none_or(Option::is_none) {
            let chunks = Arc::make_mut(&mut self.chunks);
            if chunks.len() <= chunk {
                chunks.resize(chunk + 1, None);
            }
            chunks[chunk] = Some(new_chunk());
        }
        if let Some(words) = &self.chunks[chunk] {
            words[slot].store(at, Ordering::Release);
        }
    }

    /// Whether `row` is dead for a reader that sees writes up to and including log index `as_of`.
    #[inline]
    pub fn is_dead(&self, row: u64, as_of: u64) -> bool {
        let (chunk, slot) = split(row);
        match self.chunks.get(chunk) {
            Some(Some(words)) => {
                let at = words[slot].load(Ordering::Acquire);
                at != 0 && at <= as_of
            }
            _ => false,
        }
    }

    /// Whether any of the `len` rows from `first` may be dead; false is certain, true is a hint.
    pub fn may_hold(&self, first: u64, len: u64) -> bool {
        if len == 0 {
            return false;
        }
        let (from, to) = (split(first).0, split(first + len - 1).0);
        (from..=to).any(|chunk| matches!(self.chunks.get(chunk), Some(Some(_))))
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let full = self.chunks.iter().filter(|chunk| chunk.is_some()).count();
        (full * size_of::<Chunk>() + self.chunks.len() * 8) as u64
    }
}

fn split(row: u64) -> (usize, usize) {
    let chunk = usize::try_from(row >> CHUNK_BITS).unwrap_or(usize::MAX);
    (chunk, (row & (CHUNK_ROWS as u64 - 1)) as usize)
}

fn new_chunk() -> Arc<Chunk> {
    Arc::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_seeing_what_died_later() {
        let mut dead = DeadRows::default();
        dead.mark(5, 10);
        let reader = dead.clone();
        dead.mark(6, 11);
        dead.mark(1_000_000, 12);
        assert!(reader.is_dead(5, 10) && !reader.is_dead(5, 9));
        assert!(
            !reader.is_dead(6, 10),
            "marked in a shared chunk, but after this reader's index"
        );
        assert!(dead.is_dead(6, 11) && dead.is_dead(1_000_000, 12));
        assert!(!reader.is_dead(1_000_000, 10));
    }

    #[test]
    fn only_touched_chunks_exist() {
        let mut dead = DeadRows::default();
        dead.mark(100_000, 1);
        assert!(dead.may_hold(99_000, 2_000));
        assert!(!dead.may_hold(0, 4_096));
        assert!(dead.memory_bytes() < 40_000);
    }
}
