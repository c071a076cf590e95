//! Which documents of a piece are alive for a reader.

use tantivy::BitSet;
use tantivy::directory::OwnedBytes;
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};

use crate::bm25::Totals;
use crate::error::Result;
use crate::piece::{ABSENT, Piece};

/// Rows that are asked together whether one of them may be dead.
const CHUNK: usize = 1_024;

/// The living documents of a piece at one moment, and what is counted of them.
#[derive(Debug)]
pub struct Alive {
    /// One bit a document; nothing if all live.
    bits: Option<Vec<u64>>,
    /// How many live.
    pub documents: usize,
    /// By the piece's columns.
    totals: Vec<(u16, Totals)>,
}

impl Alive {
    /// Asks for the rows of a piece: first of the rows from one on, so many, whether any of them may be dead, and then of
    /// each whether it is.
    pub fn of(
        piece: &Piece,
        may_be_dead: impl Fn(u64, u64) -> bool,
        is_dead: impl Fn(u64) -> bool,
    ) -> Self {
        let mut totals: Vec<(u16, Totals)> = piece
            .columns
            .iter()
            .map(|column| (column.number, column.totals()))
            .collect();
        let mut bits: Option<Vec<u64>> = None;
        let mut documents = piece.len();
        for chunk in (0..piece.len()).step_by(CHUNK) {
            let end = piece.len().min(chunk + CHUNK);
            let (first, last) = (piece.row(chunk as u32), piece.row(end as u32 - 1));
            if !may_be_dead(first, last - first + 1) {
                continue;
            }
            for at in chunk..end {
                if !is_dead(piece.row(at as u32)) {
                    continue;
                }
                let bits = bits.get_or_insert_with(|| all(piece.len()));
                bits[at / 64] &= !(1 << (at % 64));
                documents -= 1;
                for (column, (_, totals)) in piece.columns.iter().zip(&mut totals) {
                    let length = column.lengths[at];
                    if length != ABSENT {
                        totals.rows -= 1;
                        totals.tokens -= u64::from(length);
                    }
                }
            }
        }
        Alive {
            bits,
            documents,
            totals,
        }
    }

    /// Whether a document lives.
    #[inline]
    pub(crate) fn has(&self, document: usize) -> bool {
        let bit = |bits: &Vec<u64>| bits[document / 64] >> (document % 64) & 1 == 1;
        self.bits.as_ref().is_none_or(bit)
    }

    /// The bits of the 64 documents from 64 times `word` on.
    #[inline]
    pub(crate) fn word(&self, word: usize) -> u64 {
        self.bits.as_ref().map_or(u64::MAX, |bits| bits[word])
    }

    pub(crate) fn are_all(&self) -> bool {
        self.bits.is_none()
    }

    pub(crate) fn totals(&self, column: u16) -> Totals {
        let mut totals = self.totals.iter();
        let found = totals.find(|(number, _)| *number == column);
        found.map_or_else(Totals::default, |(_, totals)| *totals)
    }

    /// For tantivy.
    pub(crate) fn filter(&self, documents: usize) -> Result<Option<AliveBitSet>> {
        if self.are_all() {
            return Ok(None);
        }
        let mut set = BitSet::with_max_value(documents as u32);
        for at in (0..documents).filter(|at| self.has(*at)) {
            set.insert(at as u32);
        }
        let mut bytes = Vec::new();
        write_alive_bitset(&set, &mut bytes)?;
        Ok(Some(AliveBitSet::open(OwnedBytes::new(bytes))))
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bits.as_ref().map_or(0, |bits| bits.len() * 8)
    }
}

/// A bit for each of so many, and none for others.
fn all(documents: usize) -> Vec<u64> {
    let mut bits = vec![u64::MAX; documents.div_ceil(64)];
    if let Some(last) = bits.last_mut()
        && !documents.is_multiple_of(64)
    {
        *last = (1 << (documents % 64)) - 1;
    }
    bits
}
