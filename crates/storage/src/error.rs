//! What can go wrong in storage.

use std::path::PathBuf;

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
    #[error("the message is a {got}; expected a DictionaryBatch")]
    NotDictionary { got: String },
    #[error("the message is a {got}; expected a Schema")]
    NotSchema { got: String },
    #[error(
        "the message is about dictionary {id}, which is not there; send the schema's dictionaries first, additions after"
    )]
    UnknownDictionary { id: i64 },
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
    #[error("a buffer of column '{column}' has {got} bytes; expected a multiple of {width}")]
    BufferWidth {
        column: String,
        width: usize,
        got: usize,
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
        "the message would become {length} bytes or more when decompressed or its dictionaries written out; the limit is {limit}, send smaller batches"
    )]
    InflatedTotal { length: u64, limit: u64 },
    #[error("column '{column}' holds values that are not valid: {source}")]
    Column { column: String, source: ArrowError },
    #[error("column '{column}' is missing and may not be null; make it nullable in the schema")]
    ColumnMissing { column: String },
    #[error("column '{column}' is not in the newer schema; a column that was stored stays")]
    ColumnGone { column: String },
    #[error("column '{column}' has type {got}; expected {expected}")]
    ColumnType {
        column: String,
        expected: Box<DataType>,
        got: Box<DataType>,
    },
    #[error("column {asked} was asked for; the batch has {have}, counted from 0")]
    NoColumn { asked: usize, have: usize },
    #[error("column '{column}' of type {data_type} has no fixed-width values to point at")]
    NoValues {
        column: String,
        data_type: Box<DataType>,
    },
    #[error("rows {start} to {end} are outside the batch of {rows} rows")]
    RowRange {
        start: usize,
        end: usize,
        rows: usize,
    },
    #[error("row {row} comes after row {last}; row numbers of a segment must grow")]
    RowOrder { row: u64, last: u64 },
    #[error("the list of row numbers is damaged at its byte {at}")]
    RowRuns { at: usize },
    #[error("{numbers} row numbers were given for {rows} rows; give one for each")]
    RowCount { numbers: u64, rows: u64 },
    #[error("{} would have no rows; write no segment then", path.display())]
    EmptySegment { path: PathBuf },
    #[error(
        "a {what} of {length} bytes is longer than an Arrow file can hold; use fewer columns or rows"
    )]
    TooLong { what: &'static str, length: u64 },
    #[error("{} is damaged: it has {got} bytes, expected {expected}; restore it from a replica or snapshot", path.display())]
    FileLength {
        path: PathBuf,
        expected: u64,
        got: u64,
    },
    #[error(
        "{} is damaged: the {length} bytes at offset {offset} have checksum {got:#010x}, expected {expected:#010x}; restore it from a replica or snapshot",
        path.display()
    )]
    Checksum {
        path: PathBuf,
        offset: u64,
        length: u64,
        expected: u32,
        got: u32,
    },
    #[error("{} is damaged: no valid {what} at offset {offset}; restore it from a replica or snapshot", path.display())]
    Damaged {
        path: PathBuf,
        offset: u64,
        what: &'static str,
    },
    #[error("{} is damaged: the batch at offset {offset} is not valid ({source}); restore it from a replica or snapshot", path.display())]
    SegmentBatch {
        path: PathBuf,
        offset: u64,
        source: Box<Error>,
    },
    #[error("{} was written by a newer version (format {found}, this version reads up to {supported}); use that version", path.display())]
    NewerVersion {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    #[error(
        "dataset '{dataset}' of the manifest is wrong: {what}; restore the manifest from a snapshot"
    )]
    Manifest { dataset: String, what: &'static str },
    #[error("the manifest cannot be read: {0}; restore it from a snapshot")]
    ManifestJson(#[source] serde_json::Error),
    #[error("the id column has type {data_type}; expected an integer or a string type")]
    IdType { data_type: Box<DataType> },
    #[error("{key} cannot be an id among {kind}; give one of the dataset's type")]
    IdKind { key: String, kind: &'static str },
    #[error("row {row} of the id column has {got} bytes; an id has at most {limit}")]
    IdTooLong {
        row: usize,
        got: usize,
        limit: usize,
    },
    #[error("row {row} of the id column is null; give every row an id")]
    NullId { row: usize },
    #[error("the disk refuses: {0}")]
    Disk(#[from] longbow_disk::Error),
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
}
