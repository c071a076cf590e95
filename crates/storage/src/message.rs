//! The Arrow IPC `RecordBatch` message: reading its header, laying its buffers out anew, inflating them.
//!
//! Format: <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>.

use std::io::Read;

use arrow_buffer::{Buffer as ArrowBuffer, MutableBuffer};
use arrow_ipc::{
    Buffer, CompressionType, FieldNode, Message, MessageBuilder, MessageHeader, MetadataVersion,
    RecordBatchBuilder, root_as_message,
};
use bytes::Bytes;
use flatbuffers::FlatBufferBuilder;

use crate::error::{Error, Result};

/// Most rows of one batch: what 32-bit offsets and row positions can name.
pub const MAX_BATCH_ROWS: i64 = i32::MAX as i64;
/// Most bytes that a compressed or dictionary-encoded message may become; as long as the longest message on the
/// wire.
pub const MAX_INFLATED_BYTES: u64 = 512 << 20;
/// Alignment of buffers within a body that is laid out here, and of bodies within a segment file.
pub(crate) const ALIGNMENT: usize = 64;

/// Place of a buffer in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub offset: usize,
    pub length: usize,
}

/// A header taken apart. All spans are inside the body.
#[derive(Debug)]
pub(crate) struct Parts {
    pub rows: usize,
    /// Length and null count of each array, depth first; not checked yet.
    pub nodes: Vec<(i64, i64)>,
    pub spans: Vec<Span>,
    pub variadic: Vec<i64>,
    pub codec: Option<CompressionType>,
    /// The newest version, whose layout is the only one that is kept.
    pub current_version: bool,
}

impl Parts {
    /// Reads a `RecordBatch` header whose body has `body_len` bytes.
    pub fn read(header: &[u8], body_len: usize) -> Result<Self> {
        let message = checked_message(header, body_len)?;
        match message.header_as_record_batch() {
            Some(batch) => Self::of_batch(message.version(), batch, body_len),
            None => Err(Error::NotRecordBatch {
                got: kind(&message),
            }),
        }
    }

    /// Reads a `DictionaryBatch` header: the dictionary's id, whether it adds to it, and the values.
    pub fn read_dictionary(header: &[u8], body_len: usize) -> Result<(i64, bool, Self)> {
        let message = checked_message(header, body_len)?;
        let Some(dictionary) = message.header_as_dictionary_batch() else {
            return Err(Error::NotDictionary {
                got: kind(&message),
            });
        };
        let batch = dictionary.data();
        let batch = batch.ok_or(Error::MissingPart { part: "data" })?;
        let parts = Self::of_batch(message.version(), batch, body_len)?;
        Ok((dictionary.id(), dictionary.isDelta(), parts))
    }

    fn of_batch(
        version: MetadataVersion,
        batch: arrow_ipc::RecordBatch<'_>,
        body_len: usize,
    ) -> Result<Self> {
        if !(0..=MAX_BATCH_ROWS).contains(&batch.length()) {
            return Err(Error::Rows {
                got: batch.length(),
                max: MAX_BATCH_ROWS,
            });
        }
        let nodes = batch.nodes().ok_or(Error::MissingPart { part: "nodes" })?;
        let buffers = batch
            .buffers()
            .ok_or(Error::MissingPart { part: "buffers" })?;
        let spans = buffers
            .iter()
            .enumerate()
            .map(|(at, buffer)| span(at, buffer.offset(), buffer.length(), body_len));
        Ok(Parts {
            rows: batch.length() as usize,
            nodes: nodes
                .iter()
                .map(|node| (node.length(), node.null_count()))
                .collect(),
            spans: spans.collect::<Result<_>>()?,
            variadic: batch.variadicBufferCounts().into_iter().flatten().collect(),
            codec: batch.compression().map(|compression| compression.codec()),
            current_version: version == MetadataVersion::V5,
        })
    }

    /// A plain header for the buffers where they are.
    pub fn header_in_place(&self, body_len: usize) -> Bytes {
        let spans = self.spans.iter();
        let spans: Vec<Buffer> = spans
            .map(|span| Buffer::new(span.offset as i64, span.length as i64))
            .collect();
        self.header(&spans, body_len)
    }

    /// Lays the buffers out anew, each at a multiple of 64 bytes in a body that itself starts at one, and
    /// writes the header for it. Compressed buffers are inflated.
    pub fn relayout(&self, body: &[u8]) -> Result<(Bytes, Bytes)> {
        if let Some(codec) = self.codec {
            let mut left = MAX_INFLATED_BYTES;
            let mut inflated = Vec::with_capacity(self.spans.len());
            for (at, span) in self.spans.iter().enumerate() {
                let bytes = &body[span.offset..span.offset + span.length];
                inflated.push(inflate(at, codec, bytes, &mut left)?);
            }
            return Ok(self.assemble(&inflated));
        }
        let total = self
            .spans
            .iter()
            .fold(0_u64, |sum, span| sum.saturating_add(span.length as u64));
        if total > body.len() as u64 {
            return Err(Error::BuffersOverlap {
                total,
                body: body.len(),
            });
        }
        let buffers: Vec<&[u8]> = self
            .spans
            .iter()
            .map(|span| &body[span.offset..span.offset + span.length])
            .collect();
        Ok(self.assemble(&buffers))
    }

    fn assemble<B: AsRef<[u8]>>(&self, buffers: &[B]) -> (Bytes, Bytes) {
        let padded = |buffer: &B| buffer.as_ref().len().next_multiple_of(ALIGNMENT);
        let mut body = MutableBuffer::new(buffers.iter().map(padded).sum());
        let mut spans = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            let bytes = buffer.as_ref();
            spans.push(Buffer::new(body.len() as i64, bytes.len() as i64));
            body.extend_from_slice(bytes);
            body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
        }
        let header = self.header(&spans, body.len());
        (header, into_bytes(body))
    }

    fn header(&self, spans: &[Buffer], body_len: usize) -> Bytes {
        let mut builder = FlatBufferBuilder::new();
        let nodes: Vec<FieldNode> = self
            .nodes
            .iter()
            .map(|(length, nulls)| FieldNode::new(*length, *nulls))
            .collect();
        let nodes = builder.create_vector(&nodes);
        let buffers = builder.create_vector(spans);
        let variadic = (!self.variadic.is_empty()).then(|| builder.create_vector(&self.variadic));
        let mut batch = RecordBatchBuilder::new(&mut builder);
        batch.add_length(self.rows as i64);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(variadic) = variadic {
            batch.add_variadicBufferCounts(variadic);
        }
        let batch = batch.finish().as_union_value();
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_bodyLength(body_len as i64);
        message.add_header(batch);
        let root = message.finish();
        builder.finish(root, None);
        Bytes::copy_from_slice(builder.finished_data())
    }
}

fn checked_message(header: &[u8], body_len: usize) -> Result<Message<'_>> {
    let message = root_as_message(header)?;
    let version = message.version();
    if version != MetadataVersion::V5 && version != MetadataVersion::V4 {
        return Err(Error::MetadataVersion { got: version.0 });
    }
    if message.bodyLength() != body_len as i64 {
        return Err(Error::BodyLength {
            declared: message.bodyLength(),
            got: body_len,
        });
    }
    Ok(message)
}

fn kind(message: &Message<'_>) -> String {
    let kind = message.header_type();
    let name = kind.variant_name();
    name.map_or_else(|| format!("message of kind {}", kind.0), Into::into)
}

fn span(buffer: usize, offset: i64, length: i64, body: usize) -> Result<Span> {
    let error = || Error::BufferRange {
        buffer,
        offset,
        length,
        body,
    };
    let start = usize::try_from(offset).map_err(|_| error())?;
    let len = usize::try_from(length).map_err(|_| error())?;
    if start.checked_add(len).is_none_or(|end| end > body) {
        return Err(error());
    }
    Ok(Span {
        offset: start,
        length: len,
    })
}

/// Inflates one buffer: eight bytes of length (-1: what follows is not compressed), then a frame. Reads no
/// more than the length says, so a frame that inflates without end costs what it promised at most.
fn inflate(buffer: usize, codec: CompressionType, bytes: &[u8], left: &mut u64) -> Result<Vec<u8>> {
    let Some((prefix, frame)) = bytes.split_first_chunk::<8>() else {
        return Ok(Vec::new());
    };
    let declared = i64::from_le_bytes(*prefix);
    let length = if declared == -1 {
        frame.len() as u64
    } else {
        u64::try_from(declared).map_err(|_| Error::InflatedLength {
            buffer,
            declared,
            got: 0,
        })?
    };
    let total = MAX_INFLATED_BYTES - *left;
    *left = left.checked_sub(length).ok_or(Error::InflatedTotal {
        length: total.saturating_add(length),
        limit: MAX_INFLATED_BYTES,
    })?;
    if declared == -1 {
        return Ok(frame.to_vec());
    }
    let failed = |source| Error::Decompress { buffer, source };
    let mut out = Vec::new();
    match codec {
        CompressionType::LZ4_FRAME => lz4_flex::frame::FrameDecoder::new(frame)
            .take(length)
            .read_to_end(&mut out)
            .map_err(failed)?,
        CompressionType::ZSTD => zstd::stream::Decoder::new(frame)
            .map_err(failed)?
            .take(length)
            .read_to_end(&mut out)
            .map_err(failed)?,
        other => return Err(Error::Codec { codec: other.0 }),
    };
    if out.len() as u64 != length {
        return Err(Error::InflatedLength {
            buffer,
            declared,
            got: out.len(),
        });
    }
    Ok(out)
}

/// A copy of `bytes` that starts at a multiple of 64 bytes.
pub(crate) fn aligned_copy(bytes: &[u8]) -> Bytes {
    let mut copy = MutableBuffer::new(bytes.len());
    copy.extend_from_slice(bytes);
    into_bytes(copy)
}

/// Arrow's buffers are aligned to 64 bytes or more when they are allocated; this keeps that memory.
fn into_bytes(buffer: MutableBuffer) -> Bytes {
    struct Owner(ArrowBuffer);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice()
        }
    }
    Bytes::from_owner(Owner(buffer.into()))
}
