//! Messages in.

use arrow_flight::{FlightData, FlightDescriptor};
use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use super::recycle::Recycled;
use crate::status::{invalid, status};

/// Field of `FlightData` that holds the body.
const BODY_FIELD: u64 = 1000;
/// Longest descriptor, header or metadata, in bytes.
const MAX_SMALL: usize = 64 << 20;

/// Reads the messages of one call from its HTTP body.
#[derive(Debug)]
pub(crate) struct MessageReader {
    body: Body,
    chunk: Bytes,
    limit: usize,
    /// Bytes of the present message that were not read yet.
    left: usize,
}

impl MessageReader {
    /// A reader of messages up to `limit` bytes.
    pub fn new(body: Body, limit: usize) -> Self {
        MessageReader {
            body,
            chunk: Bytes::new(),
            limit,
            left: 0,
        }
    }

    /// The next message, or `None` at the end of the stream. Its body begins at an address aligned for Arrow.
    ///
    /// # Errors
    /// InvalidArgument for bytes that are no message or too many; whatever broke the stream off.
    pub async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        if !self.begin().await? {
            return Ok(None);
        }
        let mut message = FlightData::default();
        while self.left > 0 {
            let (field, length) = self.field().await?;
            match field {
                1 => {
                    let bytes = self.small(length).await?;
                    let descriptor =
                        FlightDescriptor::decode(bytes).map_err(|_| broken("a bad descriptor"))?;
                    message.flight_descriptor = Some(descriptor);
                }
                2 => message.data_header = self.small(length).await?,
                3 => message.app_metadata = self.small(length).await?,
                BODY_FIELD => message.data_body = self.aligned(length).await?,
                _ => drop(self.small(length).await?),
            }
        }
        Ok(Some(message))
    }

    /// The bytes of one field of the next message, empty if it lacks it; `None` at the end of the stream.
    ///
    /// # Errors
    /// As [`MessageReader::next`].
    pub async fn next_bytes(&mut self, wanted: u64) -> Result<Option<Bytes>, Status> {
        if !self.begin().await? {
            return Ok(None);
        }
        let mut found = Bytes::new();
        while self.left > 0 {
            let (field, length) = self.field().await?;
            let bytes = self.small(length).await?;
            if field == wanted {
                found = bytes;
            }
        }
        Ok(Some(found))
    }

    /// Reads the prefix of a message; false at the end of the stream.
    async fn begin(&mut self) -> Result<bool, Status> {
        if !self.fill().await? {
            return Ok(false);
        }
        self.left = 5;
        let compressed = self.byte().await?;
        let mut length = 0;
        for _ in 0..4 {
            length = length << 8 | usize::from(self.byte().await?);
        }
        if compressed != 0 {
            let text = "the message is compressed by gRPC; send it uncompressed";
            return Err(status(Code::Unimplemented, "compressed", text));
        }
        if length > self.limit {
            let limit = self.limit;
            let text = format!(
                "the message has {length} bytes, the limit is {limit}; send smaller batches or raise LONGBOW_GRPC_MAX_RECV_MSG_SIZE"
            );
            return Err(invalid("message_too_large", &text));
        }
        self.left = length;
        Ok(true)
    }

    /// Makes sure that the chunk holds at least a byte; false at the end of the stream.
    async fn fill(&mut self) -> Result<bool, Status> {
        while self.chunk.is_empty() {
            match self.body.frame().await {
                None => return Ok(false),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.chunk = data;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Says that `count` bytes are taken from the message.
    fn spend(&mut self, count: usize) -> Result<(), Status> {
        self.left = self
            .left
            .checked_sub(count)
            .ok_or_else(|| broken("a field that is longer than its message"))?;
        Ok(())
    }

    async fn byte(&mut self) -> Result<u8, Status> {
        self.spend(1)?;
        if !self.fill().await? {
            return Err(cut());
        }
        Ok(self.chunk.get_u8())
    }

    async fn varint(&mut self) -> Result<u64, Status> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte().await?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(broken("a number of more than ten bytes"))
    }

    /// The next field's number, and its length; fields that are not bytes are read over.
    async fn field(&mut self) -> Result<(u64, usize), Status> {
        let tag = self.varint().await?;
        let length = match tag & 7 {
            0 => {
                self.varint().await?;
                return Ok((u64::MAX, 0));
            }
            1 => 8,
            2 => usize::try_from(self.varint().await?).unwrap_or(usize::MAX),
            5 => 4,
            _ => return Err(broken("a field of an unknown kind")),
        };
        if length > self.left {
            return Err(broken("a field that is longer than its message"));
        }
        Ok((if tag & 7 == 2 { tag >> 3 } else { u64::MAX }, length))
    }

    /// A field that is not the body: shared with the socket's buffer if it lies in one piece.
    async fn small(&mut self, length: usize) -> Result<Bytes, Status> {
        if length > MAX_SMALL {
            return Err(broken("a header of more than 64 MiB"));
        }
        self.spend(length)?;
        if length > 0 && !self.fill().await? {
            return Err(cut());
        }
        if self.chunk.len() >= length {
            return Ok(self.chunk.split_to(length));
        }
        let mut whole = Vec::with_capacity(self.chunk.len().max(length.min(1 << 16)));
        while whole.len() < length {
            if !self.fill().await? {
                return Err(cut());
            }
            let take = self.chunk.len().min(length - whole.len());
            whole.extend_from_slice(&self.chunk.split_to(take));
        }
        Ok(whole.into())
    }

    /// The body: copied once, to where Arrow may use it as it lies.
    async fn aligned(&mut self, length: usize) -> Result<Bytes, Status> {
        self.spend(length)?;
        let mut body = Recycled::with_capacity(length);
        while body.buffer.len() < length {
            if !self.fill().await? {
                return Err(cut());
            }
            let take = self.chunk.len().min(length - body.buffer.len());
            body.buffer.extend_from_slice(&self.chunk[..take]);
            self.chunk.advance(take);
        }
        Ok(Bytes::from_owner(body))
    }
}

fn broken(what: &str) -> Status {
    invalid(
        "bad_message",
        &format!("the stream holds {what}; it is not a Flight message"),
    )
}

fn cut() -> Status {
    invalid(
        "cut_stream",
        "the stream ended within a message; what came before it is kept, send the rest again",
    )
}
