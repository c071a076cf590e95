//! Which row versions are dead, and since when.
//!
//! Useful for: asking millions of times a second "does this reader still see that row", without a lock and
//! without copying a bitmap at each write. Not useful for: storage (checkpoints keep a roaring bitmap).
//!
//! Each row has one word: the log index of the write that replaced or deleted it, 0 while it lives. A reader
//! holds the index up to which it sees writes, so a row replaced later is still there for it: a search that runs
//! beside an upsert finds the old version or the new one, never neither. Words come in chunks of 4,096 rows that
//! exist only where something died (1.6 % of a 128-dimensional float32 row at worst). Before the words of a chunk stands
//! one bit for each row that has died at all, and the latest of its words, which hardly any reader comes before. A search asks
//! for rows from anywhere: the bits stay in the processor's cache, where the words do not. All chunks whose every row is dead become one when
//! their rows leave the files.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

const CHUNK_BITS: u32 = 12;
const CHUNK_ROWS: usize = 1 << CHUNK_BITS;

/// Consecutive rows.
#[derive(Debug)]
struct Chunk {
    /// A bit for each row that has a word.
    died: [AtomicU64; CHUNK_ROWS / 64],
    /// No word is later.
    latest: AtomicU64,
    words: [AtomicU64; CHUNK_ROWS],
}

impl Chunk {
    /// All rows with the same word.
    fn of(at: u64) -> Arc<Chunk> {
        let bits = if at == 0 { 0 } else { u64::MAX };
        Arc::new(Chunk {
            died: std::array::from_fn(|_| bits.into()),
            latest: at.into(),
            words: std::array::from_fn(|_| at.into()),
        })
    }

    fn mark(&self, slot: usize, at: u64) {
        self.latest.fetch_max(at, Ordering::Release);
        self.words[slot].store(at, Ordering::Release);
        // Behind them: whoever sees the bit sees both. Whoever does not holds an earlier index.
        self.died[slot / 64].fetch_or(1 << (slot % 64), Ordering::Release);
    }

    /// A bit for each of the 64 rows from a slot on that is dead.
    fn dead(&self, first: usize, as_of: u64) -> u64 {
        let died = self.died[first / 64].load(Ordering::Acquire);
        if died == 0 || self.latest.load(Ordering::Acquire) <= as_of {
            return died;
        }
        let is_dead = |slot: &usize| self.words[first + slot].load(Ordering::Acquire) <= as_of;
        set_bits(died)
            .filter(is_dead)
            .fold(0, |dead, slot| dead | 1 << slot)
    }

    /// Whether all rows died up to a log index.
    fn is_over(&self, as_of: u64) -> bool {
        let died = |bits: &AtomicU64| bits.load(Ordering::Acquire) == u64::MAX;
        self.died.iter().all(died) && self.latest.load(Ordering::Acquire) <= as_of
    }

    #[inline]
    fn is_dead(&self, slot: usize, as_of: u64) -> bool {
        let bits = self.died[slot / 64].load(Ordering::Acquire);
        bits >> (slot % 64) & 1 == 1
            && (self.latest.load(Ordering::Acquire) <= as_of
                || self.words[slot].load(Ordering::Acquire) <= as_of)
    }
}

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
            chunks[chunk] = Some(Chunk::of(0));
        }
        if let Some(chunk) = &self.chunks[chunk] {
            chunk.mark(slot, at);
        }
    }

    /// Marks a whole range of rows dead since log index `at` (not 0), at the cost of one chunk for all that it fills.
    pub fn mark_all(&mut self, rows: Range<u64>, at: u64) {
        let mut full: Option<Arc<Chunk>> = None;
        let mut row = rows.start;
        while row < rows.end {
            let (chunk, slot) = split(row);
            if slot > 0 || rows.end - row < CHUNK_ROWS as u64 {
                self.mark(row, at);
                row += 1;
                continue;
            }
            let chunks = Arc::make_mut(&mut self.chunks);
            if chunks.len() <= chunk {
                chunks.resize(chunk + 1, None);
            }
            let filled = full.get_or_insert_with(|| Chunk::of(at));
            chunks[chunk] = Some(Arc::clone(filled));
            row += CHUNK_ROWS as u64;
        }
    }

    /// Lets all chunks whose every row died up to log index `as_of` be one, as far as readers go by this that see writes up to there. Rows
    /// are numbered for ever, so who replaces them again and again would keep a word for each that ever died.
    pub fn settle(&mut self, as_of: u64) {
        static ALL: LazyLock<Arc<Chunk>> = LazyLock::new(|| Chunk::of(1));
        let is_over = |chunk: &Option<Arc<Chunk>>| {
            let chunk = chunk.as_ref();
            chunk.is_some_and(|chunk| !Arc::ptr_eq(chunk, &ALL) && chunk.is_over(as_of))
        };
        if self.chunks.iter().any(is_over) {
            let chunks = Arc::make_mut(&mut self.chunks).iter_mut();
            chunks
                .filter(|chunk| is_over(chunk))
                .for_each(|chunk| *chunk = Some(Arc::clone(&ALL)));
        }
    }

    /// Whether `row` is dead for a reader that sees writes up to and including log index `as_of`.
    #[inline]
    pub fn is_dead(&self, row: u64, as_of: u64) -> bool {
        let (chunk, slot) = split(row);
        match self.chunks.get(chunk) {
            Some(Some(chunk)) => chunk.is_dead(slot, as_of),
            _ => false,
        }
    }

    /// The rows of a range that live for a reader that sees writes up to and including log index `as_of`, ascending.
    pub fn living(&self, rows: Range<u64>, as_of: u64) -> impl Iterator<Item = Living> + use<'_> {
        let mut next = rows.start;
        std::iter::from_fn(move || {
            let start = next;
            let first = start & !63;
            next = rows.end.min(first + 64);
            let rows = next.checked_sub(start).filter(|rows| *rows > 0)?;
            let (chunk, slot) = split(first);
            let dead = match self.chunks.get(chunk) {
                Some(Some(chunk)) => chunk.dead(slot, as_of),
                _ => 0,
            };
            let asked = u64::MAX >> (64 - rows) << (start - first);
            Some(Living {
                first,
                bits: !dead & asked,
            })
        })
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
        let mut last = None;
        // One that stands for several stands for neighbours.
        let is_new = |chunk: &&Arc<Chunk>| {
            let this = Some(Arc::as_ptr(chunk));
            std::mem::replace(&mut last, this) != this
        };
        let full = self.chunks.iter().flatten().filter(is_new).count();
        (full * size_of::<Chunk>() + self.chunks.len() * 8) as u64
    }
}

/// Those that live of 64 consecutive rows.
#[derive(Debug, Clone, Copy)]
pub struct Living {
    first: u64,
    bits: u64,
}

impl Living {
    /// How many.
    pub fn count(self) -> u64 {
        u64::from(self.bits.count_ones())
    }

    /// Which, ascending.
    pub fn rows(self) -> impl Iterator<Item = u64> {
        set_bits(self.bits).map(move |slot| self.first + slot as u64)
    }
}

/// The places of the bits that are set, ascending.
fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        // The lowest is done.
        bits &= bits.checked_sub(1)?;
        Some(place)
    })
}

fn split(row: u64) -> (usize, usize) {
    let chunk = usize::try_from(row >> CHUNK_BITS).unwrap_or(usize::MAX);
    (chunk, (row & (CHUNK_ROWS as u64 - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_dead_and_nothing_around_it() {
        let mut dead = DeadRows::default();
        dead.mark_all(4_000..1_000_000_000, 1);
        dead.mark_all(7..7, 1);
        for row in [4_000, 4_095, 4_096, 8_191, 500_000_000, 999_999_999] {
            assert!(dead.is_dead(row, 1), "{row}");
        }
        assert!(dead.memory_bytes() < 4_000_000, "{}", dead.memory_bytes());
        assert!(
            [0, 7, 3_999, 1_000_000_000]
                .iter()
                .all(|row| !dead.is_dead(*row, 9))
        );
    }

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
    fn rows_that_died_long_ago_take_no_words() {
        let rows = 100 * CHUNK_ROWS as u64;
        let mut dead = DeadRows::default();
        (0..rows - 1).for_each(|row| dead.mark(row, 2 + row / 1_000));
        let before = dead.memory_bytes();
        let reader = dead.clone();
        let last = 2 + rows / 1_000;
        dead.settle(last / 2);
        dead.settle(last);
        assert!(dead.memory_bytes() < before / 20, "{}", dead.memory_bytes());
        for row in (0..rows).step_by(501).chain([rows - 1, rows]) {
            assert_eq!(dead.is_dead(row, last), row < rows - 1, "{row}");
            for as_of in [1, last / 2, last] {
                let died = row < rows - 1 && 2 + row / 1_000 <= as_of;
                assert_eq!(reader.is_dead(row, as_of), died, "{row} as of {as_of}");
            }
        }
        // What lived then dies all the same.
        dead.mark(rows - 1, last + 1);
        assert!(dead.is_dead(rows - 1, last + 1) && !dead.is_dead(rows - 1, last));
    }

    #[test]
    fn the_living_are_those_that_are_not_dead() {
        let mut dead = DeadRows::default();
        dead.mark_all(4_000..9_000, 1);
        for (row, at) in [(5, 1), (63, 2), (64, 3), (127, 2), (9_001, 9), (9_063, 2)] {
            dead.mark(row, at);
        }
        for rows in [
            0..0,
            70..70,
            5..6,
            0..64,
            1..128,
            3_990..12_000,
            64..65,
            8_999..9_070,
        ] {
            for as_of in [0, 1, 2, 3, 9] {
                let lives = |row: &u64| !dead.is_dead(*row, as_of);
                let expected: Vec<u64> = rows.clone().filter(lives).collect();
                let living = || dead.living(rows.clone(), as_of);
                let told: Vec<u64> = living().flat_map(Living::rows).collect();
                assert_eq!(told, expected, "{rows:?}, {as_of}");
                let count: u64 = living().map(Living::count).sum();
                assert_eq!(count, expected.len() as u64, "{rows:?}, {as_of}");
            }
        }
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
