//! What decides the kind of a column's index: somebody, or its size.

use arrow_schema::Field;
use longbow_kernels::Metric;

use crate::index_kind::{INDEX_KEY, IndexKind};
use crate::schema::VectorColumn;

/// What decides the kind of a column's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexPolicy {
    /// Somebody said it, and it stays.
    Fixed(IndexKind),
    /// It follows the rows and the memory, see [`crate::choose`].
    Auto,
}

impl From<IndexKind> for IndexPolicy {
    fn from(kind: IndexKind) -> Self {
        IndexPolicy::Fixed(kind)
    }
}

impl IndexPolicy {
    /// Its name in metadata, configuration, and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IndexPolicy::Fixed(kind) => kind.name(),
            IndexPolicy::Auto => "auto",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let fixed = IndexKind::ALL.map(IndexPolicy::Fixed).into_iter();
        let mut all = fixed.chain([IndexPolicy::Auto]);
        all.find(|policy| policy.name() == name)
    }

    /// What a field's metadata says, `None` for nothing that is known.
    pub(crate) fn of_field(field: &Field) -> Option<Self> {
        Self::of_name(field.metadata().get(INDEX_KEY)?)
    }

    /// What a column gets: what its field says; else what the node says, and a graph where that cannot be. Postings of inner products
    /// are for those who ask for them by the field.
    #[must_use]
    pub fn of(column: &VectorColumn, node: IndexPolicy) -> Self {
        match column.index_policy.unwrap_or(node) {
            IndexPolicy::Fixed(kind) if kind.why_not(column.native).is_some() => {
                IndexPolicy::Fixed(IndexKind::Hnsw)
            }
            IndexPolicy::Fixed(IndexKind::SpFresh)
                if column.space.metric == Metric::Dot && column.index_policy.is_none() =>
            {
                IndexPolicy::Fixed(IndexKind::Hnsw)
            }
            policy => policy,
        }
    }

    /// The kind of an index that holds nothing yet.
    #[must_use]
    pub fn first(self) -> IndexKind {
        match self {
            IndexPolicy::Fixed(kind) => kind,
            // Nothing is to be scanned, either.
            IndexPolicy::Auto => IndexKind::Flat,
        }
    }
}
