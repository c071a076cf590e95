//! BM25: how well a row fits a term.
//!
//! As Lucene has it since version 8, and `bm25s` by the name `lucene`: with N rows that have a text in the column, df of
//! them with the term, tf times in this row, whose text has dl tokens where the mean is avgdl,
//!
//! ```text
//! score = idf * tf / (tf + k1 * (1 - b + b * dl / avgdl))     k1 = 1.2, b = 0.75
//! idf   = ln(1 + (N - df + 0.5) / (df + 0.5))
//! ```
//! Lengths are exact, and all counts are of living rows: scores depend on the rows that are there and on nothing else. The
//! idf of a phrase is the sum of those of its terms (as tantivy has it), its tf is how often it is there.

/// Saturation of the frequency of a term.
pub const K1: f64 = 1.2;
/// Weight of the length of a text.
pub const B: f64 = 0.75;

/// What is counted of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Living rows with a text.
    pub rows: u64,
    /// Tokens of these texts.
    pub tokens: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, length: u32) {
        self.rows += 1;
        self.tokens += u64::from(length);
    }

    pub(crate) fn sum(self, other: Totals) -> Totals {
        Totals {
            rows: self.rows + other.rows,
            tokens: self.tokens + other.tokens,
        }
    }

    /// The rarity of a term that is in `df` of the rows.
    pub(crate) fn idf(self, df: u64) -> f64 {
        let (n, df) = (self.rows as f64, df as f64);
        ((n - df + 0.5) / (df + 0.5)).ln_1p()
    }

    pub(crate) fn lengths(self) -> Lengths {
        let mean = self.tokens as f64 / self.rows as f64;
        Lengths {
            base: K1 * (1.0 - B),
            slope: if mean > 0.0 { K1 * B / mean } else { 0.0 },
        }
    }
}

/// What the length of a text means for its score.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    base: f64,
    slope: f64,
}

impl Lengths {
    #[inline]
    pub fn score(self, idf: f64, tf: u32, length: u32) -> f64 {
        let tf = f64::from(tf);
        idf * tf / (tf + self.base + self.slope * f64::from(length))
    }
}
