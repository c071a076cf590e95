//! A set of rows.
//!
//! Useful for: asking in the middle of a search whether a row passes a filter (one cache line where many do), and adding the
//! rows of new batches 64 at a time, while readers hold what was there before. Of every 65,536 rows of which one is in the
//! set, it takes a bit for each, or two bytes for each that is in it, if they are up to 256. Not useful for: storage.

use std::sync::{Arc, OnceLock};

use arrow_buffer::BooleanBuffer;

const CHUNK_BITS: u32 = 16;
const CHUNK_ROWS: u64 = 1 << CHUNK_BITS;
const CHUNK_WORDS: usize = 1 << (CHUNK_BITS - 6);
/// Rows of a chunk that are listed at most, in a sixteenth of the room that a bit for each takes.
const LISTED: usize = 256;

type Words = [u64; CHUNK_WORDS];

/// Which of 65,536 rows are in a set.
#[derive(Debug, Clone)]
enum Chunk {
    /// Few: their places, ascending.
    Few(Arc<Vec<u16>>),
    /// A bit for each place.
    Many(Arc<Words>),
}

/// A set of rows. Clones share what neither adds to.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowSet {
    /// Of 65,536 rows each; none where there is no row.
    chunks: Vec<Option<Chunk>>,
    len: u64,
    /// Some of the rows, once they were asked for.
    sample: OnceLock<Arc<[u64]>>,
}

/// Of how many rows one is in a sample.
const SAMPLED: u64 = 16;
/// Rows of a sample, where there are so many.
const FEWEST_SAMPLED: u64 = 128;
const MOST_SAMPLED: u64 = 4096;

impl Chunk {
    /// Words that are not zero, each with its number.
    fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (few, many): (&[u16], &[u64]) = match self {
            Chunk::Few(places) => (places, &[]),
            Chunk::Many(words) => (&[], &words[..]),
        };
        let few = few
            .chunk_by(|one, next| one / 64 == next / 64)
            .map(|places| {
                let bits = places.iter().map(|place| 1 << (place % 64));
                (
                    usize::from(places[0] / 64),
                    bits.fold(0, |word, bit: u64| word | bit),
                )
            });
        let many = many.iter().copied().enumerate();
        few.chain(many.filter(|(_, word)| *word != 0))
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Chunk::Few(places) => size_of_val(&**places) + size_of_val(&places[..]),
            Chunk::Many(words) => size_of_val(&**words),
        }
    }
}

impl RowSet {
    /// How many rows.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether `row` is one.
    #[inline(always)]
    pub fn contains(&self, row: u64) -> bool {
        match self.chunks.get((row >> CHUNK_BITS) as usize) {
            Some(Some(Chunk::Many(words))) => {
                words[(row >> 6) as usize % CHUNK_WORDS] >> (row % 64) & 1 == 1
            }
            Some(Some(Chunk::Few(places))) => places.binary_search(&(row as u16)).is_ok(),
            _ => false,
        }
    }

    /// Adds, of consecutive rows from `first` on, those whose bit is set. None of them is in the set.
    pub fn insert_bits(&mut self, first: u64, bits: &BooleanBuffer) {
        self.len += bits.count_set_bits() as u64;
        self.sample.take();
        let mut at = 0;
        while at < bits.len() {
            let row = first + at as u64;
            let room = (CHUNK_ROWS - row % CHUNK_ROWS) as usize;
            let some = bits.slice(at, room.min(bits.len() - at));
            at += some.len();
            let count = some.count_set_bits();
            if count == 0 {
                continue;
            }
            let place = row % CHUNK_ROWS;
            match self.room_for(row, count) {
                Room::Few(places) => {
                    places.extend(some.set_indices().map(|at| (place as usize + at) as u16));
                    places.sort_unstable();
                }
                Room::Many(words) => insert_words(place as usize, &some, words),
            }
        }
    }

    /// Adds rows, ascending. None of them is in the set.
    pub fn insert_rows(&mut self, rows: impl Iterator<Item = u64>) {
        self.sample.take();
        let rows: Vec<u64> = rows.collect();
        self.len += rows.len() as u64;
        for rows in rows.chunk_by(|one, next| one >> CHUNK_BITS == next >> CHUNK_BITS) {
            match self.room_for(rows[0], rows.len()) {
                Room::Few(places) => {
                    places.extend(rows.iter().map(|row| *row as u16));
                    places.sort_unstable();
                }
                Room::Many(words) => {
                    for row in rows {
                        words[(row >> 6) as usize % CHUNK_WORDS] |= 1 << (row % 64);
                    }
                }
            }
        }
    }

    /// The rows from `from` on, ascending.
    pub fn iter_from(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        let words = self.words((from >> CHUNK_BITS) as usize);
        let words = words.filter(move |(first, _)| first + 63 >= from);
        let rows = words.flat_map(|(first, word)| Bits(word).map(move |bit| first + bit));
        rows.skip_while(move |row| *row < from)
    }

    /// One of 16 rows, but 128 at least and 4,096 at most, in even steps over all.
    pub fn sample(&self) -> &[u64] {
        self.sample.get_or_init(|| {
            let mut sample = Vec::new();
            let (count, mut before) = (self.sampled(), 0);
            for (first, word) in self.words(0) {
                let ones = u64::from(word.count_ones());
                while (sample.len() as u64) < count {
                    let rank = sample.len() as u64 * self.len / count;
                    let Some(place) = rank.checked_sub(before).filter(|at| *at < ones) else {
                        break;
                    };
                    sample.extend(Bits(word).nth(place as usize).map(|bit| first + bit));
                }
                before += ones;
            }
            sample.into()
        })
    }

    fn sampled(&self) -> u64 {
        let count = (self.len / SAMPLED).clamp(FEWEST_SAMPLED, MOST_SAMPLED);
        count.min(self.len)
    }

    /// The words that hold rows from a chunk on, each with its first row.
    fn words(&self, from: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let chunks = self.chunks.iter().enumerate().skip(from);
        chunks.flat_map(|(chunk, words)| {
            let words = words.iter().flat_map(Chunk::words);
            words.map(move |(at, word)| ((chunk as u64) << CHUNK_BITS | (at as u64) << 6, word))
        })
    }

    /// Memory held, in bytes; what clones share counts for each, and the sample before it is made: as long as nothing is
    /// added it is the same.
    pub fn memory_bytes(&self) -> usize {
        let chunks = self.chunks.iter().flatten();
        let sample = self.sampled() as usize * size_of::<u64>();
        size_of_val(&self.chunks[..]) + sample + chunks.map(Chunk::memory_bytes).sum::<usize>()
    }

    /// The chunk of a row, with room for so many more.
    fn room_for(&mut self, row: u64, more: usize) -> Room<'_> {
        let at = (row >> CHUNK_BITS) as usize;
        if self.chunks.len() <= at {
            self.chunks.resize(at + 1, None);
        }
        let chunk = self.chunks[at].get_or_insert_with(|| Chunk::Few(Arc::default()));
        if let Chunk::Few(places) = chunk
            && places.len() + more > LISTED
        {
            let mut words = [0; CHUNK_WORDS];
            for place in places.iter() {
                words[usize::from(*place) / 64] |= 1 << (place % 64);
            }
            *chunk = Chunk::Many(Arc::new(words));
        }
        match chunk {
            Chunk::Few(places) => Room::Few(Arc::make_mut(places)),
            Chunk::Many(words) => Room::Many(Arc::make_mut(words)),
        }
    }
}

/// A chunk that is added to.
enum Room<'a> {
    Few(&'a mut Vec<u16>),
    Many(&'a mut Words),
}

/// Sets the bits of rows from `first` of a chunk on, which end in it.
fn insert_words(first: usize, bits: &BooleanBuffer, words: &mut Words) {
    let (mut at, shift) = (first / 64, first % 64);
    let chunks = bits.bit_chunks();
    let last = std::iter::once(chunks.remainder_bits());
    for word in chunks.iter().chain(last) {
        if word != 0 {
            words[at] |= word << shift;
            if shift > 0 && word >> (64 - shift) != 0 {
                words[at + 1] |= word >> (64 - shift);
            }
        }
        at += 1;
    }
}

/// The places of a word's set bits, ascending.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let bit = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then_some(u64::from(bit))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Runs of rows, each after a gap.
    fn runs() -> impl Strategy<Value = Vec<(u64, Vec<bool>)>> {
        let bits = prop_oneof![
            proptest::collection::vec(any::<bool>(), 0..300),
            (any::<bool>(), 60_000usize..70_000).prop_map(|(bit, len)| vec![bit; len]),
        ];
        proptest::collection::vec((0u64..80_000, bits), 1..6)
    }

    proptest! {
        #[test]
        fn it_holds_what_a_plain_set_holds(runs in runs(), from in 0u64..300_000) {
            let (mut set, mut plain) = (RowSet::default(), BTreeSet::new());
            let mut row = 0;
            for (gap, bits) in runs {
                row += gap;
                let before = set.clone();
                set.insert_bits(row, &BooleanBuffer::from(bits.clone()));
                prop_assert_eq!(before.len(), plain.len() as u64);
                prop_assert!(before.iter_from(0).eq(plain.iter().copied()));
                let set_bits = bits.iter().enumerate().filter(|(_, bit)| **bit);
                plain.extend(set_bits.map(|(at, _)| row + at as u64));
                row += bits.len() as u64;
            }
            prop_assert_eq!(set.len(), plain.len() as u64);
            let bytes = set.memory_bytes();
            let sample = set.sample().to_vec();
            prop_assert_eq!(set.memory_bytes(), bytes);
            let count = (plain.len() / 16).clamp(128, 4096);
            prop_assert_eq!(sample.len(), plain.len().min(count));
            prop_assert!(sample.is_sorted() && sample.iter().all(|row| plain.contains(row)));
            prop_assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), sample.len());
            prop_assert!(set.iter_from(from).eq(plain.range(from..).copied()));
            for row in [from, from + 1, row, row.saturating_sub(1)] {
                prop_assert_eq!(set.contains(row), plain.contains(&row));
            }
        }
    }
}
