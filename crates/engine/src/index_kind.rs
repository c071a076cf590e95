//! Which kind of index a vector column has.

use arrow_schema::{DataType, Field, Schema};
use longbow_kernels::Metric;

use crate::changed::Changed;
use crate::error::{Error, Result};
use crate::schema::VectorColumn;

/// Metadata key of a vector column's field that names its kind of index.
pub const INDEX_KEY: &str = "longbow.index";

/// A kind of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// A graph, in memory.
    Hnsw,
    /// Postings in a file, and their centroids in memory.
    SpFresh,
}

impl IndexKind {
    /// Its name in metadata, configuration, and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Hnsw => "hnsw",
            IndexKind::SpFresh => "spfresh",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        [IndexKind::Hnsw, IndexKind::SpFresh]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// What a column gets: what its field says; else what the node says, where that can be.
    pub fn of(column: &VectorColumn, node: IndexKind) -> Self {
        match column.kind.unwrap_or(node) {
            IndexKind::SpFresh if why_not(column.space.metric, column.native).is_some() => {
                IndexKind::Hnsw
            }
            kind => kind,
        }
    }

    /// What a field's metadata says, `None` for nothing that is known.
    pub(crate) fn of_field(field: &Field) -> Option<Self> {
        Self::of_name(field.metadata().get(INDEX_KEY)?)
    }
}

/// Why the vectors of a column cannot be in postings.
fn why_not(metric: Metric, native: bool) -> Option<&'static str> {
    if metric == Metric::Dot {
        return Some("it is for the metrics euclidean and cosine; choose hnsw");
    }
    (!native).then_some(
        "it is for elements of float32, float16, int8 and uint8; send one of these, or choose hnsw",
    )
}

/// Refuses what the fields of a new put say of the index if that cannot be in a dataset of this metric. Schemas that were
/// taken once are not asked again.
///
/// # Errors
/// [`Error::BadIndex`].
pub(crate) fn check(schema: &Schema, vectors: &[VectorColumn], metric: Metric) -> Result<()> {
    for (index, field) in schema.fields().iter().enumerate() {
        let Some(got) = field.metadata().get(INDEX_KEY) else {
            continue;
        };
        let column = vectors.iter().find(|column| column.index == index);
        let why = match (IndexKind::of_name(got), column) {
            (None, _) => Some("expected hnsw or spfresh"),
            (_, None) => Some("only vector columns have one; remove it"),
            (Some(IndexKind::Hnsw), Some(_)) => None,
            (Some(IndexKind::SpFresh), Some(column)) => why_not(metric, column.native),
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
