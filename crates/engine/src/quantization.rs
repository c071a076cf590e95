//! Whether the graph of a vector column holds codes in place of vectors.

use arrow_schema::{DataType, Field, Schema};
use longbow_kernels::Metric;

use crate::changed::Changed;
use crate::error::{Error, Result};
use crate::schema::VectorColumn;

/// Metadata key of a vector column's field that names its quantization.
pub const QUANTIZATION_KEY: &str = "longbow.quantization";
/// Dimension from which on codes are taken unless somebody says otherwise: of shorter vectors they tell too little, and
/// the edges outweigh them.
const LEAST_DIM: usize = 96;

/// What a graph holds of each vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantization {
    /// All of it: an HNSW graph.
    None,
    /// `RaBitQ` codes, of eight bits an element for the vector and of one bit for each edge. The vectors themselves are
    /// read only for the last candidates of a search.
    Rabitq,
    /// Codes of eight bits an element for the vector alone: a third of the memory or less, and slower.
    Sq8,
}

impl Quantization {
    const ALL: [Quantization; 3] = [Quantization::None, Quantization::Rabitq, Quantization::Sq8];

    /// Its name in metadata, configuration, and reports.
    pub fn name(self) -> &'static str {
        match self {
            Quantization::None => "none",
            Quantization::Rabitq => "rabitq",
            Quantization::Sq8 => "sq8",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|quantization| quantization.name() == name)
    }

    /// What a column gets: what its field says; else what the node says, where that can be; else codes for long vectors. For
    /// inner products only the field is asked: whether the lengths are alike, as is best for codes, only those know who send them.
    pub fn of(column: &VectorColumn, node: Option<Quantization>) -> Self {
        let long = column.space.dim >= LEAST_DIM;
        match column.quantization.or(node) {
            _ if why_not(column.native).is_some() => Quantization::None,
            _ if is_unasked(column) => Quantization::None,
            Some(chosen) => chosen,
            None if long => Quantization::Rabitq,
            None => Quantization::None,
        }
    }

    /// Why a column gets what [`Quantization::of`] says.
    pub fn reason(column: &VectorColumn, node: Option<Quantization>) -> &'static str {
        let long = column.space.dim >= LEAST_DIM;
        match column.quantization.or(node) {
            _ if !column.native => "codes are for float32, float16, int8 and uint8",
            _ if is_unasked(column) => "codes for inner products only if the field asks for them",
            Some(_) => "as configured",
            None if long => "codes from 96 dimensions on",
            None => "whole vectors below 96 dimensions",
        }
    }

    /// What a field's metadata says, `None` for nothing that is known.
    pub(crate) fn of_field(field: &Field) -> Option<Self> {
        Self::of_name(field.metadata().get(QUANTIZATION_KEY)?)
    }
}

/// Whether a column is for inner products, and its field says nothing.
fn is_unasked(column: &VectorColumn) -> bool {
    column.space.metric == Metric::Dot && column.quantization.is_none()
}

/// Why the vectors of a column cannot be quantised.
fn why_not(native: bool) -> Option<&'static str> {
    (!native).then_some(
        "it is for elements of float32, float16, int8 and uint8; send one of these, or choose none",
    )
}

/// Refuses what the fields of a new put say of quantization if that cannot be. Schemas that were taken once are not asked
/// again.
///
/// # Errors
/// [`Error::BadQuantization`].
pub(crate) fn check(schema: &Schema, vectors: &[VectorColumn]) -> Result<()> {
    for (index, field) in schema.fields().iter().enumerate() {
        let Some(got) = field.metadata().get(QUANTIZATION_KEY) else {
            continue;
        };
        let column = vectors.iter().find(|column| column.index == index);
        let why = match (Quantization::of_name(got), column) {
            (None, _) => Some("expected rabitq, sq8 or none"),
            (_, None) => Some("only vector columns have one; remove it"),
            (Some(Quantization::None), Some(_)) => None,
            (Some(_), Some(column)) => why_not(column.native),
        };
        if let Some(why) = why {
            return Err(Error::BadQuantization {
                column: field.name().clone(),
                got: got.clone(),
                why,
            });
        }
    }
    Ok(())
}

/// Refuses a put whose field says otherwise than the dataset's: a graph is not changed by a put.
///
/// # Errors
/// [`Error::QuantizationChanged`].
pub(crate) fn check_same(dataset: &str, known: &Field, incoming: &Field) -> Result<()> {
    let is_vector = matches!(known.data_type(), DataType::FixedSizeList(..));
    match Changed::find(QUANTIZATION_KEY, known, incoming) {
        Some(Changed { expected, got }) if is_vector => Err(Error::QuantizationChanged {
            dataset: dataset.into(),
            column: known.name().clone(),
            expected,
            got,
        }),
        _ => Ok(()),
    }
}
