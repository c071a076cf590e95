//! Messages in and out, cut into chunks anywhere, and bytes that are no messages.

use arrow_flight::{FlightData, FlightDescriptor};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use proptest::prelude::*;
use prost::Message;
use tonic::Status;
use tonic::body::Body;

use super::{MessageReader, write};

const LIMIT: usize = 1 << 20;

/// An HTTP body that arrives in pieces of these sizes, over and over.
fn chunked(bytes: &Bytes, sizes: &[usize]) -> Body {
    let mut rest = bytes.clone();
    let mut frames = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let chunk = rest.split_to((*size).clamp(1, rest.len()));
        frames.push(Ok::<_, Status>(Frame::data(chunk)));
    }
    Body::new(StreamBody::new(stream::iter(frames)))
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

fn read_all(bytes: &Bytes, sizes: &[usize]) -> Result<Vec<FlightData>, Status> {
    run(async {
        let mut reader = MessageReader::new(chunked(bytes, sizes), LIMIT);
        let mut messages = Vec::new();
        while let Some(message) = reader.next().await? {
            messages.push(message);
        }
        Ok(messages)
    })
}

/// The bytes that the general gRPC stack would send.
fn framed(messages: &[FlightData]) -> Bytes {
    let mut bytes = BytesMut::new();
    for message in messages {
        bytes.put_u8(0);
        bytes.put_u32(message.encoded_len() as u32);
        bytes.extend_from_slice(&message.encode_to_vec());
    }
    bytes.freeze()
}

fn message() -> impl Strategy<Value = FlightData> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from);
    let descriptor = prop::option::of("[a-z]{0,8}")
        .prop_map(|name| name.map(|name| FlightDescriptor::new_path(vec![name])));
    (descriptor, bytes(300), bytes(40), bytes(3000)).prop_map(
        |(flight_descriptor, data_header, app_metadata, data_body)| FlightData {
            flight_descriptor,
            data_header,
            app_metadata,
            data_body,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_whatever_the_chunks(
        messages in prop::collection::vec(message(), 0..4),
        sizes in prop::collection::vec(1..500_usize, 1..5),
    ) {
        let read = read_all(&framed(&messages), &sizes).expect("good messages");
        prop_assert_eq!(&read, &messages);
        for message in read.iter().filter(|message| !message.data_body.is_empty()) {
            prop_assert_eq!(message.data_body.as_ptr().addr() % 64, 0);
        }
        let ours = messages.iter().flat_map(|message| {
            write::flight_data(message.clone(), usize::MAX).expect("no limit")
        });
        prop_assert_eq!(ours.collect::<Vec<_>>().concat(), framed(&messages).to_vec());
    }

    #[test]
    fn random_bytes_are_refused_or_read_but_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        sizes in prop::collection::vec(1..50_usize, 1..4),
    ) {
        let _ = read_all(&bytes.into(), &sizes);
    }

    #[test]
    fn damaged_messages_are_refused_or_read_but_never_panic(
        message in message(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = framed(&[message]).to_vec();
        let at = at.index(bytes.len());
        bytes[at] = value;
        let _ = read_all(&bytes.clone().into(), &[64]);
        bytes.truncate(cut.index(bytes.len()));
        let _ = read_all(&bytes.into(), &[64]);
    }
}

fn code_of(bytes: &[u8]) -> String {
    let refused = read_all(&Bytes::copy_from_slice(bytes), &[7]).expect_err("not a message");
    crate::status::name_of(&refused).to_owned()
}

#[test]
fn what_is_wrong_with_a_stream_is_said() {
    let good = framed(&[FlightData::new().with_data_body(vec![1; 100])]);
    assert_eq!(code_of(&good[..50]), "cut_stream");
    assert_eq!(code_of(&[1, 0, 0, 0, 0]), "compressed");
    assert_eq!(code_of(&[0, 255, 0, 0, 0]), "message_too_large");
    assert_eq!(code_of(&[0, 0, 0, 0, 2, 0x12, 5]), "bad_message");
}

#[test]
fn a_message_over_the_limit_is_not_sent() {
    let message = FlightData::new().with_data_body(vec![1; 100]);
    let refused = write::flight_data(message, 50).expect_err("too large");
    assert_eq!(crate::status::name_of(&refused), "message_too_large");
}

#[test]
fn an_error_ends_the_answer_with_its_status() {
    let messages = [
        Ok([Bytes::from_static(b"x"), Bytes::new()]),
        Err(Status::not_found("gone: y")),
    ];
    let collected = run(write::body(stream::iter(messages)).collect()).expect("a body");
    let trailers = collected.trailers().expect("a trailer").clone();
    assert_eq!(trailers["grpc-status"], "5");
    assert_eq!(collected.to_bytes(), "x");
}

#[test]
fn messages_that_are_there_go_out_together_and_read_the_same() {
    let message = |body: usize| FlightData {
        data_header: Bytes::from_static(b"header"),
        app_metadata: Bytes::from_static(b"said"),
        data_body: vec![7; body].into(),
        ..FlightData::default()
    };
    // Small ones are one piece; a large one keeps its body as it is.
    for (bodies, pieces) in [([0, 100], 1), ([10, 20_000], 4)] {
        let messages: Vec<_> = bodies.map(message).to_vec();
        let sent = write::together(messages.clone(), LIMIT).expect("within the limit");
        assert_eq!(sent.len(), pieces, "{bodies:?}");
        let collected = run(write::whole(sent).collect()).expect("no error");
        let trailers = collected.trailers().expect("a status").clone();
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(
            read_all(&collected.to_bytes(), &[7]).expect("messages"),
            messages
        );
    }
    let refused = write::together(vec![message(LIMIT)], LIMIT).expect_err("too large");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
}
