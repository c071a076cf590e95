//! The engine: datasets, the write path and the read path, on one data folder.
//!
//! It is what the server serves, and what a program links that wants no server. It knows no network.
//!
//! **The life of a write.** [`Engine::put`] begins a stream; each Arrow message is checked, handed to the log as it
//! came, applied by one thread at a time in the order of the log, and acknowledged. From then on every search finds it, and no
//! end of the process loses it; a loss of power loses it only if the acknowledgement said `durable: false`.
//!
//! **The life of a query.** A reader takes a [`View`]: one moment of a dataset, immutable. The graph is walked, rows
//! that are not yet in it are scanned, and the columns asked for are gathered at the end.
//!
//! # What it is not
//! - Not a server: messages come as bytes, answers go as Arrow batches.
//! - Not a query language: a [`Filter`] says which rows it wants; what it is written in is the `query` crate's.
//! - Not replicated: one node, one shard a dataset.
//!
//! # Invariants
//! - Entries of the log are applied in order, each once, by one thread at a time; the same entries give the same state.
//! - A row number is given once and never changes; an id has at most one living row in any view.
//! - Readers take no lock that a writer holds while it works.
//! - What a manifest names was synced before the manifest was written, and is removed only after the next one was.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use arrow_array::{FixedSizeListArray, Int64Array, RecordBatch, types::Float32Type};
//! use longbow_engine::{Engine, Options, SearchRequest};
//!
//! let folder = tempfile::tempdir()?;
//! let engine = Engine::open(Arc::new(longbow_disk::RealDisk), Options::new(folder.path()))?;
//! let vectors = [Some(vec![Some(0.0), Some(1.0)]), Some(vec![Some(3.0), Some(4.0)])];
//! let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
//! let ids = Int64Array::from(vec![7, 8]);
//! let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as _), ("vector", Arc::new(vectors) as _)])?;
//! let mut put = engine.put("words", &batch.schema())?;
//! let ack = put.record_batch(&batch)?.wait()?;
//! assert_eq!(ack.rows, 2);
//! let reply = engine.search("words", &SearchRequest::nearest(vec![3.0, 3.0], 1))?;
//! assert_eq!(reply.batch.num_rows(), 1);
//! engine.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod answer;
mod applier;
mod apply;
mod backup;
mod bell;
mod block_files;
mod brief;
mod catalog;
mod changed;
mod changes;
mod checkpoint;
mod coded_tail;
mod coder;
mod column_index;
mod compact;
mod configured;
mod cursor;
mod dataset;
mod dead;
mod deadline;
mod dice;
mod diversity;
mod effort;
mod engine;
mod entry;
mod error;
mod exact;
mod examples;
mod explain;
mod feed;
mod filter;
mod folder;
mod fusion;
mod gather;
mod graph;
mod graph_options;
mod groups;
mod helpers;
mod hit;
mod hot;
mod id;
mod index_choice;
mod index_kind;
mod index_policy;
mod indexer;
mod living;
mod loading;
mod log_entries;
mod maintenance;
mod memory;
mod mend;
mod moment;
mod moving;
mod observer;
mod options;
mod originals;
mod plan;
mod put;
mod quantization;
mod queue;
mod range;
mod recall;
mod recall_target;
mod recover;
mod remembered;
mod repair;
mod replay;
mod reply;
mod room;
mod rows;
mod sample;
mod scan;
mod schema;
mod score_parts;
mod seal;
mod search;
mod search_request;
mod shape;
mod shared;
mod slow;
mod strategy;
mod sweep;
mod table;
mod tail;
mod text;
mod text_column;
mod text_file;
mod text_index;
mod text_merge;
mod time_limits;
mod turn;
mod unsaved;
mod unseen;
mod vacuum;
mod vectors;
mod verify;
mod view;

pub use answer::Beside;
pub use apply::Applied;
pub use backup::{Backup, BackupCause, BackupError};
pub use block_files::BlockFiles;
pub use catalog::{Catalog, DEFAULT_NAMESPACE, check_name, namespace_of};
pub use changes::{Change, ChangeKind};
pub use column_index::ColumnIndex;
pub use cursor::Cursor;
pub use dataset::Dataset;
pub use deadline::Deadline;
pub use engine::Engine;
pub use error::{Class, Error, Result};
pub use examples::{Examples, MAX_EXAMPLES};
pub use explain::{Explain, FilterExplained};
pub use feed::{Feed, Start};
pub use filter::{ColumnRanges, Filter, FilterError, Predicate, ValueRange, passing};
pub use folder::Folder;
pub use fusion::Fusion;
pub use graph::{EFFORT_A_POSTING, Graph};
pub use graph_options::GraphOptions;
pub use groups::Grouping;
pub use id::Id;
pub use index_choice::{Candidate, ChoiceOptions, choose};
pub use index_kind::{INDEX_KEY, IndexKind};
pub use index_policy::IndexPolicy;
pub use log_entries::LogEntry;
pub use memory::Memory;
pub use moment::Moment;
pub use options::Options;
pub use plan::{ColumnPlan, Load, Plan};
pub use put::{PutOptions, PutSession};
pub use quantization::{QUANTIZATION_KEY, Quantization};
pub use recall_target::RECALL_TARGET_KEY;
pub use recover::Recovered;
pub use repair::Repair;
pub use reply::{QUERY_KEY, QueryInfo, SearchReply};
pub use scan::{Piece, Scan, ScanRequest};
pub use schema::{DatasetSchema, METRIC_KEY, VectorColumn, metric_name};
pub use score_parts::SCORE_PARTS;
pub use search::{MAX_EF, MAX_K};
pub use search_request::SearchRequest;
pub use shape::Shape;
pub use shared::Pending;
pub use strategy::Strategy;
pub use text::{TextFound, TextQuery};
pub use text_column::{TEXT_KEY, TextColumn};
pub use verify::{FileDamage, FileKind, Progress, Tally, Verification};
pub use view::View;

pub use longbow_index::{
    HnswParams, Metric, QuantizedParams, Query as SpaceQuery, RowBytes, Scalar, Space,
};
pub use longbow_log::{Cut, Survey, SyncMethod, SyncMode, Torn};
pub use longbow_storage::{Batch, IdKind, schema_from_message};
