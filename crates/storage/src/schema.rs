//! Arrow schemas as bytes and as text.

use std::sync::Arc;

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{
    DateUnit, Endianness, Field, IntervalUnit, Precision, TimeUnit, Type, root_as_message,
};
use arrow_schema::{Schema, SchemaRef};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::error::{Error, Result};

/// The IPC `Schema` message, without length prefix: as in `FlightData.data_header`.
pub fn schema_to_message(schema: &Schema) -> Bytes {
    let options = IpcWriteOptions::default();
    let mut tracker = DictionaryTracker::new(true);
    IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options)
        .ipc_message
        .into()
}

/// Reads an IPC `Schema` message without length prefix. Dictionary types are read (the caller may cast them);
/// whether a type is stored is for [`crate::check_schema`] to say.
///
/// # Errors
/// If the bytes are no schema message, if it is big-endian, or if a field's type is incomplete. Never panics.
pub fn schema_from_message(message: &[u8]) -> Result<SchemaRef> {
    let message = root_as_message(message)?;
    let Some(schema) = message.header_as_schema() else {
        let got = message
            .header_type()
            .variant_name()
            .unwrap_or("message of an unknown kind");
        return Err(Error::NotSchema { got: got.into() });
    };
    schema_from_flatbuffer(schema)
}

/// As [`schema_from_message`], for a schema inside another flatbuffer.
pub(crate) fn schema_from_flatbuffer(schema: arrow_ipc::Schema<'_>) -> Result<SchemaRef> {
    if schema.endianness() != Endianness::Little {
        return Err(Error::BigEndian);
    }
    let fields = schema
        .fields()
        .ok_or(Error::MissingPart { part: "fields" })?;
    for field in fields {
        check_field(&field)?;
    }
    Ok(Arc::new(fb_to_schema(schema)))
}

/// A schema as the base64 of its IPC message.
pub fn schema_to_text(schema: &Schema) -> String {
    STANDARD.encode(schema_to_message(schema))
}

/// Reads what [`schema_to_text`] wrote.
///
/// # Errors
/// If the text is not base64 or its bytes are no schema, as [`schema_from_message`].
pub fn schema_from_text(text: &str) -> Result<SchemaRef> {
    schema_from_message(&STANDARD.decode(text)?)
}

/// Arrow's own conversion panics on types that a valid flatbuffer can hold but the format does not define; this
/// refuses them first.
fn check_field(field: &Field<'_>) -> Result<()> {
    let ok = dictionary_ok(field).unwrap_or(false) && type_ok(field).unwrap_or(false);
    if !ok {
        return Err(Error::FieldType {
            field: field.name().unwrap_or_default().into(),
            kind: format!("{:?}", field.type_type()),
        });
    }
    for child in field.children().into_iter().flatten() {
        check_field(&child)?;
    }
    Ok(())
}

fn dictionary_ok(field: &Field<'_>) -> Option<bool> {
    match field.dictionary() {
        None => Some(true),
        Some(dictionary) => Some(int_ok(dictionary.indexType()?.bitWidth())),
    }
}

fn int_ok(width: i32) -> bool {
    matches!(width, 8 | 16 | 32 | 64)
}

fn unit_ok(unit: TimeUnit) -> bool {
    (TimeUnit::ENUM_MIN..=TimeUnit::ENUM_MAX).contains(&unit.0)
}

fn type_ok(field: &Field<'_>) -> Option<bool> {
    let children = field.children().map_or(0, |children| children.len());
    Some(match field.type_type() {
        Type::Null | Type::Bool | Type::Struct_ => true,
        Type::Binary | Type::BinaryView | Type::LargeBinary => true,
        Type::Utf8 | Type::Utf8View | Type::LargeUtf8 => true,
        Type::Int => int_ok(field.type_as_int()?.bitWidth()),
        Type::FixedSizeBinary => field.type_as_fixed_size_binary()?.byteWidth() >= 0,
        Type::FloatingPoint => {
            let precision = field.type_as_floating_point()?.precision();
            (Precision::ENUM_MIN..=Precision::ENUM_MAX).contains(&precision.0)
        }
        Type::Date => {
            let unit = field.type_as_date()?.unit();
            (DateUnit::ENUM_MIN..=DateUnit::ENUM_MAX).contains(&unit.0)
        }
        Type::Time => {
            let time = field.type_as_time()?;
            let unit = time.unit();
            let short = unit == TimeUnit::SECOND || unit == TimeUnit::MILLISECOND;
            unit_ok(unit) && time.bitWidth() == if short { 32 } else { 64 }
        }
        Type::Timestamp => unit_ok(field.type_as_timestamp()?.unit()),
        Type::Duration => unit_ok(field.type_as_duration()?.unit()),
        Type::Interval => {
            let unit = field.type_as_interval()?.unit();
            (IntervalUnit::ENUM_MIN..=IntervalUnit::ENUM_MAX).contains(&unit.0)
        }
        Type::Decimal => {
            let decimal = field.type_as_decimal()?;
            matches!(decimal.bitWidth(), 32 | 64 | 128 | 256)
                && u8::try_from(decimal.precision()).is_ok()
                && i8::try_from(decimal.scale()).is_ok()
        }
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => children == 1,
        Type::FixedSizeList => field.type_as_fixed_size_list()?.listSize() >= 0 && children == 1,
        Type::Map => field.type_as_map().is_some() && children == 1,
        Type::RunEndEncoded => children == 2,
        // Unions are not stored, and their type ids would need checks of their own.
        _ => false,
    })
}
