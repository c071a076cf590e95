//! Full text: rows found by the words of their string columns, best first by BM25.
//!
//! | type | what it is |
//! |---|---|
//! | [`Query`] | a query that was read |
//! | [`Tokenizer`], [`Column`] | how the texts of a column are cut into tokens |
//! | [`Builder`], [`Piece`] | an immutable part of an index, in memory and as bytes |
//! | [`Alive`] | which documents of a piece are alive for a reader |
//! | [`Search`] | a query over pieces and over rows that are in none |
//!
//! Terms, postings, positions and their merging are those of [tantivy](https://docs.rs/tantivy). The scores are made here:
//! tantivy rounds the lengths of texts above 40 tokens to one byte, and counts dead rows. See [`Totals`] for the formula.
//!
//! It is *not* a database: it knows no rows but by their numbers, no files, no network, no threads and no clock. The
//! engine decides which rows go into which piece, when pieces are merged, and where their bytes lie.
//!
//! Invariants:
//!
//! * A score depends on the query, the texts of the living rows, and nothing else: not on which of them are in pieces, nor
//!   on how they came there.
//! * Dead rows are not found and not counted.
//! * The bytes of a piece are checked before anything of them is believed; [`Piece::decode`] never panics.
//!
//! ```
//! use longbow_text::{Alive, Builder, Column, Query, Search, Tokenizer};
//!
//! let columns = [Column { number: 1, tokenizer: Tokenizer::Stems(longbow_text::Language::English) }];
//! let mut builder = Builder::new(&columns)?;
//! builder.add(7, &[Some("cats and dogs")])?;
//! builder.add(8, &[Some("a dog's life")])?;
//! let piece = builder.finish()?.expect("it has rows");
//! let alive = Alive::of(&piece, |_, _| true, |row| row == 7);
//!
//! let mut search = Search::new(&Query::parse("+dog -cat")?, &columns)?;
//! search.add(9, &[Some("dogs")]);
//! let found = search.run(&[(&piece, &alive)], 10, &|_| true)?;
//! let rows: Vec<u64> = found.hits.iter().map(|hit| hit.row).collect();
//! assert_eq!(rows, [9, 8]);
//! # Ok::<(), longbow_text::Error>(())
//! ```
#![forbid(unsafe_code)]

mod alive;
mod bm25;
mod builder;
mod cursor;
mod encode;
mod error;
mod files;
mod fresh;
mod pattern;
mod piece;
mod plan;
mod query;
mod search;
mod tokenizer;
mod top;
mod window;

pub use alive::Alive;
pub use bm25::{B, K1, Totals};
pub use builder::Builder;
pub use encode::VERSION;
pub use error::{Error, QueryError, Result};
pub use piece::Piece;
pub use plan::Column;
pub use query::Query;
pub use search::{Found, Search};
pub use tantivy::tokenizer::Language;
pub use tokenizer::Tokenizer;
pub use top::Hit;
