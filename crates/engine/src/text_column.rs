//! Which columns full text is searched in, and how their texts are read.

use arrow_array::cast::AsArray;
use arrow_array::{Array, LargeStringArray, StringArray, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use longbow_storage::Batch;
use longbow_text::{Column, Tokenizer};

use crate::changed::Changed;
use crate::error::{Error, Result};
use crate::schema::DatasetSchema;

/// Metadata key of a string column's field that names its tokenizer: `default`, `ngram`, a language's code, or `none`.
pub const TEXT_KEY: &str = "longbow.text";
const NONE: &str = "none";

/// A column that full text is searched in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextColumn {
    /// Its name.
    pub name: String,
    /// Its number in the index: its place in the schema, which does not change.
    pub(crate) column: Column,
}

impl TextColumn {
    /// The columns of a schema. `chosen` are those of the node's configuration; none means all of strings but the id.
    pub(crate) fn all(schema: &DatasetSchema, chosen: &[String]) -> Vec<TextColumn> {
        let fields = schema.arrow.fields().iter().enumerate();
        let column = |(at, field): (usize, &std::sync::Arc<Field>)| {
            let is_chosen = match chosen {
                [] => at != schema.id,
                names => names.contains(field.name()),
            };
            let tokenizer = tokenizer_of(field, is_chosen)?;
            let number = u16::try_from(at).ok()?;
            Some(TextColumn {
                name: field.name().clone(),
                column: Column { number, tokenizer },
            })
        };
        fields.filter_map(column).collect()
    }

    /// What the manifest says of it.
    pub(crate) fn saved(&self) -> (String, String) {
        (self.name.clone(), self.column.tokenizer.name().to_owned())
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// What a field says, else what the configuration says.
fn tokenizer_of(field: &Field, is_chosen: bool) -> Option<Tokenizer> {
    if !is_text(field.data_type()) {
        return None;
    }
    match field.metadata().get(TEXT_KEY) {
        Some(name) => Tokenizer::of_name(name),
        None => is_chosen.then_some(Tokenizer::Words),
    }
}

/// Refuses what the fields of a new put say of it if that cannot be. Schemas that were taken once are not asked again.
///
/// # Errors
/// [`Error::BadText`].
pub(crate) fn check(schema: &Schema) -> Result<()> {
    for field in schema.fields() {
        let Some(got) = field.metadata().get(TEXT_KEY) else {
            continue;
        };
        let why = if !is_text(field.data_type()) {
            "only string columns have one; remove it"
        } else if got != NONE && Tokenizer::of_name(got).is_none() {
            "expected default, ngram, none, or the code of a language, such as en"
        } else {
            continue;
        };
        return Err(Error::BadText {
            column: field.name().clone(),
            got: got.clone(),
            why,
        });
    }
    Ok(())
}

/// Refuses a put whose field says otherwise than the dataset's: what is indexed is not changed by a put.
///
/// # Errors
/// [`Error::TextChanged`].
pub(crate) fn check_same(dataset: &str, known: &Field, incoming: &Field) -> Result<()> {
    match Changed::find(TEXT_KEY, known, incoming) {
        Some(Changed { expected, got }) => Err(Error::TextChanged {
            dataset: dataset.into(),
            column: known.name().clone(),
            expected,
            got,
        }),
        None => Ok(()),
    }
}

/// The texts of a column in a batch.
pub(crate) enum Texts<'a> {
    /// The batch is older than the column.
    Absent,
    Short(&'a StringArray),
    Long(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    /// Those of several columns.
    pub fn of(batch: &'a Batch, columns: &[TextColumn]) -> Vec<Self> {
        let texts = |column: &TextColumn| match batch.view().column_by_name(&column.name) {
            None => Texts::Absent,
            Some(array) => match array.data_type() {
                DataType::Utf8 => Texts::Short(array.as_string()),
                DataType::LargeUtf8 => Texts::Long(array.as_string()),
                DataType::Utf8View => Texts::View(array.as_string_view()),
                // No other type becomes a text column.
                _ => Texts::Absent,
            },
        };
        columns.iter().map(texts).collect()
    }

    /// That of a row of the batch.
    pub fn get(&self, at: usize) -> Option<&'a str> {
        match self {
            Texts::Absent => None,
            Texts::Short(texts) => texts.is_valid(at).then(|| texts.value(at)),
            Texts::Long(texts) => texts.is_valid(at).then(|| texts.value(at)),
            Texts::View(texts) => texts.is_valid(at).then(|| texts.value(at)),
        }
    }
}
