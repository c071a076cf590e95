//! What a search is asked for.

use std::sync::Arc;
use std::time::Duration;

use crate::answer::{Beside, check_words};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::examples::Examples;
use crate::filter::Filter;
use crate::fusion::Fusion;
use crate::graph::EFFORT_A_POSTING;
use crate::index_kind::IndexKind;
use crate::recall_target;
use crate::search::{MAX_EF, MAX_K};
use crate::shape::Shape;
use crate::text::TextQuery;

/// A search as asked for.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// Name of the vector column; if none, `vector` or the first.
    pub column: Option<String>,
    /// The query vectors.
    pub vectors: Vec<Vec<f32>>,
    /// Neighbours per query.
    pub k: usize,
    /// Effort of the graph search; if none, what the recall target needs.
    pub ef: Option<usize>,
    /// The effort of a search of postings: how many of them are read, or a quarter of `k` if that is more. In place of `ef`.
    pub nprobe: Option<usize>,
    /// The share of the true neighbours that is to be found on average, above 0 and up to 1; if none, what the column's
    /// field says, else the configured effort is made. `ef`, `nprobe` and `exact` go before it.
    pub recall_target: Option<f32>,
    /// Whether to scan all rows instead of using the index.
    pub exact: bool,
    /// Neighbours farther away than this are left out (in the metric's own distance).
    pub max_distance: Option<f32>,
    /// Which rows may be found; all if there is none.
    pub filter: Option<Arc<dyn Filter>>,
    /// Rows whose vectors are searched for, in place of `vectors`.
    pub examples: Option<Examples>,
    /// Words to search for, beside the vector or in place of it.
    pub text: Option<TextQuery>,
    /// What the vector counts beside the words: 1 is the vector alone, 0 the words alone, between both are fused; below 0 it
    /// is chosen by the length of the query. If none, as configured.
    pub alpha: Option<f32>,
    /// Searches of other vector columns, whose answers are joined to this one's. For a single query.
    pub beside: Vec<Beside>,
    /// How answers of several searches become one.
    pub fusion: Fusion,
    /// What is asked for beside the nearest `k`.
    pub shape: Shape,
    /// Columns to return beside id, score and distance.
    pub columns: Vec<String>,
    /// Whether to return the vector column.
    pub include_vectors: bool,
    /// Whether the reply is to say why the search went as it did.
    pub explain: bool,
    /// Whether each row is to tell what each of the searches that were fused gave it: a column `score_parts` of the reply.
    pub score_parts: bool,
    /// Time after which the search gives up with an error.
    pub timeout: Option<Duration>,
    /// Time after which the search ends with what it has found by then, and the reply's `partial_because` says so. A filter
    /// is evaluated and words are searched for in whole, or not at all.
    pub budget: Option<Duration>,
    /// The `query_index` of the first query, for a caller that asks in pieces. Without it the column is there only
    /// if there are several queries, and begins at 0.
    pub first_query: Option<i32>,
    /// Whether the reply's batch goes without the metadata of its schema, for a caller that looks at its `info` at most.
    pub is_bare: bool,
}

impl SearchRequest {
    /// A search for the `k` nearest rows of one vector, all else by default.
    pub fn nearest(vector: Vec<f32>, k: usize) -> Self {
        SearchRequest {
            column: None,
            vectors: vec![vector],
            k,
            ef: None,
            nprobe: None,
            recall_target: None,
            exact: false,
            max_distance: None,
            filter: None,
            examples: None,
            text: None,
            alpha: None,
            beside: Vec::new(),
            fusion: Fusion::default(),
            shape: Shape::default(),
            columns: Vec::new(),
            include_vectors: false,
            explain: false,
            score_parts: false,
            timeout: None,
            budget: None,
            first_query: None,
            is_bare: false,
        }
    }

    /// A checksum of what decides which rows are found in a dataset and in what order, but for how many and with what effort:
    /// the same for all pages of one search.
    fn print(&self, dataset: &str) -> u32 {
        let filter = self.filter.as_ref().and_then(|filter| filter.key());
        let of_rows = (dataset, &self.column, &self.vectors, &self.examples);
        let of_words = (&self.text, self.alpha, &self.beside, self.fusion);
        let all = format!("{of_rows:?}{of_words:?}{:?}{filter:?}", self.max_distance);
        longbow_storage::crc32c(all.as_bytes())
    }

    /// The effort that is asked for, in candidates of a walk.
    pub(crate) fn effort(&self) -> Option<usize> {
        self.ef.or(self
            .nprobe
            .map(|nprobe| nprobe.saturating_mul(EFFORT_A_POSTING)))
    }

    /// The breadth of a search as it is written in a request.
    ///
    /// # Errors
    /// If it is out of its range.
    pub fn read_ef(written: i64) -> Result<usize> {
        read("ef", written, (MAX_EF, "1 to 65536"))
    }

    /// The postings that a search reads, as they are written in a request.
    ///
    /// # Errors
    /// If it is out of its range.
    pub fn read_nprobe(written: i64) -> Result<usize> {
        read("nprobe", written, (MAX_EF / EFFORT_A_POSTING, "1 to 16384"))
    }

    /// Checks that the effort that is asked for is one of this kind of index.
    pub(crate) fn check_kind(&self, kind: IndexKind) -> Result<()> {
        match (self.nprobe, kind) {
            (Some(nprobe), IndexKind::Hnsw) => Err(Error::BadValue {
                field: "nprobe",
                got: nprobe.to_string(),
                expected: "none where the index is a graph ('hnsw'), whose effort is ef; postings are those of 'spfresh'",
            }),
            _ => Ok(()),
        }
    }

    /// The print, and the place that the page begins after, if a page is asked for.
    ///
    /// # Errors
    /// If the cursor is another search's.
    pub(crate) fn page(&self, dataset: &str) -> Result<Option<(u32, Option<Cursor>)>> {
        let Some(page) = self.shape.page else {
            return Ok(None);
        };
        let print = self.print(dataset);
        page.map_or(Ok(()), |cursor| cursor.check_of(print))?;
        Ok(Some((print, page)))
    }

    fn check_effort(&self) -> Result<()> {
        let written = |effort: usize| i64::try_from(effort).unwrap_or(i64::MAX);
        self.ef.map(|ef| Self::read_ef(written(ef))).transpose()?;
        if let Some(nprobe) = self.nprobe {
            Self::read_nprobe(written(nprobe))?;
            if self.ef.is_some() {
                return Err(Error::BadValue {
                    field: "nprobe",
                    got: format!("{nprobe}, beside ef"),
                    expected: "no ef beside it: they are the same effort in other units",
                });
            }
        }
        if let Some(target) = self.recall_target {
            recall_target::check_value(target)?;
        }
        Ok(())
    }

    /// Checks what does not depend on the dataset.
    ///
    /// # Errors
    /// If a number is out of its range or there is no vector.
    pub fn check(&self) -> Result<()> {
        if self.k == 0 || self.k > MAX_K {
            return Err(Error::BadK {
                got: self.k as i64,
                max: MAX_K,
            });
        }
        self.shape.check(self.k, self.vectors.len())?;
        if self.budget.is_some() && self.shape.page.is_some() {
            return Err(Error::BadValue {
                field: "budget_ms",
                got: "given".into(),
                expected: "none with cursor: after a page that lacks rows, the next one would begin behind them",
            });
        }
        match &self.examples {
            Some(examples) => examples.check()?,
            None => {
                let (words, vectors) = (self.text.is_some(), &self.vectors);
                check_words(self.alpha, words, !vectors.is_empty())?;
                if let (Some(distance), true, true) = (
                    self.max_distance,
                    vectors.is_empty(),
                    self.beside.is_empty(),
                ) {
                    return Err(Error::BadValue {
                        field: "max_distance",
                        got: distance.to_string(),
                        expected: "none beside words alone: what they find has a score and no distance",
                    });
                }
            }
        }
        if !self.beside.is_empty() && self.vectors.len() > 1 {
            return Err(Error::BadValue {
                field: "beside",
                got: format!("{} query vectors", self.vectors.len()),
                expected: "one, for other columns to be searched beside it",
            });
        }
        if let Some(bad) = self
            .beside
            .iter()
            .find(|one| !(one.weight > 0.0 && one.weight.is_finite()))
        {
            return Err(Error::BadValue {
                field: "weight",
                got: bad.weight.to_string(),
                expected: "a number above 0",
            });
        }
        self.check_effort()?;
        if let Some(distance) = self.max_distance
            && distance.is_nan()
        {
            return Err(Error::BadValue {
                field: "max_distance",
                got: distance.to_string(),
                expected: "a number",
            });
        }
        Ok(())
    }
}

/// A number from 1 to `most`, as `expected` says in words.
fn read(
    field: &'static str,
    written: i64,
    (most, expected): (usize, &'static str),
) -> Result<usize> {
    let number = usize::try_from(written).ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Error::BadValue {
        field,
        got: written.to_string(),
        expected,
    })
}
