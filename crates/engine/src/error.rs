//! What can go wrong in the engine, each with a stable code.

use std::time::Duration;

use crate::backup::BackupError;
use crate::filter::FilterError;

/// The class of an error: what a client may do about it. The server maps it to a gRPC status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The thing asked for does not exist.
    NotFound,
    /// The request is wrong and will stay wrong.
    InvalidArgument,
    /// A limit of memory, disk or rate is reached; later may work.
    ResourceExhausted,
    /// The node cannot serve this now.
    Unavailable,
    /// The state of the node or dataset forbids it until someone acts.
    FailedPrecondition,
    /// Asked for something that this version does not have.
    Unimplemented,
    /// The request's own time limit passed.
    DeadlineExceeded,
    /// Our fault.
    Internal,
}

/// An error of the engine. The text holds the wrong value and what to do.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant is its documentation"
)]
pub enum Error {
    #[error(
        "dataset '{0}' does not exist; list what exists with ListFlights, or create it by a DoPut"
    )]
    DatasetNotFound(String),
    #[error("dataset '{name}' does not exist; did you mean '{near}'?")]
    DatasetMistyped { name: String, near: String },
    #[error("id {id} is not in dataset '{dataset}'{kinds}; nothing was changed")]
    IdNotFound {
        dataset: String,
        id: String,
        kinds: &'static str,
    },
    #[error("namespace '{0}' does not exist; create it with CreateNamespace")]
    NamespaceNotFound(String),
    #[error("namespace '{name}' still holds {datasets} dataset(s); delete them first")]
    NamespaceNotEmpty { name: String, datasets: usize },
    #[error(
        "'{name}' is not a name: {why}; use 1 to 255 characters without control characters, '..' or a leading '{{' or '/'"
    )]
    BadName { name: String, why: &'static str },
    #[error(
        "column '{column}' has the type {got}, which it would keep for ever; leave it out until it has a value, or give it a type"
    )]
    NullColumn { column: String, got: String },
    #[error("the schema has no column 'id'; add one of an integer or string type")]
    NoIdColumn,
    #[error("column 'id' has type {got}; expected an integer or a string type")]
    BadIdType { got: String },
    #[error("row {row} of column '{column}' is null; every row needs a value there")]
    NullValue { column: String, row: usize },
    #[error("the schema has no vector column; add one FixedSizeList<T>[dim] of a number type")]
    NoVectorColumn,
    #[error("column '{column}' has dimension {dim}; expected 1 to {max}")]
    BadDimension {
        column: String,
        dim: i64,
        max: usize,
    },
    #[error("column '{column}' appears twice in the schema; give each column a name of its own")]
    DuplicateColumn { column: String },
    #[error("metric '{got}' is unknown; expected euclidean, cosine or dot_product")]
    UnknownMetric { got: String },
    #[error(
        "dataset '{dataset}' has metric {expected}, got {got}; the metric is fixed by the first put"
    )]
    MetricChanged {
        dataset: String,
        expected: String,
        got: String,
    },
    #[error("column '{column}' has longbow.quantization '{got}': {why}")]
    BadQuantization {
        column: String,
        got: String,
        why: &'static str,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' has longbow.quantization {expected}, got {got}; it is fixed by the first put with the column, so leave it out or put into a new dataset"
    )]
    QuantizationChanged {
        dataset: String,
        column: String,
        expected: String,
        got: String,
    },
    #[error("column '{column}' has longbow.index '{got}': {why}")]
    BadIndex {
        column: String,
        got: String,
        why: &'static str,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' has longbow.index {expected}, got {got}; it is fixed by the first put with the column, so leave it out or put into a new dataset"
    )]
    IndexChanged {
        dataset: String,
        column: String,
        expected: String,
        got: String,
    },
    #[error("column '{column}' has longbow.text '{got}': {why}")]
    BadText {
        column: String,
        got: String,
        why: &'static str,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' has longbow.text {expected}, got {got}; it is fixed by the first put with the column, so leave it out or put into a new dataset"
    )]
    TextChanged {
        dataset: String,
        column: String,
        expected: String,
        got: String,
    },
    #[error("column '{column}' has longbow.recall_target '{got}': {why}")]
    BadRecallTarget {
        column: String,
        got: String,
        why: &'static str,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' has longbow.recall_target {expected}, got {got}; it is fixed by the first put with the column, so leave it out, or give recall_target with each search"
    )]
    RecallTargetChanged {
        dataset: String,
        column: String,
        expected: String,
        got: String,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' has another type: expected {expected}, got {got}; put the expected type or a new column name"
    )]
    TypeChanged {
        dataset: String,
        column: String,
        expected: String,
        got: String,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' is missing from this put; every put needs the id and all vector columns"
    )]
    ColumnMissing { dataset: String, column: String },
    #[error(
        "the batch has no rows; send at least one, or only a schema to create an empty dataset"
    )]
    EmptyBatch,
    #[error(
        "row {row} of vector column '{column}' holds a value that is not finite; remove NaN and infinity before the put"
    )]
    NotFinite { column: String, row: usize },
    #[error(
        "the query vector for '{column}' holds a value that is not finite at position {position}; remove NaN and infinity"
    )]
    QueryNotFinite { column: String, position: usize },
    #[error(
        "row {row} of vector column '{column}' holds {value:e}; with elements beyond {most:e} distances overflow, so scale all vectors of the column down before the put"
    )]
    TooLarge {
        column: String,
        row: usize,
        value: f32,
        most: f32,
    },
    #[error(
        "the query vector for '{column}' holds {value:e} at position {position}; with elements beyond {most:e} distances overflow, so scale it down like the vectors of the column"
    )]
    QueryTooLarge {
        column: String,
        position: usize,
        value: f32,
        most: f32,
    },
    #[error(
        "the query vector for '{column}' has the wrong dimension: expected {expected}, got {got}"
    )]
    QueryDimension {
        column: String,
        expected: usize,
        got: usize,
    },
    #[error("the search has no vector; give 'vector' or 'vectors'")]
    NoQueryVector,
    #[error("the row of id {id} has no vector in '{column}'; leave it out of the examples")]
    NoVectorOf { id: String, column: String },
    #[error("k is {got}; expected 1 to {max}")]
    BadK { got: i64, max: usize },
    #[error("{field} is {got}; expected {expected}")]
    BadValue {
        field: &'static str,
        got: String,
        expected: &'static str,
    },
    #[error("dataset '{dataset}' has no column '{column}'{}; it has {have}", did_you_mean(.near))]
    ColumnNotFound {
        dataset: String,
        column: String,
        near: Option<String>,
        have: String,
    },
    #[error(
        "column '{column}' of dataset '{dataset}' is not a vector column; its vector columns are {have}"
    )]
    NotAVectorColumn {
        dataset: String,
        column: String,
        have: String,
    },
    #[error("{0}")]
    Filter(Box<dyn FilterError>),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(
        "full text is not searched in column '{column}' of dataset '{dataset}'; its text columns are {have}"
    )]
    NotATextColumn {
        dataset: String,
        column: String,
        have: String,
    },
    #[error(
        "dataset '{0}' has no column to search full text in; put one of strings, or see LONGBOW_HYBRID_TEXT_COLUMNS and longbow.text"
    )]
    NoTextColumn(String),
    #[error("text_query: {0}")]
    TextQuery(longbow_text::QueryError),
    #[error("{0} is not in this version of Longbow; leave it out of the request")]
    Unimplemented(String),
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Storage(#[from] longbow_storage::Error),
    #[error("{0}")]
    Log(#[from] longbow_log::Error),
    #[error(
        "the data folder cannot be made: {0}; name a folder, or a place for one, that this user may write to"
    )]
    FolderRefused(longbow_disk::Error),
    #[error("the disk refuses: {0}; see that the path and the disk are sound")]
    Disk(#[from] longbow_disk::Error),
    #[error("the index refuses: {0}")]
    Index(#[from] longbow_index::Error),
    #[error("the text index refuses: {0}")]
    Text(longbow_text::Error),
    #[error("the text file '{file}' is damaged; the text index is built anew from the rows")]
    BadTextFile { file: String },
    #[error("arrow: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    #[error("the graph file '{file}' is damaged; it is built anew from the rows")]
    BadGraph { file: String },
    #[error(
        "the index was saved as {got}, and the column has {expected} now; it is built anew from the rows"
    )]
    OtherGraph {
        expected: &'static str,
        got: &'static str,
    },
    #[error(
        "checkpoints have stopped, because the disk failed to sync one: {0}; nothing acknowledged is lost, the log keeps it; restart the node when the disk is repaired"
    )]
    Unsure(String),
    #[error(
        "memory limit: {used} bytes in use, {asked} more asked for, limit {limit}; delete data, or raise LONGBOW_MEMORY_LIMIT"
    )]
    MemoryLimit { used: u64, asked: u64, limit: u64 },
    #[error(
        "disk space: {free} bytes free at {path}, {needed} needed; free space, deletes still work"
    )]
    DiskSpace {
        path: String,
        free: u64,
        needed: u64,
    },
    #[error(
        "{path} holds no log, but the folder around it has a checkpoint or rows; restore the log from a backup or a replica, or choose another data folder"
    )]
    LogMissing { path: String },
    #[error("{holder}")]
    Locked { holder: String },
    #[error(
        "{path} is no data folder: it holds no log, no MANIFEST and no datasets; give the folder that the node is started with"
    )]
    NotADataFolder { path: String },
    #[error(
        "the log entry {index} cannot be read: {what}; the data folder is damaged or of a newer version"
    )]
    BadEntry { index: u64, what: &'static str },
    #[error("the node no longer takes writes: {0}; restart it when the cause is gone")]
    Stopped(String),
    #[error(
        "dataset '{dataset}' has new columns as of sequence {sequence}, and a feed of one dataset keeps one schema; follow it anew from sequence {sequence}"
    )]
    SchemaGrew { dataset: String, sequence: u64 },
    #[error(
        "the changes from {from} on were asked for, and the log ends before {next}: it is another one, or older than what was followed; begin anew from the rows"
    )]
    AheadOfLog { from: u64, next: u64 },
    #[error(
        "the evaluation of the filter panicked: {0}; report this and filter otherwise, the node goes on"
    )]
    FilterPanicked(String),
    #[error("the search did not end within {0:?}; raise timeout_ms or lower ef")]
    Timeout(Duration),
}

/// The end of a text on a name that is not known.
fn did_you_mean(near: &Option<String>) -> String {
    let hint = near
        .as_ref()
        .map(|name| format!("; did you mean '{name}'?"));
    hint.unwrap_or_default()
}

impl Error {
    /// A stable, machine-readable name of the error; clients may match on it.
    pub fn code(&self) -> &'static str {
        match self {
            Error::DatasetNotFound(_) | Error::DatasetMistyped { .. } => "dataset_not_found",
            Error::IdNotFound { .. } => "id_not_found",
            Error::NamespaceNotFound(_) => "namespace_not_found",
            Error::NamespaceNotEmpty { .. } => "namespace_not_empty",
            Error::BadName { .. } => "bad_name",
            Error::NullColumn { .. } => "null_column",
            Error::NoIdColumn => "no_id_column",
            Error::BadIdType { .. } => "bad_id_type",
            Error::NullValue { .. } => "null_value",
            Error::NoVectorColumn => "no_vector_column",
            Error::BadDimension { .. } => "bad_dimension",
            Error::DuplicateColumn { .. } => "duplicate_column",
            Error::UnknownMetric { .. } => "unknown_metric",
            Error::MetricChanged { .. } => "metric_changed",
            Error::BadIndex { .. } => "bad_index",
            Error::IndexChanged { .. } => "index_changed",
            Error::BadQuantization { .. } => "bad_quantization",
            Error::QuantizationChanged { .. } => "quantization_changed",
            Error::BadRecallTarget { .. } => "bad_recall_target",
            Error::RecallTargetChanged { .. } => "recall_target_changed",
            Error::BadText { .. } => "bad_text",
            Error::TextChanged { .. } => "text_changed",
            Error::NotATextColumn { .. } | Error::NoTextColumn(_) => "not_a_text_column",
            Error::TextQuery(_) => "bad_text_query",
            Error::Text(_) => "text_refused",
            Error::BadTextFile { .. } => "bad_text_file",
            Error::TypeChanged { .. } => "schema_changed",
            Error::ColumnMissing { .. } => "column_missing",
            Error::EmptyBatch => "empty_batch",
            Error::NotFinite { .. } | Error::QueryNotFinite { .. } => "not_finite",
            Error::TooLarge { .. } | Error::QueryTooLarge { .. } => "value_too_large",
            Error::QueryDimension { .. } => "dimension_mismatch",
            Error::NoQueryVector => "no_query_vector",
            Error::NoVectorOf { .. } => "no_vector",
            Error::BadK { .. } => "bad_k",
            Error::BadValue { .. } => "bad_value",
            Error::ColumnNotFound { .. } => "column_not_found",
            Error::NotAVectorColumn { .. } => "not_a_vector_column",
            Error::Filter(error) => error.code(),
            Error::Backup(error) => error.meaning().0,
            Error::Unimplemented(_) => "unimplemented",
            Error::Storage(error) => of_storage(error).0,
            Error::Log(error) => of_log(error).0,
            Error::FolderRefused(_) => "data_folder_refused",
            Error::Disk(error) if error.is_no_space() => "disk_space",
            Error::Disk(_) => "disk_refused",
            Error::Index(_) => "index_refused",
            Error::Arrow(_) => "arrow",
            Error::BadGraph { .. } | Error::OtherGraph { .. } => "bad_graph",
            Error::Unsure(_) => "checkpoints_stopped",
            Error::MemoryLimit { .. } => "memory_limit",
            Error::DiskSpace { .. } => "disk_space",
            Error::LogMissing { .. } => "data_damaged",
            Error::Locked { .. } => "data_folder_locked",
            Error::NotADataFolder { .. } => "no_data_folder",
            Error::BadEntry { .. } => "bad_log_entry",
            Error::Stopped(_) => "node_stopped",
            Error::SchemaGrew { .. } => "schema_grew",
            Error::AheadOfLog { .. } => "ahead_of_log",
            Error::FilterPanicked(_) => "filter_panicked",
            Error::Timeout(_) => "timeout",
        }
    }

    /// What a client may do about it.
    pub fn class(&self) -> Class {
        match self {
            Error::DatasetNotFound(_)
            | Error::DatasetMistyped { .. }
            | Error::IdNotFound { .. }
            | Error::NamespaceNotFound(_) => Class::NotFound,
            Error::NamespaceNotEmpty { .. }
            | Error::Locked { .. }
            | Error::SchemaGrew { .. }
            | Error::AheadOfLog { .. }
            | Error::FolderRefused(_)
            | Error::NotADataFolder { .. } => Class::FailedPrecondition,
            Error::Unimplemented(_) => Class::Unimplemented,
            Error::Filter(error) => error.class(),
            Error::Backup(error) => error.meaning().1,
            Error::MemoryLimit { .. } | Error::DiskSpace { .. } => Class::ResourceExhausted,
            Error::Disk(error) if error.is_no_space() => Class::ResourceExhausted,
            Error::Storage(error) => of_storage(error).1,
            Error::Log(error) => of_log(error).1,
            Error::Stopped(_) => Class::Unavailable,
            Error::Timeout(_) => Class::DeadlineExceeded,
            Error::FilterPanicked(_)
            | Error::Disk(_)
            | Error::Index(_)
            | Error::Text(_)
            | Error::BadTextFile { .. }
            | Error::Arrow(_)
            | Error::BadEntry { .. }
            | Error::BadGraph { .. }
            | Error::OtherGraph { .. }
            | Error::LogMissing { .. }
            | Error::Unsure(_) => Class::Internal,
            _ => Class::InvalidArgument,
        }
    }
}

/// Queries that cannot be read are the client's, all else is ours.
impl From<longbow_text::Error> for Error {
    fn from(error: longbow_text::Error) -> Self {
        match error {
            longbow_text::Error::Query(error) => Error::TextQuery(error),
            other => Error::Text(other),
        }
    }
}

/// The remedy for an error of storage whose own text has none.
fn remedy(error: &longbow_storage::Error) -> &'static str {
    match error {
        longbow_storage::Error::FieldType { .. } => {
            "; leave the column out or send it as another type"
        }
        longbow_storage::Error::Disk(error) if error.is_not_found() => {
            "; restore the file from a backup or a replica"
        }
        longbow_storage::Error::Disk(_) => "; see that the path and the disk are sound",
        _ if of_storage(error).0 == "bad_batch" => {
            "; nothing of the message was taken, write it anew with an Arrow library"
        }
        _ => "",
    }
}

/// What an error of storage means to a client: its code and its class.
fn of_storage(error: &longbow_storage::Error) -> (&'static str, Class) {
    use longbow_storage::Error as Storage;
    match error {
        Storage::NewerVersion { .. } => ("newer_version", Class::FailedPrecondition),
        Storage::FileLength { .. }
        | Storage::Checksum { .. }
        | Storage::Damaged { .. }
        | Storage::SegmentBatch { .. }
        | Storage::Manifest { .. }
        | Storage::ManifestJson(_) => ("data_damaged", Class::Internal),
        // The manifest names it.
        Storage::Disk(error) if error.is_not_found() => ("data_damaged", Class::Internal),
        Storage::Disk(_) => ("disk_refused", Class::Internal),
        Storage::UnsupportedType { .. } | Storage::FieldType { .. } => {
            ("unsupported_type", Class::InvalidArgument)
        }
        Storage::IdTooLong { .. } | Storage::NullId { .. } => ("bad_id", Class::InvalidArgument),
        _ => ("bad_batch", Class::InvalidArgument),
    }
}

/// What an error of the log means to a client: its code and its class.
fn of_log(error: &longbow_log::Error) -> (&'static str, Class) {
    use longbow_log::Error as Log;
    match error {
        Log::Newer { .. } => ("newer_version", Class::FailedPrecondition),
        Log::Damaged { .. } | Log::Missing { .. } => ("data_damaged", Class::Internal),
        Log::Replay { .. } => ("replay_failed", Class::Internal),
        Log::TooLong { .. } => ("entry_too_long", Class::InvalidArgument),
        // To ask again would not bring it back.
        Log::Purged { .. } => ("log_purged", Class::FailedPrecondition),
        Log::QueueFull { .. } => ("log_queue_full", Class::ResourceExhausted),
        _ => ("log_refused", Class::Unavailable),
    }
}

/// Result of the engine.
pub type Result<T> = std::result::Result<T, Error>;
