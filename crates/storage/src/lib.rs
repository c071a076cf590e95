//! Row storage.
#![forbid(unsafe_code)]

mod batch;
mod checksum;
mod compact;
mod decode;
mod dictionaries;
mod envelope;
mod error;
mod id_map;
mod id_table;
mod layout;
mod manifest;
mod message;
mod row_runs;
mod schema;
mod segment;
mod segment_writer;
mod tombstones;

pub use batch::{Batch, coalesce};
pub use checksum::crc32c;
pub use compact::{Compactor, Sizes, merge};
pub use dictionaries::Dictionaries;
pub use error::{Error, Result};
pub use id_map::{IdMap, Key, MAX_ID_BYTES, key_at};
pub use layout::check_schema;
pub use manifest::{DatasetManifest, FileRef, IndexRef, MANIFEST_VERSION, Manifest};
pub use message::{MAX_BATCH_ROWS, MAX_INFLATED_BYTES};
pub use row_runs::RowRuns;
pub use schema::{schema_from_message, schema_from_text, schema_to_message, schema_to_text};
pub use segment::{Segment, SegmentMeta};
pub use segment_writer::{SegmentWriter, write_segment};
pub use tombstones::{TOMBSTONES_VERSION, Tombstones};
