//! The recall that searches of a vector column are to reach.

use arrow_schema::{DataType, Field, Schema};

use crate::changed::Changed;
use crate::error::{Error, Result};
use crate::schema::VectorColumn;

/// Metadata key of a vector column's field that says the recall target of its searches.
pub const RECALL_TARGET_KEY: &str = "longbow.recall_target";
const EXPECTED: &str = "a number above 0 and up to 1";

/// Refuses what is no share of neighbours.
///
/// # Errors
/// [`Error::BadValue`].
pub(crate) fn check_value(target: f32) -> Result<()> {
    if is_share(target) {
        return Ok(());
    }
    Err(Error::BadValue {
        field: "recall_target",
        got: target.to_string(),
        expected: EXPECTED,
    })
}

fn is_share(target: f32) -> bool {
    target > 0.0 && target <= 1.0
}

/// What a field's metadata says, `None` for nothing that is a target.
pub(crate) fn of_field(field: &Field) -> Option<f32> {
    let text = field.metadata().get(RECALL_TARGET_KEY)?;
    text.parse().ok().filter(|target| is_share(*target))
}

/// Refuses what the fields of a new put say of it if that cannot be. Schemas that were taken once are not asked again.
///
/// # Errors
/// [`Error::BadRecallTarget`].
pub(crate) fn check(schema: &Schema, vectors: &[VectorColumn]) -> Result<()> {
    for (index, field) in schema.fields().iter().enumerate() {
        let Some(got) = field.metadata().get(RECALL_TARGET_KEY) else {
            continue;
        };
        let why = match of_field(field) {
            None => "expected a number above 0 and up to 1",
            Some(_) if vectors.iter().all(|column| column.index != index) => {
                "only vector columns have one; remove it"
            }
            Some(_) => continue,
        };
        return Err(Error::BadRecallTarget {
            column: field.name().clone(),
            got: got.clone(),
            why,
        });
    }
    Ok(())
}

/// Refuses a put whose field says otherwise than the dataset's: what searches promise is not changed by a put.
///
/// # Errors
/// [`Error::RecallTargetChanged`].
pub(crate) fn check_same(dataset: &str, known: &Field, incoming: &Field) -> Result<()> {
    let is_vector = matches!(known.data_type(), DataType::FixedSizeList(..));
    // The same number may be written in two ways.
    let is_other = of_field(incoming) != of_field(known);
    match Changed::find(RECALL_TARGET_KEY, known, incoming) {
        Some(Changed { expected, got }) if is_vector && is_other => {
            Err(Error::RecallTargetChanged {
                dataset: dataset.into(),
                column: known.name().clone(),
                expected,
                got,
            })
        }
        _ => Ok(()),
    }
}
