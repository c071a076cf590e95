//! Messages out.

use arrow_flight::{FlightData, PutResult};
use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use http::HeaderMap;
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tonic::body::Body;
use tonic::{Code, Status};

use crate::status::status;

const BODY_FIELD: u32 = 1000;
/// The prefix of a gRPC message: not compressed, then its length.
const PREFIX: usize = 5;
/// Up to this many bytes are copied sooner than sent in frames of their own.
const SMALL: usize = 16 << 10;

/// One gRPC message as pieces that are sent one after the other.
pub(crate) type Pieces = [Bytes; 2];

/// A message with its body as a piece of its own, which is not copied.
///
/// # Errors
/// ResourceExhausted for a message beyond the limit.
pub(crate) fn flight_data(message: FlightData, limit: usize) -> Result<Pieces, Status> {
    let FlightData {
        flight_descriptor,
        data_header,
        app_metadata,
        data_body,
    } = message;
    let head = FlightData {
        flight_descriptor,
        data_header,
        app_metadata,
        data_body: Bytes::new(),
    };
    let mut length = head.encoded_len();
    if !data_body.is_empty() {
        length +=
            key_len(BODY_FIELD) + encoded_len_varint(data_body.len() as u64) + data_body.len();
    }
    if length > limit {
        let text = format!(
            "a message of {length} bytes is over the limit of {limit}; ask for fewer columns or raise LONGBOW_GRPC_MAX_SEND_MSG_SIZE"
        );
        return Err(status(Code::ResourceExhausted, "message_too_large", &text));
    }
    let mut bytes = BytesMut::with_capacity(length - data_body.len() + PREFIX);
    put_prefix(&mut bytes, length);
    // A BytesMut grows, so encoding into it cannot run out of room.
    head.encode_raw(&mut bytes);
    if !data_body.is_empty() {
        encode_key(BODY_FIELD, WireType::LengthDelimited, &mut bytes);
        encode_varint(data_body.len() as u64, &mut bytes);
    }
    Ok([bytes.freeze(), data_body])
}

/// Messages that are all there already: a few small ones as one piece, since each piece is a frame of its own.
///
/// # Errors
/// As [`flight_data`].
pub(crate) fn together(messages: Vec<FlightData>, limit: usize) -> Result<Vec<Bytes>, Status> {
    let mut pieces = Vec::with_capacity(2 * messages.len());
    for message in messages {
        pieces.extend(flight_data(message, limit)?);
    }
    let length = pieces.iter().map(Bytes::len).sum();
    if length > SMALL {
        return Ok(pieces);
    }
    let mut bytes = BytesMut::with_capacity(length);
    pieces
        .iter()
        .for_each(|piece| bytes.extend_from_slice(piece));
    Ok(vec![bytes.freeze()])
}

/// An answer to a put.
pub(crate) fn put_result(result: &PutResult) -> Pieces {
    let length = result.encoded_len();
    let mut bytes = BytesMut::with_capacity(length + PREFIX);
    put_prefix(&mut bytes, length);
    result.encode_raw(&mut bytes);
    [bytes.freeze(), Bytes::new()]
}

fn put_prefix(bytes: &mut BytesMut, length: usize) {
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
}

/// The HTTP body of an answer: its messages, then the status as a trailer. The first error ends it.
pub(crate) fn body(messages: impl Stream<Item = Result<Pieces, Status>> + Send + 'static) -> Body {
    let frames = stream::unfold(Some(Box::pin(messages)), |messages| async {
        let mut messages = messages?;
        match messages.next().await {
            Some(Ok(pieces)) => {
                let pieces = pieces
                    .into_iter()
                    .filter(|piece| !piece.is_empty())
                    .map(Frame::data)
                    .collect();
                Some((pieces, Some(messages)))
            }
            Some(Err(status)) => Some((vec![trailer(&status)], None)),
            None => Some((vec![trailer(&Status::ok(""))], None)),
        }
    });
    let frames = frames.flat_map(|frames: Vec<Frame<Bytes>>| {
        stream::iter(frames.into_iter().map(Ok::<_, Status>))
    });
    Body::new(StreamBody::new(frames))
}

/// The HTTP body of an answer that is all there.
pub(crate) fn whole(pieces: Vec<Bytes>) -> Body {
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
    let frames: Vec<_> = pieces
        .map(Frame::data)
        .chain([trailer(&Status::ok(""))])
        .map(Ok::<_, Status>)
        .collect();
    Body::new(StreamBody::new(stream::iter(frames)))
}

fn trailer(status: &Status) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        // A text that no header can hold; the code says enough.
        trailers.insert("grpc-status", http::HeaderValue::from(status.code() as i32));
    }
    Frame::trailers(trailers)
}
