//! [`Piece`]: an immutable part of a text index.
//!
//! The postings are a segment of tantivy with one field, in whose terms the token stands behind a character for its column.
//! Beside them lie the row number of each document and the exact length of each of its texts: tantivy rounds lengths above
//! 40 to one byte, and scores are to be exact.

use std::fmt;
use std::sync::Arc;

use tantivy::directory::OwnedBytes;
use tantivy::fastfield::AliveBitSet;
use tantivy::indexer::merge_filtered_segments;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexSettings, InvertedIndexReader, Segment, SegmentReader};

use crate::alive::Alive;
use crate::bm25::Totals;
use crate::error::{Error, Result};
use crate::files::Files;

/// The length of a text that is not there.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Rows whose texts were indexed together.
pub struct Piece {
    pub(crate) first_row: u64,
    /// Of each document the distance of its row from the first.
    pub(crate) offsets: Vec<u32>,
    pub(crate) columns: Vec<ColumnLengths>,
    pub(crate) files: Files,
    segment: Segment,
    inverted: Arc<InvertedIndexReader>,
}

/// The lengths of the texts of a column, by document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnLengths {
    pub number: u16,
    pub lengths: Vec<u32>,
}

impl ColumnLengths {
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for length in self.lengths.iter().filter(|length| **length != ABSENT) {
            totals.add(*length);
        }
        totals
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece")
            .field("first_row", &self.first_row)
            .field("documents", &self.offsets.len())
            .finish_non_exhaustive()
    }
}

/// The schema of all pieces, and its only field.
pub(crate) fn schema() -> (Schema, Field) {
    let indexing = TextFieldIndexing::default()
        .set_index_option(IndexRecordOption::WithFreqsAndPositions)
        .set_fieldnorms(false);
    let mut builder = Schema::builder();
    let options = TextOptions::default().set_indexing_options(indexing);
    let field = builder.add_text_field("text", options);
    (builder.build(), field)
}

pub(crate) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

impl Piece {
    /// Puts together what was built, merged or read.
    pub(crate) fn new(
        index: &Index,
        files: Files,
        rows: (u64, Vec<u32>),
        columns: Vec<ColumnLengths>,
    ) -> Result<Self> {
        let mut segments = index.searchable_segments()?;
        let segment = match (segments.pop(), segments.is_empty()) {
            (Some(segment), true) => segment,
            _ => return Err(Error::Damaged("it has not one segment")),
        };
        if index.schema() != schema().0 {
            return Err(Error::Damaged("its schema"));
        }
        let reader = SegmentReader::open(&segment)?;
        let (first_row, offsets) = rows;
        if reader.max_doc() as usize != offsets.len() {
            return Err(Error::Damaged("its documents are not its rows"));
        }
        let inverted = reader.inverted_index(schema().1)?;
        Ok(Piece {
            first_row,
            offsets,
            columns,
            files,
            segment,
            inverted,
        })
    }

    /// Documents, one a row, dead ones included.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there is none, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The row of a document.
    #[inline]
    pub(crate) fn row(&self, document: u32) -> u64 {
        self.first_row + u64::from(self.offsets[document as usize])
    }

    /// The first row and the last.
    pub fn rows(&self) -> (u64, u64) {
        let last = self.offsets.last().copied().unwrap_or(0);
        (self.first_row, self.first_row + u64::from(last))
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let lengths = self.columns.len() * self.offsets.len();
        self.files.bytes() + (self.offsets.len() + lengths) * size_of::<u32>()
    }

    /// The lengths of a column's texts; `None` if no row has one.
    pub(crate) fn lengths(&self, column: u16) -> Option<&[u32]> {
        let mut columns = self.columns.iter();
        let found = columns.find(|lengths| lengths.number == column)?;
        Some(&found.lengths)
    }

    pub(crate) fn term(&self, term: &str) -> Result<Option<TermInfo>> {
        Ok(self.inverted.terms().get(term)?)
    }

    pub(crate) fn inverted(&self) -> &InvertedIndexReader {
        &self.inverted
    }

    /// The living documents of several pieces in one, in order of rows; `None` if none lives. The pieces are in order of
    /// rows.
    ///
    /// # Errors
    /// If tantivy refuses.
    pub fn merge(pieces: &[(&Piece, &Alive)]) -> Result<Option<Piece>> {
        let kept: Vec<_> = pieces
            .iter()
            .filter(|(_, alive)| alive.documents > 0)
            .collect();
        let Some((first, _)) = kept.first() else {
            return Ok(None);
        };
        let mut offsets = Vec::new();
        let mut columns: Vec<ColumnLengths> = Vec::new();
        for (piece, _) in &kept {
            for column in &piece.columns {
                if columns.iter().all(|known| known.number != column.number) {
                    let (number, lengths) = (column.number, Vec::new());
                    columns.push(ColumnLengths { number, lengths });
                }
            }
        }
        for (piece, alive) in &kept {
            let living: Vec<usize> = (0..piece.len()).filter(|at| alive.has(*at)).collect();
            for at in &living {
                let offset = piece.row(*at as u32) - first.first_row;
                offsets.push(u32::try_from(offset).map_err(|_| Error::Damaged("too many rows"))?);
            }
            for column in &mut columns {
                let lengths = piece.lengths(column.number);
                let length = |at: &usize| lengths.map_or(ABSENT, |lengths| lengths[*at]);
                column.lengths.extend(living.iter().map(length));
            }
        }
        let segments: Vec<Segment> = kept
            .iter()
            .map(|(piece, _)| piece.segment.clone())
            .collect();
        let filters = kept.iter().map(|(piece, alive)| alive.filter(piece.len()));
        let files = Files::default();
        let index = merge_filtered_segments(
            &segments,
            settings(),
            filters.collect::<Result<Vec<Option<AliveBitSet>>>>()?,
            files.clone(),
        )?;
        let rows = (first.first_row, offsets);
        Piece::new(&index, files, rows, columns).map(Some)
    }

    /// What opens it again: all its bytes.
    pub(crate) fn from_files(
        files: Vec<(String, OwnedBytes)>,
        rows: (u64, Vec<u32>),
        columns: Vec<ColumnLengths>,
    ) -> Result<Self> {
        let all = Files::default();
        for (name, bytes) in files {
            all.insert(name.as_ref(), bytes);
        }
        let index = Index::open(all.clone())?;
        Piece::new(&index, all, rows, columns)
    }
}
