//! Which kind of index a vector column has.

use arrow_schema::{DataType, Field, Schema};

use crate::changed::Changed;
use crate::error::{Error, Result};
use crate::index_policy::IndexPolicy;
use crate::schema::VectorColumn;

/// Metadata key of a vector column's field that names its kind of index.
pub const INDEX_KEY: &str = "longbow.index";

/// A kind of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// None: all rows are scanned.
    Flat,
    /// A graph, in memory.
    Hnsw,
    /// Postings in a file, and their centroids in memory.
    SpFresh,
}

impl IndexKind {
    /// All of them.
    pub const ALL: [IndexKind; 3] = [IndexKind::Flat, IndexKind::Hnsw, IndexKind::SpFresh];

    /// Its name in metadata, configuration, and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Flat => "flat",
            IndexKind::Hnsw => "hnsw",
            IndexKind::SpFresh => "spfresh",
        }
    }

    /// Why the vectors of a column cannot be in an index of this kind.
    pub(crate) fn why_not(self, native: bool) -> Option<&'static str> {
        (self == IndexKind::SpFresh && !native).then_some(
            "it is for elements of float32, float16, int8 and uint8; send one of these, or choose hnsw, flat or auto",
        )
    }
}

/// Refuses what the fields of a new put say of the index if that cannot be. Schemas that were taken once are not asked again.
///
/// # Errors
/// [`Error::BadIndex`].
pub(crate) fn check(schema: &Schema, vectors: &[VectorColumn]) -> Result<()> {
    for (index, field) in schema.fields().iter().enumerate() {
        let Some(got) = field.metadata().get(INDEX_KEY) else {
            continue;
        };
        let column = vectors.iter().find(|column| column.index == index);
        let why = match (IndexPolicy::of_name(got), column) {
            (None, _) => Some("expected flat, hnsw, spfresh or auto"),
            (_, None) => Some("only vector columns have one; remove it"),
            (Some(IndexPolicy::Auto), Some(_)) => None,
            (Some(IndexPolicy::Fixed(kind)), Some(column)) => kind.why_not(column.native),
        };
        if let Some(why) = why {
            return Err(Error::BadIndex {
                column: field.name().clone(),
                got: got.clone(),
                why,
            });
        }
    }
    Ok(())
}

/// Refuses a put whose field says otherwise than the dataset's: an index is not changed by a put.
///
/// # Errors
/// [`Error::IndexChanged`].
pub(crate) fn check_same(dataset: &str, known: &Field, incoming: &Field) -> Result<()> {
    let is_vector = matches!(known.data_type(), DataType::FixedSizeList(..));
    match Changed::find(INDEX_KEY, known, incoming) {
        Some(Changed { expected, got }) if is_vector => Err(Error::IndexChanged {
            dataset: dataset.into(),
            column: known.name().clone(),
            expected,
            got,
        }),
        _ => Ok(()),
    }
}
