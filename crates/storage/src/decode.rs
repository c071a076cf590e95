//! From a message's bytes to arrays: the layout checked first, the bytes aligned if need be, the values checked.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::root_as_message;
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::layout::{ColumnLayout, walk};
use crate::message::{Parts, aligned_copy};

/// Dictionaries of a stream by id; none for messages that are kept.
pub(crate) type Values = HashMap<i64, ArrayRef>;

/// A message as it can be kept, and the view on it.
pub(crate) struct Decoded {
    pub header: Bytes,
    pub body: Bytes,
    pub columns: Vec<ColumnLayout>,
    pub view: RecordBatch,
}

/// Decodes a message whose header was read into `parts`. The types of `schema` have been checked.
///
/// The bytes stay what they are if every buffer lies aligned for its type. A misaligned body is copied once; a
/// compressed, unpadded or V4 message, or one with misaligned offsets, is laid out anew.
pub(crate) fn decode(
    schema: &SchemaRef,
    mut parts: Parts,
    mut header: Bytes,
    mut body: Bytes,
    values: &Values,
) -> Result<Decoded> {
    if parts.codec.is_some() || !parts.current_version || !body.len().is_multiple_of(8) {
        (header, body) = parts.relayout(&body)?;
        parts = Parts::read(&header, body.len())?;
    }
    let mut layout = walk(schema, &parts, body.as_ptr().addr())?;
    if !layout.aligned {
        if layout.offsets_aligned {
            body = aligned_copy(&body);
        } else {
            (header, body) = parts.relayout(&body)?;
            parts = Parts::read(&header, body.len())?;
        }
        layout = walk(schema, &parts, body.as_ptr().addr())?;
    }
    let view = view(schema, &header, &body, values)?;
    Ok(Decoded {
        header,
        body,
        columns: layout.columns,
        view,
    })
}

/// Views a message that [`walk`] has passed, checking values.
fn view(schema: &SchemaRef, header: &Bytes, body: &Bytes, values: &Values) -> Result<RecordBatch> {
    let buffer = Buffer::from(body.clone());
    let read = |projection: Option<&[usize]>| read(schema, header, &buffer, values, projection);
    read(None).map_err(|source| {
        // The decoder does not say which column it was in; on this path there is time to ask each.
        let bad = (0..schema.fields().len()).find(|i| read(Some(&[*i])).is_err());
        match bad {
            Some(i) => Error::Column {
                column: schema.field(i).name().clone(),
                source,
            },
            None => Error::Arrow(source),
        }
    })
}

fn read(
    schema: &SchemaRef,
    header: &Bytes,
    body: &Buffer,
    values: &Values,
    projection: Option<&[usize]>,
) -> std::result::Result<RecordBatch, ArrowError> {
    let message =
        root_as_message(header).map_err(|error| ArrowError::IpcError(error.to_string()))?;
    let batch = message
        .header_as_record_batch()
        .ok_or_else(|| ArrowError::IpcError("not a record batch".into()))?;
    let schema = Arc::clone(schema);
    RecordBatchDecoder::try_new(body, batch, schema, values, &message.version())?
        .with_projection(projection)
        .with_require_alignment(true)
        .read_record_batch()
}
