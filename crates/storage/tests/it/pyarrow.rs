//! Streams as pyarrow 26 (the C++ writer) sends them: kept, and read as arrow-rs reads them.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::DataType;
use bytes::Bytes;
use longbow_storage::{Batch, Dictionaries, schema_from_message};

use crate::common::at_skew;

/// The messages of a stream: header and body, as a client would put them into `FlightData`.
fn messages(stream: &[u8]) -> Vec<(Bytes, Bytes)> {
    let mut messages = Vec::new();
    let mut rest = stream;
    while let Some((prefix, after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_le_bytes(prefix[4..].try_into().unwrap()) as usize;
        if length == 0 {
            break;
        }
        let (header, after) = after.split_at(length);
        let body = root_as_message(header).unwrap().bodyLength() as usize;
        let (body, after) = after.split_at(body);
        // Where a transport happens to put them.
        messages.push((at_skew(header, 5), at_skew(body, 3)));
        rest = after;
    }
    messages
}

fn arrow(stream: &[u8]) -> Vec<RecordBatch> {
    let reader = StreamReader::try_new(Cursor::new(stream), None).unwrap();
    reader.map(Result::unwrap).collect()
}

#[test]
fn every_type_is_kept() {
    for stream in [
        &include_bytes!("../golden/pyarrow-plain.arrows")[..],
        include_bytes!("../golden/pyarrow-lz4.arrows"),
        include_bytes!("../golden/pyarrow-zstd.arrows"),
    ] {
        let mut messages = messages(stream).into_iter();
        let (schema, _) = messages.next().unwrap();
        let schema = schema_from_message(&schema).unwrap();
        let batches: Vec<_> = messages
            .map(|(header, body)| Batch::from_message(&schema, header, body).unwrap())
            .collect();
        let views: Vec<_> = batches.iter().map(|batch| batch.view().clone()).collect();
        assert_eq!(views, arrow(stream));
        let sizes: Vec<_> = batches.iter().map(Batch::rows).collect();
        assert_eq!(sizes, [7, 3, 0]);
    }
}

#[test]
fn dictionaries_come_plain() {
    let stream = include_bytes!("../golden/pyarrow-dictionary.arrows");
    let mut messages = messages(stream).into_iter();
    let (schema, _) = messages.next().unwrap();
    let mut reader = Dictionaries::new(&schema_from_message(&schema).unwrap()).unwrap();
    let mut read = Vec::new();
    for (header, body) in messages {
        if root_as_message(&header).unwrap().header_type() == MessageHeader::DictionaryBatch {
            reader.add(&header, body).unwrap();
        } else {
            read.push(reader.read(header, body).unwrap());
        }
    }
    for (ours, theirs) in read.iter().zip(arrow(stream)) {
        for (ours, theirs) in ours.columns().iter().zip(theirs.columns()) {
            let theirs = match theirs.data_type() {
                DataType::Dictionary(_, values) => arrow_cast::cast(theirs, values).unwrap(),
                _ => theirs.clone(),
            };
            assert_eq!(ours, &theirs);
        }
    }
    assert_eq!(read.len(), 2);
}
