//! Scores of some thousand consecutive documents.

use crate::alive::Alive;

/// Documents of a window; their scores fit the first cache.
pub(crate) const WINDOW: u32 = 2_048;
const WORDS: usize = WINDOW as usize / 64;

/// Which documents of a window match, and their scores so far: those of others are 0.
#[derive(Debug)]
pub(crate) struct Window {
    bits: [u64; WORDS],
    scores: Box<[f64]>,
}

impl Window {
    pub fn new() -> Self {
        Window {
            bits: [0; WORDS],
            scores: vec![0.0; WINDOW as usize].into_boxed_slice(),
        }
    }

    /// A document matches and has so much more.
    #[inline]
    pub fn add(&mut self, at: usize, score: f64) {
        self.bits[at / 64] |= 1 << (at % 64);
        self.scores[at] += score;
    }

    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|bits| *bits == 0)
    }

    pub fn clear(&mut self) {
        for (word, bits) in self.bits.iter_mut().enumerate() {
            each_bit(*bits, |bit| self.scores[word * 64 + bit] = 0.0);
            *bits = 0;
        }
    }

    /// What matches in either, with both scores.
    pub fn or(&mut self, other: &Window) {
        for (word, more) in other.bits.iter().enumerate() {
            each_bit(*more, |bit| {
                let at = word * 64 + bit;
                self.scores[at] += other.scores[at];
            });
            self.bits[word] |= more;
        }
    }

    /// What matches in both, with both scores.
    pub fn and(&mut self, other: &Window) {
        for (word, more) in other.bits.iter().enumerate() {
            self.drop_from(word, !more);
            each_bit(self.bits[word], |bit| {
                let at = word * 64 + bit;
                self.scores[at] += other.scores[at];
            });
        }
    }

    /// What matches here, with the scores of both.
    pub fn add_scores(&mut self, other: &Window) {
        for (word, more) in other.bits.iter().enumerate() {
            each_bit(self.bits[word] & more, |bit| {
                let at = word * 64 + bit;
                self.scores[at] += other.scores[at];
            });
        }
    }

    /// What matches here and not there.
    pub fn without(&mut self, other: &Window) {
        for (word, gone) in other.bits.iter().enumerate() {
            self.drop_from(word, *gone);
        }
    }

    fn drop_from(&mut self, word: usize, gone: u64) {
        each_bit(self.bits[word] & gone, |bit| {
            self.scores[word * 64 + bit] = 0.0;
        });
        self.bits[word] &= !gone;
    }

    /// Hands on each living document that matches, and its score. The window begins at the document `from`, a multiple
    /// of its size.
    #[inline]
    pub fn each(&self, from: u32, alive: &Alive, mut take: impl FnMut(u32, f32)) {
        for (word, bits) in self.bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let living = bits & alive.word(from as usize / 64 + word);
            each_bit(living, |bit| {
                let at = word * 64 + bit;
                take(from + at as u32, self.scores[at] as f32);
            });
        }
    }
}

#[inline]
fn each_bit(mut bits: u64, mut take: impl FnMut(usize)) {
    while bits != 0 {
        take(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
