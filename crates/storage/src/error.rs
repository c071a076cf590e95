//! What can go wrong in storage.

use arrow_schema::{ArrowError, DataType};

/// Result of storage.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of storage. The text holds the wrong value and what to do.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant is its documentation"
)]
pub enum Error {
    #[error(
        "column '{column}' has type {data_type}, which is not stored; send a dictionary as its values, a union as a struct, run-ends and list views as plain lists"
    )]
    UnsupportedType {
        column: String,
        data_type: Box<DataType>,
    },
    #[error("the message header is not an Arrow IPC message: {0}")]
    Header(#[from] flatbuffers::InvalidFlatbuffer),
    #[error("the message is a {got}; expected a RecordBatch")]
    NotRecordBatch { got: String },
    #[error("the message is a {got}; expected a Schema")]
    NotSchema { got: String },
    #[error("the schema is big-endian; send little-endian data")]
    BigEndian,
    #[error("field '{field}' has a type {kind} that is incomplete or not stored")]
    FieldType { field: String, kind: String },
    #[error("the text of a schema is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("the message has no {part}; every such message needs it")]
    MissingPart { part: &'static str },
    #[error("the message has Arrow metadata version {got}; expected V4 or V5")]
    MetadataVersion { got: i16 },
    #[error("the message says its body has {declared} bytes, but {got} came")]
    BodyLength { declared: i64, got: usize },
    #[error("the message says it has {got} rows; expected 0 to {max}")]
    Rows { got: i64, max: i64 },
    #[error(
        "buffer {buffer} is at offset {offset} with {length} bytes, outside the body of {body}"
    )]
    BufferRange {
        buffer: usize,
        offset: i64,
        length: i64,
        body: usize,
    },
    #[error("the message has {got} {what}, but its schema needs {expected}")]
    Count {
        what: &'static str,
        expected: usize,
        got: usize,
    },
    #[error("column '{column}' has {got} {what}; expected {expected}")]
    Node {
        column: String,
        what: &'static str,
        expected: u64,
        got: i64,
    },
    #[error("a buffer of column '{column}' has {got} bytes; its rows need {expected}")]
    BufferTooShort {
        column: String,
        expected: u64,
        got: u64,
    },
    #[error(
        "the buffers of the message overlap: {total} bytes in a body of {body}; send each buffer once"
    )]
    BuffersOverlap { total: u64, body: usize },
    #[error("the message is compressed with codec {codec}; use LZ4_FRAME, ZSTD or no compression")]
    Codec { codec: i8 },
    #[error("buffer {buffer} does not decompress: {source}")]
    Decompress {
        buffer: usize,
        source: std::io::Error,
    },
    #[error("buffer {buffer} decompresses to {got} bytes, but its prefix says {declared}")]
    InflatedLength {
        buffer: usize,
        declared: i64,
        got: usize,
    },
    #[error(
        "the message decompresses to {length} bytes or more; the limit is {limit}, send smaller batches"
    )]
    InflatedTotal { length: u64, limit: u64 },
    #[error("column '{column}' holds values that are not valid: {source}")]
    Column { column: String, source: ArrowError },
    #[error("column '{column}' is missing and may not be null; make it nullable in the schema")]
    ColumnMissing { column: String },
    #[error("column '{column}' has type {got}; expected {expected}")]
    ColumnType {
        column: String,
        expected: Box<DataType>,
        got: Box<DataType>,
    },
    #[error("rows {start} to {end} are outside the batch of {rows} rows")]
    RowRange {
        start: usize,
        end: usize,
        rows: usize,
    },
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
}
