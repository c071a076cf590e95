//! Builds a piece from rows.

use std::fmt;

use tantivy::schema::Field;
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, SingleSegmentIndexWriter, TantivyDocument};

use crate::error::{Error, Result};
use crate::files::Files;
use crate::piece::{ABSENT, ColumnLengths, Piece, schema, settings};
use crate::plan::{Column, write_term};
use crate::tokenizer::Analyzer;

/// Memory by which tantivy sizes its table of terms, in bytes; the table grows.
const TABLE_BYTES: usize = 3 << 20;

/// Takes rows in their order.
pub struct Builder {
    columns: Vec<Column>,
    analyzers: Vec<Analyzer>,
    field: Field,
    files: Files,
    writer: SingleSegmentIndexWriter,
    first_row: u64,
    offsets: Vec<u32>,
    lengths: Vec<ColumnLengths>,
    term: String,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("documents", &self.offsets.len())
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Begins a piece with the texts of some columns.
    ///
    /// # Errors
    /// If tantivy refuses.
    pub fn new(columns: &[Column]) -> Result<Self> {
        let (schema, field) = schema();
        let files = Files::default();
        let writer = Index::builder()
            .schema(schema)
            .settings(settings())
            .single_segment_index_writer(files.clone(), TABLE_BYTES)?;
        let lengths = columns.iter().map(|column| ColumnLengths {
            number: column.number,
            lengths: Vec::new(),
        });
        Ok(Builder {
            columns: columns.to_vec(),
            analyzers: columns.iter().map(|c| Analyzer::new(c.tokenizer)).collect(),
            field,
            files,
            writer,
            first_row: 0,
            offsets: Vec::new(),
            lengths: lengths.collect(),
            term: String::new(),
        })
    }

    /// Adds a row, whose number is above that of all before, with its texts by column. One without texts is left out.
    ///
    /// # Errors
    /// If tantivy refuses, or row numbers are too far apart.
    pub fn add(&mut self, row: u64, texts: &[Option<&str>]) -> Result<()> {
        if texts.iter().all(Option::is_none) {
            return Ok(());
        }
        if self.offsets.is_empty() {
            self.first_row = row;
        }
        let offset = u32::try_from(row - self.first_row).map_err(|_| Error::Damaged("rows"))?;
        let mut document = TantivyDocument::default();
        for (at, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                self.lengths[at].lengths.push(ABSENT);
                continue;
            };
            let number = self.columns[at].number;
            let mut tokens = Vec::new();
            let length = self.analyzers[at].each(text, &mut |token, position| {
                write_term(number, token, &mut self.term);
                tokens.push(Token {
                    position: position as usize,
                    text: self.term.clone(),
                    ..Token::default()
                });
            });
            self.lengths[at].lengths.push(length);
            if length > 0 {
                let text = String::new();
                document.add_pre_tokenized_text(self.field, PreTokenizedString { text, tokens });
            }
        }
        self.offsets.push(offset);
        self.writer.add_document(document)?;
        Ok(())
    }

    /// The piece; `None` if it would be empty.
    ///
    /// # Errors
    /// If tantivy refuses.
    pub fn finish(self) -> Result<Option<Piece>> {
        if self.offsets.is_empty() {
            return Ok(None);
        }
        let index = self.writer.finalize()?;
        let rows = (self.first_row, self.offsets);
        Piece::new(&index, self.files, rows, self.lengths).map(Some)
    }
}
