//! What can go wrong.

/// An error of the text index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A query that cannot be read.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// A file that is not what was written.
    #[error("the text file is damaged: {0}")]
    Damaged(&'static str),
    /// A file of a newer version.
    #[error("the text file has version {found}, and this program reads up to {supported}")]
    NewerVersion {
        /// Its version.
        found: u32,
        /// The newest that is read.
        supported: u32,
    },
    /// What tantivy says.
    #[error("tantivy: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
    /// What reading of memory says, through tantivy.
    #[error("tantivy: {0}")]
    Io(#[from] std::io::Error),
}

/// Why a query cannot be read. Places are counted in characters, from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It has no word.
    #[error("the query holds no word; give at least one letter or digit")]
    Empty,
    /// All that it says is what must not be there.
    #[error("what begins at character {at} only excludes; give a word to look for as well")]
    OnlyExcludes {
        /// Where.
        at: usize,
    },
    /// A parenthesis or a quotation mark without its partner.
    #[error("{what} at character {at} has no partner; close it, or leave it out")]
    Unpaired {
        /// What.
        what: char,
        /// Where.
        at: usize,
    },
    /// An operator without what it is for.
    #[error("{what} at character {at} lacks a word beside it; add one, or write it in lower case")]
    Dangling {
        /// Which.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// An edit distance out of range.
    #[error("the distance of the word at character {at} is out of range; write ~1 or ~2")]
    BadDistance {
        /// Where.
        at: usize,
    },
    /// Too many words.
    #[error("the query has more than {limit} words; shorten it")]
    TooLong {
        /// The most.
        limit: usize,
    },
    /// Too many parentheses within each other.
    #[error("parentheses at character {at} are more than {limit} deep; flatten the query")]
    TooDeep {
        /// Where.
        at: usize,
        /// The most.
        limit: usize,
    },
}

/// Result of the text index.
pub type Result<T> = std::result::Result<T, Error>;
