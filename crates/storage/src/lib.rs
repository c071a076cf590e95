//! Rows at rest: Arrow batches as they came, segments of them on disk, and what says which rows are there.
//!
//! | type | what it is |
//! |---|---|
//! | [`Batch`] | one Arrow IPC message, checked once, its columns pointing into its bytes |
//! | [`Segment`] | an immutable, mapped Arrow file of batches with their row numbers |
//! | [`RowRuns`] | the row numbers of a segment |
//! | [`Tombstones`] | the rows of segments that are dead |
//! | [`IdMap`] | which row holds an id now |
//! | [`Compactor`] | writes segments of good size from small batches and living rows |
//! | [`Manifest`] | the files that a node's checkpoint is made of |
//! | [`Dictionaries`] | reads dictionary-encoded streams into plain columns |
//!
//! It is *not* a database: it knows no log, no index, no queries, no network and no clock, it starts no threads and
//! takes no locks. The engine decides what is written when, and what a row number means; storage writes it and finds
//! it again. It touches files through [`longbow_disk::Disk`] alone.
//!
//! Invariants:
//!
//! * The bytes of a message are kept. What came off the wire goes to the log, into the segment and out again
//!   unchanged, unless it was compressed, of Arrow metadata V4, or misaligned for its types.
//! * What a [`Batch`] lets you see is valid: no offset leads outside, all text is UTF-8. It is checked when the
//!   batch is made, from untrusted bytes, without panics and without allocations beyond [`MAX_INFLATED_BYTES`].
//! * Row numbers grow within a segment and from one to the next, and compaction keeps them.
//! * Every file is checksummed (CRC-32C) and carries a version. Damage is an error that names the file and the
//!   place; a newer version is refused as such. Files of older versions open: the tests keep one of each.
//! * Files are written once, under new names, and are safe before the manifest names them. The manifest is replaced
//!   as a whole.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use arrow_array::{Int64Array, RecordBatch};
//! use longbow_disk::MemoryDisk;
//! use longbow_storage::{Batch, IdMap, Key, Segment, write_segment};
//!
//! let ids = Int64Array::from(vec![10, 20, 10]);
//! let rows = RecordBatch::try_from_iter([("id", Arc::new(ids) as _)])?;
//! let batch = Batch::from_record_batch(&rows)?;
//!
//! // Rows 5, 6 and 7; the id 10 of row 5 is replaced by that of row 7.
//! let mut ids = IdMap::new(rows.column(0).data_type())?;
//! let mut dead = Vec::new();
//! ids.insert_column(&batch, 0, 5, &mut |row| dead.push(row))?;
//! assert_eq!(dead, [5]);
//!
//! let disk = MemoryDisk::new();
//! let path = Path::new("rows-1.arrow");
//! let numbers = std::iter::once(5..8).collect();
//! let meta = write_segment(&disk, path, &rows.schema(), &[batch], &numbers, true)?;
//! let segment = Segment::open(&disk, path, &meta)?;
//! let row = ids.get(&Key::Int(10)).expect("it was inserted");
//! assert_eq!(segment.locate(row), Some((0, 2)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
mod checksum;
mod compact;
mod decode;
mod dictionaries;
mod envelope;
mod error;
mod id_map;
mod id_runs;
mod id_table;
mod int_ids;
mod layout;
mod manifest;
mod message;
mod row_ranks;
mod row_runs;
mod schema;
mod segment;
mod segment_writer;
mod tombstones;

pub use batch::{Batch, coalesce};
pub use checksum::crc32c;
pub use compact::{Compactor, Sizes, living, merge};
pub use dictionaries::Dictionaries;
pub use error::{Error, Result};
pub use id_map::{IdKind, IdMap, Key, MAX_ID_BYTES, check_id_lengths, key_at};
pub use layout::check_schema;
pub use manifest::{DatasetManifest, FileRef, IndexRef, MANIFEST_VERSION, Manifest, TextRef};
pub use message::{MAX_BATCH_ROWS, MAX_INFLATED_BYTES};
pub use row_runs::RowRuns;
pub use schema::{schema_from_message, schema_from_text, schema_to_message, schema_to_text};
pub use segment::{Segment, SegmentMeta};
pub use segment_writer::{SegmentWriter, write_segment};
pub use tombstones::{TOMBSTONES_VERSION, Tombstones};
